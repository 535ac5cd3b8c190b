/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/memory.h"

#include <stdio.h>
#include <string.h>

#include "bench/progress.h"

static void result_begin(const memory_trial *in, const contender *who,
                         result *made)
{
    *made = (result){.what = in->what,
                     .name = who->name,
                     .trace = in->what->trace->name,
                     .registered = in->options->registered,
                     .threads = in->what->lanes,
                     .streams = in->what->streams,
                     .operations = in->what->sequences[0].count,
                     .peak_live = in->what->trace->peak_live_bytes,
                     .peak_reserved = FIGURE_UNKNOWN,
                     .work = in->options->work,
                     .behind = in->work.simulator != NULL &&
                                       in->options->work == WORK_BUSY
                                   ? in->options->behind
                                   : 0};
}

bool memory_each(const plan *what, contender *const *who, size_t count,
                 const machine *where, const memory_options *options,
                 memory_look *look, result *results, char *message,
                 size_t size)
{
    memory_trial in = {.what = what, .where = where, .options = options};
    bool good;

    for (size_t i = 0; i < count; i++) {
        result_begin(&in, who[i], &results[i]);
    }
    if (stream_set_open(&in.streams, what->streams, what->null_stream,
                        options->registered, where->device) != CCMR_SUCCESS) {
        (void)snprintf(message, size, "no streams: %s",
                       ccmr_last_error()->message);
        return false;
    }
    good = work_begin(&in.work, options->work, options->behind, where,
                      &in.streams, message, size);
    for (size_t i = 0; good && i < count; i++) {
        result_begin(&in, who[i], &results[i]);
        /* It would wait for streams that are held, without being seen. */
        if (who[i]->kind == CONTENDER_PLUGIN && results[i].behind > 0) {
            result_fail(&results[i], "calls the driver by ways of its own: on "
                                     "the simulated one only --idle works");
            continue;
        }
        look(&in, who[i], &results[i]);
    }
    work_end(&in.work);
    progress_end();
    stream_set_close(&in.streams);
    return good;
}

void memory_watch(memory_trial *in, run *by)
{
    by->watch.write_bytes = work_write_bytes(&in->work);
    by->watch.work = &in->work;
}
