#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cucoremr-bench: budget and grown, idle and busy.
. "${abs_top_srcdir:?}/tests/bench/common.sh"

need_python
cd "$scratch" || exit 99

# Two streams take turns: each allocates 4 MiB and frees it at once, behind a
# block of 1 MiB that stays. A stack can do with 5 MiB where frees are finished
# at once; while they are not, each stream needs 4 MiB of its own.
awk -v header=$header 'BEGIN {
    print header
    print "1,0.0,allocate,0x10,1048576,0x7"
    for (i = 0; i < 400; i++) {
        printf "1,%d.5,allocate,0x20,4194304,0x%x\n", i, 7 + i % 2
        printf "1,%d.6,free,0x20,4194304,0x%x\n", i, 7 + i % 2
    }
    print "1,999.0,free,0x10,1048576,0x7"
}' >turns.csv
peak=5242880
ordered='stream_ordered | device_plain'

ok "budget runs" exits 0 bench budget turns.csv --idle --busy \
    --stack "$ordered" --stack device_plain --json budget.json --csv budget.csv
ok "all completed, tries were made" check "
    len(results) == 4 and every(r['scenario'] == 'budget' and
        r['failures'] == 0 and r['tries'] >= 1 and r['ns_per_op'] is None and
        r['peak_live_bytes'] == $peak for r in results)" budget.json
ok "idle, the peak is enough" check "
    every(r['work'] == 'idle' and r['behind'] == 0 and
        r['budget_bytes'] == $peak and r['budget_ratio'] == 1
        for r in results[:2])" budget.json
ok "busy, it is, too, to who waits" check "
    results[2]['work'] == 'busy' and results[2]['behind'] == 1000 and
    every(r['budget_bytes'] == $peak for r in results[2:])" budget.json
ok "a row for each in CSV" test "$(grep -c '^budget,' budget.csv)" -eq 4
ok "with as many fields as names" check "
    len({len(row) for row in __import__('csv').reader(
        open('budget.csv'))}) == 1" budget.json

ok "grown runs" exits 0 bench grown turns.csv --idle --busy \
    --stack "$ordered" --stack device_plain --json grown.json
ok "idle, one block serves both streams" check "
    results[0]['work'] == 'idle' and results[0]['grown_ratio'] == 1" \
    grown.json
ok "busy, each stream has one" check "
    results[2]['work'] == 'busy' and
    results[2]['peak_reserved_bytes'] == $peak + 4194304" grown.json
# With other work between the turns, how far the device is behind decides.
awk -F , '{ print } /free,0x20/ { for (i = 0; i < 8; i++) {
    print "1,998.0,allocate,0x30,256,0x7"
    print "1,998.0,free,0x30,256,0x7"
    print "1,998.0,allocate,0x40,256,0x8"
    print "1,998.0,free,0x40,256,0x8" } }' turns.csv >spaced.csv
for behind in 2 500; do
    ok "a device $behind operations behind" exits 0 bench grown spaced.csv \
        --busy=$behind --stack "$ordered" --json "behind$behind.json"
done
ok "a little: a free is finished by the next turn" check "
    results[0]['behind'] == 2 and results[0]['peak_reserved_bytes'] <
        $peak + 2 * 2**20" behind2.json
ok "far: it is not" check "
    results[0]['behind'] == 500 and results[0]['peak_reserved_bytes'] >
        $peak + 2 * 2**20" behind500.json
ok "warm, it makes no block" check "
    'cuMemAlloc' not in results[2]['driver_calls_per_1000'] and
    results[2]['waiting_ns_per_op'] == 0" grown.json
ok "what is plain does, and waits for each free" check "
    results[3]['driver_calls_per_1000']['cuMemAlloc'] == 500 and
    results[3]['driver_calls_per_1000']['cuStreamSynchronize'] == 500 and
    results[3]['waiting_ns_per_op'] > 0" grown.json
ok "the bench's own writes are not counted" check "
    every('cuMemsetD8Async' not in r['driver_calls_per_1000']
        for r in results)" grown.json

ok "grown of mapped memory" exits 0 bench grown turns.csv --idle \
    --stack virtual --stack "stream_ordered | virtual" --json mapped.json
ok "times mapping where there is any" check "
    results[0]['mapping_ns_per_op'] > 0 and
    results[0]['driver_calls_per_1000']['cuMemMap'] == 500 and
    results[1]['mapping_ns_per_op'] == 0 and
    'cuMemMap' not in results[1]['driver_calls_per_1000']" mapped.json

# Where the bound goes.
ok "a place for it" exits 0 bench budget turns.csv \
    --stack "limiting bytes={budget} | $ordered" --json place.json
ok "is where the number goes" check "
    results[0]['budget_ratio'] == 1" place.json
ok "a pool's own bound" exits 0 bench budget turns.csv --stack device_pool \
    --peer driver-pool --json pool.json
ok "is rounded up, which is said" check "
    every(r['budget_bytes'] == 32 * 2**20 for r in results)" pool.json
ok "a bound that is there already" says "maximum={budget}" 2 \
    bench budget turns.csv --stack 'device_pool own=yes maximum=1GiB'
ok "can be the place" exits 0 bench budget turns.csv \
    --stack 'device_pool own=yes maximum={budget}'
ok "a peer that has none" says "--peer=driver" 2 \
    bench budget turns.csv --peer driver
ok "a mistake in a text" says "devicepool" 2 \
    bench budget turns.csv --stack 'limiting bytes={budget} | devicepool'
ok "a budget that is never enough" says "does not complete" 1 \
    bench budget turns.csv \
    --stack "limiting bytes=1MiB | limiting bytes={budget} | $ordered"

# Usage.
ok "budget without a file" says "budget needs a FILE" 2 bench budget
ok "busy means nothing with pair" says "--busy" 2 bench pair --busy
ok "idle means nothing with replay" says "--idle" 2 \
    bench replay turns.csv --idle
ok "a budget has no picture" says "--plot" 2 \
    bench budget turns.csv --plot x.svg

# A recorded trace, on what comes with the library.
ok "budget of a recording" exits 0 bench budget vit_multistream_infer \
    --idle --busy --stack "$ordered" --json vit.json
ok "busy needs no less" check "
    1 <= results[0]['budget_ratio'] <= results[1]['budget_ratio'] and
    results[0]['budget_ratio'] < 2" vit.json
# A try that ends early gives all back: a device with little more than what
# one try takes is enough for all of them.
ok "tries that end early" exits 0 env CUCOREMR_SIM_MEMORY=800MiB \
    "$abs_top_builddir/cucoremr-bench" budget vit_multistream_infer \
    --stack "$ordered" --json early.json
ok "leave nothing behind" check "
    results[0]['tries'] > 4 and results[0]['budget_bytes'] ==
    files[1]['results'][0]['budget_bytes']" early.json vit.json
ok "grown of a recording" exits 0 bench grown vit_multistream_infer \
    --idle --busy --stack "$ordered" --json vitgrown.json
ok "busy takes more" check "
    results[0]['grown_ratio'] < results[1]['grown_ratio']" vitgrown.json
ok "twice is the same" exits 0 bench grown vit_multistream_infer --busy \
    --stack "$ordered" --json again.json
ok "to the byte" check "
    files[0]['results'][1]['peak_reserved_bytes'] ==
    files[1]['results'][0]['peak_reserved_bytes']" vitgrown.json again.json

finish
