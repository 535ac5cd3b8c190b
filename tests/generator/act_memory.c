/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks come, change their recorded stream or their form, and go. */
#include "tests/generator/model.h"

#include <inttypes.h>
#include <string.h>

/* ---- what has to be refused ------------------------------------------------------ */

/* The status that a call on this stream has to answer; SUCCESS: none. */
static ccmr_status refusal(const model *m, const track *t)
{
    if (t->device != m->home && m->properties.device >= 0) {
        return CCMR_ERROR_WRONG_DEVICE;
    }
    if (t->capturing && m->properties.capture == CCMR_CAPTURE_REFUSED) {
        return CCMR_ERROR_CAPTURING;
    }
    return CCMR_SUCCESS;
}

/* May the stream be named in a call at all? Memory that is bound to no device
   takes any; what captures record is for other programs to try. */
static int can_name(const model *m, const track *t)
{
    return t != NULL && t->alive &&
           (t->device == m->home || m->properties.device >= 0) &&
           (!t->capturing || m->properties.capture == CCMR_CAPTURE_REFUSED ||
            m->properties.capture == CCMR_CAPTURE_IRRELEVANT);
}

static void expect_refusal(const char *call, ccmr_status status,
                           ccmr_status want, int met)
{
    if (status == CCMR_SUCCESS || (status != want && !met)) {
        fail(FAULT_STATUS, "%s answers %s, should be %s: %s", call,
             ccmr_status_name(status), ccmr_status_name(want),
             status != CCMR_SUCCESS ? ccmr_last_error()->message : "");
    }
}

/* ---- allocate ---------------------------------------------------------------------- */

/* What the library gave; not the block's before that is looked at again. */
typedef struct gift {
    void *ptr;
    ccmr_buffer *buffer;
} gift;

static ccmr_status allocate(const model *m, const op *o, const track *t,
                            gift *got)
{
    const ccmr_buffer_options options = {sizeof(options), o->alignment};
    ccmr_status status;

    if (o->word == AS_BUFFER) {
        status = ccmr_buffer_create(m->resource, (size_t)o->bytes, &options,
                                    t->handle, &got->buffer);
        if (status == CCMR_SUCCESS) {
            got->ptr = ccmr_buffer_ptr(got->buffer);
        }
        return status;
    }
    return ccmr_resource_allocate(m->resource, (size_t)o->bytes, o->alignment,
                                  t->handle, &got->ptr);
}

/* Is there no room, as far as the program knows? */
static int may_be_full(const model *m, ccmr_status status, size_t bytes)
{
    switch ((int)status) {
    case CCMR_ERROR_LIMIT_EXCEEDED:
        if (m->limit != UINT64_MAX && !m->p->free_running) {
            return m->live_bytes + bytes > m->limit;
        }
        return m->has_limit;
    case CCMR_ERROR_OUT_OF_DEVICE_MEMORY:
        return m->has_capacity;
    case CCMR_ERROR_RELEASED:
        return m->released;
    default:
        return 0;
    }
}

static void check_block(const model *m, const block *b)
{
    size_t mask =
        (b->alignment == 0 ? CCMR_DEFAULT_ALIGNMENT : b->alignment) - 1;
    uintptr_t begin = (uintptr_t)b->ptr;
    unsigned i;

    if (b->bytes == 0 ? b->ptr != NULL
                      : b->ptr == NULL || (begin & mask) != 0) {
        fail(FAULT_STATUS, "%zu bytes with alignment %zu are at %p", b->bytes,
             mask + 1, b->ptr);
    }
    for (i = 0; i < PROGRAM_BLOCKS && b->ptr != NULL; i++) {
        const block *other = &m->blocks[i];
        uintptr_t at = (uintptr_t)other->ptr;

        if (other != b && other->state != BLOCK_NONE && !other->going &&
            at != 0 && begin < at + other->bytes && at < begin + b->bytes) {
            fail(FAULT_OVERLAP,
                 "%zu bytes at %p were handed out, but b%u has %zu bytes at "
                 "%p",
                 b->bytes, b->ptr, i, other->bytes, other->ptr);
        }
    }
}

