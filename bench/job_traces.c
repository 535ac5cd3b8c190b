/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/job.h"

#include <stdio.h>
#include <string.h>

#include "bench/progress.h"
#include "bench/trace_files.h"

/* What the main job replays. */
#define MAIN_TRACE "gpt2_train_varlen"

static int read_one(job *in, const char *word)
{
    trace_options options = {.lenient = in->asked->lenient,
                             .scale = in->asked->scale};
    char path[TRACE_PATH];
    trace_error error;

    if (!trace_files_find(word, path)) {
        (void)fprintf(stderr,
                      "cucoremr-bench: no file '%s', and no trace of that "
                      "name (see --list)\n",
                      word);
        return JOB_USAGE;
    }
    if (in->trace_count == ARGS_MAX) {
        (void)fprintf(stderr, "cucoremr-bench: too many traces\n");
        return JOB_USAGE;
    }
    progress_show("reading %s", path);
    in->traces[in->trace_count] = trace_read(path, &options, &error);
    progress_end();
    if (in->traces[in->trace_count] != NULL) {
        in->trace_count++;
        return JOB_FINE;
    }
    if (error.row != 0) {
        (void)fprintf(stderr, "cucoremr-bench: %s: row %zu: %s\n", path,
                      error.row, error.text);
    } else {
        (void)fprintf(stderr, "cucoremr-bench: %s: %s\n", path, error.text);
    }
    return JOB_FAILED;
}

static int read_all(job *in)
{
    int ret = JOB_FINE;

    if (trace_files_folder() == NULL) {
        (void)fprintf(stderr, "cucoremr-bench: the traces that come with it "
                              "are not found; CUCOREMR_TRACES can say where "
                              "they are\n");
        return JOB_FAILED;
    }
    for (size_t i = 0; ret == JOB_FINE && trace_files_get(i) != NULL; i++) {
        ret = read_one(in, trace_files_get(i));
    }
    return ret;
}

int job_read_traces(job *in)
{
    const args *asked = in->asked;
    int ret = JOB_FINE;

    if (asked->what == SCENARIO_MAIN) {
        return read_one(in, MAIN_TRACE);
    }
    if (!args_takes_traces(asked->what)) {
        return JOB_FINE;
    }
    for (size_t i = 0; ret == JOB_FINE && i < asked->file_count; i++) {
        ret = strcmp(asked->files[i], "all") == 0
                  ? read_all(in)
                  : read_one(in, asked->files[i]);
    }
    return ret;
}
