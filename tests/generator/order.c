/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of a program's own uses. An event is recorded right after each
 * use, where it can be waited for as long as the block lives, even when the
 * stream has gone or has begun to capture.
 */
#include "tests/generator/model.h"

#include <stdlib.h>

track *track_new(model *m, CUstream handle, uint8_t kind, int device)
{
    track *t = calloc(1, sizeof(*t));

    if (t == NULL) {
        fail(FAULT_PROGRAM, "no memory");
    }
    t->next = m->tracks;
    m->tracks = t;
    t->handle = handle;
    t->kind = kind;
    t->device = device;
    t->alive = 1;
    return t;
}

track *track_of(const model *m, const worker *w, uint8_t stream)
{
    if (stream == STREAM_LEGACY) {
        return m->legacy;
    }
    if (stream == STREAM_THREAD) {
        return w->own;
    }
    return stream < PROGRAM_STREAMS ? m->slots[stream] : NULL;
}

static CUevent event_take(model *m)
{
    CUevent event = NULL;

    if (m->spare_events > 0) {
        return m->events[--m->spare_events];
    }
    if (m->made_events == MODEL_EVENTS) {
        fail(FAULT_PROGRAM, "too many events");
    }
    m->made_events++;
    need(api.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    return event;
}

void use_note(model *m, track *on, mem_use *use)
{
    use->on = on;
    use->position = ++on->enqueued;
    use->noted = 0;
    use->event = event_take(m);
    need(api.cuEventRecord(use->event, on->handle), "cuEventRecord");
}

void use_forget(model *m, mem_use *use)
{
    if (use->on != NULL) {
        m->events[m->spare_events++] = use->event;
    }
    *use = (mem_use){NULL, 0, NULL, 0};
}

static int is_finished(const mem_use *use)
{
    return use->on == NULL || use->position <= use->on->finished;
}

void use_before(track *on, const mem_use *use)
{
    if (!is_finished(use) && use->on != on) {
        need(api.cuStreamWaitEvent(on->handle, use->event, 0),
             "cuStreamWaitEvent");
    }
}

void use_finish(mem_use *use)
{
    if (!is_finished(use)) {
        need(api.cuEventSynchronize(use->event), "cuEventSynchronize");
        use->on->finished = use->position;
    }
}

void block_before_read(const block *b, track *on)
{
    use_before(on, &b->writer);
}

void block_before_write(const block *b, track *on)
{
    unsigned i;

    use_before(on, &b->writer);
    for (i = 0; i < b->reader_count; i++) {
        use_before(on, &b->readers[i]);
    }
}

void block_finish(block *b)
{
    unsigned i;

    use_finish(&b->writer);
    for (i = 0; i < b->reader_count; i++) {
        use_finish(&b->readers[i]);
    }
}

void block_forget_uses(model *m, block *b)
{
    use_forget(m, &b->writer);
    while (b->reader_count > 0) {
        use_forget(m, &b->readers[--b->reader_count]);
    }
}

void block_forget(model *m, block *b)
{
    block_forget_uses(m, b);
    use_forget(m, &b->born);
    while (b->past_count > 0) {
        use_forget(m, &b->past[--b->past_count]);
    }
}

static unsigned find_reader(const block *b, const track *on)
{
    unsigned i = 0;

    while (i < b->reader_count && b->readers[i].on != on) {
        i++;
    }
    return i;
}

int block_can_read(const block *b)
{
    return b->reader_count < BLOCK_READERS;
}

/* Of several reads on a stream the last one counts. */
void block_was_read(model *m, block *b, track *on)
{
    unsigned i = find_reader(b, on);

    b->touchable = 0;
    if (i < b->reader_count) {
        use_forget(m, &b->readers[i]);
    } else {
        b->reader_count++;
    }
    use_note(m, on, &b->readers[i]);
}

/* A use that the writer covers. */
static void keep_past(model *m, block *b, mem_use *use)
{
    unsigned i = 0;

    if (!m->p->order || is_finished(use)) {
        use_forget(m, use);
        return;
    }
    while (i < b->past_count && b->past[i].on != use->on) {
        i++;
    }
    if (i == BLOCK_PAST) {
        use_finish(use);
        use_forget(m, use);
        return;
    }
    if (i < b->past_count) {
        use_forget(m, &b->past[i]);
    } else {
        b->past_count++;
    }
    b->past[i] = *use;
    *use = (mem_use){NULL, 0, NULL, 0};
}

void block_was_written(model *m, block *b, track *on)
{
    keep_past(m, b, &b->writer);
    while (b->reader_count > 0) {
        keep_past(m, b, &b->readers[--b->reader_count]);
    }
    b->touchable = 0;
    use_note(m, on, &b->writer);
}

/* A per-thread stream can be waited for by its own thread alone. */
static int can_sync(const track *t, const worker *w)
{
    return t->alive && !t->capturing &&
           (t->kind != STREAM_THREAD || (w != NULL && t->owner == w->serial));
}

void track_sync(track *t, const worker *w)
{
    uint64_t position = t->enqueued;

    if (can_sync(t, w)) {
        need(api.cuStreamSynchronize(t->handle), "cuStreamSynchronize");
        t->finished = position;
    }
}

void sync_all(model *m, const worker *w)
{
    track *t;

    if (m->captures != 0) { /* a context's synchronisation ruins them */
        for (t = m->tracks; t != NULL; t = t->next) {
            track_sync(t, w);
        }
        return;
    }
    need(api.cuCtxSynchronize(), "cuCtxSynchronize");
    for (t = m->tracks; t != NULL; t = t->next) {
        if (t->device == m->home) {
            t->finished = t->enqueued;
        }
    }
}
