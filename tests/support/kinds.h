/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kinds of resources for tests of stack texts. They hand out no memory, need
 * no driver, and remember what they were made with.
 *
 *   leaf     every type of option; no upstream
 *   over     over one upstream; options that are unset
 *   needy    over one upstream; a required option
 *   either   over one or two upstreams
 *   several  over two or three upstreams
 *   refuse   over none or one; is never made, for the reason of its option
 *   mute     over none or one; does not tell its option
 */
#ifndef CCMR_TESTS_SUPPORT_KINDS_H
#define CCMR_TESTS_SUPPORT_KINDS_H

#include <cucoremr/stack.h>

extern const ccmr_kind *const dummy_kinds[];
extern const size_t dummy_kind_count;

/* Dummies alive, and dummies made so far. One thread. */
extern long dummy_live;
extern long dummy_made;

/* Value i that a dummy was made with; `given` and so on, text included. */
const ccmr_option_value *dummy_value(ccmr_resource *resource, size_t i);

/* Another text for option i, as option_get tells it. */
void dummy_set_text(ccmr_resource *resource, size_t i, const char *text);

/* Register them all; 0 if one was refused. */
int dummy_register(void);

#endif
