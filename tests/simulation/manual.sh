#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# doc/simulator.md: its programs compile and do what it says, its fragments'
# assertions hold, its outputs are those that come out, and it speaks of each
# function of the control table and of each variable of the environment.
. "${abs_top_srcdir:?}/tests/support/tap.sh"

[ "${CCMR_SANITIZE:-no}" = no ] ||
    skip_all "a sanitizer has to be there first of all"
have awk || skip_all "no awk"
have nm || skip_all "no nm"

manual=$abs_top_srcdir/doc/simulator.md
# Installed, this is what pkg-config would give.
simulator=$abs_top_builddir/sim/.libs/libcucoremr-sim.so
cuda=$(sed -n 's/^CUDA_CPPFLAGS = //p' "$abs_top_builddir/Makefile")
mkdir -p "$scratch/include/cucoremr" "$scratch/as-libcuda"
cp "$abs_top_srcdir/sim/sim.h" "$scratch/include/cucoremr/"
ln -s "$simulator" "$scratch/as-libcuda/libcuda.so.1"
cd "$scratch" || exit 99

# The manual's programs say themselves what they want.
unset CUCOREMR_SIM_STRICT CUCOREMR_SIM_ORDER
MY_DRIVER=$simulator
export MY_DRIVER

# Blocks behind "<!-- file NAME -->" become that file, those behind
# "<!-- output NAME -->" NAME.want; other blocks of C become functions of
# fragments.c.
extract() {
    awk '
        /^<!-- (file|output) [a-z.-]+ -->$/ {
            name = $3 ($2 == "output" ? ".want" : "")
            next
        }
        /^```/ && inside {
            if (to == "fragments.c") {
                print "}" >to
            }
            inside = 0
            name = ""
            next
        }
        /^```/ {
            inside = 1
            to = name != "" ? name : $0 == "```c" ? "fragments.c" : ""
            if (to == "fragments.c") {
                count++
                printf "static void fragment_%d(void)\n{\n", count >to
                printf "#line %d \"simulator.md\"\n", NR + 1 >to
            }
            next
        }
        inside && to != "" { print >to }
        END {
            for (i = 1; i <= count; i++) {
                printf "    start();\n    fragment_%d();\n", i >"calls.c"
            }
        }' "$manual"
    {
        echo '#include "tour.h"'
        cat fragments.c
        echo 'int main(void)'
        echo '{'
        echo '    sim = dlsym(RTLD_DEFAULT, CCMR_SIM_CONTROL_SYMBOL);'
        cat calls.c
        echo '    return 0;'
        echo '}'
    } >tour.c
    test "$(grep -c 'fragment_' calls.c)" -ge 15
}

# compile NAME ARGUMENT...
compile() {
    name=$1
    shift
    # shellcheck disable=SC2086  # words on purpose
    ${CC:-cc} -std=gnu11 -Wall -Wextra -Werror -Wno-unused-function \
        -Iinclude -I. $cuda -o "$name" "$name.c" "$@" -ldl
}

# Something to link with, as the toolkit's stub: names and a soname.
make_stub() {
    nm -D --defined-only "$simulator" |
        sed -n 's/.* \(cu[A-Z][A-Za-z0-9_]*\)$/int \1(void); int \1(void) { return 34; }/p' \
            >stub.c && mkdir stub &&
        ${CC:-cc} -shared -fPIC -Wl,-soname,libcuda.so.1 -o stub/libcuda.so \
            stub.c
}

# A program that is linked finds the driver in the folder.
linked() {
    LD_LIBRARY_PATH=$scratch/as-libcuda "./$1" 2>"$1.told" || {
        status=$?
        tail -n 5 "$1.told"
        return "$status"
    }
}

# Words alone count: the manual breaks long lines. Shells have their own ways
# to tell of a signal.
words_of() {
    sed '/Aborted/d' "$1" | tr -s ' ' '\n'
}

