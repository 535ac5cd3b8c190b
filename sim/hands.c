/* SPDX-License-Identifier: Apache-2.0 */
/* Who has which memory, and what they do with it. */
#include "sim/hands.h"

#include <stdio.h>

#include "sim/hazard.h"
#include "sim/memory.h"
#include "sim/order.h"
#include "sim/virtual.h"

static ccmr_sim_party party_of(const char *call,
                               const struct sim_stream *stream,
                               uint64_t position)
{
    const struct sim_thread *self = sim_self_unlocked();
    ccmr_sim_party party =
        sim_party(self, call != NULL ? call : sim_call_name(self->call));

    if (stream != NULL) {
        party.stream_id = stream->id;
        party.position = position;
    }
    return party;
}

/* Is the use ordered before what the stream, or the host, does next? */
static bool precedes(const struct sim_use *use,
                     const struct sim_stream *stream)
{
    const struct sim_line *line = use->line;

    if (line == NULL || use->party.position <= line->done) {
        return true;
    }
    return stream != NULL &&
           (line == stream->line ||
            sim_clock_covers(&stream->clock, line, use->party.position));
}

/* All that was done to the span must be ordered before; but for what the
 * resource was told of, where `told` counts. Tells one failing. */
static void check_all(const struct sim_touch *touch,
                      const struct sim_span *span, ccmr_sim_hazard_kind kind,
                      bool told)
{
    size_t i;

    if (!precedes(&span->event, touch->stream)) {
        sim_hands_complain(touch, span, kind, &span->event);
        return;
    }
    for (i = 0; i < span->count; i++) {
        const struct sim_use *use = &span->uses[i];

        if (!precedes(use, touch->stream) &&
            !(told && (use->held || use->party.position <= use->noted))) {
            sim_hands_complain(touch, span, kind, use);
            return;
        }
    }
}

/* Without memory for the shadow nothing can be told any more. */
static void give_up(void)
{
    fprintf(stderr, "libcucoremr-sim: no memory to check the order of "
                    "accesses any longer\n");
    sim_order_check(false);
}

/* A range's pieces with keys in a row, each in turn. */
typedef void touch_function(const struct sim_touch *touch,
                            const void *context);

static void each_piece(uintptr_t address, size_t bytes,
                       const struct sim_stream *stream, ccmr_sim_party now,
                       touch_function *function, const void *context)
{
    struct sim_touch touch = {.now = now, .stream = stream};

    while (bytes > 0 && sim.order) {
        size_t length;

        touch.address = address;
        touch.start = sim_memory_key(address, bytes, &length);
        touch.end = touch.start + length;
        function(&touch, context);
        address += length;
        bytes -= length;
    }
}

/* Changes of hands. */

/* The range becomes one span, with that as its event. */
static void become(const struct sim_touch *touch, enum sim_span_state state,
                   const ccmr_sim_party *last)
{
    struct sim_span *span = sim_span_new(touch->start, touch->end, state);

    if (span == NULL) {
        give_up();
        return;
    }
    span->event.party = touch->now;
    if (touch->stream != NULL) {
        span->event.line = touch->stream->line;
        sim_line_hold(span->event.line);
    }
    if (last != NULL) {
        span->last = *last;
    }
    sim_span_put(span);
}

/* What the driver gives is fit for use: it is the driver's own matter. */
static void give_piece(const struct sim_touch *touch, const void *unused)
{
    struct sim_span *list;

    (void)unused;
    if (!sim_spans_take(touch->start, touch->end, &list)) {
        give_up();
        return;
    }
    sim_spans_free(list);
    become(touch, SIM_SPAN_GIVEN, NULL);
}

void sim_order_give(uintptr_t address, size_t bytes, struct sim_stream *stream)
{
    if (!sim.order) {
        return;
    }
    if (stream != NULL) {
        (void)sim_order_join(stream);
        sim_order_mark(stream);
    }
    each_piece(address, bytes, stream,
               party_of(NULL, stream, stream != NULL ? stream->enqueued : 0),
               give_piece, NULL);
}

static void take_piece(const struct sim_touch *touch, const void *unused)
{
    struct sim_span *list, *span;

    (void)unused;
    if (!sim_spans_take(touch->start, touch->end, &list)) {
        give_up();
        return;
    }
    for (span = list; span != NULL; span = span->next) {
        if (span->state == SIM_SPAN_BLOCK) {
            sim_hands_complain(touch, span, CCMR_SIM_TAKEN_AWAY, &span->event);
        } else {
            check_all(touch, span, CCMR_SIM_FREED_EARLY, false);
        }
    }
    sim_spans_free(list);
}

void sim_order_take(uintptr_t address, size_t bytes, struct sim_stream *stream)
{
    if (!sim.order) {
        return;
    }
    if (stream != NULL) {
        (void)sim_order_join(stream);
    }
    each_piece(address, bytes, stream,
               party_of(NULL, stream, stream != NULL ? stream->enqueued : 0),
               take_piece, NULL);
}

