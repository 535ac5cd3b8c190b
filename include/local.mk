# SPDX-License-Identifier: Apache-2.0

ccmrinclude_HEADERS += \
	include/cucoremr/buffer.h \
	include/cucoremr/cucoremr.h \
	include/cucoremr/device.h \
	include/cucoremr/resource.h \
	include/cucoremr/stack.h \
	include/cucoremr/stats.h \
	include/cucoremr/status.h \
	include/cucoremr/stream.h \
	include/cucoremr/version.h

ccmrresinclude_HEADERS += \
	include/cucoremr/resources/device_plain.h \
	include/cucoremr/resources/device_pool.h \
	include/cucoremr/resources/host.h \
	include/cucoremr/resources/jemalloc.h \
	include/cucoremr/resources/legacy_pinned.h \
	include/cucoremr/resources/limiting.h \
	include/cucoremr/resources/logging.h \
	include/cucoremr/resources/pool.h \
	include/cucoremr/resources/statistics.h \
	include/cucoremr/resources/stream_ordered.h \
	include/cucoremr/resources/tracking.h \
	include/cucoremr/resources/virtual.h