# says NAME: what came out on both channels is what the manual shows.
says() {
    words_of "$1.want" >"$1.want.words"
    words_of "$1.got" | diff "$1.want.words" - >"$1.diff" || {
        echo "the manual shows (<), and there is (>):"
        cat "$1.diff" "$1.got"
        return 1
    }
}

first_waits() {
    ./first wait >first.right 2>&1 && [ "$(cat first.right)" = "0 hazards" ]
}

first_is_told() {
    ./first >first.got 2>&1
    [ $? -eq 1 ] && says first
}

hang_is_told() {
    linked hang >hang.out
    [ $? -eq 134 ] && cp hang.told hang.got && says hang
}

# As installed: only the path differs.
folder_is_made() {
    mkdir pc elsewhere && printf '%s\n' "simulator=$simulator" \
        'Name: libcucoremr-sim' 'Description: .' 'Version: 0' \
        >pc/libcucoremr-sim.pc && cp tour elsewhere/program &&
        (
            cd elsewhere || exit 1
            PKG_CONFIG_LIBDIR=$scratch/pc
            export PKG_CONFIG_LIBDIR
            sh ../as-libcuda.sh
        )
}

seeds_pass() {
    SEEDS=30 sh ./seeds.sh ./first wait >seeds.right &&
        grep -qx '30 seeds passed' seeds.right
}

seeds_fail() {
    SEEDS=200 ./seeds.sh ./first >seeds.got 2>&1
    [ $? -eq 1 ] && says seeds
}

functions_of_the_table() {
    bad=
    sed -n '/^typedef struct ccmr_sim_table/,/^} ccmr_sim_table/s/.*(\*\([a-z_]*\))(.*/\1/p' \
        include/cucoremr/sim.h >functions
    [ "$(wc -l <functions)" -gt 30 ] && while read -r name; do
        grep -q "sim->$name(" "$manual" && continue
        echo "no example of $name"
        bad=1
    done <functions
    [ -z "$bad" ]
}

variables_and_kinds() {
    bad=
    cat "$abs_top_srcdir/sim/config.c" include/cucoremr/sim.h |
        grep -oE 'CUCOREMR_SIM_[A-Z_]*[A-Z]|CCMR_SIM_[A-Z]+_[A-Z_]+' |
        grep -v '_H$' | sort -u >words
    while read -r name; do
        grep -q "$name" "$manual" && continue
        echo "not a word of $name"
        bad=1
    done <words
    [ -z "$bad" ]
}

# What it says is not there, and is.
entry_points() {
    for name in cuLaunchKernel cuModuleLoad cuMemcpy2D_v2 cuGetExportTable \
        cuStreamWaitValue32_v2 cuGraphAddKernelNode_v2; do
        ! nm -D --defined-only "$simulator" | grep -q " $name\$" || return 1
    done
    for name in cuGraphLaunch cuMemMap cuIpcGetMemHandle cuIpcGetEventHandle cuMemcpyPeer; do
        nm -D --defined-only "$simulator" | grep -q " $name\$" || return 1
    done
}

ok "the manual's programs are found" extract
ok "first.c compiles" compile first
ok "with its wait it is right" first_waits
ok "without, it is told as the manual shows" first_is_told
ok "there is a stub to link with" make_stub
ok "the fragments compile" compile tour -Lstub -lcuda
ok "and do what they assert" linked tour
if have pkg-config; then
    ok "the folder for linked programs is made as it says" folder_is_made
else
    skip "no pkg-config"
fi
ok "hang.c compiles" compile hang -Lstub -lcuda
ok "and is told as the manual shows" hang_is_told
chmod +x seeds.sh
ok "seeds.sh passes what is right" seeds_pass
ok "and tells what is not" seeds_fail
ok "each function of the table has its example" functions_of_the_table
ok "each variable and each hazard is named" variables_and_kinds
ok "entry points are there, or not, as it says" entry_points
finish