/* The limit is the top's own: it lets through what fits and nothing else. */
static void check_limit(const model *m)
{
    if (!m->p->free_running && m->live_bytes > m->limit) {
        fail(FAULT_STATUS, "%" PRIu64 " bytes are live, the limit is %" PRIu64,
             m->live_bytes, m->limit);
    }
}

/* A resource with streams=registered registers what it is given. Whether that
   has happened is told by an announcement that changes nothing. */
static int is_registered(const model *m, track *t)
{
    if (!t->registered && m->registered_only && t->alive && !t->capturing &&
        ccmr_stream_set_capturing(t->handle, 0) == CCMR_SUCCESS) {
        t->registered = 1;
    }
    return t->registered;
}

static void block_begin(model *m, worker *w, block *b, track *t)
{
    inside in;

    check_block(m, b);
    m->live_bytes += b->bytes;
    m->live_blocks += b->ptr != NULL;
    m->open_buffers += b->buffer != NULL;
    check_limit(m);
    told->allocations++;
    b->state = BLOCK_LIVE;
    b->recorded = t;
    b->recorded_registered = is_registered(m, t);
    b->recorder = w->serial;
    b->touchable = m->properties.host_accessible &&
                   m->properties.access == CCMR_ACCESS_HOST;
    if (b->ptr != NULL && m->properties.device_accessible && !t->capturing) {
        driver_enter(m, &in);
        announce_handed_out(m, b, t);
        use_note(m, t, &b->writer);
        if (m->p->order) {
            use_note(m, t, &b->born);
        }
        driver_leave(&in);
    }
}

/* Must the resource know that all which was freed is done, once it is? A pool
   cannot ask about streams that it may not use later. */
static int knows_all(const model *m, const track *t)
{
    const track *other;

    for (other = m->tracks; other != NULL && m->has_pool;
         other = other->next) {
        if (other->alive && !other->registered && other != t) {
            return 0;
        }
    }
    return !m->has_pool || m->lost == 0;
}

static void give_back(const model *m, const op *o, const track *t,
                      const gift *got)
{
    ccmr_status status =
        got->buffer != NULL
            ? ccmr_buffer_destroy(got->buffer)
            : ccmr_resource_deallocate(m->resource, got->ptr, (size_t)o->bytes,
                                       o->alignment, t->handle);

    expect_success("free", status, 0);
}

/* It was full. When all work is done there must be no more room than that, if
   the resource is to wait before it says so; and when nothing is live there
   must be room for all that fits. */
static void check_patience(model *m, worker *w, const op *o, const track *t,
                           ccmr_status status)
{
    gift got = {NULL, NULL};
    ccmr_status again;
    inside in;

    if (m->p->free_running || m->captures != 0 || m->released ||
        (status != CCMR_ERROR_LIMIT_EXCEEDED &&
         status != CCMR_ERROR_OUT_OF_DEVICE_MEMORY)) {
        return;
    }
    driver_enter(m, &in);
    sync_all(m, w);
    checks_compare(m);
    driver_leave(&in);
    again = allocate(m, o, t, &got);
    if (again == CCMR_SUCCESS && m->p->patient) {
        fail(FAULT_STATUS,
             "%s for %" PRIu64 " bytes, though there is room when work is "
             "done",
             ccmr_status_name(status), o->bytes);
    }
    if (again == CCMR_SUCCESS) {
        give_back(m, o, t, &got);
    } else if (m->live_blocks == 0 && m->p->memory == 0 &&
               o->bytes <= m->budget &&
               o->alignment <= CCMR_DEFAULT_ALIGNMENT && knows_all(m, t)) {
        fail(FAULT_STATUS,
             "%s for %" PRIu64 " bytes of %" PRIu64 ", and nothing is live",
             ccmr_status_name(again), o->bytes, m->budget);
    }
}

