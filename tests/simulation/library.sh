#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the built simulator is: needs libc alone, runs nothing when loaded,
# exports the driver's names and its control table and nothing else.
. "${abs_top_srcdir:?}/tests/support/tap.sh"

library=$abs_top_builddir/sim/.libs/libcucoremr-sim.so
have readelf || skip_all "no readelf"
have nm || skip_all "no nm"

only_libc() {
    ! readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
        grep -vE '^(libc|libdl|libpthread|ld-linux[^.]*)\.so'
}

no_constructors() {
    # One entry is the compiler's own frame_dummy.
    readelf -SW "$library" | awk '
        { sub(/^ *\[ *[0-9]*\] */, "") }
        $1 == ".init_array" || $1 == ".fini_array" {
            if ($5 != "000008") { print; bad = 1 }
        }
        END { exit bad }'
}

static_tls_is_small() {
    size=$(readelf -lW "$library" | awk '$1 == "TLS" { print $6 }')
    test $((${size:-0})) -le 16
}

exports() {
    nm -D --defined-only "$library" | awk '{ print $3 }' | sed 's/@.*//'
}

only_driver_names() {
    ! exports | grep -vE '^(cu[A-Z][A-Za-z0-9_]*|ccmr_sim_control)$'
}

# Program and simulator may have symbols of the same name: neither may take
# over the calls of the other.
binds_locally() {
    readelf -d "$library" | grep -q SYMBOLIC ||
        ! readelf -rW "$library" | grep -E 'JUMP_SLO.* cu[A-Z]'
}

# Each call that cuda.h knows with a default stream per thread is there twice.
per_thread_names() {
    exports | grep -E '_ptsz$|_ptds$' >"$scratch/per_thread"
    test -s "$scratch/per_thread" || return 1
    while read -r name; do
        exports | grep -qx "${name%_pt[sd][zs]}" || {
            echo "$name has no plain form"
            return 1
        }
    done <"$scratch/per_thread"
}

case $(readelf -d "$library") in
*libasan* | *libtsan* | *libubsan*)
    skip "built with a sanitizer: needs its library, too"
    ;;
*)
    ok "needs libc alone" only_libc
    ok "runs nothing when loaded" no_constructors
    ;;
esac
ok "has little static TLS" static_tls_is_small
ok "exports nothing but a driver and its control" only_driver_names
ok "binds its own calls to itself" binds_locally
ok "has a plain form of each per-thread call" per_thread_names
finish
