/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/log.h"

#include <stdlib.h>

#include "sim/stream.h"

/* A ring: record number n lies at n % capacity. */
struct sim_log {
    size_t capacity;
    uint64_t written;
    ccmr_sim_record records[];
};

int sim_log_start(size_t capacity)
{
    struct sim_log *log = NULL;

    if (capacity > (SIZE_MAX - sizeof *log) / sizeof log->records[0]) {
        return -1;
    }
    if (capacity != 0) {
        log = malloc(sizeof *log + capacity * sizeof log->records[0]);
        if (log == NULL) {
            return -1;
        }
        log->capacity = capacity;
        log->written = 0;
    }
    free(sim.log);
    sim.log = log;
    sim_note_special();
    return 0;
}

void sim_log_note(const struct sim_frame *frame, CUresult res, CUstream stream,
                  uint64_t object, uint64_t other, uint64_t bytes)
{
    struct sim_log *log = sim.log;
    ccmr_sim_record *record = &log->records[log->written % log->capacity];

    record->sequence = log->written++;
    record->thread = frame->self->serial;
    record->call = sim_call_name(frame->call);
    record->stream = stream;
    record->stream_id = sim_stream_id_of_handle(frame->self, stream);
    record->object = object;
    record->other = other;
    record->bytes = bytes;
    record->result = (int)res;
    record->injected = frame->injected;
}

size_t sim_log_count(void)
{
    if (sim.log == NULL) {
        return 0;
    }
    return sim.log->written < sim.log->capacity ? (size_t)sim.log->written
                                                : sim.log->capacity;
}

int sim_log_read(size_t index, ccmr_sim_record *record)
{
    size_t count = sim_log_count();
    uint64_t number;

    if (index >= count || record == NULL) {
        return -1;
    }
    number = sim.log->written - count + index;
    *record = sim.log->records[number % sim.log->capacity];
    return 0;
}
