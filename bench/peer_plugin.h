/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers that come in a library of their own, since what they measure cannot be
 * linked to the bench: other languages, other projects' libraries.
 *
 * Such a library exports one object, ccmr_bench_peers, of the type below. It
 * is loaded when --peer names something that the bench does not have itself.
 * This header is plain C and C++.
 */
#ifndef CCMR_BENCH_PEER_PLUGIN_H
#define CCMR_BENCH_PEER_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CCMR_BENCH_PEERS_SYMBOL "ccmr_bench_peers"

/* What calls answer. */
enum {
    CCMR_BENCH_PEER_OK = 0,
    CCMR_BENCH_PEER_FAILED = 1,
    CCMR_BENCH_PEER_NO_MEMORY = 2 /* a larger budget might do */
};

#define CCMR_BENCH_PEER_UNKNOWN UINT64_MAX

typedef struct ccmr_bench_peer {
    const char *name;
    const char *help; /* one line */
    /** Set it up; the device's primary context is current. `budget`: most
     *  bytes that it may take from the driver, 0: no bound. On a failure
     *  `message` says why. */
    int (*create)(int device, uint64_t budget, void **peer, char *message,
                  size_t size);
    /** From several threads at once. `stream` is a CUstream. */
    int (*allocate)(void *peer, size_t bytes, void *stream, void **ptr);
    int (*deallocate)(void *peer, void *ptr, size_t bytes, void *stream);
    /** Bytes taken from the driver, and the most that there were. */
    void (*reserved)(void *peer, uint64_t *now, uint64_t *peak);
    /** Give all back. Nothing is live, all work is done. */
    void (*destroy)(void *peer);
} ccmr_bench_peer;

typedef struct ccmr_bench_peers_table {
    size_t size; /* of this struct */
    size_t peer_size;
    const ccmr_bench_peer *peers;
    size_t count;
} ccmr_bench_peers_table;

#ifdef __cplusplus
}
#endif

#endif /* CCMR_BENCH_PEER_PLUGIN_H */