static void check_allocated(model *m, worker *w, const op *o, track *t,
                            block *b, ccmr_status status, int met)
{
    ccmr_status want = b->bytes != 0 ? refusal(m, t) : CCMR_SUCCESS;

    if (status == CCMR_SUCCESS) {
        if (want != CCMR_SUCCESS) {
            expect_refusal("allocate", status, want, met);
        }
        if (m->released) {
            expect_refusal("allocate", status, CCMR_ERROR_RELEASED, met);
        }
        block_begin(m, w, b, t);
        return;
    }
    if (ccmr_last_error()->status != status) {
        fail(FAULT_STATUS, "allocate answers %s, but the last error is %s",
             ccmr_status_name(status),
             ccmr_status_name(ccmr_last_error()->status));
    }
    if (!met && !may_be_full(m, status, b->bytes)) {
        if (want != CCMR_SUCCESS) {
            expect_refusal("allocate", status, want, met);
        } else {
            expect_success("allocate", status, met);
        }
    }
    if (!met && want == CCMR_SUCCESS) {
        check_patience(m, w, o, t, status);
    }
    memset(b, 0, sizeof(*b));
}

void act_allocate(model *m, worker *w, const op *o)
{
    block *b = &m->blocks[o->block];
    track *t = track_of(m, w, o->stream);
    gift got = {NULL, NULL};
    ccmr_status status;
    int met;

    if (b->state != BLOCK_NONE || !can_name(m, t) ||
        o->alignment > m->properties.max_alignment ||
        (o->alignment == 0 &&
         m->properties.max_alignment < CCMR_DEFAULT_ALIGNMENT) ||
        (m->released &&
         (o->bytes == 0 || m->live_blocks + m->open_buffers == 0))) {
        leave_out();
        return;
    }
    memset(b, 0, sizeof(*b));
    b->state = BLOCK_BUSY;
    b->bytes = (size_t)o->bytes;
    b->alignment = o->alignment;
    t->pins++;
    call_begin(m, w);
    status = allocate(m, o, t, &got);
    met = call_end(m, w);
    t->pins--;
    b->ptr = got.ptr;
    b->buffer = got.buffer;
    check_allocated(m, w, o, t, b, status, met);
}

/* ---- free ------------------------------------------------------------------------- */

/* How a block is about to be freed. */
typedef struct plan {
    ccmr_stream requested;
    track *on; /* the stream that the free uses; NULL: READY */
    int edge;  /* the library orders it after the recorded stream */
    ccmr_status want;
    ccmr_status or ; /* as right as that; SUCCESS: no other is */
} plan;

static int at_once(const model *m)
{
    return m->properties.free_stream == CCMR_FREE_AT_ONCE;
}

/* Can the library itself use the recorded stream now? */
static int recorded_is_known(const block *b, const worker *w)
{
    const track *r = b->recorded;

    if (r->kind == STREAM_THREAD) {
        return b->recorder == w->serial;
    }
    return b->recorded_registered && r->registered;
}

/* Nobody names a stream. 0: the program must not do that. */
static int plan_unset(const model *m, const worker *w, const block *b,
                      plan *how)
{
    track *r = b->recorded;

    how->requested = CCMR_STREAM_UNSET;
    how->on = r;
    if (b->buffer == NULL) {
        return 0;
    }
    if (b->ptr == NULL) {
        return 1;
    }
    if (at_once(m)) { /* no stream is used */
        how->on = NULL;
        return r->alive || b->recorded_registered;
    }
    if (r->kind == STREAM_THREAD && b->recorder != w->serial) {
        how->want = CCMR_ERROR_WRONG_THREAD;
        return 1;
    }
    if (b->recorded_registered && !recorded_is_known(b, w)) {
        how->want = CCMR_ERROR_INVALID_STREAM;
        return 1;
    }
    how->want = refusal(m, r);
    return can_name(m, r);
}

static int plan_named(const model *m, const worker *w, const block *b,
                      uint8_t stream, plan *how)
{
    track *t = track_of(m, w, stream);

    if (!can_name(m, t)) {
        return 0;
    }
    how->requested = t->handle;
    how->on = t;
    if (b->ptr == NULL) {
        return 1;
    }
    how->want = refusal(m, t);
    how->edge = b->buffer != NULL && t->handle != b->recorded->handle &&
                recorded_is_known(b, w) && !at_once(m);
    if (how->edge && b->recorded->capturing) {
        how->or = how->want;
        how->want = CCMR_ERROR_CAPTURING;
    }
    return 1;
}

