# SPDX-License-Identifier: Apache-2.0

EXTRA_DIST += \
	tests/bench/check.py \
	tests/bench/common.sh

if BUILD_BENCH
tap_scripts += \
	tests/bench/costs.sh \
	tests/bench/layout.sh \
	tests/bench/memory.sh \
	tests/bench/outputs.sh \
	tests/bench/peers.sh \
	tests/bench/replay.sh \
	tests/bench/threads.sh
# They run threads of the bench on the library and the simulated driver.
tsan_tests += \
	tests/bench/threads.sh

# A module; -rpath makes libtool build it though it is not installed.
check_LTLIBRARIES += tests/bench/peer_example.la
tests_bench_peer_example_la_SOURCES = tests/bench/peer_example.c
tests_bench_peer_example_la_LIBADD =
tests_bench_peer_example_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version \
	-shared -rpath /nowhere

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
	tests/bench/layout.sh \
	tests/bench/memory.sh \
	tests/bench/outputs.sh \
	tests/bench/peers.sh \
	tests/bench/replay.sh \
	tests/bench/threads.sh
endif
