/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/memory.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/progress.h"
#include "bench/stage.h"

/* How many events of the trace come up to a row, the one with most live if
 * none was asked for. */
static size_t events_up_to(const trace *in, uint64_t row)
{
    size_t count = 0;

    if (row == 0) {
        row = in->peak_row;
    }
    while (count < in->count && in->events[count].row <= row) {
        count++;
    }
    return count;
}

static int write_line(void *context, const char *line, size_t length)
{
    return fwrite(line, 1, length, context) == length ? 0 : -1;
}

static void dump(const instance *on, result *found)
{
    size_t length;
    FILE *to = open_memstream(&found->dump, &length);

    if (to == NULL ||
        ccmr_resource_dump(on->resource, write_line, to) != CCMR_SUCCESS) {
        result_fail(found, "no dump: %s",
                    to != NULL ? ccmr_last_error()->message : "no memory");
    }
    if (to != NULL) {
        (void)fclose(to);
    }
}

static void look(memory_trial *in, const contender *who, result *found)
{
    const stage_options set_up = {.what = in->what,
                                  .who = who,
                                  .where = in->where,
                                  .streams = &in->streams};
    const trace *from = in->what->trace;
    size_t events = events_up_to(from, in->options->at);
    stage on;

    progress_show("layout %s: %s", in->what->label, who->name);
    if (who->kind != CONTENDER_STACK) {
        result_fail(found, "only stacks can be looked into");
        return;
    }
    if (!stage_open(&on, &set_up, found)) {
        return;
    }
    memory_watch(in, &on.by);
    if (events < on.by.operations) {
        on.by.operations = events;
    }
    run_do(&on.by, RUN_PROLOGUE);
    run_do(&on.by, RUN_OBSERVED);
    found->at = events > 0 ? from->events[events - 1].row : 1;
    found->live = atomic_load(&on.by.watch.live);
    dump(&on.on, found);
    stage_clean(&on, found);
    stage_note_failures(&on, found);
    stage_close(&on);
}

bool memory_layout(const plan *what, contender *const *who, size_t count,
                   const machine *where, const memory_options *options,
                   result *results, char *message, size_t size)
{
    return memory_each(what, who, count, where, options, look, results,
                       message, size);
}
