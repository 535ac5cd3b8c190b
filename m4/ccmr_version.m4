# SPDX-License-Identifier: Apache-2.0

# CCMR_VERSION_OF(NAME)
# ---------------------
# The value of NAME in the file VERSION, when autoconf runs.
m4_define([CCMR_VERSION_OF],
  [m4_esyscmd_s([sed -n 's/^$1=//p' VERSION])])
