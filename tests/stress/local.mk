# SPDX-License-Identifier: Apache-2.0

tap_tests += tests/stress/kind_threads
tsan_tests += tests/stress/kind_threads
tests_stress_kind_threads_SOURCES = tests/stress/kind_threads.c

# Adaptors and stacks of them.
adaptor_threads = \
	tests/stress/limiting_threads \
	tests/stress/logging_threads \
	tests/stress/pool_captures \
	tests/stress/pool_threads \
	tests/stress/resource_threads \
	tests/stress/statistics_threads \
	tests/stress/stream_ordered_threads \
	tests/stress/tracking_threads \
	tests/stress/virtual_threads
tap_tests += $(adaptor_threads) tests/stress/logging_processes
tsan_tests += $(adaptor_threads)

tests_stress_limiting_threads_SOURCES = tests/stress/limiting_threads.c \
	tests/stress/crew.c tests/stress/crew.h \
	tests/support/puppet.c tests/support/puppet.h
tests_stress_logging_threads_SOURCES = tests/stress/logging_threads.c \
	tests/stress/crew.c tests/stress/crew.h \
	tests/support/puppet.c tests/support/puppet.h
tests_stress_pool_captures_SOURCES = tests/stress/pool_captures.c \
	tests/stress/crew.c tests/stress/crew.h
tests_stress_pool_threads_SOURCES = tests/stress/pool_threads.c \
	tests/stress/crew.c tests/stress/crew.h \
	tests/support/puppet.c tests/support/puppet.h
tests_stress_resource_threads_SOURCES = tests/stress/resource_threads.c \
	tests/stress/crew.c tests/stress/crew.h \
	tests/support/puppet.c tests/support/puppet.h
tests_stress_statistics_threads_SOURCES = tests/stress/statistics_threads.c \
	tests/stress/crew.c tests/stress/crew.h \
	tests/support/puppet.c tests/support/puppet.h
tests_stress_stream_ordered_threads_SOURCES = \
	tests/stress/stream_ordered_threads.c \
	tests/stress/crew.c tests/stress/crew.h \
	tests/support/puppet.c tests/support/puppet.h
tests_stress_tracking_threads_SOURCES = tests/stress/tracking_threads.c \
	tests/stress/crew.c tests/stress/crew.h \
	tests/support/puppet.c tests/support/puppet.h
tests_stress_virtual_threads_SOURCES = tests/stress/virtual_threads.c \
	tests/stress/crew.c tests/stress/crew.h
tests_stress_logging_processes_SOURCES = tests/stress/logging_processes.c \
	tests/support/puppet.c tests/support/puppet.h

# While a kernel runs: on a GPU by the kit, on the simulator with the others.
tap_tests += tests/stress/stall
tests_stress_stall_SOURCES = tests/stress/stall.c \
	tests/support/spin.c tests/support/spin.h

# Long on a GPU by the kit, short on the simulator.
tap_tests += tests/stress/contents
tsan_tests += tests/stress/contents
tests_stress_contents_SOURCES = tests/stress/contents.c \
	tests/stress/crew.c tests/stress/crew.h