static int plan_free(const model *m, const worker *w, const block *b,
                     uint8_t stream, plan *how)
{
    unsigned i;

    for (i = 0; i < b->held_count; i++) {
        if (b->held[i]->capturing) { /* what it was given cannot be known */
            return 0;
        }
    }
    *how = (plan){NULL, NULL, 0, CCMR_SUCCESS, CCMR_SUCCESS};
    if (stream == STREAM_UNSET) {
        return plan_unset(m, w, b, how);
    }
    if (stream == STREAM_READY) {
        how->requested = CCMR_STREAM_READY;
        return 1;
    }
    return plan_named(m, w, b, stream, how);
}

static int is_held(const block *b, const track *t)
{
    unsigned i = 0;

    while (i < b->held_count && b->held[i] != t) {
        i++;
    }
    return i < b->held_count;
}

static void order_use(const block *b, const plan *how, const mem_use *use)
{
    if (!use->noted && !(how->edge && use->on == b->recorded) &&
        !is_held(b, use->on)) {
        use_before(how->on, use);
    }
}

/* The duty of whoever frees: all uses come before, but for those that the
   library orders itself. */
static void order_free(const model *m, block *b, const plan *how)
{
    unsigned i;
    inside in;

    if (b->ptr == NULL || how->want != CCMR_SUCCESS) {
        return;
    }
    driver_enter(m, &in);
    if (how->on == NULL || at_once(m)) {
        block_finish(b);
    } else {
        use_before(how->on, &b->born);
        order_use(b, how, &b->writer);
        for (i = 0; i < b->reader_count; i++) {
            order_use(b, how, &b->readers[i]);
        }
        for (i = 0; i < b->past_count; i++) {
            order_use(b, how, &b->past[i]);
        }
    }
    if (how->edge) {
        announce_noted(m, b, b->recorded, 1);
    }
    announce_freed(m, b, how->on);
    driver_leave(&in);
}

static ccmr_status free_block(model *m, block *b, ccmr_stream requested)
{
    ccmr_status status;

    if (b->buffer == NULL) {
        return ccmr_resource_deallocate(m->resource, b->ptr, b->bytes,
                                        b->alignment, requested);
    }
    status = ccmr_buffer_close(b->buffer, requested);
    if (status == CCMR_SUCCESS && ccmr_buffer_destroy(b->buffer) != 0) {
        fail(FAULT_STATUS, "a closed buffer cannot be destroyed: %s",
             ccmr_last_error()->message);
    }
    return status;
}

static void end_free(model *m, block *b, const plan *how, ccmr_status status,
                     int met)
{
    inside in;

    if (how->want != CCMR_SUCCESS) {
        expect_refusal("free", status, status == how->or ? how->or : how->want,
                       met);
    } else if (status != CCMR_ERROR_CAPTURING || !m->p->free_running ||
               b->held_count == 0) { /* no capture began meanwhile */
        expect_success("free", status, met);
    }
    if (status != CCMR_SUCCESS) { /* the block is whole */
        if (b->ptr != NULL && how->want == CCMR_SUCCESS) {
            announce_not_freed(m, b);
        }
        b->state = BLOCK_LIVE;
        b->going = 0;
        m->live_bytes += b->bytes;
        m->live_blocks += b->ptr != NULL;
        m->open_buffers += b->buffer != NULL;
        return;
    }
    while (b->held_count > 0) {
        b->held[--b->held_count]->holds--;
    }
    driver_enter(m, &in);
    block_forget(m, b);
    driver_leave(&in);
    memset(b, 0, sizeof(*b));
}

/* What nobody announces must not begin during a free of a block that is held
   for the stream. A capture that is announced may: then it is refused. */
static void pin_held(const block *b, int by)
{
    unsigned i;

    for (i = 0; i < b->held_count; i++) {
        if (!b->held[i]->registered) {
            b->held[i]->pins += (unsigned)by;
        }
    }
}

