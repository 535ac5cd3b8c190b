/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures that a resource reports.
 */
#ifndef CUCOREMR_STATS_H
#define CUCOREMR_STATS_H

#include <stddef.h>
#include <stdint.h>

#include <cucoremr/status.h>

/* Bits of ccmr_stats.exact: which figures are exact when nothing else runs. */
#define CCMR_STAT_LIVE_BYTES 0x1u
#define CCMR_STAT_PEAK_LIVE_BYTES 0x2u
#define CCMR_STAT_RESERVED_BYTES 0x4u
#define CCMR_STAT_PEAK_RESERVED_BYTES 0x8u
#define CCMR_STAT_COUNTS 0x10u
#define CCMR_STAT_PENDING_BYTES 0x20u

/**
 * Figures of one resource. Byte counts are as that resource counts: what was
 * asked of it for `live`, what it holds for `reserved`. What a resource does
 * not know is CCMR_BYTES_UNKNOWN.
 * @since 0.1
 */
typedef struct ccmr_stats {
    size_t size;                /**< [in] sizeof(ccmr_stats) */
    unsigned exact;             /**< CCMR_STAT_... of the exact figures */
    size_t live_bytes;          /**< handed out and not given back */
    size_t peak_live_bytes;     /**< greatest live_bytes */
    size_t reserved_bytes;      /**< taken from upstream or the driver */
    size_t peak_reserved_bytes; /**< greatest reserved_bytes */
    size_t pending_bytes;       /**< given back, waiting for streams */
    uint64_t live_blocks;       /**< blocks handed out and not given back */
    uint64_t allocations;       /**< successful allocations, 0 bytes not */
    uint64_t deallocations;     /**< successful deallocations */
    /** Allocations that the resource was asked for and did not give. A call
     * with arguments that no resource is asked about (NULL, a stream that is
     * none, more than PTRDIFF_MAX bytes, an alignment that is no power of two
     * or more than it honours), or after the release, fails and is not one. */
    uint64_t failures;
} ccmr_stats;

/**
 * What a trim achieved. @since 0.1
 */
typedef struct ccmr_trim_result {
    size_t size;           /**< [in] sizeof(ccmr_trim_result) */
    size_t released_bytes; /**< given back to the driver or upstream */
    size_t pending_bytes;  /**< free, but streams are not done with it */
    size_t pinned_bytes;   /**< free, but may not be given back now */
} ccmr_trim_result;

#endif /* CUCOREMR_STATS_H */
