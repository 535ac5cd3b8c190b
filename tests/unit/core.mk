# SPDX-License-Identifier: Apache-2.0
#
# Unit tests of the core.

if HAVE_CRITERION
criterion_tests += \
	tests/unit/buffer_test \
	tests/unit/census_test \
	tests/unit/device_test \
	tests/unit/per_thread_test \
	tests/unit/resource_test \
	tests/unit/status_test \
	tests/unit/stream_test \
	tests/unit/struct_test

tests_unit_buffer_test_SOURCES = tests/unit/buffer_test.c \
	tests/support/puppet.c tests/support/puppet.h
tests_unit_buffer_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_buffer_test_LDADD = $(LDADD) $(CRITERION_LIBS)

tests_unit_census_test_SOURCES = tests/unit/census_test.c
tests_unit_census_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_census_test_LDADD = $(LDADD) $(CRITERION_LIBS)

tests_unit_device_test_SOURCES = tests/unit/device_test.c
tests_unit_device_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_device_test_LDADD = $(LDADD) $(CRITERION_LIBS)

tests_unit_per_thread_test_SOURCES = tests/unit/per_thread_test.c \
	tests/support/puppet.c tests/support/puppet.h
tests_unit_per_thread_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_per_thread_test_LDADD = $(LDADD) $(CRITERION_LIBS)

tests_unit_resource_test_SOURCES = tests/unit/resource_test.c \
	tests/support/puppet.c tests/support/puppet.h
tests_unit_resource_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_resource_test_LDADD = $(LDADD) $(CRITERION_LIBS)

tests_unit_status_test_SOURCES = tests/unit/status_test.c
tests_unit_status_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_status_test_LDADD = $(LDADD) $(CRITERION_LIBS)

tests_unit_stream_test_SOURCES = tests/unit/stream_test.c
tests_unit_stream_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_stream_test_LDADD = $(LDADD) $(CRITERION_LIBS)

tests_unit_struct_test_SOURCES = tests/unit/struct_test.c
tests_unit_struct_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_struct_test_LDADD = $(LDADD) $(CRITERION_LIBS)
endif
