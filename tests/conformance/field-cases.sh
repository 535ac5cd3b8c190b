# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2317
# The list of field cases is true: each test that it names mentions the case.

. "${abs_top_srcdir:?run this by make check}/tests/support/tap.sh"

list=$abs_top_srcdir/tests/field-cases.md

mentions() {
    for file in $2; do
        grep -qw "$1" "$abs_top_srcdir/$file" || {
            echo "$file does not mention $1"
            return 1
        }
    done
}

covered() {
    [ -n "$2$3" ] || {
        echo "$1 has neither tests nor something to wait for"
        return 1
    }
}

while IFS='|' read -r _ id _ _ files waits _; do
    id=$(echo "$id" | tr -d ' ')
    files=$(echo "$files" | xargs)
    waits=$(echo "$waits" | xargs -0 | tr -d ' \n')
    case $id in
    [A-Z][0-9]*)
        ok "$id is tried or waits" covered "$id" "$files" "$waits"
        ok "$id is in the tests that are named" mentions "$id" "$files"
        ;;
    esac
done <"$list"
finish
