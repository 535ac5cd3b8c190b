# SPDX-License-Identifier: Apache-2.0
#
# Unit tests of the pool's parts.

# The caches alone: lanes and segments are the test's own.
tap_tests += tests/unit/pool_cache_test
tsan_tests += tests/unit/pool_cache_test
tests_unit_pool_cache_test_SOURCES = tests/unit/pool_cache_test.c \
	tests/unit/pool_stubs.c tests/unit/pool_stubs.h \
	resources/pool/cache.c \
	resources/pool/cache.h \
	resources/pool/cache_large.c \
	resources/pool/cache_thread.c
tests_unit_pool_cache_test_CPPFLAGS = $(AM_CPPFLAGS)
tests_unit_pool_cache_test_LDADD = lib/libccmr-core.la \
	tests/support/libccmr-tap.la

# Sets of extents; host memory can be made to fail.
if HAVE_CRITERION
criterion_tests += \
	tests/unit/pool_audit_test \
	tests/unit/pool_extent_random_test \
	tests/unit/pool_extent_test \
	tests/unit/pool_figures_test \
	tests/unit/pool_quick_test \
	tests/unit/pool_streams_test \
	tests/unit/pool_test \
	tests/unit/pool_use_test

pool_books = tests/unit/pool_books.c tests/unit/pool_books.h
pool_books_wrap = -Wl,--wrap=calloc -Wl,--wrap=aligned_alloc

tests_unit_pool_audit_test_SOURCES = tests/unit/pool_audit_test.c \
	$(pool_books)
tests_unit_pool_audit_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_pool_audit_test_LDFLAGS = $(AM_LDFLAGS) $(pool_books_wrap)
tests_unit_pool_audit_test_LDADD = $(LDADD) $(CRITERION_LIBS)

tests_unit_pool_extent_random_test_SOURCES = \
	tests/unit/pool_extent_random_test.c $(pool_books)
tests_unit_pool_extent_random_test_CPPFLAGS = $(AM_CPPFLAGS) \
	$(CRITERION_CFLAGS)
tests_unit_pool_extent_random_test_LDFLAGS = $(AM_LDFLAGS) $(pool_books_wrap)
tests_unit_pool_extent_random_test_LDADD = $(LDADD) $(CRITERION_LIBS)

tests_unit_pool_extent_test_SOURCES = tests/unit/pool_extent_test.c \
	$(pool_books)
tests_unit_pool_extent_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_pool_extent_test_LDFLAGS = $(AM_LDFLAGS) $(pool_books_wrap)
tests_unit_pool_extent_test_LDADD = $(LDADD) $(CRITERION_LIBS)

# The whole pool.
tests_unit_pool_streams_test_SOURCES = tests/unit/pool_streams_test.c \
	tests/support/told.c tests/support/told.h
tests_unit_pool_streams_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_pool_streams_test_LDADD = $(LDADD) $(CRITERION_LIBS)

tests_unit_pool_quick_test_SOURCES = tests/unit/pool_quick_test.c
tests_unit_pool_quick_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_pool_quick_test_LDADD = $(LDADD) $(CRITERION_LIBS)

tests_unit_pool_use_test_SOURCES = tests/unit/pool_use_test.c
tests_unit_pool_use_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_pool_use_test_LDADD = $(LDADD) $(CRITERION_LIBS)

tests_unit_pool_figures_test_SOURCES = tests/unit/pool_figures_test.c \
	tests/support/puppet.c tests/support/puppet.h \
	tests/unit/pool_alone.h
tests_unit_pool_figures_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_pool_figures_test_LDADD = $(LDADD) $(CRITERION_LIBS)

tests_unit_pool_test_SOURCES = tests/unit/pool_alone.h tests/unit/pool_test.c \
	tests/support/puppet.c tests/support/puppet.h
tests_unit_pool_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_pool_test_LDADD = $(LDADD) $(CRITERION_LIBS)

# streams=registered, of all that have the option.
criterion_tests += tests/unit/streams_option_test
tests_unit_streams_option_test_SOURCES = tests/unit/streams_option_test.c
tests_unit_streams_option_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_streams_option_test_LDADD = $(LDADD) $(CRITERION_LIBS)

# Pins and exports.
criterion_tests += tests/unit/pool_pin_test
tests_unit_pool_pin_test_SOURCES = tests/unit/pool_pin_test.c
tests_unit_pool_pin_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_pool_pin_test_LDADD = $(LDADD) $(CRITERION_LIBS)

criterion_tests += tests/unit/pool_pin_late_test
tests_unit_pool_pin_late_test_SOURCES = tests/unit/pool_pin_late_test.c
tests_unit_pool_pin_late_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_pool_pin_late_test_LDADD = $(LDADD) $(CRITERION_LIBS)

criterion_tests += tests/unit/pool_dump_test
tests_unit_pool_dump_test_SOURCES = tests/unit/pool_dump_test.c
tests_unit_pool_dump_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_pool_dump_test_LDADD = $(LDADD) $(CRITERION_LIBS)

# Captures.
criterion_tests += tests/unit/pool_capture_test
tests_unit_pool_capture_test_SOURCES = tests/unit/pool_capture_test.c
tests_unit_pool_capture_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_pool_capture_test_LDADD = $(LDADD) $(CRITERION_LIBS)

# Over virtual.
criterion_tests += tests/unit/pool_range_test
tests_unit_pool_range_test_SOURCES = tests/unit/pool_range_test.c
tests_unit_pool_range_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_pool_range_test_LDADD = $(LDADD) $(CRITERION_LIBS)
endif
