# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# What the tests of cucoremr-bench share.

. "${abs_top_srcdir:?}/tests/support/tap.sh"

CUCOREMR_TRACES=$abs_top_srcdir/bench/traces
export CUCOREMR_TRACES
# shellcheck disable=SC2034  # others use it
header=Thread,Time,Action,Pointer,Size,Stream

bench() {
    "$abs_top_builddir/cucoremr-bench" "$@"
}

# exits STATUS COMMAND...: the command ends with that status.
exits() {
    wanted=$1
    shift
    "$@"
    got=$?
    [ "$got" -eq "$wanted" ] || {
        echo "exit status $got, should be $wanted: $*"
        return 1
    }
}

# says TEXT STATUS COMMAND...: and its output holds the text.
says() {
    said=$1
    shift
    exits "$@" >"$scratch/said" 2>&1
    got=$?
    cat "$scratch/said"
    [ "$got" -eq 0 ] && grep -qF -e "$said" "$scratch/said"
}

# check CONDITION FILE...: a Python expression about results in JSON, in which
# `all` is the first file's object, `results` its results and `files` the
# objects of all files.
check() {
    "${PYTHON:?}" "$abs_top_srcdir/tests/bench/check.py" "$@"
}

need_python() {
    [ -n "${PYTHON:-}" ] || skip_all "no Python to read JSON with"
}
