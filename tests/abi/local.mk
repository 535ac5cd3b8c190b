# SPDX-License-Identifier: Apache-2.0

tap_scripts += \
	tests/abi/arrows.sh \
	tests/abi/headers.sh \
	tests/abi/install.sh \
	tests/abi/library.sh \
	tests/abi/symbols.sh

# Installing relinks the add-on in the build folder: no time to look at it.
tests/abi/symbols.log: tests/abi/install.log
