# SPDX-License-Identifier: Apache-2.0
#
# Unit tests of the adaptors.

EXTRA_DIST += tests/unit/adaptor.h

if HAVE_CRITERION
criterion_tests += \
	tests/unit/limiting_test \
	tests/unit/logging_test \
	tests/unit/statistics_test \
	tests/unit/stream_ordered_test \
	tests/unit/tracking_test

tests_unit_limiting_test_SOURCES = tests/unit/limiting_test.c \
	tests/support/puppet.c tests/support/puppet.h
tests_unit_limiting_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_limiting_test_LDADD = $(LDADD) $(CRITERION_LIBS)

tests_unit_logging_test_SOURCES = tests/unit/logging_test.c \
	tests/support/puppet.c tests/support/puppet.h
tests_unit_logging_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_logging_test_LDADD = $(LDADD) $(CRITERION_LIBS)

tests_unit_statistics_test_SOURCES = tests/unit/statistics_test.c \
	tests/support/puppet.c tests/support/puppet.h
tests_unit_statistics_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_statistics_test_LDADD = $(LDADD) $(CRITERION_LIBS)

tests_unit_tracking_test_SOURCES = tests/unit/tracking_test.c \
	tests/support/puppet.c tests/support/puppet.h
tests_unit_tracking_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_tracking_test_LDADD = $(LDADD) $(CRITERION_LIBS)

tests_unit_stream_ordered_test_SOURCES = tests/unit/stream_ordered_test.c \
	tests/support/puppet.c tests/support/puppet.h
tests_unit_stream_ordered_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_stream_ordered_test_LDADD = $(LDADD) $(CRITERION_LIBS)
endif
