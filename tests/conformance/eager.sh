# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# The conformance cases on a simulated driver of one device that runs work at
# once, as benches use it.

CUCOREMR_SIM_MODE=eager
CUCOREMR_SIM_DEVICES=1
export CUCOREMR_SIM_MODE CUCOREMR_SIM_DEVICES
exec "${abs_top_builddir:?}/tests/conformance/cucoremr-conformance"