static void forget_piece(const struct sim_touch *touch, const void *unused)
{
    struct sim_span *list;

    (void)unused;
    if (sim_spans_take(touch->start, touch->end, &list)) {
        sim_spans_free(list);
    } else {
        give_up();
    }
}

void sim_order_forget(uintptr_t address, size_t bytes)
{
    if (sim.order) {
        each_piece(address, bytes, NULL, party_of(NULL, NULL, 0), forget_piece,
                   NULL);
    }
}

/* At no address. A block must not have been left there. */
void sim_order_end(uint64_t key, size_t bytes)
{
    struct sim_touch touch = {.address = key, .start = key};
    struct sim_span *list, *span;

    if (!sim.order) {
        return;
    }
    touch.end = key + bytes;
    touch.now = party_of(NULL, NULL, 0);
    if (!sim_spans_take(touch.start, touch.end, &list)) {
        give_up();
        return;
    }
    for (span = list; span != NULL; span = span->next) {
        if (span->state == SIM_SPAN_BLOCK) {
            sim_hands_complain(&touch, span, CCMR_SIM_TAKEN_AWAY,
                               &span->event);
        }
    }
    sim_spans_free(list);
}

void sim_order_unmap(uintptr_t address, size_t bytes,
                     const struct sim_clock *uses)
{
    size_t i;

    for (i = 0; sim.order && i < uses->count; i++) {
        const struct sim_tick *tick = &uses->ticks[i];

        if (tick->position > tick->line->done) {
            const ccmr_sim_party now = party_of(NULL, NULL, 0);
            const ccmr_sim_party before = {.stream_id = tick->line->id,
                                           .position = tick->position};

            sim_hands_complain_unmapped(address, bytes, &now, &before);
            return;
        }
    }
}

static void hand_out_piece(const struct sim_touch *touch, const void *unused)
{
    struct sim_span *list, *span;

    (void)unused;
    if (!sim_spans_take(touch->start, touch->end, &list)) {
        give_up();
        return;
    }
    for (span = list; span != NULL; span = span->next) {
        if (span->state == SIM_SPAN_BLOCK) {
            sim_hands_complain(touch, span, CCMR_SIM_HANDED_OUT_TWICE,
                               &span->event);
        } else {
            check_all(touch, span, CCMR_SIM_HANDED_OUT_EARLY, false);
        }
    }
    sim_spans_free(list);
    become(touch, SIM_SPAN_BLOCK, NULL);
}

/* A place of the stream that all of its clock belongs to. */
static uint64_t place_of(struct sim_stream *stream)
{
    if (stream == NULL) {
        return 0;
    }
    if (sim_order_join(stream)) {
        sim_order_mark(stream);
    }
    return stream->enqueued;
}

void sim_order_hand_out(uintptr_t address, size_t bytes,
                        struct sim_stream *stream)
{
    uint64_t position = place_of(stream);

    each_piece(address, bytes, stream,
               party_of("handed out", stream, position), hand_out_piece, NULL);
}

/* The latest of the uses on the stream that frees, for the report. */
static const ccmr_sim_party *last_use(const struct sim_touch *touch,
                                      const struct sim_span *span)
{
    const ccmr_sim_party *last = NULL;
    size_t i;

    for (i = 0; i < span->count; i++) {
        const struct sim_use *use = &span->uses[i];

        if (last == NULL ||
            (touch->stream != NULL && use->line == touch->stream->line) ||
            (last->stream_id != touch->now.stream_id &&
             use->party.sequence > last->sequence)) {
            last = &use->party;
        }
    }
    return last;
}

/* What the resource was told of stays: the next owner has to follow it. */
static bool keep_noted(struct sim_span *to, const struct sim_touch *touch,
                       const struct sim_span *from)
{
    size_t i;

    for (i = 0; i < from->count; i++) {
        const struct sim_use *use = &from->uses[i];
        struct sim_use *kept;

        if (precedes(use, touch->stream)) {
            continue;
        }
        kept = sim_span_use(to, use->line);
        if (kept == NULL) {
            return false;
        }
        kept->party = use->party;
    }
    return true;
}

/* `span` becomes what the new one was. */
static void free_span(const struct sim_touch *touch, struct sim_span *span)
{
    struct sim_touch part = *touch;
    const ccmr_sim_party *last = last_use(touch, span);
    struct sim_span *freed;

    if (span->state == SIM_SPAN_BLOCK) {
        check_all(touch, span, CCMR_SIM_FREED_EARLY, true);
    } else {
        sim_hands_complain(touch, span, CCMR_SIM_FREED_TWICE, &span->event);
    }
    part.start = span->start;
    part.end = span->end;
    become(&part, SIM_SPAN_FREED, last);
    freed = sim_span_after(span->start);
    if (freed == NULL || freed->start != span->start) {
        sim_spans_free(span);
        return;
    }
    if (!keep_noted(freed, touch, span)) {
        give_up();
    }
    /* One step back is enough: no free of a free. */
    sim_spans_free(span->was);
    span->was = NULL;
    freed->was = span;
}

