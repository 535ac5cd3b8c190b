#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The example of an allocator of one's own: right under every seed as it is,
# and told of under every seed with a mistake planted, whether the contents
# suffered by it or not.
. "${abs_top_srcdir:?}/tests/support/tap.sh"

program=$abs_top_builddir/examples/free_list/free-list-test
seeds=200
# Hazards are what the test is after: they may not end it.
CUCOREMR_SIM_STRICT=0
export CUCOREMR_SIM_STRICT

# try STATUS ARGUMENT...: what it says is in $scratch/said and $scratch/told.
try() {
    want=$1
    shift
    "$program" "$@" >"$scratch/said" 2>"$scratch/told"
    got=$?
    head -n 20 "$scratch/said" "$scratch/told"
    [ "$got" -eq "$want" ]
}

is_right() {
    try 0 --seeds "$seeds" "$@" && [ ! -s "$scratch/told" ] &&
        grep -qx "$seeds seeds: hazards under 0, wrong contents under 0" \
            "$scratch/said"
}

# One report is printed, and says what to do about it.
is_told() {
    try 1 --seeds "$seeds" --fault "$1" &&
        grep -q "^the first: [0-9]* bytes at 0x[0-9a-f]* are handed out on \
stream id [0-9]*, .*, but were freed on stream id [0-9]*, .*: no wait leads \
from stream id [0-9]*, operation [0-9]*, to stream id" "$scratch/said" &&
        grep -qx "again: --first 1 --seeds 1" "$scratch/said" &&
        grep -q '^libcucoremr-sim: hazard: .* (seed 1)$' "$scratch/told"
}

plays_again() {
    try 1 --first 17 --seeds 1 --fault "$1" &&
        cp "$scratch/said" "$scratch/before" &&
        try 1 --first 17 --seeds 1 --fault "$1" &&
        cmp "$scratch/before" "$scratch/said"
}

# Where work runs at once the contents are right: they tell nothing.
is_told_of_without_harm() {
    try 1 --all --eager --seeds "$seeds" --fault "$1" &&
        grep -qx "$seeds seeds: hazards under $seeds, wrong contents under 0" \
            "$scratch/said"
}

# Even late work does no harm at times; the check is not by luck.
needs_no_luck() {
    try 1 --all --seeds "$seeds" --fault same-handle &&
        grep -q "hazards under $seeds, wrong contents under" \
            "$scratch/said" &&
        ! grep -q "wrong contents under $seeds" "$scratch/said"
}

ends_the_process() {
    (
        cd "$scratch" || exit 1 # a core may fall there
        CUCOREMR_SIM_STRICT=1 try 134 --seeds 1 --fault no-wait
    )
}

ok "the allocator is right" is_right
ok "and is where work runs at once" is_right --eager
for fault in no-wait stale-event same-handle; do
    ok "$fault is told" is_told $fault
    ok "$fault is told again by the seed alone" plays_again $fault
    ok "$fault is told where it does no harm" is_told_of_without_harm $fault
done
ok "what luck would hide is told" needs_no_luck
ok "the strict simulator ends the process" ends_the_process
finish
