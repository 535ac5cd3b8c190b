# SPDX-License-Identifier: Apache-2.0

# CCMR_BENCH
# ----------
# --enable-bench: cucoremr-bench, which needs zlib and jansson. Without a word
# it is built where both are there. Sets ccmr_bench to yes or to the reason
# why not, and the conditional BUILD_BENCH.
AC_DEFUN([CCMR_BENCH], [
  AC_ARG_ENABLE([bench],
    [AS_HELP_STRING([--enable-bench],
      [build cucoremr-bench (default: if zlib and jansson are there)])],
    [], [enable_bench=check])
  AS_IF([test "x$enable_bench" = xno], [ccmr_bench="no (not wanted)"], [
    ccmr_bench=yes
    PKG_CHECK_MODULES([ZLIB], [zlib], [], [ccmr_bench="no (zlib is missing)"])
    PKG_CHECK_MODULES([JANSSON], [jansson >= 2.10], [],
      [ccmr_bench="no (jansson is missing)"])
    AS_IF([test "x$enable_bench" = xyes && test "x$ccmr_bench" != xyes],
      [AC_MSG_ERROR([--enable-bench: $ccmr_bench])])
  ])
  AM_CONDITIONAL([BUILD_BENCH], [test "x$ccmr_bench" = xyes])
])
