#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The simulator's control header compiles alone, twice in a row, in every
# dialect that a foreign test may be written in, and needs neither cuda.h nor
# another header of the project.
. "${abs_top_srcdir:?}/tests/support/tap.sh"

mkdir -p "$scratch/include/cucoremr" "$scratch/poison"
cp "$abs_top_srcdir/sim/sim.h" "$scratch/include/cucoremr/"
echo '#error the control header wants cuda.h' >"$scratch/poison/cuda.h"

# What a test does with it: every kind of declaration is used once.
cat >"$scratch/alone.c" <<'END'
#include <cucoremr/sim.h>
#include <cucoremr/sim.h>

int look(const ccmr_sim_table *sim, void *stream);

int look(const ccmr_sim_table *sim, void *stream)
{
    ccmr_sim_census census;
    ccmr_sim_hazard hazard;
    ccmr_sim_record record;
    uint64_t bad = 0;

    census.size = sizeof(census);
    hazard.size = sizeof(hazard);
    if (sim->size < sizeof(*sim) || sim->set_mode(CCMR_SIM_LATE) != 0 ||
        sim->census(&census) != 0 || sim->log_read(0, &record) != 0 ||
        sim->handed_out(1, 1, CCMR_SIM_HOST) != 0 ||
        sim->used(1, 1, stream) != 0) {
        return -1;
    }
    if (sim->hazard_read(0, &hazard) == 0 &&
        hazard.kind == CCMR_SIM_HANDED_OUT_EARLY) {
        bad = hazard.now.position;
    }
    return CCMR_SIM_CONTROL_SYMBOL[0] == 'c' && bad == 0 ? 0 : 1;
}
END

# compile COMPILER LANGUAGE STANDARD
compile() {
    # shellcheck disable=SC2086  # words on purpose
    $1 -x "$2" -std="$3" -Wall -Wextra -pedantic -Werror -fsyntax-only \
        -I"$scratch/include" -I"$scratch/poison" "$scratch/alone.c"
}

# each LANGUAGE COMPILER STANDARD...
each() {
    language=$1
    compiler=$2
    shift 2
    if [ -z "$compiler" ] || ! have "${compiler%% *}"; then
        skip "no compiler ${compiler:-for $language}"
        return
    fi
    for standard in "$@"; do
        ok "in $standard by ${compiler%% *}" \
            compile "$compiler" "$language" "$standard"
    done
}

each c "${CC:-cc}" c99 c11 gnu11
each c++ "$CXX" c++98 c++11 c++17
case ${CC:-cc} in
clang*) each c gcc c11 && each c++ g++ c++98 c++11 c++17 ;;
*) each c clang c11 && each c++ clang++ c++98 c++11 c++17 ;;
esac
finish
