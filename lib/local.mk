# SPDX-License-Identifier: Apache-2.0

noinst_LTLIBRARIES += lib/libccmr-core.la
lib_libccmr_core_la_SOURCES = \
	lib/version.c
