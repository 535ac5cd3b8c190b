/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What blocks hold. Each fill has a word of its own, from which its number can
 * be read again, so that a byte in the wrong place tells whose it is.
 *
 *   31        16 15         0
 *   +-----------+-----------+
 *   | n * 40503 | n ^ 0x5a5a|    n: number of the fill
 *   +-----------+-----------+
 *
 * Blocks of more than WHOLE bytes are filled and read at a few places only.
 */
#include "tests/generator/model.h"

#include <stdio.h>
#include <string.h>

#define WHOLE ((size_t)128 << 10)
#define PLACES 5u
#define PLACE_BYTES ((size_t)4096)

static uint32_t new_word(model *m)
{
    uint32_t n = ++m->fills & 0xffffu;

    return (n * 40503u & 0xffffu) << 16 | (n ^ 0x5a5au);
}

/* The number of the fill; 0: this is no such word. */
static uint32_t fill_of(uint32_t word)
{
    uint32_t n = (word & 0xffffu) ^ 0x5a5au;

    return (n * 40503u & 0xffffu) == word >> 16 ? n : 0;
}

typedef struct place {
    size_t offset;
    size_t bytes;
} place;

static unsigned places_of(const block *b, place *places)
{
    unsigned i;

    if (b->bytes <= WHOLE) {
        places[0] = (place){0, b->bytes};
        return 1;
    }
    for (i = 0; i < PLACES; i++) {
        places[i].offset =
            ((b->bytes - PLACE_BYTES) / (PLACES - 1) * i) & ~(size_t)3;
        places[i].bytes = PLACE_BYTES;
    }
    places[PLACES - 1] =
        (place){(b->bytes - PLACE_BYTES) & ~(size_t)3, PLACE_BYTES};
    return PLACES;
}

/* ---- writing ---------------------------------------------------------------- */

static CUdeviceptr address_of(const block *b, size_t offset)
{
    return (CUdeviceptr)(uintptr_t)b->ptr + offset;
}

static void ask(ccmr_status status, const char *call)
{
    if (status != CCMR_SUCCESS) {
        fail(FAULT_STATUS, "%s: %s: %s", call, ccmr_status_name(status),
             ccmr_last_error()->message);
    }
}

static void fill_place(const block *b, const place *where, uint32_t word,
                       track *on)
{
    size_t whole = where->bytes & ~(size_t)3;
    size_t i;

    if (whole != 0 && b->buffer != NULL) {
        ask(ccmr_buffer_fill(b->buffer, where->offset, whole, word, 4,
                             on->handle),
            "ccmr_buffer_fill");
    } else if (whole != 0) {
        need(api.cuMemsetD32Async(address_of(b, where->offset), word,
                                  whole / 4, on->handle),
             "cuMemsetD32Async");
    }
    for (i = whole; i < where->bytes; i++) {
        need(api.cuMemsetD8Async(address_of(b, where->offset + i),
                                 (unsigned char)(word >> 8 * (i & 3)), 1,
                                 on->handle),
             "cuMemsetD8Async");
    }
}

static void set_contents(block *b, uint32_t word)
{
    b->holds.count = 1;
    b->holds.parts[0] = (part){b->bytes, word};
}

void block_fill(model *m, block *b, track *on)
{
    uint32_t word = new_word(m);
    place places[PLACES];
    unsigned count = places_of(b, places);
    unsigned i;

    block_before_write(b, on);
    for (i = 0; i < count; i++) {
        fill_place(b, &places[i], word, on);
    }
    set_contents(b, word);
    block_was_written(m, b, on);
}

void block_fill_on_host(model *m, block *b)
{
    uint32_t word = new_word(m);
    place places[PLACES];
    unsigned count = places_of(b, places);
    unsigned i;
    size_t at;

    if (!b->touchable) {
        block_finish(b);
    }
    block_forget_uses(m, b);
    announce_touched(m, b);
    for (i = 0; i < count; i++) {
        unsigned char *to = (unsigned char *)b->ptr + places[i].offset;

        for (at = 0; at < places[i].bytes; at++) {
            to[at] = (unsigned char)(word >> 8 * (at & 3));
        }
    }
    set_contents(b, word);
}

/* ---- copying ----------------------------------------------------------------- */

/* The first `bytes` of `from` over those of `to`. 0: too many parts. */
static int join_contents(contents *to, const contents *from, size_t bytes,
                         size_t all)
{
    contents made = {.count = 0};
    unsigned i;

    for (i = 0; i < from->count; i++) {
        size_t end = from->parts[i].end;

        made.parts[made.count] = from->parts[i];
        made.parts[made.count++].end = end < bytes ? end : bytes;
        if (end >= bytes) {
            break;
        }
    }
    for (i = 0; i < to->count && bytes < all; i++) {
        if (to->parts[i].end > bytes) {
            if (made.count == BLOCK_PARTS) {
                return 0;
            }
            made.parts[made.count++] = to->parts[i];
        }
    }
    *to = made;
    return 1;
}

