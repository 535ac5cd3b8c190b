# SPDX-License-Identifier: Apache-2.0
#
# fidelity asks a driver what it does and compares that with what a real one
# was seen to do; driver-costs measures its calls. Neither uses the library.

noinst_PROGRAMS += tests/fidelity/driver-costs
tap_tests += tests/fidelity/fidelity

tests_fidelity_fidelity_SOURCES = \
	tests/fidelity/access.c \
	tests/fidelity/calls.c \
	tests/fidelity/calls.h \
	tests/fidelity/captures.c \
	tests/fidelity/context_events.c \
	tests/fidelity/contexts.c \
	tests/fidelity/devices.c \
	tests/fidelity/drain.c \
	tests/fidelity/driver.c \
	tests/fidelity/driver.h \
	tests/fidelity/facts.c \
	tests/fidelity/facts.h \
	tests/fidelity/graph_memory.c \
	tests/fidelity/graphs.c \
	tests/fidelity/graphs.h \
	tests/fidelity/hold.c \
	tests/fidelity/hold.h \
	tests/fidelity/ipc.c \
	tests/fidelity/main.c \
	tests/fidelity/managed.c \
	tests/fidelity/mappings.c \
	tests/fidelity/memory.c \
	tests/fidelity/more_calls.c \
	tests/fidelity/objects.c \
	tests/fidelity/pieces.c \
	tests/fidelity/pieces.h \
	tests/fidelity/pool_sharing.c \
	tests/fidelity/pools.c \
	tests/fidelity/processes.c \
	tests/fidelity/reuse.c \
	tests/fidelity/second.c \
	tests/fidelity/second.h \
	tests/fidelity/sharing.c \
	tests/fidelity/sharing.h \
	tests/fidelity/situations.c \
	tests/fidelity/streams.c \
	tests/fidelity/virtual.c
tests_fidelity_fidelity_LDADD = -ldl -lpthread

tests_fidelity_driver_costs_SOURCES = \
	tests/fidelity/costs.c \
	tests/fidelity/driver.c \
	tests/fidelity/driver.h
tests_fidelity_driver_costs_LDADD = -ldl -lpthread

EXTRA_DIST += tests/fidelity/observed-h200.txt \
	tests/fidelity/to-follow-h200.txt
