/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rare half of the census: barriers and sums.
 */
#include "lib/census.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

int ccmr__census_fences = 1;
atomic_int ccmr__census_word;

void ccmr__census_start(void)
{
    if (!CCMR__TSAN &&
        syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0,
                0) == 0) {
        ccmr__census_fences = 0;
    }
}

void ccmr__census_barrier(void)
{
    atomic_fetch_add_explicit(&ccmr__census_word, 1, memory_order_seq_cst);
    if (!ccmr__census_fences) {
        /* Cannot fail once registered. */
        (void)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    }
}

/* acquire: a sum taken while others work must not count a block's free, read
 * earlier, without its allocation, read later. */
static int64_t read_count(atomic_int_fast64_t *count)
{
    return (int64_t)atomic_load_explicit(count, memory_order_acquire);
}

void ccmr__census_read(ccmr__census *census, ccmr__census_sum *sum)
{
    int i;

    *sum = (ccmr__census_sum){0};
    for (i = 0; i < CCMR__SLOTS; i++) {
        ccmr__shard *shard = &census->shards[i];

        sum->deallocations += read_count(&shard->deallocations);
        sum->holders += read_count(&shard->holders);
        sum->failures += read_count(&shard->failures);
    }
    for (i = 0; i < CCMR__SLOTS; i++) {
        ccmr__shard *shard = &census->shards[i];

        sum->allocations += read_count(&shard->allocations);
        sum->bytes += read_count(&shard->bytes);
    }
}

void ccmr__census_wait_out(ccmr__census *census)
{
    int i;

    for (i = 0; i < CCMR__SLOTS; i++) {
        while (atomic_load_explicit(&census->shards[i].inside,
                                    memory_order_acquire) != 0) {
            sched_yield();
        }
    }
}
