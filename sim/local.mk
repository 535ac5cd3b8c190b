# SPDX-License-Identifier: Apache-2.0
#
# The simulated driver: found by dlopen, never linked.

lib_LTLIBRARIES += sim/libcucoremr-sim.la
ccmrinclude_HEADERS += sim/sim.h
pkgconfig_DATA += sim/libcucoremr-sim.pc
EXTRA_DIST += sim/libcucoremr-sim.map

sim_libcucoremr_sim_la_SOURCES = \
	sim/addresses.c \
	sim/addresses.h \
	sim/advice.c \
	sim/area.c \
	sim/area.h \
	sim/async.c \
	sim/calls.h \
	sim/capture.c \
	sim/capture.h \
	sim/capture_api.c \
	sim/clock.c \
	sim/clock.h \
	sim/config.c \
	sim/config.h \
	sim/context.c \
	sim/context.h \
	sim/context_api.c \
	sim/control.c \
	sim/control.h \
	sim/control_order.c \
	sim/copy.c \
	sim/cost.c \
	sim/cost.h \
	sim/device.c \
	sim/device.h \
	sim/entry.c \
	sim/entry.h \
	sim/entry_memory.c \
	sim/error.c \
	sim/event.c \
	sim/event.h \
	sim/event_context.c \
	sim/event_wait.c \
	sim/extent.c \
	sim/extent.h \
	sim/fault.c \
	sim/fault.h \
	sim/gate.c \
	sim/graph.c \
	sim/graph.h \
	sim/graph_api.c \
	sim/graph_block.c \
	sim/graph_block.h \
	sim/graph_exec.c \
	sim/graph_exec.h \
	sim/graph_launch.c \
	sim/graph_memory.c \
	sim/handle.c \
	sim/handle.h \
	sim/hands.c \
	sim/hands.h \
	sim/hands_report.c \
	sim/hazard.c \
	sim/hazard.h \
	sim/ipc.c \
	sim/ipc.h \
	sim/log.c \
	sim/log.h \
	sim/managed.c \
	sim/managed.h \
	sim/managed_range.c \
	sim/mapping.c \
	sim/memory.c \
	sim/memory.h \
	sim/old.c \
	sim/operation.c \
	sim/operation.h \
	sim/order.c \
	sim/order.h \
	sim/peer.c \
	sim/per_thread.c \
	sim/per_thread.h \
	sim/physical.c \
	sim/physical.h \
	sim/physical_api.c \
	sim/pinned.c \
	sim/places.c \
	sim/places.h \
	sim/plain.c \
	sim/plain.h \
	sim/pointer.c \
	sim/pool.c \
	sim/pool.h \
	sim/pool_api.c \
	sim/pool_device.c \
	sim/pool_memory.c \
	sim/pool_object.c \
	sim/pool_sharing.c \
	sim/primary.c \
	sim/region.c \
	sim/region.h \
	sim/region_make.c \
	sim/remote.c \
	sim/remote.h \
	sim/schedule.c \
	sim/schedule.h \
	sim/shadow.c \
	sim/shadow.h \
	sim/state.h \
	sim/store.c \
	sim/store.h \
	sim/stream.c \
	sim/stream.h \
	sim/stream_api.c \
	sim/user_object.c \
	sim/user_object.h \
	sim/virtual.c \
	sim/virtual.h \
	sim/virtual_access.c \
	sim/wait.c
sim_libcucoremr_sim_la_LIBADD = -lpthread
sim_libcucoremr_sim_la_LDFLAGS = $(AM_LDFLAGS) $(CCMR_SO_LDFLAGS) \
	-version-info 0:0:0 \
	-Wl,--version-script,$(srcdir)/sim/libcucoremr-sim.map \
	-Wl,-z,nodelete -Wl,-Bsymbolic-functions
EXTRA_sim_libcucoremr_sim_la_DEPENDENCIES = sim/libcucoremr-sim.map
