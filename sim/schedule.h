/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When enqueued work runs.
 *
 * Every stream is a queue of operations. One may run when it is at the head
 * of its stream, its stream is not stalled, and every place that it waits for
 * has been reached. Whoever runs work (a caller that waits, that asks, or in
 * eager mode any caller) picks among those that may run: the one enqueued
 * first where the seed is 0, else a generator with the seed decides. There are
 * no threads of the simulator's own, so the same calls with the same seed run
 * the same way.
 */
#ifndef SIM_SCHEDULE_H
#define SIM_SCHEDULE_H

#include "sim/operation.h"

/** Would an operation on the stream run at once, here and now? */
bool sim_runs_now(const struct sim_stream *stream);
/** Enqueue an operation, which becomes the schedule's. */
CUresult sim_submit(struct sim_stream *stream, struct sim_op *op);
/** Run up to so many operations; how many ran. */
uint64_t sim_run(uint64_t operations);
/** Hold a stream, known by that handle or token, until it is released. */
void sim_stall(struct sim_stream *stream, CUstream handle);
/** Release all streams that were stalled by that handle, dead ones too. */
bool sim_release(CUstream handle);
/** After something changed that may let work run. */
void sim_released(void);

/** Run something, or let another thread or process change what nothing here
 *  can. */
void sim_step_or_wait(void);
/** How many operations a question may run. Who asks again gets there. */
uint64_t sim_progress_of_asking(void);
/** Wait until a place is reached. The stream is held meanwhile. */
void sim_wait_quietly(struct sim_stream *stream, uint64_t position);
/** The same as the host's synchronisation, which pools notice; also of what
 *  the place is ordered behind. */
CUresult sim_wait_stream(struct sim_stream *stream, uint64_t position,
                         const struct sim_clock *clock);
/** Wait for work of a stream without what a synchronisation does beyond
 *  that: pools notice nothing of it. */
CUresult sim_wait_done(struct sim_stream *stream, uint64_t position);
/** Wait for the legacy stream, and so for all that it waits for. */
CUresult sim_wait_legacy(struct sim_stream *legacy);
CUresult sim_wait_context(struct sim_context *context);
/** Wait for all work of a device; -1: of all devices. */
void sim_wait_device(int device);
/** CUDA_SUCCESS if a place is reached, else CUDA_ERROR_NOT_READY. Asking
 *  lets some work run: who polls gets there. */
CUresult sim_ask(struct sim_stream *stream, uint64_t position,
                 const struct sim_clock *clock);
/** The same about the legacy stream and all that it waits for. */
CUresult sim_ask_legacy(struct sim_stream *legacy);
/** Run all work of a context, stalled or not. */
void sim_context_abandon(struct sim_context *context);

void sim_schedule_seed(uint64_t seed);

/* For wait.c: */

uint64_t sim_random(void);
/** The serial of what was enqueued last. */
uint64_t sim_last_serial(void);
/** Is there work of that context (NULL: any) and device (-1: any) that was
 *  enqueued before `serial`? */
bool sim_work_left(const struct sim_context *context, int device,
                   uint64_t serial);
void sim_let_go_context(const struct sim_context *context);
/** Say on standard error which streams have work left. */
void sim_schedule_report(void);
uint64_t sim_operations_pending(void);

#endif
