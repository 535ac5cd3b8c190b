#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cucoremr-bench with several threads; quick enough for a sanitizer.
. "${abs_top_srcdir:?}/tests/bench/common.sh"

need_python
cd "$scratch" || exit 99

# A log of eight threads, which free each other's blocks.
awk -v header=$header 'BEGIN {
    print header
    for (i = 0; i < 1200; i++) {
        thread = 100 + (i * 7919 + int(i / 13)) % 8
        place = (i * 31) % 97
        if (place in live) {
            printf "%d,%d.5,free,0x%x,%d,0x%x\n", thread, i, 4096 + place,
                live[place], 16 + place % 3
            delete live[place]
        } else {
            live[place] = 256 + (i * 577) % 30000
            printf "%d,%d.5,allocate,0x%x,%d,0x%x\n", thread, i, 4096 + place,
                live[place], 16 + place % 3
        }
    }
}' >eight.csv

stacks='--stack device_pool --peer driver-pool'
# shellcheck disable=SC2086  # words on purpose
ok "eight logged threads" exits 0 bench replay eight.csv --repeat 5 \
    --threads as-logged $stacks --stack 'stream_ordered | device_plain' \
    --stack 'logging file=out.csv | limiting bytes=1GiB | device_pool' \
    --json eight.json
# Field case K4: five repetitions do all of it each time.
ok "the same in every repetition" check "
    every(r['operations'] == 1200 and r['repetitions'] == 5 and
        r['threads'] == 8 and r['failures'] == 0 for r in results) and
    len({r['peak_live_bytes'] for r in results}) == 1" eight.json
ok "one thread" exits 0 bench replay eight.csv --repeat 2 --stack device_pool \
    --json one.json
ok "has the same peak" check "
    files[0]['results'][0]['peak_live_bytes'] ==
    files[1]['results'][0]['peak_live_bytes']" one.json eight.json
ok "the order is that of the log" exits 0 bench replay eight.csv --repeat 1 \
    --threads as-logged --stack device_pool --log watched.csv
# The blocks that are live at the end are freed then.
order() {
    tail -n +2 "$1" | head -n 1200 | cut -d , -f 3,5
}
order eight.csv >wanted
order watched.csv >got
ok "event by event" cmp wanted got
# shellcheck disable=SC2086  # words on purpose
ok "threads with streams of their own" exits 0 bench threads \
    --threads 1,2,8 --operations 150 --repeat 2 --limit 20 $stacks --peer malloc \
    --stack 'stream_ordered | device_plain' --buffers=both --registered=both \
    --stack 'logging file=out.csv | limiting bytes=1GiB | device_pool' \
    --json threads.json
ok "nothing failed" check "
    every(r['failures'] == 0 and r['operations'] == 150 * r['threads']
        for r in results)" threads.json

ok "a table of all numbers of threads" says "over the first column's" 0 \
    bench threads --threads 1,2 --operations 150 --repeat 1 --limit 20 \
    --stack device_pool
ok "starts at 1.0" grep -qE 'device_pool +[0-9.]+[a-z]* \(1\.0\)' "$scratch/said"
ok "of one number there is none" exits 0 bench threads --threads 2 \
    --operations 150 --repeat 1 --limit 20 --stack device_pool
ok "pairs beside many live blocks" exits 0 bench pair --size 256 --live 20000 \
    --operations 500 --repeat 1 --limit 20 --stack device_pool --json live.json
ok "which count as live" check "
    results[0]['peak_live_bytes'] == 20001 * 256 and
    results[0]['failures'] == 0" live.json

finish
