/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCMR_TESTS_GENERATOR_SHRINK_H
#define CCMR_TESTS_GENERATOR_SHRINK_H

#include "tests/generator/program.h"
#include "tests/generator/trial.h"

/* Make a failing program as short as can be found within some tries, such
   that it fails in the same way (`t`, which becomes that of the shorter
   one). */
void shrink(program *p, trial *t, unsigned tries);

#endif
