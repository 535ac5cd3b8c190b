/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/memory.h"

#include "bench/progress.h"
#include "bench/stage.h"

static void look(memory_trial *in, const contender *who, result *found)
{
    const stage_options set_up = {.what = in->what,
                                  .who = who,
                                  .where = in->where,
                                  .streams = &in->streams};
    stage on;

    progress_show("grown %s, %s: %s", in->what->label,
                  work_name(in->options->work), who->name);
    if (!stage_open(&on, &set_up, found)) {
        return;
    }
    memory_watch(in, &on.by);
    if (in->options->timeline) {
        stage_draw(&on, found);
    }
    run_do(&on.by, RUN_PROLOGUE);
    run_do(&on.by, RUN_OBSERVED);
    stage_clean(&on, found);
    on.by.watch.line = NULL;
    run_do(&on.by, RUN_PROLOGUE);
    stage_count(&on, RUN_OBSERVED, found);
    stage_note_memory(&on, found);
    stage_clean(&on, found);
    stage_note_failures(&on, found);
    stage_close(&on);
}

bool memory_grown(const plan *what, contender *const *who, size_t count,
                  const machine *where, const memory_options *options,
                  result *results, char *message, size_t size)
{
    return memory_each(what, who, count, where, options, look, results,
                       message, size);
}
