/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool: what is where. What segments or handles have and no set does is out:
 * live, in a cache, or on its way from one lane to another.
 */
#include <stdlib.h>

#include "lib/error.h"
#include "lib/text.h"
#include "resources/pool/pool.h"
#include "resources/pool/range.h"

/* In the order in which entries of one address are told. */
typedef enum entry_kind {
    ENTRY_SEGMENT,
    ENTRY_HANDLE,
    ENTRY_PINNED, /* a segment or handle that stays */
    ENTRY_LEAVING,
    ENTRY_TAKEN,
    ENTRY_OUT,
    ENTRY_FREE,
    ENTRY_WAITS
} entry_kind;

typedef struct entry {
    entry_kind kind;
    uintptr_t address;
    size_t bytes;
    unsigned count;
    uint64_t streams[CCMR__POOL_WAITS]; /* ids; 0: it has gone */
} entry;

typedef struct view {
    entry *entries;
    size_t count;
    size_t room;
    size_t brought;
    int incomplete; /* there was no memory for all of it */
} view;

/* NULL without memory. */
static entry *add(view *in, entry_kind kind, uintptr_t address, size_t bytes)
{
    if (in->count == in->room) {
        size_t room = in->room != 0 ? in->room * 2 : 256;
        entry *larger = realloc(in->entries, room * sizeof(*larger));

        if (larger == NULL) {
            in->incomplete = 1;
            return NULL;
        }
        in->entries = larger;
        in->room = room;
    }
    in->entries[in->count] =
        (entry){.kind = kind, .address = address, .bytes = bytes};
    return &in->entries[in->count++];
}

/* ---- under the locks ---------------------------------------------------- */

/* An extent, with the streams that it waits for still, as far as is known. */
static void add_extent(view *in, const ccmr__pool_extent *extent)
{
    entry *made = add(in, ENTRY_FREE, extent->address, extent->bytes);
    unsigned i;

    for (i = 0; made != NULL && i < extent->waits.count; i++) {
        const ccmr__pool_lane *lane = extent->waits.lanes[i];

        if (!ccmr__pool_done(lane, extent->waits.numbers[i])) {
            made->kind = ENTRY_WAITS;
            made->streams[made->count++] = lane->id;
        }
    }
}

static void add_set(view *in, const ccmr__pool_set *set)
{
    const ccmr__pool_extent *extent = ccmr__pool_first(set);

    for (; extent != NULL; extent = ccmr__pool_next(set, extent)) {
        add_extent(in, extent);
    }
}

static void add_segments(view *in, ccmr__pool *pool)
{
    const ccmr__pool_map *map =
        atomic_load_explicit(&pool->map, memory_order_acquire);
    size_t count =
        atomic_load_explicit(&pool->segment_count, memory_order_relaxed);
    size_t i;

    for (i = 0; i < count; i++) {
        const ccmr__pool_place *place = &map->places[i];

        const ccmr__pool_segment *segment =
            atomic_load_explicit(&place->segment, memory_order_relaxed);
        int pinned =
            atomic_load_explicit(&segment->pins, memory_order_relaxed) != 0 ||
            CCMR__POOL_IS_CAPTURED(segment);

        if (pool->range != NULL && segment == pool->range->segment) {
            continue; /* its handles are told */
        }
        (void)add(in, pinned ? ENTRY_PINNED : ENTRY_SEGMENT,
                  atomic_load_explicit(&place->base, memory_order_relaxed),
                  atomic_load_explicit(&place->bytes, memory_order_relaxed));
    }
}

/* Memory of a range: its handles, and addresses that handles have left. */
static void add_handles(view *in, ccmr__pool_range *range)
{
    const ccmr__pool_leaving *leaving;
    uint32_t page = 0;

    ccmr__pool_range_lock(range);
    while (page < range->top) {
        const ccmr__pool_run *run = &range->runs[page];

        uintptr_t address = ccmr__pool_page_address(range, page);

        if (run->kind == CCMR__POOL_HANDLE || run->kind == CCMR__POOL_GOING) {
            (void)add(in, ENTRY_HANDLE, address, run->pages * range->unit);
        } else if (run->kind == CCMR__POOL_PINNED) {
            (void)add(in, ENTRY_PINNED, address, run->pages * range->unit);
        } else if (run->kind == CCMR__POOL_TAKEN) {
            (void)add(in, ENTRY_TAKEN, address, run->pages * range->unit);
        }
        page += run->pages;
    }
    for (leaving = range->leaving; leaving != NULL; leaving = leaving->next) {
        (void)add(in, ENTRY_LEAVING,
                  ccmr__pool_page_address(range, leaving->page),
                  leaving->pages * range->unit);
    }
    ccmr__pool_range_unlock(range);
}

static void look(ccmr__pool *pool, view *in)
{
    ccmr__pool_lane *first = ccmr__pool_lock_all(pool);
    const ccmr__pool_lane *lane;

    for (lane = first; lane != NULL; lane = lane->next) {
        add_set(in, &lane->set);
    }
    add_set(in, &pool->common->set);
    if (pool->range != NULL) {
        add_handles(in, pool->range);
    }
    add_segments(in, pool);
    in->brought = atomic_load_explicit(&pool->brought, memory_order_relaxed);
    ccmr__pool_unlock_all(pool, first);
}