int block_copy(model *m, block *to, block *from, track *on)
{
    size_t bytes = to->bytes < from->bytes ? to->bytes : from->bytes;
    contents joined = to->holds;

    if (to->bytes > WHOLE || from->bytes > WHOLE || from->holds.count == 0) {
        return 0;
    }
    if (bytes < to->bytes) { /* parts begin at whole words */
        bytes &= ~(size_t)3;
    }
    if (bytes == 0 || !block_can_read(from) ||
        (bytes < to->bytes && to->holds.count == 0) ||
        !join_contents(&joined, &from->holds, bytes, to->bytes)) {
        return 0;
    }
    block_before_read(from, on);
    block_before_write(to, on);
    if (to->buffer != NULL && from->buffer != NULL) {
        ask(ccmr_buffer_copy(to->buffer, 0, from->buffer, 0, bytes,
                             on->handle),
            "ccmr_buffer_copy");
    } else {
        need(api.cuMemcpyAsync(address_of(to, 0), address_of(from, 0), bytes,
                               on->handle),
             "cuMemcpyAsync");
    }
    block_was_read(m, from, on);
    block_was_written(m, to, on);
    to->holds = joined;
    return 1;
}

/* ---- comparing ---------------------------------------------------------------- */

/* The byte that should be at an offset, and the word that it is of. */
static uint32_t word_at(const contents *expected, size_t offset)
{
    unsigned i = 0;

    while (expected->parts[i].end <= offset) {
        i++;
    }
    return expected->parts[i].word;
}

/* `bytes` are from the start of the word on that is wrong first. */
static _Noreturn void tell_difference(const pending_check *check,
                                      size_t offset, size_t wrong,
                                      const unsigned char *bytes, size_t left)
{
    uint32_t want = word_at(&check->expected, offset);
    uint32_t have = 0;
    char whose[64] = "something else";

    memcpy(&have, bytes, left < 4 ? left : 4);
    if (fill_of(have) != 0) {
        (void)snprintf(whose, sizeof(whose), "fill %u", fill_of(have));
    }
    fail(FAULT_CONTENTS,
         "block b%u at %p, %zu bytes, read by operation %u: %zu bytes from "
         "%zu on are wrong: %08x (%s), should be %08x (fill %u)",
         check->block, check->ptr, check->bytes, check->op + 1, wrong, offset,
         have, whose, want, fill_of(want));
}

static void compare_place(const pending_check *check, const place *where,
                          const unsigned char *bytes)
{
    size_t first = SIZE_MAX;
    size_t wrong = 0;
    size_t at = 0;
    unsigned i;

    for (i = 0; i < check->expected.count; i++) {
        const part *p = &check->expected.parts[i];

        for (; at < where->bytes && where->offset + at < p->end; at++) {
            if (bytes[at] !=
                (unsigned char)(p->word >> 8 * ((where->offset + at) & 3))) {
                first = first == SIZE_MAX ? at : first;
                wrong++;
            }
        }
    }
    if (wrong != 0) {
        at = first & ~(size_t)3;
        tell_difference(check, where->offset + first, wrong, bytes + at,
                        where->bytes - at);
    }
}

static void compare(const pending_check *check)
{
    const unsigned char *copy = check->copy;
    block shape = {.bytes = check->bytes};
    place places[PLACES];
    unsigned count = places_of(&shape, places);
    unsigned i;

    for (i = 0; i < count; i++) {
        compare_place(check, &places[i], copy);
        copy += (places[i].bytes + 3) & ~(size_t)3;
    }
    told->checks++;
}

void checks_compare(model *m)
{
    unsigned left = 0;
    unsigned i;

    for (i = 0; i < m->check_count; i++) {
        const pending_check *check = &m->checks[i];

        if (check->position <= check->on->finished) {
            compare(check);
        } else {
            m->checks[left++] = *check;
        }
    }
    m->check_count = left;
    if (left == 0) {
        m->staged = 0;
    }
}

void block_check_on_host(model *m, const block *b, unsigned number)
{
    pending_check check = {.bytes = b->bytes,
                           .expected = b->holds,
                           .op = number,
                           .block = (uint8_t)(b - m->blocks),
                           .ptr = b->ptr};
    place places[PLACES];
    unsigned count = places_of(b, places);
    unsigned i;

    announce_touched(m, b);
    for (i = 0; i < count && b->holds.count != 0; i++) {
        compare_place(&check, &places[i],
                      (const unsigned char *)b->ptr + places[i].offset);
    }
    told->checks++;
}

static void copy_place(const block *b, const place *where, unsigned char *to,
                       track *on)
{
    if (b->buffer != NULL) {
        ask(ccmr_buffer_copy_to_host(b->buffer, where->offset, to,
                                     where->bytes, on->handle),
            "ccmr_buffer_copy_to_host");
    } else {
        need(api.cuMemcpyAsync((CUdeviceptr)(uintptr_t)to,
                               address_of(b, where->offset), where->bytes,
                               on->handle),
             "cuMemcpyAsync");
    }
}

int block_check(model *m, block *b, track *on, unsigned number)
{
    place places[PLACES];
    unsigned count = places_of(b, places);
    pending_check *check = &m->checks[m->check_count];
    unsigned i;

    if (b->holds.count == 0 || m->check_count == PENDING_CHECKS ||
        !block_can_read(b) ||
        m->staged + WHOLE + PLACES * PLACE_BYTES > STAGING_BYTES) {
        return 0;
    }
    *check = (pending_check){.on = on,
                             .copy = m->staging + m->staged,
                             .bytes = b->bytes,
                             .expected = b->holds,
                             .op = number,
                             .block = (uint8_t)(b - m->blocks),
                             .ptr = b->ptr};
    block_before_read(b, on);
    for (i = 0; i < count; i++) {
        copy_place(b, &places[i], m->staging + m->staged, on);
        m->staged += (places[i].bytes + 3) & ~(size_t)3;
    }
    block_was_read(m, b, on);
    check->position = on->enqueued;
    m->check_count++;
    return 1;
}
