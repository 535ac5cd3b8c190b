# SPDX-License-Identifier: Apache-2.0
#
# The simulator's own tests. They load it as any program would.

simulation_tests = \
	tests/simulation/captures \
	tests/simulation/contents \
	tests/simulation/context_events \
	tests/simulation/costs \
	tests/simulation/drain \
	tests/simulation/faults \
	tests/simulation/graphs \
	tests/simulation/machine \
	tests/simulation/managed \
	tests/simulation/mistakes \
	tests/simulation/order \
	tests/simulation/pools \
	tests/simulation/process \
	tests/simulation/shared \
	tests/simulation/streams \
	tests/simulation/threads \
	tests/simulation/virtual
tap_tests += $(simulation_tests)
tap_scripts += \
	tests/simulation/apart.sh \
	tests/simulation/free_list.sh \
	tests/simulation/header.sh \
	tests/simulation/library.sh \
	tests/simulation/manual.sh
tsan_tests += tests/simulation/order tests/simulation/threads

check_LTLIBRARIES += tests/simulation/libdriver.la
tests_simulation_libdriver_la_SOURCES = \
	tests/simulation/driver.c \
	tests/simulation/driver.h
simulation_ldadd = tests/simulation/libdriver.la \
	tests/support/libccmr-tap.la -ldl -lpthread

tests_simulation_captures_SOURCES = tests/simulation/captures.c
tests_simulation_captures_LDADD = $(simulation_ldadd)
tests_simulation_contents_SOURCES = tests/simulation/contents.c
tests_simulation_contents_LDADD = $(simulation_ldadd)
tests_simulation_context_events_SOURCES = tests/simulation/context_events.c
tests_simulation_context_events_LDADD = $(simulation_ldadd)
tests_simulation_costs_SOURCES = tests/simulation/costs.c
tests_simulation_costs_LDADD = $(simulation_ldadd)
tests_simulation_drain_SOURCES = tests/simulation/drain.c
tests_simulation_drain_LDADD = $(simulation_ldadd)
tests_simulation_faults_SOURCES = tests/simulation/faults.c
tests_simulation_faults_LDADD = $(simulation_ldadd)
tests_simulation_machine_SOURCES = tests/simulation/machine.c
tests_simulation_machine_LDADD = $(simulation_ldadd)
tests_simulation_order_SOURCES = \
	tests/simulation/order.c \
	tests/simulation/order.h \
	tests/simulation/order_right.c \
	tests/simulation/order_wrong.c
tests_simulation_order_LDADD = $(simulation_ldadd)
tests_simulation_pools_SOURCES = tests/simulation/pools.c
tests_simulation_pools_LDADD = $(simulation_ldadd)
tests_simulation_process_SOURCES = tests/simulation/process.c
tests_simulation_process_LDADD = $(simulation_ldadd)
tests_simulation_streams_SOURCES = tests/simulation/streams.c
tests_simulation_streams_LDADD = $(simulation_ldadd)
tests_simulation_threads_SOURCES = tests/simulation/threads.c
tests_simulation_threads_LDADD = $(simulation_ldadd)
tests_simulation_graphs_SOURCES = tests/simulation/graphs.c
tests_simulation_graphs_LDADD = $(simulation_ldadd)
tests_simulation_managed_SOURCES = tests/simulation/managed.c
tests_simulation_managed_LDADD = $(simulation_ldadd)
tests_simulation_mistakes_SOURCES = \
	tests/simulation/mistakes.c \
	tests/simulation/mistakes.h \
	tests/simulation/mistakes_late.c \
	tests/simulation/mistakes_ranges.c \
	tests/simulation/mistakes_sharing.c
tests_simulation_mistakes_LDADD = $(simulation_ldadd)
tests_simulation_shared_SOURCES = tests/simulation/shared.c
tests_simulation_shared_LDADD = $(simulation_ldadd)
tests_simulation_virtual_SOURCES = tests/simulation/virtual.c
tests_simulation_virtual_LDADD = $(simulation_ldadd)

# What apart.sh compiles.
EXTRA_DIST += \
	tests/simulation/foreign.c \
	tests/simulation/foreign.h \
	tests/simulation/foreign_driver.c \
	tests/simulation/foreign_plugin.c
