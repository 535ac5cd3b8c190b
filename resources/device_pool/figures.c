/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_pool: what the driver says about the pool. Attributes and trim would
 * ruin a capture of another thread, and are called in relaxed mode.
 */
#include "resources/device_pool/device_pool.h"

#include "lib/error.h"
#include "resources/common.h"

enum { RESERVED, RESERVED_HIGH, USED, USED_HIGH, FIGURES };

/* In a relaxed scope. */
static ccmr_status read_figures(CUmemoryPool pool, cuuint64_t figures[FIGURES])
{
    static const CUmemPool_attribute attributes[FIGURES] = {
        [RESERVED] = CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
        [RESERVED_HIGH] = CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH,
        [USED] = CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
        [USED_HIGH] = CU_MEMPOOL_ATTR_USED_MEM_HIGH,
    };
    CUresult res;
    size_t i;

    for (i = 0; i < FIGURES; i++) {
        res =
            CCMR__CU(cuMemPoolGetAttribute)(pool, attributes[i], &figures[i]);
        if (res != CUDA_SUCCESS) {
            return ccmr__fail_driver((int)res, "cuMemPoolGetAttribute");
        }
    }
    return CCMR_SUCCESS;
}

ccmr_status ccmr__device_pool_probe(CUmemoryPool pool)
{
    cuuint64_t figures[FIGURES];

    return read_figures(pool, figures);
}

ccmr_status ccmr__device_pool_stats(void *object, ccmr_stats *stats)
{
    const ccmr__device_pool *self = object;
    cuuint64_t figures[FIGURES];
    ccmr__scope scope;
    ccmr_status status =
        ccmr__scope_enter(&scope, self->device, CCMR__SCOPE_RELAXED);

    if (status != CCMR_SUCCESS) {
        return status;
    }
    status = read_figures(self->pool, figures);
    ccmr__scope_leave(&scope);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    stats->reserved_bytes = figures[RESERVED];
    stats->peak_reserved_bytes = figures[RESERVED_HIGH];
    if (self->owned) {
        /* The driver's count is of rounded sizes. */
        stats->peak_live_bytes = figures[USED_HIGH];
        stats->exact |=
            CCMR_STAT_RESERVED_BYTES | CCMR_STAT_PEAK_RESERVED_BYTES;
    }
    return CCMR_SUCCESS;
}

/*
 * What stays above `keep` and what is in use is pending, or shares its 2 MiB
 * with something in use: the driver does not tell these apart.
 */
ccmr_status ccmr__device_pool_trim(void *object, size_t keep,
                                   ccmr_trim_result *result)
{
    const ccmr__device_pool *self = object;
    cuuint64_t before[FIGURES];
    cuuint64_t after[FIGURES];
    cuuint64_t floor;
    ccmr__scope scope;
    ccmr_status status;
    CUresult res;

    ccmr__device_pool_look_at_retired(self->device);
    status = ccmr__scope_enter(&scope, self->device, CCMR__SCOPE_RELAXED);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    status = read_figures(self->pool, before);
    if (status == CCMR_SUCCESS) {
        res = CCMR__CU(cuMemPoolTrimTo)(self->pool, keep);
        status = res == CUDA_SUCCESS
                     ? read_figures(self->pool, after)
                     : ccmr__fail_driver((int)res, "cuMemPoolTrimTo");
    }
    ccmr__scope_leave(&scope);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    floor = after[USED] > keep ? after[USED] : keep;
    result->released_bytes = before[RESERVED] > after[RESERVED]
                                 ? before[RESERVED] - after[RESERVED]
                                 : 0;
    result->pending_bytes =
        after[RESERVED] > floor ? after[RESERVED] - floor : 0;
    result->pinned_bytes = 0;
    return CCMR_SUCCESS;
}

ccmr_status ccmr__device_pool_full(const ccmr__device_pool *self, size_t bytes,
                                   CUresult res)
{
    cuuint64_t figures[FIGURES];
    ccmr_error_detail *detail;
    ccmr__scope scope;
    ccmr_status status =
        ccmr__scope_enter(&scope, self->device, CCMR__SCOPE_RELAXED);

    if (status == CCMR_SUCCESS) {
        status = read_figures(self->pool, figures);
        ccmr__scope_leave(&scope);
    }
    if (status == CCMR_SUCCESS) {
        (void)ccmr__fail(
            CCMR_ERROR_OUT_OF_DEVICE_MEMORY,
            "the pool of device %d cannot give %zu bytes: %llu "
            "used and %llu reserved of at most %zu",
            self->device->ordinal, bytes, (unsigned long long)figures[USED],
            (unsigned long long)figures[RESERVED], self->most_bytes);
        ccmr__error()->live = figures[USED];
        ccmr__error()->reserved = figures[RESERVED];
    } else {
        (void)ccmr__fail(CCMR_ERROR_OUT_OF_DEVICE_MEMORY,
                         "the pool of device %d cannot give %zu bytes",
                         self->device->ordinal, bytes);
    }
    detail = ccmr__error();
    detail->device = self->device->ordinal;
    detail->limit = self->most_bytes;
    if (res != CUDA_SUCCESS) {
        ccmr__note_out_of_memory(detail, "cuMemAllocFromPoolAsync");
    }
    return CCMR_ERROR_OUT_OF_DEVICE_MEMORY;
}
