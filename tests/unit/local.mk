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

# Stacks as text: kinds.c has resources to be named in them.
criterion_tests += \
	tests/unit/kind_test \
	tests/unit/stack_print_test \
	tests/unit/stack_test \
	tests/unit/text_test

tests_unit_kind_test_SOURCES = tests/unit/kind_test.c \
	tests/support/kinds.c tests/support/kinds.h
tests_unit_kind_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_kind_test_LDADD = $(LDADD) $(CRITERION_LIBS)

tests_unit_stack_print_test_SOURCES = tests/unit/stack_print_test.c \
	tests/support/kinds.c tests/support/kinds.h
tests_unit_stack_print_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_stack_print_test_LDADD = $(LDADD) $(CRITERION_LIBS)

tests_unit_stack_test_SOURCES = tests/unit/stack_test.c \
	tests/support/kinds.c tests/support/kinds.h
tests_unit_stack_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_stack_test_LDADD = $(LDADD) $(CRITERION_LIBS)

tests_unit_text_test_SOURCES = tests/unit/text_test.c
tests_unit_text_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_text_test_LDADD = $(LDADD) $(CRITERION_LIBS)
endif

include tests/unit/adaptor.mk
include tests/unit/core.mk
include tests/unit/leaf.mk
include tests/unit/pool.mk
