# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# The conformance cases for few stacks, where all would take too long: what
# .ci/run has valgrind look at. No test of `make check`, which runs them all.

exec "${abs_top_builddir:?}/tests/conformance/cucoremr-conformance" \
    --stack 'limiting bytes=64MiB | stream_ordered | device_plain' \
    --stack 'logging file=/dev/null | device_pool' \
    --stack 'pool | device_plain'
