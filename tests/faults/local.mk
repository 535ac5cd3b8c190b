# SPDX-License-Identifier: Apache-2.0

tap_tests += \
	tests/faults/driver_faults \
	tests/faults/host_faults

tests_faults_driver_faults_SOURCES = \
	tests/faults/driver_faults.c \
	tests/faults/script.c \
	tests/faults/script.h \
	tests/support/told.c \
	tests/support/told.h

tests_faults_host_faults_SOURCES = \
	tests/faults/host_faults.c \
	tests/faults/script.c \
	tests/faults/script.h \
	tests/support/told.c \
	tests/support/told.h
tests_faults_host_faults_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc \
	-Wl,--wrap=aligned_alloc -Wl,--wrap=posix_memalign \
	-Wl,--wrap=strdup -Wl,--wrap=strndup -Wl,--wrap=free
