# SPDX-License-Identifier: Apache-2.0
#
# The programs use public headers alone. They are linked like the tests, so
# that they run from the build folder as they are; tests/abi builds them against
# an installed library, the C++ one as well.

noinst_PROGRAMS += \
	examples/compose \
	examples/custom_resource

examples_compose_SOURCES = examples/compose.c
examples_compose_LDADD = libccmr-all.la
examples_custom_resource_SOURCES = examples/custom_resource.c
examples_custom_resource_LDADD = libccmr-all.la

EXTRA_DIST += examples/compose.cpp
