/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs from seeds. Each program has a flavour of its own: which kinds of
 * operations it has, how often, and of which sizes. Programs that do few
 * things a lot find more than programs that do a little of everything.
 *
 * What stands where is guessed here, as if nothing ever failed; it is the
 * execution that decides what makes sense.
 */
#include "tests/generator/program.h"

#include <string.h>

#include "tests/generator/random.h"

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)
#define SIZES 5

typedef struct block_guess {
    int live;
    int buffer;
    uint64_t bytes;
    uint8_t stream; /* allocation stream or recorded one */
} block_guess;

typedef struct stream_guess {
    int alive;
    int registered;
    int capturing;
    uint8_t kind;
    uint8_t capturer; /* the thread */
} stream_guess;

typedef struct maker {
    program *p;
    chance dice;
    block_guess blocks[PROGRAM_BLOCKS];
    stream_guess streams[PROGRAM_STREAMS];
    unsigned live;
    unsigned captures;
    uint8_t thread;
    /* The flavour. */
    unsigned weights[OP_COUNT];
    unsigned stream_slots;
    unsigned block_slots;
    unsigned tokens; /* percent of uses that are on tokens */
    unsigned legacy; /* percent of those that are the legacy one */
    unsigned buffers;
    unsigned elsewhere; /* percent of streams that are another device's */
    unsigned other;     /* percent of frees on another stream */
    unsigned takeovers; /* percent of frees with an allocation behind */
    unsigned checks;
    int registered_only; /* streams are */
    int unguarded;       /* captures are relaxed ones */
    unsigned touches;    /* percent of new blocks that the host writes first */
    uint64_t sizes[SIZES];
} maker;

/* ---- flavour ---------------------------------------------------------------- */

static const unsigned usual_weights[OP_COUNT] = {
    [OP_STREAM] = 6,  [OP_DESTROY] = 4, [OP_REGISTER] = 1,  [OP_RETIRE] = 1,
    [OP_WAIT] = 3,    [OP_SYNC] = 3,    [OP_SETTLE] = 1,    [OP_RUN] = 6,
    [OP_CAPTURE] = 2, [OP_END] = 0,     [OP_ALLOCATE] = 30, [OP_FREE] = 26,
    [OP_FILL] = 6,    [OP_COPY] = 4,    [OP_CHECK] = 6,     [OP_WRITE] = 3,
    [OP_READ] = 2,    [OP_NOTE] = 5,    [OP_RECORD] = 3,    [OP_DISOWN] = 1,
    [OP_ADOPT] = 1,   [OP_TRIM] = 4,    [OP_QUERY] = 1,     [OP_FAIL] = 3,
    [OP_LEAVE] = 1,   [OP_HOLD] = 4,    [OP_FORK] = 1,
};

static const uint8_t optional_kinds[] = {
    OP_DESTROY, OP_REGISTER, OP_RETIRE, OP_WAIT,   OP_SYNC,  OP_SETTLE,
    OP_RUN,     OP_CAPTURE,  OP_FILL,   OP_COPY,   OP_CHECK, OP_WRITE,
    OP_READ,    OP_NOTE,     OP_RECORD, OP_DISOWN, OP_ADOPT, OP_TRIM,
    OP_QUERY,   OP_FAIL,     OP_LEAVE,  OP_HOLD,   OP_FORK,
};

static uint64_t choose_size(maker *m, unsigned profile)
{
    static const uint64_t common[] = {256, 512, 1024, 4096, 8192, 65536};

    switch (profile) {
    case 0: /* a few classes */
        return common[chance_below(&m->dice, 6)];
    case 1: /* anything small */
        return 1 + chance_below(&m->dice, 3000);
    case 2: /* anything */
        return (uint64_t)1 << (4 + chance_below(&m->dice, 15));
    default: /* odd */
        return common[chance_below(&m->dice, 6)] * 3 / 2 +
               chance_below(&m->dice, 9);
    }
}