static void free_as_planned(model *m, worker *w, block *b, const plan *how)
{
    ccmr_status status;
    int met;

    order_free(m, b, how);
    b->state = BLOCK_BUSY;
    b->going = 1;
    m->live_bytes -= b->bytes;
    m->live_blocks -= b->ptr != NULL;
    m->open_buffers -= b->buffer != NULL;
    b->recorded->pins++;
    if (how->on != NULL) {
        how->on->pins++;
    }
    pin_held(b, 1);
    call_begin(m, w);
    status = free_block(m, b, how->requested);
    met = call_end(m, w);
    b->recorded->pins--;
    if (how->on != NULL) {
        how->on->pins--;
    }
    pin_held(b, -1);
    end_free(m, b, how, status, met);
}

/* The resource was released and ends with this block, at a bad time. */
static int is_last(const model *m)
{
    return m->released && m->live_blocks + m->open_buffers <= 2 &&
           !world_may_end(m);
}

/* In the free-running mode a per-thread stream that is recorded may belong to
   a thread that is at work; its pins are only a count. */
void act_free(model *m, worker *w, const op *o)
{
    block *b = &m->blocks[o->block];
    plan how;

    if (b->state != BLOCK_LIVE || is_last(m) ||
        !plan_free(m, w, b, o->stream, &how)) {
        leave_out();
        return;
    }
    free_as_planned(m, w, b, &how);
}

void free_finally(model *m, worker *w, block *b)
{
    uint8_t stream = (b - m->blocks) % 2 == 0 ? STREAM_READY : STREAM_LEGACY;
    plan how;

    (void)pthread_mutex_lock(&m->lock);
    (void)plan_free(m, w, b, stream, &how);
    free_as_planned(m, w, b, &how);
    (void)pthread_mutex_unlock(&m->lock);
}

/* ---- notes, streams, forms ------------------------------------------------------------ */

static void mark_noted(const model *m, block *b, const track *t)
{
    unsigned i;
    inside in;

    driver_enter(m, &in);
    announce_noted(m, b, t, 0);
    driver_leave(&in);

    b->writer.noted |= b->writer.on == t;
    for (i = 0; i < b->reader_count; i++) {
        b->readers[i].noted |= b->readers[i].on == t;
    }
}

void act_note(model *m, worker *w, const op *o)
{
    block *b = &m->blocks[o->block];
    track *t = track_of(m, w, o->stream);
    ccmr_status status;
    int met;

    if (b->state != BLOCK_LIVE || b->ptr == NULL || !can_name(m, t) ||
        t->device != m->home || (b->buffer == NULL && m->released)) {
        leave_out();
        return;
    }
    b->state = BLOCK_BUSY;
    t->pins++;
    call_begin(m, w);
    status = b->buffer != NULL
                 ? ccmr_buffer_note_use(b->buffer, t->handle)
                 : ccmr_resource_note_use(m->resource, b->ptr, t->handle);
    met = call_end(m, w);
    t->pins--;
    b->state = BLOCK_LIVE;
    if (status == CCMR_ERROR_NOT_SUPPORTED &&
        (b->buffer == NULL || at_once(m))) {
        return;
    }
    if (t->capturing) {
        expect_refusal("note_use", status, CCMR_ERROR_CAPTURING, met);
        return;
    }
    expect_success("note_use", status, met);
    if (status == CCMR_SUCCESS) {
        mark_noted(m, b, t);
    }
}

/* What will be enqueued on the stream until the free is the resource's matter.
   A stream that is not registered must be there then. */
void act_hold(model *m, worker *w, const op *o)
{
    block *b = &m->blocks[o->block];
    track *t = track_of(m, w, o->stream);
    ccmr_status status;
    int met;

    if (b->state != BLOCK_LIVE || b->ptr == NULL || b->buffer != NULL ||
        !can_name(m, t) || t->device != m->home || t->capturing ||
        t->kind == STREAM_THREAD || m->released ||
        b->held_count == BLOCK_HELD || is_held(b, t)) {
        leave_out();
        return;
    }
    b->state = BLOCK_BUSY;
    t->pins++;
    call_begin(m, w);
    status = ccmr_resource_hold_until_free(m->resource, b->ptr, t->handle);
    met = call_end(m, w);
    t->pins--;
    b->state = BLOCK_LIVE;
    if (status == CCMR_ERROR_NOT_SUPPORTED) {
        return;
    }
    expect_success("hold_until_free", status, met);
    if (status == CCMR_SUCCESS) {
        inside in;

        b->held[b->held_count++] = t;
        t->holds++;
        driver_enter(m, &in);
        announce_noted(m, b, t, 1);
        driver_leave(&in);
    }
}

