# SPDX-License-Identifier: Apache-2.0

noinst_LTLIBRARIES += resources/libccmr-resources.la
resources_libccmr_resources_la_SOURCES =
