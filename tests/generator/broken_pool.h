/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kind `subpool`: a small pool over any stream-ordered upstream, plainly
 * written on the public operations, which can be told to make one of the
 * mistakes that pools are known for. The generator has to find each of them,
 * and none in the pool that makes none.
 *
 *     subpool fault=merge segment=256KiB | device_pool
 */
#ifndef CCMR_TESTS_GENERATOR_BROKEN_POOL_H
#define CCMR_TESTS_GENERATOR_BROKEN_POOL_H

#include <cucoremr/status.h>

/* X(name, what it does wrong). */
#define POOL_FAULT_MAP(X)                                                     \
    X(none, "nothing")                                                        \
    X(rest, "the rest of a block that another stream took counts as that "    \
            "stream's, with an event that was never recorded")                \
    X(merge, "merging two free blocks forgets what one of them waits for")    \
    X(stream, "a free is ordered on the allocation stream, whichever was "    \
              "named")                                                        \
    X(note, "uses that were noted are forgotten")                             \
    X(held, "a stream that a block is held for counts only up to then")       \
    X(trim, "memory goes upstream before the work on it is done")             \
    X(handle, "streams are told apart by their handles, which come again")    \
    X(late, "events are recorded when somebody takes the block: the stream "  \
            "may be gone")                                                    \
    X(kept, "a noted use keeps the stream, and records at the free")          \
    X(context, "a free on a thread without a context loses its event")        \
    X(token, "all threads' default streams count as one")                     \
    X(thread, "a thread's default stream is asked by another thread")         \
    X(reclaim, "out of memory, streams are waited for by their handles, "     \
               "tokens included")                                             \
    X(capture, "events are asked in the caller's capture mode")               \
    X(capturing, "nobody asks whether a stream captures")                     \
    X(erase, "the entry of a freed block is removed after it can be taken "   \
             "again")                                                         \
    X(lost, "two threads that free at once lose a block")                     \
    X(live, "a trim looks at no live blocks")                                 \
    X(full, "out of memory, what only waits for work is not waited for")      \
    X(told, "a trim tells of more bytes than went")                           \
    X(hoard, "a trim leaves a segment that is free")                          \
    X(greedy, "out of memory, nothing that is free goes back")                \
    X(host, "memory for the host is handed out before the device is done")    \
    X(left, "a failed allocation leaves the context current")                 \
    X(exit, "pools that are there at exit wait for their work then")          \
    X(forked, "a forked child ends the pools of its parent at its exit")      \
    X(refused, "a free that is refused has taken the block")                  \
    X(size, "blocks are a unit too short at times")

typedef enum pool_fault {
#define POOL_FAULT_ENUM(name, text) POOL_FAULT_##name,
    POOL_FAULT_MAP(POOL_FAULT_ENUM)
#undef POOL_FAULT_ENUM
        POOL_FAULT_COUNT
} pool_fault;

const char *pool_fault_name(unsigned fault);
const char *pool_fault_text(unsigned fault);

/* Make the kind known; before the driver is, so that handlers of exit run
   after the driver's own. */
ccmr_status broken_pool_register(void);

#endif
