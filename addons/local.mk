# SPDX-License-Identifier: Apache-2.0

include addons/jemalloc/local.mk
