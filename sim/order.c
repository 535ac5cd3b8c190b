/* SPDX-License-Identifier: Apache-2.0 */
/* How clocks are kept up; who has which memory is in hands.c. */
#include "sim/order.h"

#include "sim/context.h"
#include "sim/schedule.h"

static void follow(struct sim_stream *stream, struct sim_stream *other)
{
    (void)sim_clock_join(&stream->clock, &other->clock);
    (void)sim_clock_add(&stream->clock, other->line, other->enqueued);
}

void sim_order_follow_blocking(struct sim_stream *legacy)
{
    struct sim_context *context = legacy->context;
    struct sim_stream *stream;

    (void)sim_clock_join(&legacy->clock, &context->gone_blocking);
    for (stream = context->streams; stream != NULL; stream = stream->next) {
        if (sim_stream_is_blocking(stream)) {
            follow(legacy, stream);
        }
    }
    legacy->joined = context->blocking_version;
}

bool sim_order_join(struct sim_stream *stream)
{
    struct sim_context *context = stream->context;
    struct sim_stream *legacy = context->legacy;

    stream->version++;
    if (stream == legacy) {
        if (legacy->joined == context->blocking_version) {
            return false;
        }
        sim_order_follow_blocking(legacy);
        return true;
    }
    if (!sim_stream_is_blocking(stream)) {
        return false;
    }
    context->blocking_version++;
    if (legacy == NULL || stream->joined == legacy->version) {
        return false;
    }
    follow(stream, legacy);
    stream->joined = legacy->version;
    return true;
}

void sim_order_of_stream_end(const struct sim_stream *stream)
{
    struct sim_context *context = stream->context;

    if (!sim.order || context == NULL) {
        return;
    }
    (void)sim_clock_join(&context->gone, &stream->clock);
    (void)sim_clock_add(&context->gone, stream->line, stream->enqueued);
    if (sim_stream_is_blocking(stream)) {
        (void)sim_clock_join(&context->gone_blocking, &stream->clock);
        (void)sim_clock_add(&context->gone_blocking, stream->line,
                            stream->enqueued);
    }
}

void sim_order_note_context(const struct sim_context *context,
                            struct sim_clock *clock)
{
    const struct sim_stream *stream;

    (void)sim_clock_join(clock, &context->gone);
    for (stream = context->streams; stream != NULL; stream = stream->next) {
        (void)sim_clock_join(clock, &stream->clock);
        (void)sim_clock_add(clock, stream->line, stream->enqueued);
    }
}

/* The stream's next work as a place of its own, where order came by itself and
 * an event recorded before does not tell of it. */
void sim_order_mark(struct sim_stream *stream)
{
    struct sim_op *op;

    if (sim_runs_now(stream)) {
        sim_stream_pass(stream);
        return;
    }
    op = sim_op_new(SIM_OP_MARK);
    if (op != NULL) {
        (void)sim_submit(stream, op);
    }
}

void sim_order_learn(struct sim_stream *stream)
{
    struct sim_clock clock = {.count = 0};

    if (sim.order) {
        (void)sim_order_join(stream);
        (void)sim_clock_join(&clock, &stream->clock);
        (void)sim_clock_add(&clock, stream->line, stream->enqueued);
        sim_clock_done(&clock);
        sim_clock_clear(&clock);
    }
}
