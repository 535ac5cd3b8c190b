# SPDX-License-Identifier: Apache-2.0
#
# Unit tests of the leaf resources and of the jemalloc add-on.

EXTRA_DIST += tests/unit/leaf.h

if HAVE_CRITERION
criterion_tests += \
	tests/unit/device_plain_test \
	tests/unit/device_pool_make_test \
	tests/unit/device_pool_test \
	tests/unit/host_test \
	tests/unit/legacy_pinned_test \
	tests/unit/virtual_export_test \
	tests/unit/virtual_leaf_test \
	tests/unit/virtual_ranges_test

tests_unit_device_plain_test_SOURCES = tests/unit/device_plain_test.c
tests_unit_device_plain_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_device_plain_test_LDADD = $(LDADD) $(CRITERION_LIBS)

tests_unit_device_pool_make_test_SOURCES = tests/unit/device_pool_make_test.c
tests_unit_device_pool_make_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_device_pool_make_test_LDADD = $(LDADD) $(CRITERION_LIBS)

tests_unit_device_pool_test_SOURCES = tests/unit/device_pool_test.c
tests_unit_device_pool_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_device_pool_test_LDADD = $(LDADD) $(CRITERION_LIBS)

tests_unit_host_test_SOURCES = tests/unit/host_test.c
tests_unit_host_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_host_test_LDADD = $(LDADD) $(CRITERION_LIBS)

tests_unit_legacy_pinned_test_SOURCES = tests/unit/legacy_pinned_test.c
tests_unit_legacy_pinned_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_legacy_pinned_test_LDADD = $(LDADD) $(CRITERION_LIBS)

tests_unit_virtual_export_test_SOURCES = tests/unit/virtual_export_test.c
tests_unit_virtual_export_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_virtual_export_test_LDADD = $(LDADD) $(CRITERION_LIBS)

tests_unit_virtual_leaf_test_SOURCES = tests/unit/virtual_leaf_test.c
tests_unit_virtual_leaf_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_virtual_leaf_test_LDADD = $(LDADD) $(CRITERION_LIBS)

tests_unit_virtual_ranges_test_SOURCES = tests/unit/virtual_ranges_test.c
tests_unit_virtual_ranges_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_virtual_ranges_test_LDADD = $(LDADD) $(CRITERION_LIBS)

if HAVE_JEMALLOC
criterion_tests += tests/unit/jemalloc_test

tests_unit_jemalloc_test_SOURCES = tests/unit/jemalloc_test.c
tests_unit_jemalloc_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS) \
	$(JEMALLOC_CFLAGS)
tests_unit_jemalloc_test_LDADD = addons/jemalloc/libccmr-jemalloc.la \
	$(LDADD) $(CRITERION_LIBS) $(JEMALLOC_LIBS)
endif
endif
