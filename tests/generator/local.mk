# SPDX-License-Identifier: Apache-2.0

tap_tests += tests/generator/cucoremr-generate
tsan_tests += tests/generator/cucoremr-generate
tap_scripts += \
	tests/generator/planted.sh \
	tests/generator/replay.sh

EXTRA_DIST += \
	tests/generator/scripts/audit-beside-streams.txt \
	tests/generator/scripts/everything.txt \
	tests/generator/scripts/grow-beyond-holes.txt \
	tests/generator/scripts/held-and-ready.txt \
	tests/generator/scripts/held-and-retired.txt \
	tests/generator/scripts/host-from-another-thread.txt \
	tests/generator/scripts/many-waits.txt \
	tests/generator/scripts/retired-while-draining.txt \
	tests/generator/scripts/wait-refused.txt

tests_generator_cucoremr_generate_SOURCES = \
	tests/generator/act.c \
	tests/generator/act_memory.c \
	tests/generator/act_stream.c \
	tests/generator/announce.c \
	tests/generator/broken_pool.c \
	tests/generator/broken_pool.h \
	tests/generator/contents.c \
	tests/generator/main.c \
	tests/generator/make.c \
	tests/generator/model.h \
	tests/generator/order.c \
	tests/generator/planted.c \
	tests/generator/planted.h \
	tests/generator/pool_books.c \
	tests/generator/pool_books.h \
	tests/generator/pool_order.c \
	tests/generator/pool_order.h \
	tests/generator/program.c \
	tests/generator/program.h \
	tests/generator/random.h \
	tests/generator/report.h \
	tests/generator/run.c \
	tests/generator/shrink.c \
	tests/generator/shrink.h \
	tests/generator/trial.c \
	tests/generator/trial.h \
	tests/generator/world.c
