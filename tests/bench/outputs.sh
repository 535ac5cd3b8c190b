#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cucoremr-bench: the command line, the scenarios, the forms of output.
# shellcheck disable=SC2016,SC2086,SC2123  # words and other shells, on purpose
. "${abs_top_srcdir:?}/tests/bench/common.sh"

need_python
cd "$scratch" || exit 99
quick='--operations 300 --repeat 2 --limit 20'
pool='--stack device_pool'

# What is printed without running anything.
ok "--list names scenarios" says contents 0 bench --list
ok "--list names traces" says llama_generate 0 bench --list
ok "--help" says "Exit status" 0 bench --help
ok "--version" says cucoremr-bench 0 bench --version
ok "help-stacks" says "device_pool" 0 bench help-stacks
ok "help-stacks of one kind" says "bytes" 0 bench help-stacks limiting
ok "help-stacks of none" says "limitin" 2 bench help-stacks limitin

# Wrong usage ends with 2 and says what is wrong.
ok "unknown scenario" says "'pears'" 2 bench pears
ok "unknown option" exits 2 bench --wrong
ok "unknown peer" says "'rmm'" 2 bench pair --peer rmm
ok "replay without a file" says "needs a FILE" 2 bench replay
ok "replay of nothing" says "no file 'nothing'" 2 bench replay nothing
ok "a file too many" says "takes no 'x'" 2 bench pair x
ok "no number" says "--repeat=two" 2 bench pair --repeat two
ok "a number too small" says "--device=-1" 2 bench pair --device=-1
ok "no size" says "--size" 2 bench pair --size 12q
ok "no range" says "no range" 2 bench mix --size 4KiB-1KiB
ok "size 0" says "--size" 2 bench pair --size 0
ok "an option that means nothing" says "--live means nothing with replay" 2 \
    bench replay x.csv --live 3
ok "unknown resource" says "devicepool" 2 bench pair --stack devicepool
ok "where in the text it is" says "                     ^" 2 \
    bench pair --stack 'limiting bytes=1 | devicepool'
ok "replay on numbers of threads" says "as-logged" 2 \
    bench replay gnn_train --threads 4
ok "--log of two stacks" says "exactly one --stack" 2 \
    bench pair --log x $pool --stack host

# What cannot be done ends with 1 and is named.
ok "unknown driver" says "/nonexistent.so" 1 \
    bench pair --driver /nonexistent.so
ok "no such device" says "evice" 1 bench pair --device 63
ok "a stack that cannot be made" says "cannot be set up" 1 \
    bench pair $quick --stack 'device_pool device=63' --stack host
ok "a stack that is too small" says "LIMIT_EXCEEDED" 1 \
    bench pair $quick --size 1MiB --stack 'limiting bytes=4KiB | device_pool'
ok "JSON into nowhere" says "/nonexistent/x" 1 \
    bench pair $quick $pool --size 256 --json /nonexistent/x
if [ -e /dev/full ]; then
    ok "a full disk: JSON" says "/dev/full" 1 \
        bench pair $quick $pool --size 256 --json /dev/full
    full() {
        bench --list >/dev/full
    }
    ok "a full disk: standard output" says "standard output" 1 full
fi

# Every scenario.
memory='--peer driver --peer driver-pool --peer malloc'
peers="$memory --peer nothing"
# scenario NAME RESULTS ARGUMENT...
scenario() {
    name=$1
    count=$2
    shift 2
        ok "$name runs" exits 0 bench "$name" $quick $pool $peers "$@" \
        --json "$name.json" --csv "$name.csv"
    ok "$name: $count results, none failed" check "
        len(results) == $count and every(
            r['scenario'] == '$name' and r['failures'] == 0 and
            r['failure'] is None and r['repetitions'] == 2 and
            r['ns_per_op']['p50'] <= r['ns_per_op']['p99'] <=
            r['ns_per_op']['max'] and r['alloc_ns']['mean'] >= 0 and
            r['peak_live_bytes'] > 0 for r in results)" "$name.json"
    ok "$name: a row for each in CSV" test \
        "$(grep -c "^$name," "$name.csv")" -eq "$count"
}
scenario pair 20
scenario mix 10
scenario threads 15 --threads 1,2,5
scenario streams 5 --streams 3
ok "the machine in JSON" check "
    all['simulated'] is True and all['driver'] == 'sim' and
    every(k in all for k in ('device', 'driver_version', 'cpu', 'date'))" \
    pair.json
ok "CSV has as many fields in every row" check "
    len({len(row) for row in __import__('csv').reader(
        open('pair.csv'))}) == 1" pair.json
ok "driver calls of peers are exact" check "
    every(r['driver_calls_per_1000'] ==
        {'cuMemAlloc': 1000, 'cuMemFree': 1000}
        for r in results if r['stack'] == 'driver') and
    every(r['driver_calls_per_1000'] ==
        {'cuMemAllocFromPoolAsync': 1000, 'cuMemFreeAsync': 1000}
        for r in results if r['stack'] == 'driver-pool') and
    every(r['driver_calls_per_1000'] == {}
        for r in results if r['stack'] == 'nothing')" pair.json
