# SPDX-License-Identifier: Apache-2.0

EXTRA_DIST += doc/design.md doc/simulator.md
