/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/lines.h"
#include "bench/map.h"

#define DAY INT64_C(86400000000)
#define MAX_NAMES 65535u /* streams, threads */

/* A block that is live at some row. */
typedef struct live_block {
    uint64_t bytes;
    uint32_t row;
    uint32_t next_free; /* place + 1; of a place that is not in use */
    /* A block that was given out again before the row of its free: that row is
     * still to come. */
    uint64_t late_bytes;
    uint32_t late_frees;
} live_block;

typedef struct reader {
    trace *made;
    trace_error *error;
    bool lenient;
    uint64_t scale;
    size_t row;
    size_t event_room;
    live_block *blocks;
    size_t block_room;
    uint32_t free_block; /* place + 1 */
    map live;            /* address -> place */
    map streams;         /* handle -> index */
    map thread_tokens;   /* thread -> index of its own stream */
    map threads;         /* thread -> index */
    uint64_t live_bytes;
    size_t live_count;
    bool timed;
    int64_t first_time;
    int64_t last_time;
    int64_t days; /* added to a clock that passed midnight */
} reader;

#define WRONG(in, ...)                                                        \
    ((in)->error->row = (in)->row,                                            \
     (void)snprintf((in)->error->text, sizeof((in)->error->text),             \
                    __VA_ARGS__),                                             \
     false)

/* Room for one more in a vector that doubles. */
static bool enlarge(void **vector, size_t *room, size_t count, size_t size)
{
    size_t more = *room == 0 ? 1024 : 2 * *room;
    void *larger;

    if (count < *room) {
        return true;
    }
    larger = reallocarray(*vector, more, size);
    if (larger == NULL) {
        return false;
    }
    *vector = larger;
    *room = more;
    return true;
}

static bool no_memory(reader *in)
{
    return WRONG(in, "out of memory");
}

/* A place for a new block. */
static bool place_take(reader *in, uint32_t *place)
{
    void *blocks = in->blocks;

    if (in->free_block != 0) {
        *place = in->free_block - 1;
        in->free_block = in->blocks[*place].next_free;
        return true;
    }
    if (in->made->blocks >= MAP_NONE ||
        !enlarge(&blocks, &in->block_room, in->made->blocks,
                 sizeof(*in->blocks))) {
        return no_memory(in);
    }
    in->blocks = blocks;
    *place = (uint32_t)in->made->blocks++;
    return true;
}

static void place_give(reader *in, uint32_t place)
{
    in->blocks[place].next_free = in->free_block;
    in->free_block = place + 1;
}

static bool stream_add(reader *in, const log_row *row, map *known,
                       uint64_t key, uint32_t *index)
{
    trace *made = in->made;
    trace_stream *streams;

    if (made->stream_count >= MAX_NAMES) {
        return WRONG(in, "more than %u streams", MAX_NAMES);
    }
    streams =
        reallocarray(made->streams, made->stream_count + 1, sizeof(*streams));
    if (streams == NULL) {
        return no_memory(in);
    }
    made->streams = streams;
    *index = (uint32_t)made->stream_count;
    if (!map_set(known, key, *index)) {
        return no_memory(in);
    }
    streams[made->stream_count++] = (trace_stream){.kind = row->stream_kind,
                                                   .handle = row->stream,
                                                   .thread = row->thread};
    return true;
}

/* The index of a row's stream. All null streams are one. */
static bool stream_find(reader *in, const log_row *row, uint16_t *found)
{
    bool token = row->stream_kind == LOG_STREAM_PER_THREAD;
    uint64_t key = token ? row->thread : row->stream;
    map *known = token ? &in->thread_tokens : &in->streams;
    uint32_t index;

    if (row->stream_kind == LOG_STREAM_NULL) {
        key = 0;
    }
    index = map_get(known, key);
    if (index == MAP_NONE && !stream_add(in, row, known, key, &index)) {
        return false;
    }
    in->made->streams[index].events++;
    *found = (uint16_t)index;
    return true;
}

static bool thread_find(reader *in, uint64_t thread, uint16_t *found)
{
    uint32_t index = map_get(&in->threads, thread);

    if (index == MAP_NONE) {
        if (in->made->thread_count >= MAX_NAMES) {
            return WRONG(in, "more than %u threads", MAX_NAMES);
        }
        index = (uint32_t)in->made->thread_count;
        if (!map_set(&in->threads, thread, index)) {
            return no_memory(in);
        }
        in->made->thread_count++;
    }
    *found = (uint16_t)index;
    return true;
}

