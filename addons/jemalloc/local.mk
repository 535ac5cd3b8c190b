# SPDX-License-Identifier: Apache-2.0
#
# libcucoremr-jemalloc: the kind "jemalloc". The library never links it. What
# links the library statically (bench, unit test) takes the convenience
# library, so that there is one copy of everything.

EXTRA_DIST += addons/jemalloc/libcucoremr-jemalloc.map

if HAVE_JEMALLOC
noinst_LTLIBRARIES += addons/jemalloc/libccmr-jemalloc.la
addons_jemalloc_libccmr_jemalloc_la_SOURCES = addons/jemalloc/jemalloc.c
addons_jemalloc_libccmr_jemalloc_la_CFLAGS = $(AM_CFLAGS) $(JEMALLOC_CFLAGS)

lib_LTLIBRARIES += libcucoremr-jemalloc.la
pkgconfig_DATA += addons/jemalloc/libcucoremr-jemalloc.pc
libcucoremr_jemalloc_la_SOURCES =
libcucoremr_jemalloc_la_LIBADD = addons/jemalloc/libccmr-jemalloc.la \
	libcucoremr.la $(JEMALLOC_LIBS)
libcucoremr_jemalloc_la_LDFLAGS = $(AM_LDFLAGS) $(CCMR_SO_LDFLAGS) \
	-version-info $(LIBCUCOREMR_JEMALLOC_CRA) \
	-Wl,--version-script,$(srcdir)/addons/jemalloc/libcucoremr-jemalloc.map \
	-Wl,-z,nodelete
EXTRA_libcucoremr_jemalloc_la_DEPENDENCIES = \
	addons/jemalloc/libcucoremr-jemalloc.map
endif