/* Whoever records a stream has ordered it after all uses. */
static void order_record(const model *m, const block *b, track *t)
{
    inside in;

    if (b->ptr != NULL && m->properties.device_accessible) {
        driver_enter(m, &in);
        block_before_write(b, t);
        driver_leave(&in);
    }
}

void act_record(model *m, worker *w, const op *o)
{
    block *b = &m->blocks[o->block];
    track *t = track_of(m, w, o->stream);
    ccmr_status want;
    ccmr_status status;
    int met;

    if (b->state != BLOCK_LIVE || b->buffer == NULL || !can_name(m, t) ||
        t->capturing) {
        leave_out();
        return;
    }
    want = refusal(m, t);
    if (want == CCMR_SUCCESS) {
        order_record(m, b, t);
    }
    b->state = BLOCK_BUSY;
    t->pins++;
    call_begin(m, w);
    status = ccmr_buffer_set_stream(b->buffer, t->handle);
    met = call_end(m, w);
    t->pins--;
    b->state = BLOCK_LIVE;
    if (want != CCMR_SUCCESS) {
        expect_refusal("ccmr_buffer_set_stream", status, want, met);
        return;
    }
    expect_success("ccmr_buffer_set_stream", status, met);
    if (status == CCMR_SUCCESS) {
        b->recorded = t;
        b->recorded_registered = is_registered(m, t);
        b->recorder = w->serial;
    }
}

void act_disown(model *m, worker *w, const op *o)
{
    block *b = &m->blocks[o->block];
    ccmr_status status;
    void *ptr = NULL;
    unsigned i;

    if (b->state != BLOCK_LIVE || b->buffer == NULL || m->released) {
        leave_out();
        return;
    }
    b->state = BLOCK_BUSY;
    call_begin(m, w);
    status = ccmr_buffer_disown(b->buffer, &ptr);
    if (status == CCMR_SUCCESS) {
        status = ccmr_buffer_destroy(b->buffer);
    }
    expect_success("ccmr_buffer_disown", status, call_end(m, w));
    if (ptr != b->ptr) {
        fail(FAULT_STATUS, "disown gives %p, the buffer has %p", ptr, b->ptr);
    }
    m->open_buffers--;
    b->buffer = NULL;
    b->state = BLOCK_LIVE;
    b->writer.noted = 0; /* the buffer's notes went with it */
    for (i = 0; i < b->reader_count; i++) {
        b->readers[i].noted = 0;
    }
}

void act_adopt(model *m, worker *w, const op *o)
{
    block *b = &m->blocks[o->block];
    track *t = track_of(m, w, o->stream);
    ccmr_buffer_source source = CCMR_BUFFER_SOURCE_INIT;
    ccmr_buffer *buffer = NULL;
    ccmr_status status;
    int met;

    if (b->state != BLOCK_LIVE || b->buffer != NULL || b->ptr == NULL ||
        m->released || !can_name(m, t) || t->capturing ||
        t->device != m->home) {
        leave_out();
        return;
    }
    order_record(m, b, t);
    source.resource = m->resource;
    source.alignment = b->alignment;
    source.stream = t->handle;
    b->state = BLOCK_BUSY;
    t->pins++;
    call_begin(m, w);
    status = ccmr_buffer_from_handle(b->ptr, b->bytes, &source, &buffer);
    met = call_end(m, w);
    t->pins--;
    b->state = BLOCK_LIVE;
    expect_success("ccmr_buffer_from_handle", status, met);
    if (status == CCMR_SUCCESS) {
        b->buffer = buffer;
        m->open_buffers++;
        b->recorded = t;
        b->recorded_registered = is_registered(m, t);
        b->recorder = w->serial;
    }
}
