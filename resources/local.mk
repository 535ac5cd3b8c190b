# SPDX-License-Identifier: Apache-2.0

noinst_LTLIBRARIES += resources/libccmr-resources.la
resources_libccmr_resources_la_SOURCES = \
	resources/common.c \
	resources/common.h \
	resources/device_plain.c \
	resources/device_pool/device_pool.h \
	resources/device_pool/figures.c \
	resources/device_pool/kind.c \
	resources/device_pool/make.c \
	resources/device_pool/retired.c \
	resources/device_pool/serve.c \
	resources/host.c \
	resources/legacy_pinned.c \
	resources/limiting/credit.c \
	resources/limiting/credit.h \
	resources/limiting/limiting.c \
	resources/logging/file.c \
	resources/logging/file.h \
	resources/logging/log.c \
	resources/logging/log.h \
	resources/logging/logging.c \
	resources/logging/row.c \
	resources/logging/row.h \
	resources/logging/tick.c \
	resources/logging/tick.h \
	resources/pool/audit.c \
	resources/pool/extent.c \
	resources/pool/extent.h \
	resources/pool/records.c \
	resources/pool/set.h \
	resources/pool/sizes.h \
	resources/pool/waits.c \
	resources/registry.c \
	resources/registry.h \
	resources/stream_ordered/classes.h \
	resources/stream_ordered/kind.c \
	resources/stream_ordered/others.c \
	resources/stream_ordered/release.c \
	resources/stream_ordered/serve.c \
	resources/stream_ordered/store.c \
	resources/stream_ordered/store.h \
	resources/stream_ordered/stream_ordered.h \
	resources/stream_ordered/tables.c \
	resources/virtual/access.c \
	resources/virtual/books.c \
	resources/virtual/kind.c \
	resources/virtual/memory.c \
	resources/virtual/ranges.c \
	resources/virtual/serve.c \
	resources/virtual/tree.c \
	resources/virtual/tree.h \
	resources/virtual/virtual.h
