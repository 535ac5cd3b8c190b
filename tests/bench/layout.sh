#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cucoremr-bench layout: what memory is where after a part of a log.
. "${abs_top_srcdir:?}/tests/bench/common.sh"

cd "$scratch" || exit 99

# Three blocks; the second is freed, and most is live after row 4.
cat >small.csv <<END
$header
1,0.1,allocate,0x10,4194304,0x7
1,0.2,allocate,0x20,2097152,0x7
1,0.3,allocate,0x30,6291456,0x7
1,0.4,free,0x20,2097152,0x7
1,0.5,free,0x30,6291456,0x7
1,0.6,free,0x10,4194304,0x7
END

# total NAME: a figure of the last dump's total.
total() {
    sed -n "s/^total .*\b$1=\([0-9]*\).*/\1/p" dump.txt | tail -n 1
}

# sum KIND...: bytes of the lines of these kinds.
sum() {
    for kind in "$@"; do
        sed -n "s/^$kind 0x[0-9a-f]* \([0-9]*\).*/\1/p" dump.txt
    done | awk '{ all += $1 } END { print all + 0 }'
}

quick="--driver sim --idle --dump dump.txt"
for stack in 'pool | device_plain' 'limiting bytes=1GiB | pool | virtual'; do
    # shellcheck disable=SC2086  # options
    ok "at the peak: $stack" says "after row 4" 0 \
        bench layout small.csv $quick --stack "$stack"
    ok "all three are out" test "$(total out)" -eq 12582912
    ok "lines and total agree" test "$(sum out)" -eq "$(total out)" -a \
        "$(sum free waits)" -eq $(($(total free) + $(total waits))) -a \
        "$(sum segment handle pinned)" -eq "$(total reserved)"
    # shellcheck disable=SC2086
    ok "after row 6" says "after row 6" 0 \
        bench layout small.csv $quick --at 6 --stack "$stack"
    ok "less is out than then" test "$(total out)" -lt 12582912
done

# shellcheck disable=SC2086
ok "a stack without a pool has figures alone" says "no resource in it" 0 \
    bench layout small.csv $quick --stack 'device_plain'
ok "of its one resource" grep -q '^resource device_plain depth=0' dump.txt
# shellcheck disable=SC2086
ok "without a stack there are pools" says "after row 4" 0 \
    bench layout small.csv $quick
ok "two of them, which tell" test "$(grep -c '^total ' dump.txt)" -eq 2
ok "no results for programs" says "json" 2 \
    bench layout small.csv --json out.json
# shellcheck disable=SC2086
ok "peers have no layout" says "only stacks" 1 \
    bench layout small.csv $quick --peer driver-pool
ok "a row is expected" says "a number from 1" 2 \
    bench layout small.csv --at top --stack 'pool | device_plain'
ok "--at is for layout" says "means nothing" 2 bench pair --at 5

# shellcheck disable=SC2086
ok "a picture" exits 0 bench layout small.csv $quick -q --plot out.svg \
    --stack 'pool | device_plain' --stack 'pool | virtual'
ok "its data has three kinds for each stack" \
    test "$(grep -c '^# .*: left MiB' out.dat)" -eq 6
ok "its script has a panel for each" \
    test "$(grep -c '^plot' out.gp)" -eq 2
if have gnuplot; then
    ok "it is there" grep -q '<svg' out.svg
fi
finish
