/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/trace_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/machine.h"

/* Where they are after installation, and in the sources; see local.mk. */
#ifndef CCMR_BENCH_TRACES
#define CCMR_BENCH_TRACES "/usr/share/libcucoremr/traces"
#endif
#ifndef CCMR_BENCH_SOURCE_TRACES
#define CCMR_BENCH_SOURCE_TRACES "bench/traces"
#endif

#define ENDING ".csv.gz"

static const char *const names[] = {
    "gnn_train",      "gpt2_train_varlen",     "llama_generate",
    "resnet50_train", "vit_multistream_infer",
};

#define NAMES (sizeof(names) / sizeof(names[0]))

static bool holds_traces(const char *folder)
{
    char path[TRACE_PATH];

    return snprintf(path, sizeof(path), "%s/%s" ENDING, folder, names[0]) <
               (int)sizeof(path) &&
           access(path, R_OK) == 0;
}

/* What the environment says; else beside the program, as in a kit, in a build
 * folder or below a prefix; else where it was built for. */
static bool find_folder(char folder[TRACE_PATH])
{
    static const char *const near[] = {
        "traces", "bench/traces", "../bench/traces",
        "../share/libcucoremr/traces", "../share/traces"};
    static const char *const far[] = {CCMR_BENCH_TRACES,
                                      CCMR_BENCH_SOURCE_TRACES};
    const char *said = getenv("CUCOREMR_TRACES");

    if (said != NULL && said[0] != '\0') {
        (void)snprintf(folder, TRACE_PATH, "%s", said);
        return true;
    }
    for (size_t i = 0; i < sizeof(near) / sizeof(near[0]); i++) {
        if (snprintf(folder, TRACE_PATH, "%s/%s", machine_program_folder(),
                     near[i]) < TRACE_PATH &&
            holds_traces(folder)) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++) {
        (void)snprintf(folder, TRACE_PATH, "%s", far[i]);
        if (holds_traces(folder)) {
            return true;
        }
    }
    return false;
}

const char *trace_files_folder(void)
{
    static char folder[TRACE_PATH];
    static bool found;

    if (!found) {
        found = find_folder(folder);
    }
    return found ? folder : NULL;
}

const char *trace_files_get(size_t i)
{
    return i < NAMES ? names[i] : NULL;
}

bool trace_files_find(const char *word, char path[TRACE_PATH])
{
    const char *folder;

    if (access(word, F_OK) == 0 || strchr(word, '/') != NULL) {
        return snprintf(path, TRACE_PATH, "%s", word) < TRACE_PATH;
    }
    folder = trace_files_folder();
    for (size_t i = 0; folder != NULL && i < NAMES; i++) {
        if (strcmp(names[i], word) == 0) {
            return snprintf(path, TRACE_PATH, "%s/%s" ENDING, folder, word) <
                   TRACE_PATH;
        }
    }
    return false;
}
