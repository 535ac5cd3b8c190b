# SPDX-License-Identifier: Apache-2.0

# CCMR_CUDA(MINIMUM)
# ------------------
# --with-cuda[=DIR] finds cuda.h, of CUDA_VERSION MINIMUM or later. Nothing is
# linked: the driver is loaded at run time. An explicit DIR without a usable
# header is an error; otherwise the compiler's own path, $CUDA_HOME,
# $CUDA_PATH, /usr/local/cuda and /usr/local/cuda-* are looked at, in this
# order. Sets CUDA_CPPFLAGS, CCMR_CUDA_DIR (what to give to --with-cuda to get
# the same header) and ccmr_cuda_version.
AC_DEFUN([CCMR_CUDA], [
  AC_ARG_WITH([cuda],
    [AS_HELP_STRING([--with-cuda=DIR],
      [where CUDA's headers are (DIR/include/cuda.h)])],
    [], [with_cuda=yes])
  AC_SUBST([CUDA_CPPFLAGS])
  AC_SUBST([CCMR_CUDA_DIR])
  CUDA_CPPFLAGS=
  CCMR_CUDA_DIR=
  ccmr_cuda_version=
  ccmr_cuda_seen=

  AC_MSG_CHECKING([for cuda.h])
  AS_CASE([$with_cuda],
    [no], [AC_MSG_ERROR([cuda.h is needed to build: --without-cuda makes no sense])],
    [yes], [
      CCMR_CUDA_TRY([], [$1])
      for ccmr_dir in "$CUDA_HOME" "$CUDA_PATH" /usr/local/cuda \
          /usr/local/cuda-*; do
        AS_IF([test -z "$ccmr_cuda_version" && test -n "$ccmr_dir"],
          [CCMR_CUDA_TRY_DIR([$ccmr_dir], [$1])])
      done
      AS_IF([test -z "$ccmr_cuda_version"], [
        AC_MSG_RESULT([no$ccmr_cuda_seen])
        AC_MSG_ERROR([no cuda.h of version $1 or later found.
Give the toolkit's directory with --with-cuda=DIR, or run ./dev setup, which
gets the header alone.])
      ])
    ], [
      AS_CASE([$with_cuda],
        [*[[\'\"\`\$\\\#]]*],
          [AC_MSG_ERROR([--with-cuda=$with_cuda: quotes, dollars, hashes and backslashes in the name can not be put into a makefile])],
        [[[!/]]*],
          [AC_MSG_ERROR([--with-cuda=$with_cuda: the directory must be absolute])])
      CCMR_CUDA_TRY_DIR([$with_cuda], [$1])
      AS_IF([test -z "$ccmr_cuda_version"], [
        AC_MSG_RESULT([no$ccmr_cuda_seen])
        AC_MSG_ERROR([--with-cuda=$with_cuda: no usable cuda.h of version $1 or later there])
      ])
    ])
  AC_MSG_RESULT([$ccmr_cuda_version in ${CCMR_CUDA_DIR:-the compiler's path}])
  AS_IF([test -z "$CCMR_CUDA_DIR"], [CCMR_CUDA_DIR=yes])
])

# CCMR_CUDA_TRY_DIR(DIR, MINIMUM)
# -------------------------------
# Looks where a toolkit or a plain folder of headers has cuda.h.
AC_DEFUN([CCMR_CUDA_TRY_DIR], [
  for ccmr_include in "$1/include" "$1"/targets/*/include "$1"; do
    AS_IF([test -z "$ccmr_cuda_version" && test -f "$ccmr_include/cuda.h"], [
      CCMR_CUDA_TRY([$ccmr_include], [$2])
      AS_IF([test -n "$ccmr_cuda_version"], [
        CCMR_CUDA_DIR="$1"
        CUDA_CPPFLAGS="-isystem \"$ccmr_include\""
      ])
    ])
  done
])

# CCMR_CUDA_TRY(INCLUDE-DIR, MINIMUM)
# -----------------------------------
# Sets ccmr_cuda_version if the header there compiles and is new enough. It is
# named by its whole path, since a directory with spaces can't be said in
# CPPFLAGS during configure. An empty directory means the compiler's path.
AC_DEFUN([CCMR_CUDA_TRY], [
  AS_IF([test -n "$1"],
    [ccmr_header="\"$1/cuda.h\""], [ccmr_header="<cuda.h>"])
  AC_COMPILE_IFELSE(
    [AC_LANG_PROGRAM([[#include $ccmr_header
#if CUDA_VERSION < $2
#error too old
#endif]], [[return cuInit(0) == CUDA_SUCCESS;]])],
    [AC_COMPUTE_INT([ccmr_cuda_version], [CUDA_VERSION],
      [[#include $ccmr_header]], [ccmr_cuda_version=])],
    [AS_IF([test -n "$1"],
      [ccmr_cuda_seen="$ccmr_cuda_seen (the one in $1 is unusable or too old)"])])
])