static void choose_sizes(maker *m)
{
    uint64_t budget = program_bound(m->p, "limiting bytes=");
    uint64_t hard = program_bound(m->p, " hard=");
    unsigned profile = chance_below(&m->dice, 4);
    size_t i;

    for (i = 0; i < SIZES; i++) {
        m->sizes[i] = choose_size(m, profile);
    }
    if (chance_percent(&m->dice, 40)) { /* sums that a merge could serve */
        m->sizes[1] = m->sizes[0];
        m->sizes[2] = m->sizes[0] * 2;
        m->sizes[3] = m->sizes[0] / 2 + 1;
    }
    if (chance_percent(&m->dice, 4)) { /* some of them in their own pieces */
        m->sizes[0] = (1 + chance_below(&m->dice, 12)) * 256 * KIB;
        m->sizes[1] = 2 * MIB + chance_below(&m->dice, 3) * 4096;
    }
    budget = hard < budget ? hard : budget;
    if (budget != UINT64_MAX && chance_percent(&m->dice, 60)) {
        for (i = 0; i < SIZES; i++) {
            m->sizes[i] = (1 + chance_below(&m->dice, 8)) * budget / 16;
        }
    } else if (m->p->memory != 0) {
        for (i = 0; i < SIZES; i++) {
            m->sizes[i] = (1 + chance_below(&m->dice, 8)) * m->p->memory / 32;
        }
    }
}

static void choose_weights(maker *m)
{
    size_t i;

    memcpy(m->weights, usual_weights, sizeof(m->weights));
    for (i = 0; i < sizeof(optional_kinds); i++) {
        unsigned *weight = &m->weights[optional_kinds[i]];

        switch (chance_below(&m->dice, 5)) {
        case 0:
        case 1:
            *weight = 0;
            break;
        case 2:
            *weight *= 3;
            break;
        default:
            break;
        }
    }
    if (m->p->free_running) {
        m->weights[OP_FAIL] = 0;
        m->weights[OP_LEAVE] = 0;
        m->weights[OP_FORK] = 0;
    }
}

static void choose_flavour(maker *m)
{
    static const uint8_t legacy[] = {0, 0, 40, 80};
    static const uint8_t tokens[] = {0, 0, 0, 15, 40, 95};
    program *p = m->p;

    if (p->threads == 0) {
        p->threads = p->free_running ? 2 + chance_below(&m->dice, 3)
                                     : 1 + chance_below(&m->dice, 4);
    }
    if (p->devices == 0) {
        p->devices = 1 + (unsigned)chance_percent(&m->dice, 25);
    }
    if (p->memory == 0 && chance_percent(&m->dice, 15)) {
        p->memory = 96 * MIB;
    }
    if (strstr(p->stack, "device=1") != NULL && p->devices < 2) {
        p->devices = 2;
    }
    p->abandon |= chance_percent(&m->dice, 3);
    if (p->order < 0) {
        p->order = chance_percent(&m->dice, 60);
    }
    p->schedule =
        chance_percent(&m->dice, 5) ? 0 : 1 + chance_next(&m->dice) % 1000000;
    m->stream_slots = 1 + chance_below(&m->dice, PROGRAM_STREAMS);
    m->block_slots = 3 + chance_below(&m->dice, PROGRAM_BLOCKS - 2);
    m->tokens = tokens[chance_below(&m->dice, 6)];
    m->legacy = legacy[chance_below(&m->dice, 4)];
    m->buffers = chance_below(&m->dice, 3) * 45;
    m->elsewhere = p->devices > 1 ? chance_below(&m->dice, 20) : 0;
    m->other = chance_below(&m->dice, 60);
    m->takeovers = chance_below(&m->dice, 3) * 45;
    m->registered_only = strstr(p->stack, "streams=registered") != NULL;
    m->unguarded = strstr(p->stack, "guard=no") != NULL;
    m->touches = chance_below(&m->dice, 3) * 35;
    m->checks = 40 + chance_below(&m->dice, 61);
    choose_sizes(m);
    choose_weights(m);
}

/* ---- picks ------------------------------------------------------------------- */

/* A stream for work: mostly one that does not capture. */
static uint8_t pick_stream(maker *m)
{
    unsigned i;

    if (chance_percent(&m->dice, m->tokens)) {
        return chance_percent(&m->dice, m->legacy) ? STREAM_LEGACY
                                                   : STREAM_THREAD;
    }
    for (i = 0; i < 12; i++) {
        unsigned slot = chance_below(&m->dice, m->stream_slots);
        const stream_guess *s = &m->streams[slot];

        if (s->alive && (!s->capturing || chance_percent(&m->dice, 10)) &&
            (s->kind != AS_ELSEWHERE || chance_percent(&m->dice, 20))) {
            return (uint8_t)slot;
        }
    }
    return m->legacy == 0 ? STREAM_THREAD : STREAM_LEGACY;
}

