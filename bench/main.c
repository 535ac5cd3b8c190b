/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cucoremr-bench: compares stacks of resources, and peers.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cucoremr/stack.h>
#ifdef CCMR_BENCH_JEMALLOC
#include <cucoremr/resources/jemalloc.h>
#endif

#include "bench/args.h"
#include "bench/job.h"
#include "bench/trace_files.h"

static int list_all(void)
{
    const char *folder = trace_files_folder();
    const char *name;
    const char *help;

    (void)puts("Scenarios:");
    for (int i = 0; i < SCENARIO_COUNT; i++) {
        name = args_scenario_name((scenario_id)i);
        if (name != NULL) {
            (void)printf("  %-12s  %s\n", name,
                         args_scenario_help((scenario_id)i));
        }
    }
    (void)puts("\nPeers:");
    for (size_t i = 0; contender_peer_get(i, &name, &help); i++) {
        (void)printf("  %-12s  %s\n", name, help);
    }
    (void)printf("\nTraces, in %s:\n",
                 folder != NULL ? folder
                                : "no folder that could be found "
                                  "(CUCOREMR_TRACES can say where)");
    for (size_t i = 0; trace_files_get(i) != NULL; i++) {
        (void)printf("  %s\n", trace_files_get(i));
    }
    return JOB_FINE;
}

static int print_help(const char *kind)
{
    size_t length = 0;
    char *text;

    if (ccmr_stack_help(kind, NULL, 0, &length) != CCMR_SUCCESS) {
        (void)fprintf(stderr, "cucoremr-bench: %s\n",
                      ccmr_last_error()->message);
        return JOB_USAGE;
    }
    text = malloc(length + 1);
    if (text == NULL ||
        ccmr_stack_help(kind, text, length + 1, NULL) != CCMR_SUCCESS) {
        free(text);
        return JOB_FAILED;
    }
    (void)fputs(text, stdout);
    free(text);
    return JOB_FINE;
}

static int help_stacks(const args *asked)
{
    int ret = JOB_FINE;

    if (asked->file_count == 0) {
        return print_help(NULL);
    }
    for (size_t i = 0; ret == JOB_FINE && i < asked->file_count; i++) {
        ret = print_help(asked->files[i]);
    }
    return ret;
}

/* Output that did not arrive is a failure. */
static int flush_output(int ret)
{
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout) != 0) {
        (void)fprintf(stderr, "cucoremr-bench: standard output: %s\n",
                      errno != 0 ? strerror(errno) : "cannot be written");
        return JOB_FAILED;
    }
    return ret;
}

int main(int argc, char **argv)
{
    args asked;
    int ret;

#ifdef CCMR_BENCH_JEMALLOC
    if (ccmr_jemalloc_register() != CCMR_SUCCESS) {
        (void)fprintf(stderr, "cucoremr-bench: %s\n",
                      ccmr_last_error()->message);
    }
#endif
    args_read(&asked, argc, argv);
    if (asked.what == SCENARIO_LIST) {
        ret = list_all();
    } else if (asked.what == SCENARIO_HELP_STACKS) {
        ret = help_stacks(&asked);
    } else {
        ret = job_run(&asked);
    }
    args_free(&asked);
    return flush_output(ret);
}
