/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/memory.h"

#include <stdio.h>
#include <string.h>

#include "bench/progress.h"
#include "bench/stage.h"
#include "bench/units.h"

#define MIB (UINT64_C(1) << 20)

/* What a try came to. */
typedef enum outcome {
    OUTCOME_ENOUGH,
    OUTCOME_TOO_SMALL,
    OUTCOME_FAILED /* for another reason, which is in the result */
} outcome;

typedef struct search {
    memory_trial *in;
    const contender *who;
    result *found;
} search;

static bool is_lack(ccmr_status status)
{
    return status == CCMR_ERROR_LIMIT_EXCEEDED ||
           status == CCMR_ERROR_OUT_OF_DEVICE_MEMORY;
}

/* Note a budget that was enough: the bound, or what was reserved under it,
 * which is less where the bound was not used up, and more where a driver
 * rounds it up. */
static void note_enough(search *of, stage *on, uint64_t bytes)
{
    result seen = {.peak_reserved = FIGURE_UNKNOWN};
    uint64_t took;

    stage_note_memory(on, &seen);
    took = seen.peak_reserved != FIGURE_UNKNOWN ? seen.peak_reserved : bytes;
    if (of->found->budget == 0 || took < of->found->budget) {
        of->found->budget = took;
        of->found->peak_reserved = seen.peak_reserved;
        of->found->peak_live = seen.peak_live;
    }
}

static outcome run_through(search *of, stage *on, uint64_t bytes)
{
    const failure *first;

    memory_watch(of->in, &on->by);
    on->by.watch.stop_at_failure = true;
    run_do(&on->by, RUN_PROLOGUE);
    run_do(&on->by, RUN_OBSERVED);
    first = run_first_failure(&on->by);
    if (first == NULL && run_failures(&on->by) == 0) {
        note_enough(of, on, bytes);
        return OUTCOME_ENOUGH;
    }
    if (first != NULL && !first->free && is_lack(first->status)) {
        return OUTCOME_TOO_SMALL;
    }
    stage_note_failures(on, of->found);
    return OUTCOME_FAILED;
}

static outcome try_once(search *of, uint64_t bytes)
{
    const memory_trial *in = of->in;
    const stage_options set_up = {.what = in->what,
                                  .who = of->who,
                                  .where = in->where,
                                  .streams = &in->streams,
                                  .budget = bytes};
    result opened = {.name = of->who->name};
    size_t failures = of->found->failures;
    outcome came;
    stage on;

    of->found->tries++;
    if (!stage_open(&on, &set_up, &opened)) {
        if (is_lack(ccmr_last_error()->status)) {
            return OUTCOME_TOO_SMALL;
        }
        result_fail(of->found, "%s", opened.failure);
        return OUTCOME_FAILED;
    }
    came = run_through(of, &on, bytes);
    stage_clean(&on, of->found);
    stage_close(&on);
    return of->found->failures > failures ? OUTCOME_FAILED : came;
}

static outcome try_shown(search *of, uint64_t bytes)
{
    static const char *const words[] = {
        [OUTCOME_ENOUGH] = "enough",
        [OUTCOME_TOO_SMALL] = "too small",
        [OUTCOME_FAILED] = "failed",
    };
    double ratio = (double)bytes / (double)of->found->peak_live;
    char text[UNITS_TEXT];
    outcome came;

    (void)units_bytes(bytes, text);
    progress_show("budget %s, %s: %.24s: try %u: %s (%.4f)",
                  of->in->what->label, work_name(of->in->options->work),
                  of->who->name, of->found->tries + 1, text, ratio);
    came = try_once(of, bytes);
    progress_show("budget %s, %s: %.24s: try %u: %s (%.4f) %s",
                  of->in->what->label, work_name(of->in->options->work),
                  of->who->name, of->found->tries, text, ratio, words[came]);
    return came;
}

/* More and more until it is enough: the last that was not, and the first that
 * was. */
static bool double_up(search *of, uint64_t *low, uint64_t *high)
{
    uint64_t peak = of->found->peak_live;
    uint64_t most = of->in->where->device_bytes;
    uint64_t more = peak / 64 + 1;

    *low = peak - 1;
    for (*high = peak; *high <= most; *high += more, more *= 2) {
        outcome came = try_shown(of, *high);

        if (came != OUTCOME_TOO_SMALL) {
            return came == OUTCOME_ENOUGH;
        }
        *low = *high;
    }
    result_fail(of->found,
                "does not complete in %llu bytes, and the device has no more "
                "to try with than %llu",
                (unsigned long long)*low, (unsigned long long)most);
    return false;
}

static void look(memory_trial *in, const contender *who, result *found)
{
    search of = {.in = in, .who = who, .found = found};
    uint64_t exact = found->peak_live / 1000;
    uint64_t low;
    uint64_t high;

    exact = exact < MIB ? exact : MIB;
    if (found->peak_live == 0 || !double_up(&of, &low, &high)) {
        return;
    }
    if (found->budget < high) {
        high = found->budget;
    }
    while (low < high && high - low > exact + 1) {
        uint64_t middle = low + (high - low) / 2;
        outcome came = try_shown(&of, middle);

        if (came == OUTCOME_FAILED) {
            return;
        }
        if (came == OUTCOME_TOO_SMALL) {
            low = middle;
        } else {
            high = found->budget < middle ? found->budget : middle;
        }
    }
}

bool memory_budget(const plan *what, contender *const *who, size_t count,
                   const machine *where, const memory_options *options,
                   result *results, char *message, size_t size)
{
    return memory_each(what, who, count, where, options, look, results,
                       message, size);
}