static bool event_add(reader *in, const log_row *row, uint32_t place,
                      bool free_it, uint64_t bytes)
{
    trace *made = in->made;
    void *events = made->events;
    trace_event event = {.bytes = bytes,
                         .block = place,
                         .row = (uint32_t)in->row,
                         .free = free_it};

    if (!enlarge(&events, &in->event_room, made->count,
                 sizeof(*made->events))) {
        return no_memory(in);
    }
    made->events = events;
    if (!stream_find(in, row, &event.stream) ||
        !thread_find(in, row->thread, &event.thread)) {
        return false;
    }
    made->events[made->count++] = event;
    return true;
}

static bool free_block(reader *in, const log_row *row, uint32_t place)
{
    uint64_t bytes = in->blocks[place].bytes;

    if (!event_add(in, row, place, true, bytes)) {
        return false;
    }
    in->live_bytes -= bytes;
    in->live_count--;
    place_give(in, place);
    return true;
}

static bool add_allocation(reader *in, const log_row *row)
{
    live_block *block;
    uint64_t late_bytes = 0;
    uint32_t late_frees = 0;
    uint32_t place = map_get(&in->live, row->pointer);

    if (row->pointer == 0) {
        in->made->unreadable_rows++;
        return in->lenient ||
               WRONG(in, "allocate of %" PRIu64 " bytes at a null pointer",
                     row->bytes);
    }
    if (place != MAP_NONE && !in->lenient) {
        return WRONG(in,
                     "allocate at 0x%" PRIx64 ", where row %u has put %" PRIu64
                     " bytes that are not freed yet",
                     row->pointer, in->blocks[place].row,
                     in->blocks[place].bytes);
    }
    if (place != MAP_NONE) {
        /* The log was written by several threads and has the rows in another
         * order than things happened: the address was free by now. */
        late_frees = in->blocks[place].late_frees + 1;
        late_bytes = in->blocks[place].bytes;
        in->made->late_frees++;
        if (!free_block(in, row, place)) {
            return false;
        }
    }
    if (!place_take(in, &place) ||
        !event_add(in, row, place, false, row->bytes)) {
        return false;
    }
    if (!map_set(&in->live, row->pointer, place)) {
        return no_memory(in);
    }
    block = &in->blocks[place];
    *block = (live_block){.bytes = row->bytes,
                          .row = (uint32_t)in->row,
                          .late_bytes = late_bytes,
                          .late_frees = late_frees};
    in->live_count++;
    if (__builtin_add_overflow(in->live_bytes, row->bytes, &in->live_bytes)) {
        return WRONG(in, "more bytes are live than a machine can have");
    }
    if (in->live_bytes > in->made->peak_live_bytes) {
        in->made->peak_live_bytes = in->live_bytes;
        in->made->peak_row = in->row;
    }
    return true;
}

static bool add_free(reader *in, const log_row *row)
{
    uint32_t place = map_get(&in->live, row->pointer);
    live_block *block;

    if (place == MAP_NONE) {
        in->made->unknown_frees++;
        return in->lenient ||
               WRONG(in,
                     "free of 0x%" PRIx64 ", which is not allocated here "
                     "(--lenient skips such rows)",
                     row->pointer);
    }
    block = &in->blocks[place];
    /* Of two frees that are due, the sizes say which one this is. */
    if (block->late_frees > 0 &&
        (!row->has_bytes || row->bytes == block->late_bytes ||
         row->bytes != block->bytes)) {
        block->late_frees--;
        return true;
    }
    if (row->has_bytes && row->bytes != block->bytes) {
        in->made->wrong_sizes++;
        if (!in->lenient) {
            return WRONG(in,
                         "free of 0x%" PRIx64 " with %" PRIu64
                         " bytes, allocated in row %u with %" PRIu64,
                         row->pointer, row->bytes, block->row, block->bytes);
        }
    }
    map_remove(&in->live, row->pointer);
    return free_block(in, row, place);
}

/* Keeps track of how long the log lasts. */
static void note_time(reader *in, const log_row *row)
{
    int64_t time = row->time + in->days;

    if (row->clock && in->timed && time < in->last_time - DAY / 2) {
        in->days += DAY;
        time += DAY;
    }
    if (!in->timed) {
        in->first_time = time;
        in->last_time = time;
        in->timed = true;
    }
    /* Threads may be out of order by a little. */
    in->last_time = time > in->last_time ? time : in->last_time;
}

