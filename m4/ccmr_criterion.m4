# SPDX-License-Identifier: Apache-2.0

# CCMR_CRITERION
# --------------
# --with-criterion: the unit tests' framework. It cannot run under
# ThreadSanitizer, so that such a build leaves it out.
AC_DEFUN([CCMR_CRITERION], [
  AC_REQUIRE([CCMR_SANITIZE])
  AS_IF([test "x$ccmr_sanitize" = xthread], [
    AS_IF([test "x$with_criterion" = xyes],
      [AC_MSG_ERROR([--with-criterion can't be had with --enable-sanitize=thread])])
    with_criterion=no
  ])
  CCMR_PACKAGE([criterion], [criterion], [build the unit tests])
])
