# SPDX-License-Identifier: Apache-2.0

# CCMR_RMM
# --------
# --with-rmm=DIR: RMM as a peer of cucoremr-bench, in a library of its own. DIR
# is where the packages librmm-cu13 and rapids-logger of PyPI are installed or
# unpacked (a site-packages folder). Never looked for without being asked. Sets
# ccmr_rmm and the conditional HAVE_RMM.
AC_DEFUN([CCMR_RMM], [
  AC_ARG_WITH([rmm],
    [AS_HELP_STRING([--with-rmm=DIR],
      [RMM as a peer of cucoremr-bench; DIR has librmm and rapids_logger as
       their wheels do (default: no)])],
    [], [with_rmm=no])
  ccmr_rmm=no
  RMM_CXXFLAGS=
  RMM_LIBS=
  AS_IF([test "x$with_rmm" != xno], [
    AS_IF([test "x$ccmr_bench" != xyes],
      [AC_MSG_ERROR([--with-rmm: cucoremr-bench is not built])])
    AS_IF([test "x$CXX" = x],
      [AC_MSG_ERROR([--with-rmm: no C++ compiler was found])])
    AS_IF([test -f "$with_rmm/librmm/lib64/librmm.so" &&
        test -d "$with_rmm/rapids_logger/lib64"], [],
      [AC_MSG_ERROR([--with-rmm=$with_rmm: there is no librmm/lib64/librmm.so
        or no rapids_logger/lib64 in it])])
    for ccmr_lib in librmm rapids_logger; do
      RMM_CXXFLAGS="$RMM_CXXFLAGS -isystem $with_rmm/$ccmr_lib/include"
      RMM_LIBS="$RMM_LIBS $with_rmm/$ccmr_lib/lib64/$ccmr_lib.so"
      RMM_LIBS="$RMM_LIBS -Wl,-rpath,$with_rmm/$ccmr_lib/lib64"
    done
    RMM_LIBS=`AS_ECHO(["$RMM_LIBS"]) |
      sed 's|/rapids_logger\.so|/librapids_logger.so|'`
    RMM_CXXFLAGS="-isystem $with_rmm/librmm/include/rapids $RMM_CXXFLAGS"
    ccmr_rmm_cuda=
    for ccmr_dir in "$CCMR_CUDA_DIR" "$CUDA_HOME" "$CUDA_PATH" \
        /usr/local/cuda; do
      AS_IF([test -z "$ccmr_rmm_cuda" &&
          test -f "$ccmr_dir/include/cuda_runtime_api.h" &&
          test -f "$ccmr_dir/lib64/libcudart.so"],
        [ccmr_rmm_cuda=$ccmr_dir])
    done
    AS_IF([test -z "$ccmr_rmm_cuda"],
      [AC_MSG_ERROR([--with-rmm: the CUDA run time is needed, too; give the
        toolkit's directory with --with-cuda=DIR])])
    RMM_CXXFLAGS="$RMM_CXXFLAGS -isystem $ccmr_rmm_cuda/include"
    RMM_LIBS="$RMM_LIBS -L$ccmr_rmm_cuda/lib64 -lcudart"
    RMM_LIBS="$RMM_LIBS -Wl,-rpath,$ccmr_rmm_cuda/lib64"
    ccmr_rmm="yes ($with_rmm)"
  ])
  AC_SUBST([RMM_CXXFLAGS])
  AC_SUBST([RMM_LIBS])
  AM_CONDITIONAL([HAVE_RMM], [test "x$ccmr_rmm" != xno])
])
