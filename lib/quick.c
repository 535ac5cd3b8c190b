/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quick ways: a thread's table of them.
 */
#include "lib/quick.h"

#include "lib/resource_object.h"

/* Entries that were never used have 0. */
_Atomic uint64_t ccmr__quick_epoch = 1;

void ccmr__quick_enter(ccmr_resource *resource, ccmr_stream stream,
                       uint64_t epoch, ccmr__quick *way)
{
    ccmr__quick_entry *set = ccmr__quick_set(ccmr__thread_self(), stream);
    ccmr__quick_entry *entry = &set[0];

    /* The first stays if it is another one's and of use. */
    if (set[0].epoch == epoch &&
        (set[0].resource != resource || set[0].stream != stream)) {
        entry = &set[1];
    }
    *entry = (ccmr__quick_entry){resource, stream, epoch, way};
}

void ccmr__quick_drop(const ccmr__quick *way)
{
    ccmr__thread *self = ccmr__thread_self();
    size_t i;

    for (i = 0; i < CCMR__QUICK_SETS; i++) {
        if (self->quick[i][0].way == way) {
            self->quick[i][0] = (ccmr__quick_entry){0};
        }
        if (self->quick[i][1].way == way) {
            self->quick[i][1] = (ccmr__quick_entry){0};
        }
    }
}

void ccmr__resource_arm_by(ccmr_resource *resource,
                           void (*arm)(void *self, ccmr_resource *resource,
                                       ccmr_stream stream))
{
    resource->arm = arm;
}
