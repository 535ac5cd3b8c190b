#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cucoremr-bench: peers of libraries, and the script for Python's.
. "${abs_top_srcdir:?}/tests/bench/common.sh"

need_python
cd "$scratch" || exit 99

peers=$abs_top_builddir/tests/bench/.libs/peer_example.so
CUCOREMR_BENCH_PEERS=$peers
export CUCOREMR_BENCH_PEERS
{
    echo $header
    echo 1,0.0,allocate,0x10,100,0x5
    echo 1,0.1,allocate,0x20,1048577,0x6
    echo 1,0.2,free,0x10,100,0x5
    echo 1,0.3,allocate,0x30,300,0x5
    echo 1,0.4,free,0x20,1048577,0x6
} >small.csv

ok "a library's peer is listed" says "whole-mib" 0 bench --list
ok "it runs beside others" exits 0 bench replay small.csv --repeat 2 \
    --peer whole-mib --stack device_plain --json runs.json
ok "its memory is known, its driver calls are not" check "
    results[0]['stack'] == 'whole-mib' and results[0]['failures'] == 0 and
    results[0]['repetitions'] == 2 and
    results[0]['peak_live_bytes'] == 1048877 and
    results[0]['peak_reserved_bytes'] == 3 * 2**20 and
    results[0]['driver_calls_per_1000'] is None and
    results[1]['driver_calls_per_1000'] is not None" runs.json
ok "a budget can be set for it" exits 0 bench budget small.csv \
    --peer whole-mib --json budget.json
ok "and is found" check "
    results[0]['budget_bytes'] == 3 * 2**20" budget.json
ok "what it grows to, too" exits 0 bench grown small.csv --peer whole-mib \
    --idle --json grown.json
ok "is known" check "results[0]['peak_reserved_bytes'] == 3 * 2**20" grown.json
ok "streams that are held are not for it" says "only --idle works" 1 \
    bench grown small.csv --peer whole-mib --busy
ok "one that cannot be set up says why" says "whole-mib: not today" 1 \
    env PEER_EXAMPLE_SAYS='not today' "$abs_top_builddir/cucoremr-bench" \
    replay small.csv --peer whole-mib
CUCOREMR_BENCH_PEERS=/nonexistent.so:$peers
ok "a library that is not there is named" says "peers of /nonexistent.so" 0 \
    bench --list
ok "the others are" says "whole-mib" 0 bench --list
CUCOREMR_BENCH_PEERS=$CUCOREMR_SIM_PATH
ok "one that has no peers is named" says "ccmr_bench_peers" 0 bench --list
ok "what nobody has" says "unknown peer 'whole-mib'" 2 \
    bench pair --peer whole-mib
CUCOREMR_BENCH_PEERS=$peers

python_peers() {
    "$PYTHON" "$abs_top_srcdir/bench/peers_python.py" "$@"
}
ok "Python's loop on a log" exits 0 python_peers --peer nothing small.csv \
    --json python.json
ok "reads it as the bench does" check "
    every(files[0]['results'][0][k] == files[1]['results'][0][k]
    for k in ('peak_live_bytes', 'operations', 'streams', 'trace'))" \
    python.json runs.json
ok "and recorded ones" exits 0 python_peers --peer nothing --repeat 1 \
    "$CUCOREMR_TRACES/vit_multistream_infer.csv.gz" --json vit.json
ok "with the same peak" check "results[0]['peak_live_bytes'] > 4.3e8 and
    results[0]['streams'] == 6 and results[0]['operations'] == 35336" vit.json
# A folder whose modules cannot be imported stands for packages that are not
# there.
mkdir none
echo 'raise ImportError("not here")' | tee none/torch.py >none/cupy.py
for peer in torch cupy; do
    # shellcheck disable=SC2016
    ok "without $peer it says so" says "$peer: not here" 3 \
        env PYTHONPATH=none "$PYTHON" \
        "$abs_top_srcdir/bench/peers_python.py" --peer $peer small.csv
done
ok "no file" says "nothing.csv" 1 python_peers --peer nothing nothing.csv
echo "1,0.9,free,0x99,1,0x5" >>small.csv
ok "what cannot be right is named by its row" says "row 7" 1 \
    python_peers --peer nothing small.csv

finish
