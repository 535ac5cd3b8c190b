/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The check of order: is each use of memory ordered behind those of whoever
 * had it before, by the rules of CUDA and whatever ran when?
 *
 * Memory changes hands when the driver gives it to the program or takes it
 * back, and when a test says that a resource hands a block out or takes one
 * back. What holds at a change of hands:
 *
 *   handed out on s   all work since before is ordered before s's next work
 *   used on u         u's work is ordered behind the hand-out
 *   freed on s        all work of the owner is ordered before s's next work,
 *                     but for what the resource was told of (note, hold)
 *
 * so that after each change one place in one stream stands for all before it.
 * Clocks are kept up at the calls, not when work runs: the answer is the same
 * under every schedule.
 */
#ifndef SIM_ORDER_H
#define SIM_ORDER_H

#include "sim/stream.h"

/** Work is about to be enqueued: between the legacy default stream and the
 *  blocking ones of its context order comes by itself. True if it did. */
bool sim_order_join(struct sim_stream *stream);
/** The legacy default stream is ordered behind all blocking ones. */
void sim_order_follow_blocking(struct sim_stream *legacy);
/** A place of its own for the stream, as a piece of work that does nothing. */
void sim_order_mark(struct sim_stream *stream);
/** The stream goes for the program; what it did stays. */
void sim_order_of_stream_end(const struct sim_stream *stream);
/** Put in all places of a context's work so far. */
void sim_order_note_context(const struct sim_context *context,
                            struct sim_clock *clock);

/* For the driver's own calls; no-ops while nothing is checked. A stream that
 * is NULL stands for the host. */

/** The driver has given memory to the program. */
void sim_order_give(uintptr_t address, size_t bytes,
                    struct sim_stream *stream);
/** It takes it back. */
void sim_order_take(uintptr_t address, size_t bytes,
                    struct sim_stream *stream);
/** Work that uses it is about to be enqueued. */
void sim_order_use(uintptr_t address, size_t bytes, struct sim_stream *stream);
/** The host itself uses it. */
void sim_order_host_use(uintptr_t address, size_t bytes);
/** The memory is no more. */
void sim_order_forget(uintptr_t address, size_t bytes);
/** The same of memory that has no address any more, by its keys. */
void sim_order_end(uint64_t key, size_t bytes);
/** Addresses lose their memory, which may have others: all work that used it
 *  there must be done. */
void sim_order_unmap(uintptr_t address, size_t bytes,
                     const struct sim_clock *uses);

/* For the control table. */

void sim_order_hand_out(uintptr_t address, size_t bytes,
                        struct sim_stream *stream);
void sim_order_free(uintptr_t address, size_t bytes,
                    struct sim_stream *stream);
/** The free was refused. */
void sim_order_refuse(uintptr_t address, size_t bytes,
                      struct sim_stream *unused);
/** A stream's work up to now is the resource's matter ... */
void sim_order_note(uintptr_t address, size_t bytes,
                    struct sim_stream *stream);
/** ... or up to the free. */
void sim_order_hold(uintptr_t address, size_t bytes,
                    struct sim_stream *stream);
/** The host knows that all of the stream's work is done. */
void sim_order_learn(struct sim_stream *stream);
/** A piece of work that does nothing else uses it. */
void sim_order_use_now(uintptr_t address, size_t bytes,
                       struct sim_stream *stream);
/** Begin or end checking. */
void sim_order_check(bool on);

#endif