/* ---- what follows from it ----------------------------------------------- */

static int compare(const void *left, const void *right)
{
    const entry *a = left;
    const entry *b = right;

    if (a->address != b->address) {
        return a->address > b->address ? 1 : -1;
    }
    return (a->kind > b->kind) - (a->kind < b->kind);
}

static int is_memory(const entry *of)
{
    return of->kind == ENTRY_SEGMENT || of->kind == ENTRY_HANDLE ||
           of->kind == ENTRY_PINNED;
}

static int is_free(const entry *of)
{
    return of->kind == ENTRY_FREE || of->kind == ENTRY_WAITS;
}

static void add_out(view *in, uintptr_t from, uintptr_t to)
{
    if (to > from) {
        (void)add(in, ENTRY_OUT, from, to - from);
    }
}

/* Between what is free, in order of addresses, memory is out. Handles side by
 * side are as one: blocks and extents run over their borders. */
static void add_gaps(view *in)
{
    size_t count = in->count;
    uintptr_t seen = 0; /* all below it has been told */
    uintptr_t end = 0;  /* of the memory that `seen` lies in */
    size_t i;

    for (i = 0; i < count; i++) {
        const entry at = in->entries[i];

        if (is_memory(&at)) {
            if (at.address != end) {
                add_out(in, seen, end);
                seen = at.address;
            }
            end = at.address + at.bytes;
        } else if (is_free(&at)) {
            add_out(in, seen, at.address);
            seen = at.address + at.bytes;
        }
    }
    add_out(in, seen, end);
}

static void sort(view *in)
{
    if (in->count != 0) {
        qsort(in->entries, in->count, sizeof(*in->entries), compare);
    }
}

/* Pages that a handle has left are taken, too: told once. */
static void drop_doubles(view *in)
{
    size_t kept = 0;
    size_t i;

    for (i = 0; i < in->count; i++) {
        if (in->entries[i].kind == ENTRY_TAKEN && kept > 0 &&
            in->entries[kept - 1].kind == ENTRY_LEAVING &&
            in->entries[kept - 1].address == in->entries[i].address) {
            continue;
        }
        in->entries[kept++] = in->entries[i];
    }
    in->count = kept;
}

/* ---- lines -------------------------------------------------------------- */

static const char *const kind_names[] = {
    "segment", "handle", "pinned", "leaving", "taken", "out", "free", "waits"};

static int write_entry(const entry *of, ccmr_dump_write write, void *context)
{
    char text[256];
    ccmr__text line;
    unsigned i;

    ccmr__text_init(&line, text, sizeof(text));
    ccmr__text_add(&line, "%s 0x%llx %zu", kind_names[of->kind],
                   (unsigned long long)of->address, of->bytes);
    for (i = 0; i < of->count; i++) {
        ccmr__text_add(&line, "%s%llu", i == 0 ? " streams=" : "+",
                       (unsigned long long)of->streams[i]);
    }
    ccmr__text_add(&line, "\n");
    return write(context, text, line.length);
}

static int write_totals(const view *of, ccmr_dump_write write, void *context)
{
    size_t bytes[sizeof(kind_names) / sizeof(kind_names[0])] = {0};
    char text[256];
    ccmr__text line;
    size_t largest = 0;
    size_t runs = 0;
    size_t i;

    for (i = 0; i < of->count; i++) {
        const entry *at = &of->entries[i];

        bytes[at->kind] += at->bytes;
        if (is_free(at)) {
            runs++;
            largest = at->bytes > largest ? at->bytes : largest;
        }
    }
    /* Not a sum of lines: a segment that is on its way has one already. */
    bytes[ENTRY_OUT] = of->brought - bytes[ENTRY_FREE] - bytes[ENTRY_WAITS];
    ccmr__text_init(&line, text, sizeof(text));
    ccmr__text_add(&line,
                   "total reserved=%zu out=%zu free=%zu waits=%zu "
                   "pinned=%zu leaving=%zu largest_free=%zu free_runs=%zu\n",
                   of->brought, bytes[ENTRY_OUT], bytes[ENTRY_FREE],
                   bytes[ENTRY_WAITS], bytes[ENTRY_PINNED],
                   bytes[ENTRY_LEAVING], largest, runs);
    return write(context, text, line.length);
}

static int write_all(const view *of, ccmr_dump_write write, void *context)
{
    size_t i;

    for (i = 0; i < of->count; i++) {
        if (write_entry(&of->entries[i], write, context) != 0) {
            return -1;
        }
    }
    return write_totals(of, write, context);
}

ccmr_status ccmr__pool_dump(void *object, ccmr_dump_write write, void *context)
{
    ccmr_status status = CCMR_SUCCESS;
    view all = {0};

    look(object, &all);
    sort(&all);
    drop_doubles(&all);
    add_gaps(&all);
    sort(&all);
    if (all.incomplete) {
        status = ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                            "pool has no memory for a dump");
    } else if (write_all(&all, write, context) != 0) {
        status = ccmr__fail(CCMR_ERROR_USER,
                            "ccmr_resource_dump: the callback ended it");
    }
    free(all.entries);
    return status;
}
