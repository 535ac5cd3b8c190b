# SPDX-License-Identifier: Apache-2.0

EXTRA_DIST += doc/design.md doc/pool.md
# The manual of what is installed for others.
dist_doc_DATA = doc/simulator.md
