# SPDX-License-Identifier: Apache-2.0

tap_tests += tests/conformance/cucoremr-conformance
tsan_tests += tests/conformance/cucoremr-conformance
tap_scripts += \
	tests/conformance/eager.sh \
	tests/conformance/field-cases.sh \
	tests/conformance/plugin.sh

tests_conformance_cucoremr_conformance_SOURCES = \
	tests/conformance/case_basic.c \
	tests/conformance/case_buffer.c \
	tests/conformance/case_capture.c \
	tests/conformance/case_context.c \
	tests/conformance/case_life.c \
	tests/conformance/case_order.c \
	tests/conformance/case_query.c \
	tests/conformance/case_threads.c \
	tests/conformance/conformance.h \
	tests/conformance/main.c \
	tests/conformance/recorder.c \
	tests/conformance/subject.c \
	tests/support/told.c \
	tests/support/told.h
# Plug-ins find the library in the program.
tests_conformance_cucoremr_conformance_LDFLAGS = $(AM_LDFLAGS) \
	-export-dynamic

# A module; -rpath makes libtool build it though it is not installed.
check_LTLIBRARIES += tests/conformance/plugin_example.la
tests_conformance_plugin_example_la_SOURCES = \
	tests/conformance/plugin_example.c
tests_conformance_plugin_example_la_LIBADD =
tests_conformance_plugin_example_la_LDFLAGS = $(AM_LDFLAGS) -module \
	-avoid-version -shared -rpath /nowhere

EXTRA_DIST += tests/conformance/few.sh tests/field-cases.md
