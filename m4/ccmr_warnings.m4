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

# CCMR_UNUSED_RESULT
# ------------------
# gcc warns of a result that is ignored even where a cast to void says that it
# is meant; clang sees the cast, so that its warning is the one to go by.
AC_DEFUN([CCMR_UNUSED_RESULT], [
  AC_CACHE_CHECK([whether $CC lets a result be cast to void],
    [ccmr_cv_void_cast], [
    ccmr_save_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS -Werror -Wunused-result"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM(
      [[int f(void) __attribute__((warn_unused_result));]],
      [[(void)f();]])],
      [ccmr_cv_void_cast=yes], [ccmr_cv_void_cast=no])
    CFLAGS=$ccmr_save_CFLAGS
  ])
  AS_IF([test "x$ccmr_cv_void_cast" = xno],
    [CCMR_CHECK_FLAG([WARN_CFLAGS], [-Wno-unused-result])])
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
  CCMR_UNUSED_RESULT
  AS_IF([test "x$enable_werror" = xyes],
    [AS_VAR_APPEND([WARN_CFLAGS], [" -Werror"])])
  AC_SUBST([WARN_CFLAGS])
])
