# SPDX-License-Identifier: Apache-2.0

noinst_LTLIBRARIES += lib/libccmr-core.la
lib_libccmr_core_la_SOURCES = \
	lib/arith.h \
	lib/buffer.c \
	lib/buffer.h \
	lib/buffer_data.c \
	lib/buffer_order.c \
	lib/census.c \
	lib/census.h \
	lib/context.c \
	lib/context.h \
	lib/device.c \
	lib/dispatch.c \
	lib/driver.c \
	lib/dump.c \
	lib/driver.h \
	lib/error.c \
	lib/error.h \
	lib/process.c \
	lib/process.h \
	lib/query.c \
	lib/quick.c \
	lib/quick.h \
	lib/registry.h \
	lib/resource.c \
	lib/resource.h \
	lib/resource_object.h \
	lib/status.c \
	lib/stream.c \
	lib/stream.h \
	lib/stream_table.c \
	lib/struct.c \
	lib/struct.h \
	lib/text.h \
	lib/thread.c \
	lib/thread.h \
	lib/upstream.h \
	lib/version.c

include lib/stack.mk