ok "all contenders have the same live bytes" check "
    every(len({r['peak_live_bytes'] for r in results
        if r['label'] == label}) == 1
        for label in {r['label'] for r in results})" mix.json
ok "reserved is at least live" check "
    every(r['peak_reserved_bytes'] >= r['peak_live_bytes'] and
        r['grown_ratio'] >= 1 for r in results
        if r['stack'] in ('device_pool', 'driver-pool'))" mix.json

# contents: on several streams, which run late.
ok "contents" says "as written" 0 bench contents --operations 500 $memory \
    $pool --stack 'stream_ordered | device_plain' --stack host \
    --stack legacy_pinned --buffers=both --size 4-100KiB 2>&1
CUCOREMR_SIM_MODE=late
export CUCOREMR_SIM_MODE
for seed in 1 2 3 4 5; do
    CUCOREMR_SIM_SEED=$seed
    export CUCOREMR_SIM_SEED
    ok "contents, late, seed $seed" says "as written" 0 bench contents \
        --operations 300 --seed $seed --size 4-20KiB --live 10 $pool \
        --stack 'stream_ordered | device_plain'
done
unset CUCOREMR_SIM_MODE CUCOREMR_SIM_SEED
ok "contents of nothing" says "no memory that could be checked" 1 \
    bench contents --operations 10 --peer nothing

# Sizes as people write them: 0.05 GiB is no multiple of 256 (field case H7).
ok "fractions of units" exits 0 bench pair $quick $pool --size 0.05GiB \
    --json half.json
ok "are rounded up" check "results[0]['max_bytes'] % 256 == 0 and
    results[0]['max_bytes'] >= 0.05 * 2**30" half.json
ok "registered and buffers, both ways" exits 0 bench pair $quick $pool \
    --size 256 --registered=both --buffers=both --json both.json
ok "make four results" check "
    [(r['registered'], r['stack']) for r in results] ==
    [(True, 'device_pool'), (True, 'device_pool (buffers)'),
     (False, 'device_pool'), (False, 'device_pool (buffers)')]" both.json
ok "JSON alone on standard output" sh -c '
    "$0" pair --operations 10 --size 256 --json - >only.json' \
    "$abs_top_builddir/cucoremr-bench"
ok "is JSON alone" check "len(results) == 4" only.json

ok "--registered yes and no" exits 0 bench pair $quick $pool --size 256 \
    --registered=yes --buffers=no --json yes.json
ok "are those alone" check "
    [(r['registered'], r['stack']) for r in results] ==
    [(True, 'device_pool')]" yes.json
ok "--registered=maybe" says "yes, no or both" 2 bench pair $quick $pool \
    --registered=maybe
ok "a value without '='" says "as in --registered=both" 2 \
    bench pair $quick $pool --registered both
ok "threads as they come" exits 0 bench threads --operations 20 --repeat 1 \
    $pool --json usual.json
ok "are 1 to 16, 128 blocks live on each" check "
    [(r['threads'], r['streams'], r['live']) for r in results] ==
    [(n, n, 128) for n in (1, 2, 4, 8, 16)]" usual.json
ok "streams as they come" exits 0 bench streams $quick $pool --json eight.json
ok "are 8, of 1 MiB" check "[(r['streams'], r['max_bytes']) for r in results]
    == [(8, 2**20)]" eight.json

# Pictures.
ok "a picture's name" says ".svg" 1 bench pair $quick $pool --size 256 \
    --plot x.jpg
if have gnuplot; then
    ok "a picture" exits 0 bench replay gnn_train --repeat 1 $pool \
        --stack 'stream_ordered | device_plain' --plot 'a "picture".svg'
    ok "is there" grep -q '</svg>' 'a "picture".svg'
    ok "memory alone" exits 0 bench grown gnn_train --idle --busy $pool \
        --plot grown.svg
    ok "has two panels, none of times" sh -c '
        grep -q "gnn_train, idle" grown.gp && grep -q "gnn_train, busy" \
            grown.gp && ! grep -q "Host time" grown.gp &&
            grep -q "</svg>" grown.svg'
    # Between two points nothing is lost.
    ok "the live line has its peak" awk '/^[0-9]/ && $2 + 0 > most { most = $2 }
        END { exit !(most > 3.56 && most < 3.58) }' grown.dat
else
    skip "no gnuplot"
fi
without_gnuplot() {
    (
        PATH=/nonexistent
        bench pair --operations 10 --size 256 --stack device_pool \
            --plot y.svg
    )
}
ok "without gnuplot a message" says "gnuplot is not installed" 0 \
    without_gnuplot
ok "and its script" test -s y.gp

finish