/* A created stream that is alive; PROGRAM_STREAMS: there is none. */
static unsigned pick_created(maker *m, int capturing)
{
    unsigned i;

    for (i = 0; i < 16; i++) {
        unsigned slot = chance_below(&m->dice, m->stream_slots);

        if (m->streams[slot].alive &&
            m->streams[slot].capturing == capturing) {
            return slot;
        }
    }
    return PROGRAM_STREAMS;
}

static unsigned pick_block(maker *m, int live)
{
    unsigned i;

    for (i = 0; i < 24; i++) {
        unsigned slot = chance_below(&m->dice, m->block_slots);

        if (m->blocks[slot].live == live) {
            return slot;
        }
    }
    return PROGRAM_BLOCKS;
}

static op *emit(maker *m, op_kind kind)
{
    program *p = m->p;
    op *o = &p->ops[p->count < PROGRAM_MOST_OPS ? p->count++
                                                : PROGRAM_MOST_OPS - 1];

    memset(o, 0, sizeof(*o));
    o->kind = (uint8_t)kind;
    o->thread = m->thread;
    return o;
}

/* ---- operations --------------------------------------------------------------- */

static uint8_t choose_kind(maker *m)
{
    if (m->registered_only) {
        static const uint8_t kinds[] = {AS_OURS, AS_REGISTERED, AS_PLAIN};

        return kinds[chance_below(&m->dice, 3)];
    }
    return chance_percent(&m->dice, m->elsewhere)
               ? AS_ELSEWHERE
               : (uint8_t)chance_below(&m->dice, AS_ELSEWHERE);
}

static void make_stream(maker *m)
{
    unsigned slot = chance_below(&m->dice, m->stream_slots);
    stream_guess *s = &m->streams[slot];
    op *o;

    if (s->alive) {
        return;
    }
    o = emit(m, OP_STREAM);
    o->stream = (uint8_t)slot;
    o->word = choose_kind(m);
    s->alive = 1;
    s->kind = o->word;
    s->registered = o->word == AS_OURS || o->word == AS_REGISTERED;
}

static void destroy_stream(maker *m, unsigned slot, uint8_t how)
{
    op *o;

    if (slot >= PROGRAM_STREAMS || !m->streams[slot].alive ||
        m->streams[slot].capturing) {
        return;
    }
    o = emit(m, OP_DESTROY);
    o->stream = (uint8_t)slot;
    o->word = how;
    memset(&m->streams[slot], 0, sizeof(m->streams[slot]));
    if (chance_percent(&m->dice, 60)) { /* the handle is used again */
        o = emit(m, OP_STREAM);
        o->stream = (uint8_t)slot;
        o->word = choose_kind(m);
        m->streams[slot].alive = 1;
        m->streams[slot].kind = o->word;
    }
}

static void make_destroy(maker *m)
{
    unsigned slot = pick_created(m, 0);

    destroy_stream(m, slot, (uint8_t)chance_below(&m->dice, 2));
}

static void make_on_created(maker *m, op_kind kind)
{
    unsigned slot = pick_created(m, 0);

    if (slot != PROGRAM_STREAMS) {
        emit(m, kind)->stream = (uint8_t)slot;
    }
}

static void make_capture(maker *m)
{
    unsigned slot = pick_created(m, 0);
    stream_guess *s;
    op *o;

    if (slot == PROGRAM_STREAMS || m->captures >= 3) {
        return;
    }
    s = &m->streams[slot];
    o = emit(m, OP_CAPTURE);
    o->stream = (uint8_t)slot;
    o->word = (uint8_t)chance_below(&m->dice, 3);
    if (m->unguarded) {
        o->word = 2; /* relaxed */
    }
    s->capturing = 1;
    s->capturer = m->thread;
    m->captures++;
}

static void make_end(maker *m)
{
    unsigned slot = pick_created(m, 1);
    op *o;

    if (slot != PROGRAM_STREAMS) {
        o = emit(m, OP_END);
        o->stream = (uint8_t)slot;
        o->thread = m->streams[slot].capturer;
        m->streams[slot].capturing = 0;
        m->captures--;
    }
}

static void make_fill(maker *m, unsigned slot, uint8_t stream)
{
    op *o = emit(m, OP_FILL);

    o->block = (uint8_t)slot;
    o->stream = stream;
}

