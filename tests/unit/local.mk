# SPDX-License-Identifier: Apache-2.0
#
# Unit tests on one thread. To add tests/unit/<noun>_test.c: name it in
# criterion_tests and give it the three lines of version_test.

if HAVE_CRITERION
criterion_tests += \
	tests/unit/version_test

tests_unit_version_test_SOURCES = tests/unit/version_test.c
tests_unit_version_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_version_test_LDADD = $(LDADD) $(CRITERION_LIBS)
endif
