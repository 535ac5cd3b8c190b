#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The simulator takes nobody's calls over: a process that has a driver of its
# own in the global scope, however that came there, keeps it while the
# simulator is loaded; and one that has none gets none by it. Nor does the
# simulator call the other driver.
. "${abs_top_srcdir:?}/tests/support/tap.sh"

[ "${CCMR_SANITIZE:-no}" = no ] ||
    skip_all "a sanitizer has to be there first of all"
room=$abs_top_srcdir/tests/simulation

# compile OUTPUT ARGUMENT...
compile() {
    output=$1
    shift
    # shellcheck disable=SC2086  # words on purpose
    ${CC:-cc} -std=c11 -D_GNU_SOURCE -I"$abs_top_srcdir" -o "$scratch/$output" \
        "$@" -ldl
}

# What the linker may take for unused is needed all the same.
make_programs() {
    mkdir "$scratch/driver" &&
        compile driver/libcuda.so.1 -shared -fPIC \
            -Wl,-soname,libcuda.so.1 "$room/foreign_driver.c" &&
        compile plugin.so -shared -fPIC "$room/foreign_plugin.c" &&
        compile without "$room/foreign.c" &&
        compile linked "$room/foreign.c" -Wl,--no-as-needed \
            -Wl,-rpath,"$scratch/driver" "$scratch/driver/libcuda.so.1" &&
        compile holding -rdynamic "$room/foreign.c" "$room/foreign_driver.c"
}

driver=$scratch/driver/libcuda.so.1
plugin=$scratch/plugin.so

# By way of the library: its calls go to the simulator, and nowhere else.
cat >"$scratch/library.c" <<'END'
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

#include <cucoremr/cucoremr.h>

int main(void)
{
    int *calls = dlsym(RTLD_DEFAULT, "foreign_calls");
    ccmr_resource *stack;
    void *ptr;

    if (ccmr_stack_create("stream_ordered | device_plain", &stack) !=
            CCMR_SUCCESS ||
        ccmr_resource_allocate(stack, 1000, 0, CCMR_STREAM_LEGACY, &ptr) !=
            CCMR_SUCCESS ||
        ccmr_resource_deallocate(stack, ptr, 1000, 0, CCMR_STREAM_LEGACY) !=
            CCMR_SUCCESS) {
        printf("%s\n", ccmr_last_error()->message);
        return 1;
    }
    ccmr_resource_release(stack);
    return calls == NULL || *calls != 0;
}
END
make_library_program() {
    compile library -I"$abs_top_srcdir/include" "$scratch/library.c" \
        -Wl,--no-as-needed -Wl,-rpath,"$scratch/driver" "$driver" \
        -L"$abs_top_builddir/.libs" -lcucoremr \
        -Wl,-rpath,"$abs_top_builddir/.libs"
}

ok "programs with drivers of their own" make_programs
ok "a process without a driver has none afterwards" \
    "$scratch/without" none "$plugin"
ok "a program that is linked with a driver keeps it" \
    "$scratch/linked" own "$plugin"
ok "one that defines the calls itself keeps them" \
    "$scratch/holding" own "$plugin"
ok "one that loaded a driver globally keeps it" \
    "$scratch/without" own "$plugin" "$driver"
ok "one that was given a driver by LD_PRELOAD keeps it" \
    env LD_PRELOAD="$driver" "$scratch/without" own "$plugin"
ok "a program of the library, linked with a driver" make_library_program
ok "its driver is not called where the simulator was chosen" \
    "$scratch/library"
finish