/* Nothing but a refusal is to be had there. */
static int is_refused(const maker *m, uint8_t stream)
{
    return stream < PROGRAM_STREAMS &&
           (m->streams[stream].capturing ||
            m->streams[stream].kind == AS_ELSEWHERE);
}

static void make_allocate(maker *m, uint64_t bytes)
{
    static const uint32_t alignments[] = {0, 0, 0, 0, 1, 16, 128, 256};
    unsigned slot = pick_block(m, 0);
    block_guess *b;
    op *o;

    if (slot == PROGRAM_BLOCKS) {
        return;
    }
    b = &m->blocks[slot];
    o = emit(m, OP_ALLOCATE);
    o->block = (uint8_t)slot;
    o->stream = pick_stream(m);
    o->bytes = bytes;
    o->alignment = chance_percent(&m->dice, 3)
                       ? (uint32_t)512 << chance_below(&m->dice, 9)
                       : alignments[chance_below(&m->dice, 8)];
    o->word = chance_percent(&m->dice, m->buffers) ? AS_BUFFER : AS_RAW;
    if (is_refused(m, o->stream)) {
        return;
    }
    b->live = 1;
    b->buffer = o->word == AS_BUFFER;
    b->bytes = o->bytes;
    b->stream = o->stream;
    m->live++;
    if (chance_percent(&m->dice, m->touches)) {
        emit(m, OP_WRITE)->block = (uint8_t)slot;
    } else if (chance_percent(&m->dice, 90)) {
        make_fill(m, slot, o->stream);
    }
}

static uint64_t some_size(maker *m)
{
    return chance_percent(&m->dice, 2)
               ? 0
               : m->sizes[chance_below(&m->dice, SIZES)];
}

/* Often somebody takes the memory at once. */
static void take_over(maker *m, uint64_t bytes)
{
    if (chance_percent(&m->dice, m->takeovers)) {
        if (chance_percent(&m->dice, 40)) {
            m->thread = (uint8_t)chance_below(&m->dice, m->p->threads);
        }
        make_allocate(m, bytes);
    }
}

static void guess_free(maker *m, block_guess *b)
{
    b->live = 0;
    m->live--;
    take_over(m, chance_percent(&m->dice, 80) ? b->bytes : some_size(m));
}

static void make_free(maker *m)
{
    unsigned slot = pick_block(m, 1);
    block_guess *b;
    uint8_t stream;
    op *o;

    if (slot == PROGRAM_BLOCKS) {
        return;
    }
    b = &m->blocks[slot];
    stream = b->stream;
    if (chance_percent(&m->dice, m->other)) {
        stream = pick_stream(m);
    }
    if (chance_percent(&m->dice, m->checks)) {
        o = emit(m, OP_CHECK);
        o->block = (uint8_t)slot;
        o->stream = stream;
    }
    o = emit(m, OP_FREE);
    o->block = (uint8_t)slot;
    o->stream = stream;
    if (b->buffer && chance_percent(&m->dice, 50)) {
        o->stream = STREAM_UNSET;
    } else if (chance_percent(&m->dice, 6)) {
        o->stream = STREAM_READY;
    } else if (is_refused(m, stream)) {
        return;
    }
    guess_free(m, b);
}

static void make_use(maker *m, op_kind kind)
{
    unsigned slot = pick_block(m, 1);
    op *o;

    if (slot == PROGRAM_BLOCKS) {
        return;
    }
    o = emit(m, kind);
    o->block = (uint8_t)slot;
    if (op_has(kind, 's')) {
        o->stream = chance_percent(&m->dice, 50) ? m->blocks[slot].stream
                                                 : pick_stream(m);
    }
    if (kind == OP_COPY) {
        o->from = (uint8_t)pick_block(m, 1);
        if (o->from == PROGRAM_BLOCKS || o->from == slot) {
            o->kind = OP_CHECK;
        }
    } else if (kind == OP_RECORD) {
        m->blocks[slot].stream = o->stream;
    } else if (kind == OP_DISOWN || kind == OP_ADOPT) {
        m->blocks[slot].buffer = kind == OP_ADOPT;
    }
}

/* A use on another stream that only the note tells of, and then often the
 * free. */
