# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# A plug-in's resource is judged like the built-in ones.

exec "${abs_top_builddir:?}/tests/conformance/cucoremr-conformance" \
    --plugin "$abs_top_builddir/tests/conformance/.libs/plugin_example.so" \
    --stack "counting | host" \
    --stack "limiting bytes=1GiB | counting | device_pool" \
    --stack "stream_ordered | counting | device_plain"
