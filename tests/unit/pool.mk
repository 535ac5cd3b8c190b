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
