# SPDX-License-Identifier: Apache-2.0
#
# The programs use public headers alone. They are linked like the tests, so
# that they run from the build folder as they are; tests/abi builds them against
# an installed library, the C++ one as well.

noinst_PROGRAMS += \
	examples/compose \
	examples/custom_resource \
	examples/free_list/free-list-test

examples_compose_SOURCES = examples/compose.c
examples_compose_LDADD = libccmr-all.la
examples_custom_resource_SOURCES = examples/custom_resource.c
examples_custom_resource_LDADD = libccmr-all.la
examples_free_list_free_list_test_SOURCES = \
	examples/free_list/free_list.c \
	examples/free_list/free_list.h \
	examples/free_list/test.c
examples_free_list_free_list_test_CPPFLAGS = $(AM_CPPFLAGS) \
	-I$(top_builddir)/examples/include
examples_free_list_free_list_test_LDADD = libccmr-all.la

# The control header as programs find it once it is installed.
CLEANFILES += examples/include/cucoremr/sim.h
examples/include/cucoremr/sim.h: sim/sim.h
	$(AM_V_GEN)$(MKDIR_P) examples/include/cucoremr && \
	cp $(top_srcdir)/sim/sim.h $@
examples/free_list/free_list_test-test.$(OBJEXT): \
	examples/include/cucoremr/sim.h

EXTRA_DIST += examples/compose.cpp
