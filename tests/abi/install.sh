#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# An installed tree is complete: pkg-config finds it, the examples compile
# against it in C and C++, and they run on the installed simulator, which the
# library finds beside itself.
. "${abs_top_srcdir:?}/tests/support/tap.sh"

have pkg-config || skip_all "no pkg-config"

root=$scratch/root

install_tree() {
    cd "$abs_top_builddir" &&
        env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL \
            "${MAKE:-make}" -s install DESTDIR="$root"
}

pc() {
    PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_LIBDIR=$pcdir \
        pkg-config "$@" libcucoremr
}

# build COMPILER STANDARD SOURCE PROGRAM
build() {
    # shellcheck disable=SC2046,SC2086  # words on purpose
    $1 -std="$2" -Wall -Wextra -Werror -o "$4" "$3" $(pc --cflags --libs) \
        -pthread
}

run() {
    (
        cd "$scratch" || exit 1
        unset CUCOREMR_SIM_PATH
        CUCOREMR_DRIVER=sim LD_LIBRARY_PATH=$libdir exec "$@"
    )
}

headers_are_there() {
    cd "$abs_top_srcdir/include" || return 1
    find cucoremr -name '*.h' | while read -r header; do
        cmp "$header" "$includedir/$header" || echo "$header"
    done | { ! grep .; }
}

ok "make install" install_tree
pcdir=$(find "$root" -name pkgconfig -type d)
libdir=$(dirname "$pcdir")
includedir=$root$(PKG_CONFIG_LIBDIR=$pcdir pkg-config --variable=includedir \
    libcucoremr)
ok "every public header is installed" headers_are_there
ok "the simulator is installed beside the library" \
    test -e "$libdir/libcucoremr-sim.so"
ok "pkg-config knows the version" \
    test "$(pc --modversion)" = \
    "$(sed -n 's/^version=//p' "$abs_top_srcdir/VERSION")"

# example COMPILER STANDARD SOURCE: compiles and runs one.
example() {
    name=$(basename "$3")
    ok "example $name compiles" build "$1" "$2" "$3" "$scratch/${name%.*}"
    ok "example $name runs" run "$scratch/${name%.*}"
}

for source in "$abs_top_srcdir"/examples/*.c; do
    example "${CC:-cc}" c11 "$source"
done

# An allocator of one's own, in two files, with its test.
build_allocator() {
    # shellcheck disable=SC2046  # words on purpose
    $CC -std=c11 -Wall -Wextra -Werror -o "$scratch/allocator" \
        "$abs_top_srcdir"/examples/free_list/*.c \
        $(pc --cflags --libs libcucoremr-sim) -pthread
}

ok "example free_list compiles" build_allocator
ok "example free_list runs" run "$scratch/allocator" --seeds 20

# The program that README.md shows.
# shellcheck disable=SC2016
sed -n '/^```c$/,/^```$/{/^```/d;p;}' "$abs_top_srcdir/README.md" \
    >"$scratch/readme.c"
ok "README's program compiles" build "${CC:-cc}" c11 "$scratch/readme.c" \
    "$scratch/readme"
ok "README's program runs" run "$scratch/readme"

# The simulator is loaded, never linked: pkg-config says where it is.
sim_pc() {
    PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_LIBDIR=$pcdir \
        pkg-config "$@" libcucoremr-sim
}

nothing_to_link() {
    test -z "$(sim_pc --libs-only-l)"
}

# Some pkg-configs put the root before a variable, and some do not.
simulator_is_there() {
    path=$(sim_pc --variable=simulator)
    test -e "$root${path#"$root"}"
}

cat >"$scratch/control.c" <<'END'
#include <cucoremr/sim.h>

int main(void)
{
    return sizeof(ccmr_sim_table) < sizeof(size_t);
}
END
control_compiles() {
    # shellcheck disable=SC2046,SC2086  # words on purpose
    $CC -std=c11 -Wall -Wextra -Werror -o "$scratch/control" \
        "$scratch/control.c" $(sim_pc --cflags --libs)
}

ok "pkg-config says where the simulator is" simulator_is_there
ok "and that there is nothing to link" nothing_to_link
ok "the control header compiles by it" control_compiles

# The add-on by its own file, which leads to the library as well.
cat >"$scratch/jemalloc.c" <<'END'
#include <cucoremr/cucoremr.h>
#include <cucoremr/resources/jemalloc.h>

int main(void)
{
    ccmr_resource *stack;
    void *ptr;

    if (ccmr_jemalloc_register() != CCMR_SUCCESS ||
        ccmr_stack_create("limiting bytes=1MiB | jemalloc", &stack) !=
            CCMR_SUCCESS ||
        ccmr_resource_allocate(stack, 1000, 0, CCMR_STREAM_LEGACY, &ptr) !=
            CCMR_SUCCESS ||
        ccmr_resource_deallocate(stack, ptr, 1000, 0, CCMR_STREAM_LEGACY) !=
            CCMR_SUCCESS) {
        return 1;
    }
    ccmr_resource_release(stack);
    return 0;
}
END
addon_compiles() {
    # shellcheck disable=SC2046,SC2086  # words on purpose
    $CC -std=c11 -Wall -Wextra -Werror -o "$scratch/jemalloc" \
        "$scratch/jemalloc.c" $(PKG_CONFIG_SYSROOT_DIR=$root \
            PKG_CONFIG_LIBDIR=$pcdir \
            pkg-config --cflags --libs libcucoremr-jemalloc) \
        -Wl,-rpath-link,"$libdir"
}

if [ -e "$libdir/libcucoremr-jemalloc.so" ]; then
    ok "the jemalloc add-on links by pkg-config" addon_compiles
    ok "and runs" run "$scratch/jemalloc"
else
    skip "no jemalloc add-on"
fi

if [ -n "$CXX" ] && have "${CXX%% *}" && [ "${CCMR_SANITIZE:-no}" = no ]; then
    for source in "$abs_top_srcdir"/examples/*.cpp; do
        example "$CXX" c++17 "$source"
    done
else
    skip "no C++ compiler, or a sanitizer's build"
fi
finish
