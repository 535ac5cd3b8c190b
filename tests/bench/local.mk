# SPDX-License-Identifier: Apache-2.0

EXTRA_DIST += \
	tests/bench/check.py \
	tests/bench/common.sh

if BUILD_BENCH
tap_scripts += \
	tests/bench/costs.sh \
	tests/bench/memory.sh \
	tests/bench/outputs.sh \
	tests/bench/replay.sh \
	tests/bench/threads.sh
# They run threads of the bench on the library and the simulated driver.
tsan_tests += \
	tests/bench/threads.sh

tap_tests += \
	tests/bench/budget_text_test

tests_bench_budget_text_test_SOURCES = tests/bench/budget_text_test.c
tests_bench_budget_text_test_LDADD = \
	bench/libccmr-bench.la tests/support/libccmr-tap.la

if HAVE_CRITERION
criterion_tests += \
	tests/unit/trace_test

tests_unit_trace_test_SOURCES = tests/unit/trace_test.c
tests_unit_trace_test_CPPFLAGS = $(AM_CPPFLAGS) $(CRITERION_CFLAGS)
tests_unit_trace_test_LDADD = bench/libccmr-bench.la $(CRITERION_LIBS)
endif
else
EXTRA_DIST += \
	tests/bench/costs.sh \
	tests/bench/memory.sh \
	tests/bench/outputs.sh \
	tests/bench/replay.sh \
	tests/bench/threads.sh
endif
