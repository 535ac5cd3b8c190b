# SPDX-License-Identifier: Apache-2.0

# CCMR_PACKAGE(NAME, MODULE, PURPOSE)
# -----------------------------------
# An optional package with a pkg-config file: --with-NAME insists on it,
# --without-NAME does without. Sets NAME_CFLAGS and NAME_LIBS (in capitals),
# ccmr_have_NAME to yes or no, and the conditional HAVE_NAME.
AC_DEFUN([CCMR_PACKAGE], [
  AC_ARG_WITH([$1],
    [AS_HELP_STRING([--with-$1], [$3 (default: if it is there)])],
    [], [with_$1=check])
  ccmr_have_$1=no
  AS_CASE([$with_$1],
    [no], [],
    [yes|check], [PKG_CHECK_MODULES(m4_toupper([$1]), [$2],
      [ccmr_have_$1=yes],
      [AS_IF([test "x$with_$1" = xyes],
        [AC_MSG_ERROR([--with-$1: pkg-config knows no $2])])])],
    [AC_MSG_ERROR([--with-$1=$with_$1: yes or no; for an unusual place set PKG_CONFIG_PATH])])
  AM_CONDITIONAL([HAVE_]m4_toupper([$1]), [test "x$ccmr_have_$1" = xyes])
])
