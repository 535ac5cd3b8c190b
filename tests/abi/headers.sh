#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each public header compiles alone, in C11, C++17 and C++98, by each compiler that
# is there, and without CUDA's headers.
. "${abs_top_srcdir:?}/tests/support/tap.sh"

strict="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -fsyntax-only"
# Add-on and simulator headers are installed with the others.
mkdir -p "$scratch/include"
cp -R "$abs_top_srcdir/include/cucoremr" "$scratch/include/"
cp "$abs_top_srcdir/sim/sim.h" "$scratch/include/cucoremr/sim.h"
# A cuda.h that would be found is one that fails.
mkdir "$scratch/poison"
echo '#error a public header wants cuda.h' >"$scratch/poison/cuda.h"
cp "$scratch/poison/cuda.h" "$scratch/poison/cuda_runtime.h"

# compile LANGUAGE STANDARD COMPILER HEADER
compile() {
    printf '#include <%s>\n#include <%s>\n' "$4" "$4" >"$scratch/alone.c"
    # shellcheck disable=SC2086  # words on purpose
    $3 -x "$1" -std="$2" $strict -I"$scratch/include" -I"$scratch/poison" \
        "$scratch/alone.c"
}

# all LANGUAGE STANDARD COMPILER
all() {
    compiler=${3%% *}
    if ! have "$compiler"; then
        skip "no compiler $compiler"
        return
    fi
    for header in $(cd "$scratch/include" && find . -name '*.h' | sort); do
        ok "${header#./} alone in $2 by $compiler" \
            compile "$1" "$2" "$3" "${header#./}"
    done
}

all c c11 "${CC:-cc}"
all c++ c++17 "${CXX:-c++}"
all c++ c++98 "${CXX:-c++}"
case ${CC:-cc} in
clang*) other=gcc ;;
*) other=clang ;;
esac
all c c11 $other
case $other in
clang) all c++ c++17 clang++ ;;
*) all c++ c++17 g++ ;;
esac
finish
