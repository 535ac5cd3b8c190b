# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# TAP for shell tests: read it with `.`, call `ok`, end with `finish`. A
# temporary folder is in $scratch and goes at the end. The sources are in
# $abs_top_srcdir and the build in $abs_top_builddir.

tap_run=0
tap_failed=0
: "${abs_top_srcdir:?run this by make check}"
: "${abs_top_builddir:?run this by make check}"
scratch=$(mktemp -d "${TMPDIR:-/tmp}/ccmr-abi.XXXXXX") || exit 99
trap 'rm -rf "$scratch"' EXIT

# ok DESCRIPTION COMMAND...: passes if the command does; its output is shown
# otherwise.
ok() {
    tap_text=$1
    shift
    tap_run=$((tap_run + 1))
    if "$@" >"$scratch/.output" 2>&1; then
        echo "ok $tap_run - $tap_text"
    else
        tap_failed=$((tap_failed + 1))
        echo "not ok $tap_run - $tap_text"
        sed 's/^/#   /' "$scratch/.output"
    fi
}

skip() {
    tap_run=$((tap_run + 1))
    echo "ok $tap_run # SKIP $*"
}

skip_all() {
    echo "1..0 # SKIP $*"
    exit 0
}

have() {
    command -v "$1" >/dev/null 2>&1
}

finish() {
    echo "1..$tap_run"
    [ $tap_failed -eq 0 ]
    exit
}
