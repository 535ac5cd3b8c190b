#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the built library is: needs libc alone, stays loaded, runs nothing when
# loaded, and can be loaded by a program that knows nothing of it.
. "${abs_top_srcdir:?}/tests/support/tap.sh"

library=$abs_top_builddir/.libs/libcucoremr.so
have readelf || skip_all "no readelf"

needed() {
    readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'
}

# libc, and parts of it that were files of their own before glibc 2.34.
only_libc() {
    ! needed "$1" | grep -vE '^(libc|libdl|libpthread|ld-linux[^.]*)\.so'
}

no_constructors() {
    # One entry is the compiler's own frame_dummy.
    readelf -SW "$1" | awk '
        { sub(/^ *\[ *[0-9]*\] */, "") }
        $1 == ".init_array" || $1 == ".fini_array" {
            if ($5 != "000008") { print; bad = 1 }
        }
        END { exit bad }'
}


static_tls_is_small() {
    size=$(readelf -lW "$1" | awk '$1 == "TLS" { print $6 }')
    test $((${size:-0})) -le 64
}

soname() {
    major=$(($(sed -n 's/^libcucoremr_cra=\([0-9]*\):.*/\1/p' \
        "$abs_top_srcdir/VERSION") - $(sed -n \
        's/^libcucoremr_cra=.*:\([0-9]*\)$/\1/p' "$abs_top_srcdir/VERSION")))
    readelf -d "$1" | grep -F "[libcucoremr.so.$major]"
}

version_of() {
    sed -n "s/^#define CCMR_VERSION_$1 \([0-9]*\)\$/\1/p" \
        "$abs_top_srcdir/include/cucoremr/version.h"
}

versions_agree() {
    test "$(sed -n 's/^version=//p' "$abs_top_srcdir/VERSION")" = \
        "$(version_of MAJOR).$(version_of MINOR).$(version_of PATCH)"
}

load_by_python() {
    "$PYTHON" - "$library" <<'END'
import ctypes
import os
import sys

library = ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW | os.RTLD_LOCAL)
library.ccmr_version_text.restype = ctypes.c_char_p
print(library.ccmr_version(), library.ccmr_version_text())
assert library.ccmr_version() > 0
END
}

ok "version.h and VERSION agree" versions_agree
ok "has the soname of VERSION" soname "$library"
ok "stays loaded (NODELETE)" sh -c "readelf -d '$library' | grep -q NODELETE"
ok "keeps little thread-local storage" static_tls_is_small "$library"
if [ "${CCMR_SANITIZE:-no}" = no ]; then
    ok "needs libc alone" only_libc "$library"
    ok "has no constructors or destructors" no_constructors "$library"
    if [ -n "$PYTHON" ]; then
        ok "Python's ctypes loads it" load_by_python
    else
        skip "no Python"
    fi
else
    skip "a sanitizer's run time is linked in"
fi
finish
