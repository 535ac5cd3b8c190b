/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simulation/mistakes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/tap.h"

#define SEEDS 4u
#define SECONDS 20u

static const char *const check_names[CHECKS] = {
    "nothing", "status", "contents", "order", "figures", "left", "crash",
};

/* ---- in the process of a mistake ------------------------------------------- */

_Noreturn void found(enum check by, const char *format, ...)
{
    va_list args;

    if (sim->hazards() != 0) { /* what came of it does not matter */
        by = CHECK_ORDER;
    }
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    _exit((int)by);
}

void must(CUresult got, const char *call)
{
    const char *name = NULL;

    if (got != CUDA_SUCCESS) {
        (void)drv.cuGetErrorName(got, &name);
        found(CHECK_STATUS, "%s answers %s", call,
              name != NULL ? name : "no status at all");
    }
}

void holds(CUdeviceptr address, size_t bytes, unsigned char byte)
{
    unsigned char *copy = malloc(bytes);
    size_t i = 0;

    if (copy == NULL) {
        found(CHECK_CRASH, "no memory");
    }
    MUST(drv.cuMemcpyDtoH(copy, address, bytes));
    while (i < bytes && copy[i] == byte) {
        i++;
    }
    if (i < bytes) {
        found(CHECK_CONTENTS, "byte %zu of %zu is %d, should be %d", i, bytes,
              copy[i], byte);
    }
    free(copy);
}

static void look_for_hazards(void)
{
    ccmr_sim_hazard hazard = {.size = sizeof hazard};

    if (sim->hazards() != 0) {
        (void)sim->hazard_read(0, &hazard);
        found(CHECK_ORDER, "%s", hazard.text);
    }
}

static void compare(const ccmr_sim_census *before)
{
    ccmr_sim_census now = census_now();

#define SAME(what)                                                            \
    if (now.what != before->what) {                                           \
        found(CHECK_LEFT, "%llu " #what " at the end, were %llu",             \
              (unsigned long long)now.what,                                   \
              (unsigned long long)before->what);                              \
    }
    SAME(streams)
    SAME(events)
    SAME(pools)
    SAME(graphs)
    SAME(graph_execs)
    SAME(plain_blocks)
    SAME(pool_blocks)
    SAME(pieces)
    SAME(ranges)
    SAME(mappings)
    SAME(imports)
    SAME(device_bytes)
#undef SAME
}

static _Noreturn void run_alone(const struct mistake *m, bool wrong,
                                uint64_t seed)
{
    const struct rlimit none = {0, 0};
    ccmr_sim_census before;

    (void)setrlimit(RLIMIT_CORE, &none);
    (void)alarm(SECONDS);
    (void)sim->set_devices(2);
    driver_start(CCMR_SIM_LATE, seed);
    (void)sim->set_strict(0);
    (void)sim->check_order(1);
    before = census_now();
    m->run(wrong);
    look_for_hazards();
    compare(&before);
    _exit(CHECK_NONE);
}

/* ---- in the test ---------------------------------------------------------------- */

/* Which check finds something; `text` is what it says. */
static enum check try(const struct mistake *m, bool wrong, uint64_t seed,
                      char *text, size_t room)
{
    size_t length = 0;
    int status = 0;
    ssize_t got;
    int ends[2];
    pid_t child;

    if (pipe(ends) != 0) {
        tap_bail_out("no pipe");
    }
    (void)fflush(stdout);
    child = fork();
    if (child == 0) {
        (void)dup2(ends[1], STDERR_FILENO);
        (void)close(ends[0]);
        (void)close(ends[1]);
        run_alone(m, wrong, seed);
    }
    (void)close(ends[1]);
    while ((got = read(ends[0], text + length, room - 1 - length)) > 0) {
        length += (size_t)got;
    }
    text[length] = '\0';
    (void)close(ends[0]);
    (void)waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) < CHECKS
               ? (enum check)WEXITSTATUS(status)
               : CHECK_CRASH;
}

/* A sanitizer would tell of those itself, and that counts as a failure. */
#if defined(__SANITIZE_ADDRESS__)
#define NO_CRASHES 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define NO_CRASHES 1
#endif
#endif
#ifndef NO_CRASHES
#define NO_CRASHES 0
#endif

static void judge_wrong(const struct mistake *m)
{
    char text[2048] = "";
    enum check by = m->found_by;
    uint64_t seed;

    if (by == CHECK_CRASH && NO_CRASHES) {
        tap_skip("%s: a sanitizer looks for that", m->name);
        return;
    }
    for (seed = 0; seed < SEEDS && by == m->found_by; seed++) {
        by = try(m, true, seed, text, sizeof text);
    }
    if (!tap_ok(by == m->found_by, "%s (%s): %s: found by %s", m->name,
                m->cases, m->text, check_names[m->found_by])) {
        tap_diag("seed %d: %s: %s", (int)seed - 1, check_names[by], text);
    }
}

static void judge_right(const struct mistake *m)
{
    char text[2048] = "";
    enum check by = CHECK_NONE;
    uint64_t seed;

    for (seed = 0; seed < SEEDS && by == CHECK_NONE; seed++) {
        by = try(m, false, seed, text, sizeof text);
    }
    if (!tap_ok(by == CHECK_NONE, "%s: and nothing without it", m->name)) {
        tap_diag("seed %d: %s: %s", (int)seed - 1, check_names[by], text);
    }
}

int main(int argc, char **argv)
{
    static const struct mistake *const tables[] = {
        mistakes_late, mistakes_ranges, mistakes_sharing};
    const struct mistake *m;
    size_t i;

    driver_load();
    if (argc > 1 && strcmp(argv[1], EXPORTER) == 0) {
        return mistakes_export();
    }
    for (i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        for (m = tables[i]; m->name != NULL; m++) {
            judge_wrong(m);
            judge_right(m);
        }
    }
    return tap_finish();
}
