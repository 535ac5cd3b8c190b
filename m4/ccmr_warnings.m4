# SPDX-License-Identifier: Apache-2.0

# CCMR_CHECK_FLAG(VARIABLE, FLAG)
# -------------------------------
# Append FLAG to VARIABLE if the compiler takes it without a word. Flags of the
# user are left alone.
AC_DEFUN([CCMR_CHECK_FLAG], [
  AS_VAR_PUSHDEF([cache], [ccmr_cv_flag_$2])
  AC_CACHE_CHECK([whether $CC takes $2], [cache], [
    ccmr_save_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS -Werror $2"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM()],
      [AS_VAR_SET([cache], [yes])], [AS_VAR_SET([cache], [no])])
    CFLAGS=$ccmr_save_CFLAGS
  ])
  AS_VAR_IF([cache], [yes], [AS_VAR_APPEND([$1], [" $2"])])
  AS_VAR_POPDEF([cache])
])

# CCMR_CHECK_LINK_FLAG(VARIABLE, FLAG)
# ------------------------------------
# The same for a flag of the linker.
AC_DEFUN([CCMR_CHECK_LINK_FLAG], [
  AS_VAR_PUSHDEF([cache], [ccmr_cv_link_flag_$2])
  AC_CACHE_CHECK([whether the linker takes $2], [cache], [
    ccmr_save_LDFLAGS=$LDFLAGS
    LDFLAGS="$LDFLAGS $2"
    AC_LINK_IFELSE([AC_LANG_PROGRAM()],
      [AS_VAR_SET([cache], [yes])], [AS_VAR_SET([cache], [no])])
    LDFLAGS=$ccmr_save_LDFLAGS
  ])
  AS_VAR_IF([cache], [yes], [AS_VAR_APPEND([$1], [" $2"])])
  AS_VAR_POPDEF([cache])
])

# CCMR_WARNINGS
# -------------
# Collect the warnings that the project is clean under in WARN_CFLAGS, each one
# probed. They are errors with --enable-werror only.
AC_DEFUN([CCMR_WARNINGS], [
  AC_ARG_ENABLE([werror],
    [AS_HELP_STRING([--enable-werror], [treat compiler warnings as errors])],
    [], [enable_werror=no])
  WARN_CFLAGS=
  m4_foreach_w([flag], [
    -Wall
    -Wextra
    -Wpedantic
    -Wshadow
    -Wconversion
    -Wsign-conversion
    -Wstrict-prototypes
    -Wmissing-prototypes
    -Wold-style-definition
    -Wpointer-arith
    -Wcast-qual
    -Wundef
    -Wvla
    -Wformat=2
    -Wwrite-strings
    -Wnull-dereference
    -Wduplicated-cond
    -Wlogical-op
    -Wimplicit-fallthrough
    -Werror=implicit-function-declaration
    -Werror=incompatible-pointer-types
  ], [CCMR_CHECK_FLAG([WARN_CFLAGS], flag)])
  AS_IF([test "x$enable_werror" = xyes],
    [AS_VAR_APPEND([WARN_CFLAGS], [" -Werror"])])
  AC_SUBST([WARN_CFLAGS])
])
