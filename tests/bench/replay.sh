#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cucoremr-bench: the main job, and replaying logs, good and bad.
# shellcheck disable=SC2119
. "${abs_top_srcdir:?}/tests/bench/common.sh"

need_python
cd "$scratch" || exit 99

# Without arguments: four stacks on a recorded training run.
mkdir tmp
TMPDIR=$scratch/tmp
export TMPDIR
ok "the main job" exits 0 bench
bench >main.txt 2>&1
ok "shows four stacks" test "$(grep -cE '^  (device_pool|stream_ordered|pool \||logging file=).* 11\.02 GiB' main.txt)" -eq 4
ok "says that the driver is simulated" grep -q '^SIMULATED DRIVER' main.txt
ok "tells what is next" grep -q '^Next:' main.txt
ok "leaves nothing behind" rmdir tmp
unset TMPDIR

# All traces, on the stacks of the main job; their logs replay to the same.
for name in gnn_train gpt2_train_varlen llama_generate resnet50_train \
    vit_multistream_infer; do
    ok "$name on three stacks" exits 0 bench replay $name --repeat 1 \
        --stack device_pool --stack 'stream_ordered | device_plain' \
        --stack "logging file=$name.csv | limiting bytes=12GiB | device_pool" \
        --json $name.json
    ok "$name: nothing failed, the same live bytes" check "
        len(results) == 3 and
        len({r['peak_live_bytes'] for r in results}) == 1 and
        every(r['failures'] == 0 and r['trace'] == '$name' and
            r['operations'] > 9000 and
            r['peak_reserved_bytes'] >= r['peak_live_bytes']
            for r in results)" $name.json
    ok "the log of $name" exits 0 bench replay $name --repeat 1 \
        --stack device_pool --log watched.csv
    ok "replays" exits 0 bench replay watched.csv --repeat 1 \
        --stack device_pool --json again.json
    ok "to the same peak and number of operations" check "
        every(files[0]['results'][0][k] == files[1]['results'][0][k]
            for k in ('peak_live_bytes', 'streams')) and
        0 <= files[0]['results'][0]['operations'] -
             files[1]['results'][0]['operations'] <= 10" \
        again.json $name.json
    ok "$name's own log, of several passes" exits 0 bench replay $name.csv \
        --repeat 1 --stack device_pool --json again.json
    ok "has the same peak" check "
        files[0]['results'][0]['peak_live_bytes'] ==
        files[1]['results'][0]['peak_live_bytes']" again.json $name.json
done

# A failing row is named, and the exit status is 1.
{
    echo $header
    echo 7,00:00:01.000000,allocate,0x10,600,0
    echo 7,00:00:01.000000,allocate,0x20,500,0
    echo 7,00:00:01.000000,free,0x20,500,0
    echo 7,00:00:01.000000,free,0x10,600,0
    echo 7,00:00:01.000000,allocate,0x30,1000,0
} >small.csv
limited='limiting bytes=1000 | device_pool'
ok "a failing row is named" \
    says "row 3: allocate of 500 bytes (500 B) with 600 (600 B) live" 1 \
    bench replay small.csv --stack "$limited"
ok "with the reason" says CCMR_ERROR_LIMIT_EXCEEDED 1 \
    bench replay small.csv --stack "$limited"
ok "in JSON too" exits 1 bench replay small.csv --stack "$limited" \
    --stack device_pool --json failed.json --quiet
ok "beside those that did not fail" check "
    results[0]['failures'] == 1 and results[0]['ns_per_op'] is None and
    results[0]['failure'].startswith('row 3: ') and
    results[1]['failures'] == 0 and results[1]['operations'] == 5 and
    results[1]['peak_live_bytes'] == 1100" failed.json

# Dialects (field case K6; the unit test has more).
{
    printf '"Thread","Time","Action","Pointer","Size","Stream"\r\n\r\n'
    printf '7,1575399121.5,allocate,0XAB,600,(nil)\r\n'
    printf '7,1575399122,allocate failure,(nil),99999,(nil)\r\n'
    printf '8,1575399123.25,deallocate,0xab,600,0x1\r\n'
} | gzip >dialect.log
ok "the other dialect, compressed" exits 0 bench replay dialect.log \
    --stack device_pool --json dialect.json
ok "is understood" check "results[0]['operations'] == 2 and
    results[0]['streams'] == 1 and results[0]['trace'] == 'dialect'" \
    dialect.json
head -c 40 dialect.log >torn.log
ok "compressed data that stops" says "stops too soon" 1 bench replay torn.log
echo 'Event Type,Device ID,Address,Stream,Size (bytes),Free Memory,Total Memory,Current Allocs,Start,End,Elapsed,Location' >old.csv
ok "RMM's format of 2019" says "12-column" 1 bench replay old.csv
{
    cat small.csv
    echo 7,00:00:01.000000,free,0x99,1,0
} >unknown.csv
ok "a free of something unknown" says "unknown.csv: row 7: free of 0x99" 1 \
    bench replay unknown.csv --stack device_pool
ok "is skipped if asked" says "the log has 1 frees of what it does not" 0 \
    bench replay unknown.csv --stack device_pool --lenient

# Sizes times a number; seconds and 0x0 as others write them.
{
    echo $header
    echo 1,0.000000,allocate,0x775400000,16777216,0x0
    echo 1,0.000180,allocate,0x848b10000,16384,0x0
    echo 1,0.000241,free,0x775400000,16777216,0x0
    echo 1,0.000300,free,0x848b10000,16384,0x0
} >seconds.csv
ok "another writer's log, scaled" exits 0 bench replay seconds.csv \
    --scale 3 --default-stream legacy --stack device_pool --json scaled.json
ok "has thrice the bytes" check "results[0]['operations'] == 4 and
    results[0]['streams'] == 1 and
    results[0]['peak_live_bytes'] == 3 * (16777216 + 16384)" scaled.json
{
    echo $header
    echo 1,0.0,allocate,0x10,4611686018427387904,0x0
} >huge.csv
ok "too large when scaled" says "row 2: 2 times its size" 1 \
    bench replay huge.csv --scale 2

# Streams.
multi=vit_multistream_infer
ok "streams folded" exits 0 bench replay $multi --repeat 1 --streams 2 \
    --stack device_pool --json folded.json
ok "are two" check "results[0]['streams'] == 2" folded.json
ok "the default stream itself, registered streams" exits 0 bench replay \
    $multi --repeat 1 --default-stream legacy --registered \
    --stack device_pool --stack 'stream_ordered | device_plain' \
    --peer driver-pool
CUCOREMR_SIM_MODE=late
export CUCOREMR_SIM_MODE
ok "streams that run late" exits 0 bench replay $multi --repeat 1 \
    --stack device_pool --stack 'stream_ordered | device_plain' \
    --json late.json
unset CUCOREMR_SIM_MODE
ok "keep more reserved" check "
    every(r['peak_reserved_bytes'] >= r['peak_live_bytes']
        for r in results)" late.json

finish
