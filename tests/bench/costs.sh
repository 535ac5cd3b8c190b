#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cucoremr-bench: what the simulated driver says that calls would take.
. "${abs_top_srcdir:?}/tests/bench/common.sh"

need_python
cd "$scratch" || exit 99

pair() {
    bench pair --operations 300 --repeat 2 --limit 20 --size 2MiB \
        --peer driver --peer driver-pool --json "$1.json" --csv "$1.csv"
}
estimates() {
    CUCOREMR_SIM_COSTS=1 pair on
}

# Of plain memory what was measured for a pair of that size; of the driver's
# pool two calls that take nothing from the device.
ok "driver calls are estimated" \
    says "estimated driver ns per op (simulated)" 0 estimates
ok "by what each took on a device" check "
    len(results) == 2 and every(
        abs(r['estimated_driver_ns'] - want) < 30 for r, want in
        zip(results, (57558, 577)))" on.json
# shellcheck disable=SC2016  # awk's own
ok "in CSV, too" awk -F, '
    NR == 1 { for (i = 1; i <= NF; i++) if ($i == "estimated_driver_ns") at = i }
    NR == 2 && $at > 57500 && $at < 57620 { good = 1 }
    END { exit !good }' on.csv

ok "not unless it is asked for" exits 0 pair off
ok "then there is none" check "
    every(r['estimated_driver_ns'] is None for r in results)" off.json
# shellcheck disable=SC2016  # the inner shell's own
ok "as many fields in each row" sh -c '
    [ "$(awk -F, "{ print NF }" on.csv off.csv | sort -u | wc -l)" -eq 1 ]'

finish
