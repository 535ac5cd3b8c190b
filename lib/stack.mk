# SPDX-License-Identifier: Apache-2.0
#
# Stacks as text, kinds by name, values and texts.

lib_libccmr_core_la_SOURCES += \
	lib/kind.c \
	lib/kind.h \
	lib/kind_check.c \
	lib/nearest.c \
	lib/nearest.h \
	lib/stack.c \
	lib/stack.h \
	lib/stack_help.c \
	lib/stack_options.c \
	lib/stack_parse.c \
	lib/stack_print.c \
	lib/stack_scan.c \
	lib/stack_scan.h \
	lib/text.c \
	lib/value.c \
	lib/value.h \
	lib/value_bytes.c
