#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Includes point one way, and the check for that sees a wrong one.
. "${abs_top_srcdir:?}/tests/support/tap.sh"

check=$abs_top_srcdir/tools/check-arrows

caught() {
    ! sh "$check" "$scratch"
}

# plant FILE INCLUDE: the check must object to a tree with this alone.
plant() {
    mkdir -p "$scratch/$(dirname "$1")"
    echo "#include $2" >"$scratch/$1"
    ok "$1 may not include $2" caught
    rm -f "${scratch:?}/$1"
}

ok "the tree's includes" sh "$check" "$abs_top_srcdir"
plant include/cucoremr/x.h '<cuda.h>'
plant include/cucoremr/x.h '"lib/driver.h"'
plant lib/x.c '"resources/pool.h"'
plant lib/x.c '"sim/sim.h"'
plant resources/x.c '<cucoremr/resources/y.h>'
plant resources/x.c '"resources/y.h"'
plant resources/x.c '"tests/support/tap.h"'
plant sim/x.c '<cucoremr/status.h>'
plant sim/x.c '"lib/driver.h"'
plant examples/x.c '"lib/driver.h"'
finish
