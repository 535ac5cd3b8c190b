# SPDX-License-Identifier: Apache-2.0

noinst_LTLIBRARIES += tests/support/libccmr-tap.la
tests_support_libccmr_tap_la_SOURCES = \
	tests/support/api.c \
	tests/support/api.h \
	tests/support/public.h \
	tests/support/tap.c \
	tests/support/tap.h

EXTRA_DIST += tests/support/tap.sh
