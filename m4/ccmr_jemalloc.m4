# SPDX-License-Identifier: Apache-2.0

# CCMR_JEMALLOC
# -------------
# --with-jemalloc: for the add-on libcucoremr-jemalloc alone; the library itself
# never links it. jemalloc must have its extended interface under plain names.
AC_DEFUN([CCMR_JEMALLOC], [
  CCMR_PACKAGE([jemalloc], [jemalloc >= 5], [build libcucoremr-jemalloc])
])
