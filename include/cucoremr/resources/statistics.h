/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statistics: counts of what is asked, at any number of places in a stack.
 */
#ifndef CUCOREMR_RESOURCES_STATISTICS_H
#define CUCOREMR_RESOURCES_STATISTICS_H

#include <cucoremr/resource.h>

/** How peaks are kept. @since 0.1 */
typedef enum ccmr_statistics_peaks {
    /** Each thread counts for itself and tells the others when its share has
     * changed by enough: exact while one thread has used the resource, else
     * within the error that is given with it: at most 1/32 of the peak, or of
     * the scope's, and 4 KiB and 4 blocks for each thread that has used it (64
     * at most). Where a scope stays about where it began, most operations
     * tell, and cost as exact peaks do. */
    CCMR_STATISTICS_PEAKS_CLOSE = 0,
    /** Exact under threads, by counters that all of them share: some ns an
     * operation on one thread, hundreds where many meet. */
    CCMR_STATISTICS_PEAKS_EXACT = 1
} ccmr_statistics_peaks;

/** Options; 0 is the default. @since 0.1 */
typedef struct ccmr_statistics_options {
    size_t size; /**< sizeof(ccmr_statistics_options) */
    ccmr_statistics_peaks peaks;
} ccmr_statistics_options;

/** How many sizes are told apart; see ccmr_statistics.sizes. @since 0.1 */
#define CCMR_STATISTICS_SIZES 64

/**
 * Counts of one moment: no operation is half in them. All but the peaks are
 * exact, under threads too.
 *
 * A block is live from when the upstream gave it until it is handed to the
 * upstream's free; one that the upstream refuses to take stays live. In a
 * scope (see ccmr_statistics_push()) what is live may be below 0, where older
 * blocks were freed; elsewhere that says that blocks were freed here which
 * came from somewhere else, or with a wrong size.
 * @since 0.1
 */
typedef struct ccmr_statistics {
    size_t size;                 /**< [in] sizeof(ccmr_statistics) */
    uint64_t allocations;        /**< that succeeded, 0 bytes not */
    uint64_t deallocations;      /**< that succeeded */
    uint64_t allocated_bytes;    /**< as asked for, modulo 2^64 */
    uint64_t deallocated_bytes;  /**< likewise */
    int64_t live_blocks;         /**< allocations - deallocations */
    int64_t live_bytes;          /**< allocated - deallocated bytes */
    int64_t peak_live_blocks;    /**< greatest live_blocks, 0 at least */
    int64_t peak_live_bytes;     /**< greatest live_bytes, 0 at least */
    uint64_t peak_error_blocks;  /**< by how many it may be wrong; 0: exact */
    uint64_t peak_error_bytes;   /**< likewise */
    size_t largest_bytes;        /**< greatest allocation that succeeded */
    size_t largest_failed_bytes; /**< greatest one that failed */
    uint64_t failures_device;    /**< OUT_OF_DEVICE_MEMORY */
    uint64_t failures_host;      /**< OUT_OF_HOST_MEMORY */
    uint64_t failures_limit;     /**< LIMIT_EXCEEDED */
    uint64_t failures_other;     /**< allocations that failed otherwise; what
                                    is refused before the adaptor is asked
                                    (see ccmr_stats.failures) is not seen */
    uint64_t refused_frees;      /**< frees that the upstream refused */
    /** Allocations by size: sizes[i] of more than 2^(i-1) and at most 2^i
     * bytes, sizes[0] of one byte. */
    uint64_t sizes[CCMR_STATISTICS_SIZES];
    unsigned depth; /**< scopes that are open */
} ccmr_statistics;

CCMR_BEGIN_DECLS

/**
 * Make a statistics adaptor: it passes everything on and counts. The upstream
 * is retained. `options` may be NULL.
 *
 * Beyond ccmr_resource_stats(), which every resource has: peaks, totals, sizes,
 * failures by reason, counts of one thread and of a part of the program.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_statistics_create(
    ccmr_resource *upstream, const ccmr_statistics_options *options,
    ccmr_resource **resource);

/**
 * Counts since creation, or since the last ccmr_statistics_push() that is
 * open.
 *
 * @param resource    a statistics adaptor, or what is stacked on one: then it
 *                    is the first that is found by going down first upstreams
 * @param statistics  [in,out] its size must be set
 *
 * Stops the threads that are about to count for some microseconds; no call of
 * the driver, no host memory. CCMR_ERROR_INVALID_ARGUMENT: there is none. Any
 * thread, from callbacks of streams too.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status
ccmr_statistics_read(ccmr_resource *resource, ccmr_statistics *statistics);

/**
 * What the calling thread counted. The difference of two readings is what it
 * did between them: the first may have counts of threads that have ended.
 * Live counts may be below 0 where one thread frees what another allocated.
 * Peaks, greatest sizes, failures and `depth` are 0: they are not kept by
 * thread. CCMR_ERROR_NOT_SUPPORTED for those beyond the 63rd thread at once.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_statistics_read_thread(
    ccmr_resource *resource, ccmr_statistics *statistics);

/**
 * Open a scope: ccmr_statistics_read() tells what happened since, of all
 * threads, with what is live now as its 0. Scopes nest. Operations that are
 * under way belong to the one or the other, each whole.
 * CCMR_ERROR_OUT_OF_HOST_MEMORY: none was opened.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status
ccmr_statistics_push(ccmr_resource *resource);

/**
 * Close the scope that was opened last; its counts stay in those of the scope
 * around it. `statistics` has what the scope counted, and may be NULL.
 * CCMR_ERROR_OUT_OF_RANGE: none is open.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status
ccmr_statistics_pop(ccmr_resource *resource, ccmr_statistics *statistics);

CCMR_END_DECLS

#endif /* CUCOREMR_RESOURCES_STATISTICS_H */