static bool add_row(reader *in, const log_row *row)
{
    if (in->row > UINT32_MAX) {
        return WRONG(in, "more rows than fit");
    }
    note_time(in, row);
    if (row->action == LOG_FAILURE) {
        in->made->failure_rows++;
        return true;
    }
    if (row->pointer == 0 && row->bytes == 0) {
        in->made->empty_rows++;
        return true;
    }
    return row->action == LOG_ALLOCATE ? add_allocation(in, row)
                                       : add_free(in, row);
}

/* One line behind the header. */
static bool add_line(reader *in, const log_columns *columns, char *line,
                     bool cut)
{
    char message[sizeof(in->error->text)];
    log_row row;

    if (line[strspn(line, " \t")] == '\0') {
        return true;
    }
    if (!log_row_read(&row, columns, line, message, sizeof(message))) {
        in->made->unreadable_rows++;
        return in->lenient ||
               WRONG(in, "%.180s%s", message,
                     cut ? " (the file stops within the row)" : "");
    }
    if (__builtin_mul_overflow(row.bytes, in->scale, &row.bytes) ||
        row.bytes > PTRDIFF_MAX) {
        return WRONG(in,
                     "%" PRIu64 " times its size is more than a block can "
                     "have",
                     in->scale);
    }
    return add_row(in, &row);
}

static bool read_lines(reader *in, lines *from)
{
    char message[sizeof(in->error->text)];
    log_columns columns;
    bool started = false;
    char *line;
    int ret;

    while ((ret = lines_next(from, &line, message, sizeof(message))) > 0) {
        in->row = lines_row(from);
        if (!started && line[strspn(line, " \t")] != '\0') {
            int first =
                log_columns_read(&columns, line, message, sizeof(message));

            if (first == 0) {
                return WRONG(in, "%s", message);
            }
            started = true;
            if (first == 1) {
                continue;
            }
        }
        if (started && !add_line(in, &columns, line, lines_cut(from))) {
            return false;
        }
    }
    in->row = lines_row(from);
    if (ret < 0) {
        return WRONG(in, "%s", message);
    }
    if (in->made->count == 0) {
        in->row = 0;
        return WRONG(in, "holds no allocation");
    }
    return true;
}

/* "folder/gnn_train.csv.gz" -> "gnn_train" */
static char *name_of(const char *path)
{
    const char *base = strrchr(path, '/');
    char *name = strdup(base != NULL ? base + 1 : path);
    static const char *const endings[] = {".gz", ".csv", ".log", ".txt"};

    for (size_t i = 0; name != NULL && i < 4; i++) {
        size_t length = strlen(name);
        size_t less = strlen(endings[i]);

        if (length > less && strcmp(name + length - less, endings[i]) == 0) {
            name[length - less] = '\0';
        }
    }
    return name;
}

static bool read_all(reader *in, const char *path)
{
    char message[sizeof(in->error->text)];
    lines *from;
    bool good;

    in->made->path = strdup(path);
    in->made->name = name_of(path);
    if (in->made->path == NULL || in->made->name == NULL) {
        return no_memory(in);
    }
    from = lines_open(path, message, sizeof(message));
    if (from == NULL) {
        return WRONG(in, "%s", message);
    }
    good = read_lines(in, from);
    lines_close(from);
    in->made->live_blocks_at_end = in->live_count;
    in->made->live_bytes_at_end = in->live_bytes;
    in->made->seconds = (double)(in->last_time - in->first_time) / 1e6;
    return good;
}

trace *trace_read(const char *path, const trace_options *options,
                  trace_error *error)
{
    reader in = {.error = error,
                 .lenient = options->lenient,
                 .scale = options->scale != 0 ? options->scale : 1};
    bool good;

    error->row = 0;
    in.made = calloc(1, sizeof(*in.made));
    good = in.made != NULL ? read_all(&in, path) : no_memory(&in);
    free(in.blocks);
    map_free(&in.live);
    map_free(&in.streams);
    map_free(&in.thread_tokens);
    map_free(&in.threads);
    if (!good) {
        trace_free(in.made);
        return NULL;
    }
    return in.made;
}

void trace_free(trace *gone)
{
    if (gone != NULL) {
        free(gone->name);
        free(gone->path);
        free(gone->events);
        free(gone->streams);
        free(gone);
    }
}
