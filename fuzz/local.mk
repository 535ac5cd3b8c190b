# SPDX-License-Identifier: Apache-2.0
#
# Programs that give anything at all to what reads texts. Each is a test with
# inputs of its own, and a target of libFuzzer: see the top of its source.

tap_tests += fuzz/stack_fuzz

# Its own registry of kinds takes the place of the library's.
fuzz_stack_fuzz_SOURCES = fuzz/stack_fuzz.c \
	tests/support/kinds.c tests/support/kinds.h

EXTRA_DIST += fuzz/stack.dict
