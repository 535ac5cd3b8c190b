# SPDX-License-Identifier: Apache-2.0
#
# cucoremr-bench, and the traces that come with it. All but main.c is a
# library, so that tests can look inside.

tracesdir = $(pkgdatadir)/traces
dist_traces_DATA = \
	bench/traces/README.md \
	bench/traces/gnn_train.csv.gz \
	bench/traces/gpt2_train_varlen.csv.gz \
	bench/traces/llama_generate.csv.gz \
	bench/traces/resnet50_train.csv.gz \
	bench/traces/vit_multistream_infer.csv.gz

EXTRA_DIST += \
	bench/peers_python.py \
	bench/peers_rmm.cpp \
	bench/results

if BUILD_BENCH
bin_PROGRAMS += cucoremr-bench
dist_man_MANS += doc/cucoremr-bench.1

noinst_LTLIBRARIES += bench/libccmr-bench.la
bench_libccmr_bench_la_SOURCES = \
	bench/args.c \
	bench/args.h \
	bench/budget_text.c \
	bench/budget_text.h \
	bench/clock.c \
	bench/clock.h \
	bench/contender.c \
	bench/contender.h \
	bench/contents.c \
	bench/contents.h \
	bench/driver_count.c \
	bench/driver_count.h \
	bench/job.c \
	bench/job.h \
	bench/job_plans.c \
	bench/job_traces.c \
	bench/lines.c \
	bench/lines.h \
	bench/log_row.c \
	bench/log_row.h \
	bench/loops.c \
	bench/machine.c \
	bench/machine.h \
	bench/map.c \
	bench/map.h \
	bench/measure.c \
	bench/measure.h \
	bench/memory.c \
	bench/memory.h \
	bench/memory_budget.c \
	bench/memory_grown.c \
	bench/memory_layout.c \
	bench/peers.c \
	bench/peer_plugin.h \
	bench/peers.h \
	bench/picture.c \
	bench/picture.h \
	bench/plan.c \
	bench/plan.h \
	bench/plugins.c \
	bench/plugins.h \
	bench/progress.c \
	bench/progress.h \
	bench/random.c \
	bench/random.h \
	bench/report.h \
	bench/report_csv.c \
	bench/report_file.c \
	bench/report_json.c \
	bench/report_layout.c \
	bench/report_plot.c \
	bench/report_table.c \
	bench/report_threads.c \
	bench/result.c \
	bench/result.h \
	bench/run.c \
	bench/run.h \
	bench/samples.c \
	bench/samples.h \
	bench/stage.c \
	bench/stage.h \
	bench/streams.c \
	bench/streams.h \
	bench/trace.c \
	bench/trace.h \
	bench/trace_files.c \
	bench/trace_files.h \
	bench/units.c \
	bench/units.h \
	bench/work.c \
	bench/work.h
bench_libccmr_bench_la_CPPFLAGS = $(AM_CPPFLAGS) \
	-DCCMR_BENCH_PEERS='"$(pkglibdir)"' \
	-DCCMR_BENCH_TRACES='"$(tracesdir)"' \
	-DCCMR_BENCH_SOURCE_TRACES='"$(abs_top_srcdir)/bench/traces"'
bench_libccmr_bench_la_CFLAGS = $(AM_CFLAGS) $(ZLIB_CFLAGS) $(JANSSON_CFLAGS)
bench_libccmr_bench_la_LIBADD = libccmr-all.la $(ZLIB_LIBS) $(JANSSON_LIBS) -lm

cucoremr_bench_SOURCES = bench/main.c
cucoremr_bench_CPPFLAGS = $(AM_CPPFLAGS)
cucoremr_bench_LDADD = bench/libccmr-bench.la

# With it, jemalloc is the program's malloc; a sanitizer has one of its own.
if HAVE_JEMALLOC
if !SANITIZE
cucoremr_bench_CPPFLAGS += -DCCMR_BENCH_JEMALLOC
cucoremr_bench_LDADD += addons/jemalloc/libccmr-jemalloc.la $(JEMALLOC_LIBS)
endif
endif

# RMM as a peer: C++, and with the CUDA run time, so in a library apart.
if HAVE_RMM
benchpeersdir = $(pkglibdir)
benchpeers_DATA = bench/cucoremr-bench-rmm.so
CLEANFILES += bench/cucoremr-bench-rmm.so
bench/cucoremr-bench-rmm.so: bench/peers_rmm.cpp bench/peer_plugin.h
	$(AM_V_GEN)$(MKDIR_P) bench && \
	$(CXX) -std=c++17 -O2 -g -fPIC -shared -Wall -Wextra -Wl,-z,defs \
		-I$(top_srcdir) $(RMM_CXXFLAGS) $(CUDA_CPPFLAGS) -o $@ \
		$(srcdir)/bench/peers_rmm.cpp $(RMM_LIBS)
endif
endif
