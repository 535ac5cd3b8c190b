#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Headers, symbol maps and the libraries' exports name the same symbols.
. "${abs_top_srcdir:?}/tests/support/tap.sh"

have nm || skip_all "no nm"

include=$abs_top_srcdir/include

# Names in a map's global part that are no patterns.
map_symbols() {
    sed -n 's/^ *\([a-z][a-z0-9_]*\);$/\1/p' "$1" | LC_ALL=C sort -u
}

# What a library exports, less what sanitizers add.
exports() {
    nm -D --defined-only "$1" | awk '{ sub(/@.*/, "", $3); print $3 }' |
        grep -vE '^(CCMR_|CUCOREMR_|__|_init$|_fini$)' | LC_ALL=C sort -u
}

# declared HEADER...
declared() {
    CC=${CC:-cc} sh "$abs_top_srcdir/tools/make-map" --list "$include" "$@"
}

# added HEADER: declared there and not by the umbrella header, which an
# add-on's header includes parts of.
added() {
    declared cucoremr/cucoremr.h >"$scratch/core"
    declared "$1" | LC_ALL=C comm -13 "$scratch/core" -
}

# same MAP LIBRARY COMMAND...: checks one library against the names that the
# command prints.
same() {
    map=$abs_top_srcdir/$1
    library=$abs_top_builddir/$2
    shift 2
    name=$(basename "$library")
    "$@" >"$scratch/headers"
    map_symbols "$map" >"$scratch/map"
    exports "$library" >"$scratch/library"
    ok "$name has symbols" test -s "$scratch/library"
    ok "$name: headers and map agree" \
        diff -u "$scratch/headers" "$scratch/map"
    ok "$name: map and exports agree" \
        diff -u "$scratch/map" "$scratch/library"
    ok "$name exports nothing private" \
        test -z "$(grep -E '__' "$scratch/library")"
}

# What the umbrella header includes is the library; each other header
# belongs to an add-on.
same lib/libcucoremr.map .libs/libcucoremr.so \
    declared cucoremr/cucoremr.h
jemalloc=.libs/libcucoremr-jemalloc.so
if [ -f "$abs_top_builddir/$jemalloc" ]; then
    same addons/jemalloc/libcucoremr-jemalloc.map $jemalloc \
        added cucoremr/resources/jemalloc.h
else
    skip "libcucoremr-jemalloc is not built"
fi

covered() {
    declared cucoremr/cucoremr.h cucoremr/resources/jemalloc.h >"$scratch/some"
    # shellcheck disable=SC2046  # names have no spaces
    declared $(cd "$include" && find cucoremr -name '*.h') >"$scratch/all"
    diff -u "$scratch/all" "$scratch/some"
}
ok "every public header is covered" covered

sim=$abs_top_builddir/sim/.libs/libcucoremr-sim.so
sim_names() {
    exports "$sim" >"$scratch/library"
    test -s "$scratch/library" &&
        ! grep -vE '^(cu[A-Z]|ccmr_sim_)' "$scratch/library"
}
if [ -f "$sim" ]; then
    ok "the simulator exports the driver's names and its control alone" \
        sim_names
else
    skip "the simulator is not built"
fi
finish
