# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# The same seed is the same program with the same outcome, and a failing one
# is printed as a script that fails again.

# shellcheck source=tests/support/tap.sh
. "${abs_top_srcdir:?}/tests/support/tap.sh"

generate=${abs_top_builddir:?}/tests/generator/cucoremr-generate

fails() {
    ! "$@"
}

"$generate" --print 7 >"$scratch/seven"
ok "a program is printed as a script" test -s "$scratch/seven"
"$generate" --print 7 >"$scratch/again"
ok "the same seed is the same program" cmp "$scratch/seven" "$scratch/again"
ok "a script runs" "$generate" --script "$scratch/seven"
ok "a script is read from the input" "$generate" --script - <"$scratch/seven"

# One that fails, twice.
for time in first second; do
    "$generate" --stack "subpool fault=merge | device_pool" --ordered \
        --seeds 1-400 >"$scratch/$time"
done
ok "a mistake is found" grep -q '^not ok' "$scratch/first"
ok "the same seeds fail in the same way" \
    cmp "$scratch/first" "$scratch/second"
sed -n '/^# stack subpool fault=[^,]*$/,/^not ok/s/^# //p' \
    "$scratch/first" >"$scratch/script"
ok "it is shrunk to less than half" \
    test "$(grep -c '^t[0-3] ' "$scratch/script")" -lt 45
ok "the script fails again" fails "$generate" --script "$scratch/script"
sed 's/fault=merge/fault=none/' "$scratch/script" >"$scratch/right"
ok "but not on what makes no mistake" "$generate" --script "$scratch/right"

# Those that failed once.
for script in "$abs_top_srcdir"/tests/generator/scripts/*.txt; do
    ok "$(basename "$script" .txt)" "$generate" --script "$script"
done

# What is wrong with a script is told.
wrong() {
    printf 'stack host\n%s\n' "$1" >"$scratch/wrong"
    "$generate" --script "$scratch/wrong" >"$scratch/said"
    grep -q "^Bail out! $scratch/wrong:2: " "$scratch/said"
}

ok "an unknown operation" wrong 't0 dance'
ok "a block beyond the last" wrong 't0 disown block=b32'
ok "a thread that is not there" wrong 't1 query'
ok "a field that is missing" wrong 't0 free block=b1'
ok "a word that is none" wrong 't0 capture stream=s0 as=quick'
ok "a field too many" wrong 't0 query block=b1'
ok "an impossible number" wrong 'threads 5'
finish
