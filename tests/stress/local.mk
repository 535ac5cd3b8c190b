# SPDX-License-Identifier: Apache-2.0

tap_tests += tests/stress/kind_threads
tsan_tests += tests/stress/kind_threads
tests_stress_kind_threads_SOURCES = tests/stress/kind_threads.c
