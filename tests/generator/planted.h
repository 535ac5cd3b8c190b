/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCMR_TESTS_GENERATOR_PLANTED_H
#define CCMR_TESTS_GENERATOR_PLANTED_H

/* Each mistake of the subpool is found, within some seeds, and none in the
   subpool that makes none. `only`: one of them, or NULL. `seeds`: count how
   many of so many show it, instead, with or without the check of order (1, 0,
   -1: by chance). */
void planted_run(const char *only, unsigned operations, int order,
                 unsigned seeds);

#endif
