# SPDX-License-Identifier: Apache-2.0

# CCMR_SANITIZE
# -------------
# --enable-sanitize=address,undefined or =thread instruments all that is
# built: the flags become part of CC, so that no link and no test that
# compiles something goes without them. Sets ccmr_sanitize to the list or no
# and the conditionals SANITIZE and SANITIZE_THREAD. To be called right
# after AC_PROG_CC.
AC_DEFUN([CCMR_SANITIZE], [
  AC_ARG_ENABLE([sanitize],
    [AS_HELP_STRING([--enable-sanitize=LIST],
      [instrument with sanitizers: address,undefined or thread])],
    [], [enable_sanitize=no])
  AS_CASE([$enable_sanitize],
    [yes], [ccmr_sanitize=address,undefined],
    [address|undefined|address,undefined|thread|no],
      [ccmr_sanitize=$enable_sanitize],
    [AC_MSG_ERROR([--enable-sanitize=$enable_sanitize is not known: say address,undefined or thread])])
  AS_IF([test "x$ccmr_sanitize" != xno], [
    CC="$CC -fsanitize=$ccmr_sanitize -fno-omit-frame-pointer"
    AS_CASE([$ccmr_sanitize],
      [*undefined*], [CC="$CC -fno-sanitize-recover=all"])
    AC_MSG_CHECKING([whether programs can be made with $ccmr_sanitize sanitizers])
    AC_LINK_IFELSE([AC_LANG_PROGRAM()], [AC_MSG_RESULT([yes])], [
      AC_MSG_RESULT([no])
      AC_MSG_ERROR([$CC makes no program])
    ])
  ])
  AC_SUBST([CCMR_SANITIZE], [$ccmr_sanitize])
  AM_CONDITIONAL([SANITIZE], [test "x$ccmr_sanitize" != xno])
  AM_CONDITIONAL([SANITIZE_THREAD], [test "x$ccmr_sanitize" = xthread])
])