static void make_note(maker *m, op_kind kind)
{
    unsigned slot = pick_block(m, 1);
    uint8_t stream = pick_stream(m);
    op *o;

    if (slot == PROGRAM_BLOCKS) {
        return;
    }
    o = emit(m, chance_percent(&m->dice, 50) ? OP_CHECK : OP_FILL);
    o->block = (uint8_t)slot;
    o->stream = stream;
    o = emit(m, kind);
    o->block = (uint8_t)slot;
    o->stream = stream;
    if (kind == OP_HOLD) {
        make_fill(m, slot, stream);
    } else if (chance_percent(&m->dice, 25)) {
        destroy_stream(m, stream, DESTROY_PLAIN);
    }
    if (chance_percent(&m->dice, 60)) {
        o = emit(m, OP_FREE);
        o->block = (uint8_t)slot;
        o->stream = m->blocks[slot].stream;
        guess_free(m, &m->blocks[slot]);
    }
}

static void make_fail(maker *m)
{
    op *o = emit(m, OP_FAIL);

    o->word = chance_percent(&m->dice, 60)
                  ? 0
                  : (uint8_t)chance_below(&m->dice, op_words(OP_FAIL));
    o->number = 1 + (o->word == 0 ? chance_below(&m->dice, 16)
                                  : chance_below(&m->dice, 2));
}

static void make_plain(maker *m, op_kind kind)
{
    op *o = emit(m, kind);
    unsigned i;

    if (kind == OP_RUN) {
        o->number = 1 + chance_below(&m->dice, 6);
    } else if (kind == OP_TRIM) {
        o->bytes = chance_percent(&m->dice, 60)
                       ? 0
                       : m->sizes[chance_below(&m->dice, SIZES)];
        take_over(m, some_size(m));
    } else if (kind == OP_WAIT || kind == OP_SYNC) {
        o->stream = pick_stream(m);
        o->second = o->stream;
        for (i = 0; i < 4 && o->second == o->stream; i++) {
            o->second = pick_stream(m);
        }
    }
}

static void make_one(maker *m, op_kind kind)
{
    switch (kind) {
    case OP_STREAM:
        make_stream(m);
        break;
    case OP_DESTROY:
        make_destroy(m);
        break;
    case OP_REGISTER:
    case OP_RETIRE:
        make_on_created(m, kind);
        break;
    case OP_CAPTURE:
        make_capture(m);
        break;
    case OP_END:
        make_end(m);
        break;
    case OP_ALLOCATE:
        make_allocate(m, some_size(m));
        break;
    case OP_FREE:
        make_free(m);
        break;
    case OP_FILL:
    case OP_COPY:
    case OP_CHECK:
    case OP_WRITE:
    case OP_READ:
    case OP_RECORD:
    case OP_DISOWN:
    case OP_ADOPT:
        make_use(m, kind);
        break;
    case OP_NOTE:
    case OP_HOLD:
        make_note(m, kind);
        break;
    case OP_FAIL:
        make_fail(m);
        break;
    case OP_WAIT:
    case OP_SYNC:
    case OP_SETTLE:
    case OP_RUN:
    case OP_TRIM:
    case OP_QUERY:
    case OP_FORK:
    case OP_LEAVE:
    case OP_RELEASE:
    case OP_COUNT:
    default:
        make_plain(m, kind);
        break;
    }
}

static op_kind pick_kind(maker *m)
{
    unsigned total = 0;
    unsigned at;
    unsigned i;

    m->weights[OP_END] = m->captures * 4;
    for (i = 0; i < OP_COUNT; i++) {
        total += m->weights[i];
    }
    at = chance_below(&m->dice, total);
    for (i = 0; at >= m->weights[i]; i++) {
        at -= m->weights[i];
    }
    return (op_kind)i;
}

void program_make(program *p, uint64_t seed, unsigned operations)
{
    maker m;
    unsigned i;
    unsigned release;

    memset(&m, 0, sizeof(m));
    m.p = p;
    m.dice.state = seed;
    p->seed = seed;
    p->count = 0;
    choose_flavour(&m);
    release = p->free_running || chance_percent(&m.dice, 85)
                  ? UINT32_MAX
                  : operations / 2 + chance_below(&m.dice, operations / 2 + 1);
    for (i = 0; i < 1 + m.stream_slots / 2; i++) {
        make_stream(&m);
    }
    for (i = 0; p->count < operations && i < 10 * operations; i++) {
        if (chance_percent(&m.dice, 40)) {
            m.thread = (uint8_t)chance_below(&m.dice, p->threads);
        }
        if (p->count >= release) {
            (void)emit(&m, OP_RELEASE);
            release = UINT32_MAX;
        }
        make_one(&m, pick_kind(&m));
    }
}