static void free_piece(const struct sim_touch *touch, const void *unused)
{
    struct sim_span *list;

    (void)unused;
    if (!sim_spans_take(touch->start, touch->end, &list)) {
        give_up();
        return;
    }
    while (list != NULL) {
        struct sim_span *span = list;

        list = span->next;
        span->next = NULL;
        if (sim.order) {
            free_span(touch, span);
        } else {
            sim_spans_free(span);
        }
    }
}

static void refuse_piece(const struct sim_touch *touch, const void *unused)
{
    struct sim_span *list;

    (void)unused;
    if (!sim_spans_take(touch->start, touch->end, &list)) {
        give_up();
        return;
    }
    while (list != NULL) {
        struct sim_span *span = list;

        list = span->next;
        span->next = NULL;
        if (span->state == SIM_SPAN_FREED && span->was != NULL) {
            sim_span_put(span->was);
            span->was = NULL;
            sim_spans_free(span);
        } else {
            sim_span_put(span);
        }
    }
}

void sim_order_refuse(uintptr_t address, size_t bytes,
                      struct sim_stream *unused)
{
    (void)unused;
    each_piece(address, bytes, NULL, party_of("freed", NULL, 0), refuse_piece,
               NULL);
}

void sim_order_free(uintptr_t address, size_t bytes, struct sim_stream *stream)
{
    uint64_t position = place_of(stream);

    each_piece(address, bytes, stream, party_of("freed", stream, position),
               free_piece, NULL);
}

/* Uses. */

static void use_span(const struct sim_touch *touch, struct sim_span *span)
{
    struct sim_use *use;

    if (span->state == SIM_SPAN_FREED) {
        /* Ordinary host memory may be anybody's by now. */
        if (sim_region_find(touch->address) != NULL) {
            sim_hands_complain(touch, span, CCMR_SIM_USED_FREED, &span->event);
        }
        return;
    }
    if (!precedes(&span->event, touch->stream)) {
        sim_hands_complain(touch, span, CCMR_SIM_USED_EARLY, &span->event);
    }
    if (touch->stream == NULL) {
        return;
    }
    use = sim_span_use(span, touch->stream->line);
    if (use == NULL) {
        give_up();
        return;
    }
    use->party = touch->now;
}

static void use_piece(const struct sim_touch *touch, const void *unused)
{
    struct sim_span *span = sim_span_after(touch->start);
    struct sim_mapping *mapping = sim_mapping_find(touch->address);

    (void)unused;
    if (mapping != NULL && touch->stream != NULL &&
        !sim_clock_add(&mapping->uses, touch->stream->line,
                       touch->now.position)) {
        give_up();
        return;
    }
    while (span != NULL && span->start < touch->end) {
        uint64_t end = span->end;

        use_span(touch, span);
        span = sim.order ? sim_span_after(end) : NULL;
    }
}

static void use_as(uintptr_t address, size_t bytes, struct sim_stream *stream,
                   const char *call)
{
    (void)sim_order_join(stream);
    each_piece(address, bytes, stream,
               party_of(call, stream, stream->enqueued + 1), use_piece, NULL);
}

void sim_order_use(uintptr_t address, size_t bytes, struct sim_stream *stream)
{
    if (sim.order) {
        use_as(address, bytes, stream, NULL);
    }
}

void sim_order_host_use(uintptr_t address, size_t bytes)
{
    if (sim.order) {
        each_piece(address, bytes, NULL, party_of("used", NULL, 0), use_piece,
                   NULL);
    }
}

static void note_piece(const struct sim_touch *touch, const void *context)
{
    const bool *until_free = context;
    struct sim_span *span = sim_span_after(touch->start);

    while (span != NULL && span->start < touch->end) {
        struct sim_use *use = sim_span_use(span, touch->stream->line);

        if (use == NULL) {
            give_up();
            return;
        }
        use->held = use->held || *until_free;
        use->noted = touch->stream->enqueued;
        span = sim_span_after(span->end);
    }
}

void sim_order_note(uintptr_t address, size_t bytes, struct sim_stream *stream)
{
    const bool until_free = false;

    each_piece(address, bytes, stream, party_of("noted", stream, 0),
               note_piece, &until_free);
}

void sim_order_hold(uintptr_t address, size_t bytes, struct sim_stream *stream)
{
    const bool until_free = true;

    each_piece(address, bytes, stream, party_of("noted", stream, 0),
               note_piece, &until_free);
}

void sim_order_use_now(uintptr_t address, size_t bytes,
                       struct sim_stream *stream)
{
    if (stream == NULL) {
        sim_order_host_use(address, bytes);
        return;
    }
    use_as(address, bytes, stream, "used");
    sim_order_mark(stream);
}

void sim_order_check(bool on)
{
    sim.order = on;
    if (!on) {
        sim_shadow_clear();
    }
}
