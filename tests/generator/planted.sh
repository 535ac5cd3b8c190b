# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# The generator finds every mistake that is planted in a pool.

exec "${abs_top_builddir:?}/tests/generator/cucoremr-generate" --planted
