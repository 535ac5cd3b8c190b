/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every public function with NULLs, closed buffers, wrong struct sizes and
 * wild values: its documented status, and a message that names the culprit.
 * The functions are those of the symbol map: one without a case here fails.
 */
#include "tests/process/bad_input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/api.h"

ccmr_resource *pool;
ccmr_resource *host;
ccmr_resource *logging;
ccmr_buffer *open_buffer;
ccmr_buffer *closed_buffer;
ccmr_stream stream;
void *block;
ccmr_resource *no_resource;
ccmr_buffer *no_buffer;
ccmr_stream no_stream;
void *no_ptr;

void bad(ccmr_status status, ccmr_status want, const char *word,
         const char *call)
{
    const ccmr_error_detail *detail = ccmr_last_error();

    if (!tap_ok(status == want && detail->status == want &&
                    strstr(detail->message, word) != NULL,
                "%s is %s and names %s", call, ccmr_status_name(want), word)) {
        tap_diag("%s; detail %s: %s", ccmr_status_name(status),
                 ccmr_status_name(detail->status), detail->message);
    }
}

void sizes_of(const char *name, size_t known, struct_call call, int input)
{
    /* Less by what may be padding, too. */
    size_t sizes[] = {sizeof(size_t), known - 8, known};
    unsigned char *given;
    size_t i;
    size_t large = known + 40;
    ccmr_status status;

    for (i = 0; i < 3; i++) {
        given = calloc(1, sizes[i]);
        if (given == NULL) {
            tap_bail_out("no memory");
        }
        memcpy(given, &sizes[i], sizeof(size_t));
        status = call(given);
        if (i < 2) {
            bad(status, CCMR_ERROR_INVALID_STRUCT, name, "a short struct");
        } else {
            tap_ok(status != CCMR_ERROR_INVALID_STRUCT, "%s of its own size",
                   name);
        }
        free(given);
    }
    given = calloc(1, large);
    if (given == NULL) {
        tap_bail_out("no memory");
    }
    status = call(given);
    bad(status, CCMR_ERROR_INVALID_STRUCT, name, "size 0");
    memcpy(given, &large, sizeof(large));
    status = call(given);
    tap_ok(status != CCMR_ERROR_INVALID_STRUCT, "%s, newer, with zeros", name);
    memset(given, 0, large);
    memcpy(given, &large, sizeof(large));
    given[large - 1] = 1;
    status = call(given);
    if (input) {
        bad(status, CCMR_ERROR_INVALID_STRUCT, name,
            "a newer struct with an unknown member set");
    } else {
        tap_ok(status == CCMR_SUCCESS && given[large - 1] == 0,
               "%s, newer: what is not known is 0", name);
    }
    memset(given, 0, large);
    memset(given, 0xff, sizeof(size_t));
    bad(call(given), CCMR_ERROR_INVALID_STRUCT, name, "size SIZE_MAX");
    free(given);
}

typedef struct bad_case {
    const char *name;
    void (*run)(void);
} bad_case;

static const bad_case cases[] = {
#define ENTRY(name) {#name, bad_##name},
    PUBLIC_MAP(ENTRY)
#undef ENTRY
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

static int has_case(const char *name)
{
    size_t i;

    for (i = 0; i < CASES; i++) {
        if (strcmp(cases[i].name, name) == 0) {
            return 1;
        }
    }
    return 0;
}

/* The symbol map's functions are those that the tests know. */
static void compare_with_map(void)
{
    const char *top = getenv("abs_top_srcdir");
    char path[4096];
    char line[256];
    char name[128];
    size_t count = 0;
    FILE *map;

    (void)snprintf(path, sizeof(path), "%s/lib/libcucoremr.map",
                   top != NULL ? top : ".");
    map = fopen(path, "r");
    if (map == NULL) {
        tap_skip("%s is not there", path);
        return;
    }
    while (fgets(line, sizeof(line), map) != NULL) {
        if (sscanf(line, " %127[a-z0-9_];", name) == 1 &&
            strncmp(name, "ccmr_", 5) == 0) {
            count++;
            if (!has_case(name)) {
                tap_fail("%s is in tests/support/public.h", name);
            }
        }
    }
    (void)fclose(map);
    tap_is_size(count, CASES, "a case for every exported function");
}

static void set_up(void)
{
    (void)setenv("CUCOREMR_SIM_DEVICES", "2", 1);
    (void)api_simulator();
    if (ccmr_stack_create("device_pool", &pool) != CCMR_SUCCESS ||
        ccmr_stack_create("host", &host) != CCMR_SUCCESS ||
        ccmr_stack_create("logging file=/dev/null | host", &logging) !=
            CCMR_SUCCESS ||
        ccmr_stream_create(0, 0, &stream) != CCMR_SUCCESS ||
        ccmr_buffer_create(pool, 4096, NULL, stream, &open_buffer) !=
            CCMR_SUCCESS ||
        ccmr_buffer_create(pool, 64, NULL, stream, &closed_buffer) !=
            CCMR_SUCCESS ||
        ccmr_buffer_close(closed_buffer, stream) != CCMR_SUCCESS ||
        ccmr_resource_allocate(pool, 512, 0, stream, &block) != CCMR_SUCCESS) {
        tap_bail_out("%s", ccmr_last_error()->message);
    }
}

static void clean_up(void)
{
    ccmr_sim_census left = {.size = sizeof(left)};

    GOOD(ccmr_resource_deallocate(pool, block, 512, 0, stream));
    GOOD(ccmr_buffer_destroy(open_buffer));
    GOOD(ccmr_buffer_destroy(closed_buffer));
    GOOD(ccmr_stream_destroy(stream));
    ccmr_resource_release(pool);
    ccmr_resource_release(host);
    ccmr_resource_release(logging);
    (void)simulator->census(&left);
    tap_is_int(left.pool_blocks + left.plain_blocks + left.pinned_blocks, 0,
               "no block is left");
    tap_is_int(left.events + left.pools, 0, "no event and no pool is left");
}

int main(void)
{
    size_t i;

    set_up();
    compare_with_map();
    for (i = 0; i < CASES; i++) {
        cases[i].run();
        if (no_resource != NULL || no_buffer != NULL || no_stream != NULL ||
            no_ptr != NULL) {
            tap_fail("%s wrote an output and failed", cases[i].name);
            no_resource = NULL;
            no_buffer = NULL;
            no_stream = NULL;
            no_ptr = NULL;
        }
    }
    clean_up();
    return api_end(tap_finish());
}
