/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every call of the driver fails once: for each stack, for each call that the
 * script makes, for several codes. After it, whatever the library answered:
 * the detail names the call, the context and the capture mode are restored,
 * nothing is left in the simulator, nothing was done out of order, and a run
 * without faults works. Field cases E3, J4.
 *
 * What happens once a process (loading, contexts) is tried in processes of
 * their own: driver_faults --first N CODE.
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/faults/script.h"
#include "tests/support/tap.h"

extern char **environ;

static const int codes[] = {
    CUDA_ERROR_OUT_OF_MEMORY,
    CUDA_ERROR_INVALID_VALUE,
    CUDA_ERROR_UNKNOWN,
    CUDA_ERROR_ILLEGAL_ADDRESS,
};
#define CODES (sizeof(codes) / sizeof(codes[0]))

static const ccmr_sim_table *sim;

/* The thread's capture mode, as it must be after every call. */
static CUstreamCaptureMode usual_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

/* What went wrong beyond the ordered fault; told at the end of the stack. */
static unsigned faults_found;

typedef struct watch {
    int code;
    uint64_t nth;
    CUcontext context;
    int injected; /* the order has been met */
    char call[64];
} watch;

static void tell(const script *s, const char *step, const char *what)
{
    const watch *w = s->context;

    if (faults_found++ < 12) {
        tap_diag("%s: call %llu (%s) answers %d, at %s: %s", s->stack,
                 (unsigned long long)w->nth, w->call, w->code, step, what);
    }
}

/* Has the order been met since the last look? By which call? */
static int look_for_injection(watch *w)
{
    size_t count = sim->log_count();
    ccmr_sim_record record;

    while (count > 0 && !w->injected) {
        if (sim->log_read(--count, &record) == 0 && record.injected) {
            w->injected = 1;
            (void)snprintf(w->call, sizeof(w->call), "%s", record.call);
            return 1;
        }
    }
    return 0;
}

/* The detail of the failed step names the call that was ordered to fail. */
static void check_detail(script *s, const char *step, ccmr_status status)
{
    const watch *w = s->context;
    const ccmr_error_detail *detail = ccmr_last_error();
    char text[256];

    if (detail->status != status || detail->message[0] == '\0') {
        (void)snprintf(text, sizeof(text), "%s, but the detail is of %s",
                       ccmr_status_name(status),
                       ccmr_status_name(detail->status));
        tell(s, step, text);
    } else if (detail->driver_call == NULL ||
               strncmp(detail->driver_call, w->call, strlen(w->call)) != 0 ||
               detail->driver_result != w->code) {
        (void)snprintf(text, sizeof(text), "%s names %s and %d: %.120s",
                       ccmr_status_name(status),
                       detail->driver_call != NULL ? detail->driver_call
                                                   : "no call",
                       detail->driver_result, detail->message);
        tell(s, step, text);
    }
}

static void after_step(script *s, const char *step, ccmr_status status)
{
    watch *w = s->context;
    CUstreamCaptureMode mode = usual_mode;
    CUcontext current = NULL;
    int met = look_for_injection(w);

    if (status != CCMR_SUCCESS && met) {
        check_detail(s, step, status);
    } else if (status != CCMR_SUCCESS && !w->injected) {
        tell(s, step, ccmr_last_error()->message);
    }
    (void)api.cuCtxGetCurrent(&current);
    if (current != w->context) {
        tell(s, step, "the context was not restored");
        (void)api.cuCtxSetCurrent(w->context);
    }
    (void)api.cuThreadExchangeStreamCaptureMode(&mode);
    if (mode != usual_mode) {
        tell(s, step, "the capture mode was not restored");
    }
}

static ccmr_sim_census census(void)
{
    ccmr_sim_census c;

    memset(&c, 0, sizeof(c));
    c.size = sizeof(c);
    (void)sim->census(&c);
    return c;
}

/* `destroyer`: the call that gives such a thing back. If that one fails where
   nobody can be told, in a release, the thing may stay. */
static void compare(const script *s, const char *step,
                    const ccmr_sim_census *before)
{
    const watch *w = s->context;
    ccmr_sim_census now = census();
    char text[128];

#define SAME(what, destroyer)                                                 \
    if (now.what != before->what &&                                           \
        (now.what != before->what + 1 || strcmp(w->call, destroyer) != 0)) {  \
        (void)snprintf(text, sizeof(text), "%llu " #what " left, were %llu",  \
                       (unsigned long long)now.what,                          \
                       (unsigned long long)before->what);                     \
        tell(s, step, text);                                                  \
    }
    SAME(contexts, "")
    SAME(streams, "")
    SAME(events, "cuEventDestroy")
    SAME(pools, "cuMemPoolDestroy")
    SAME(plain_blocks, "")
    SAME(pinned_blocks, "")
    SAME(pool_blocks, "")
    SAME(pieces, "")
    SAME(ranges, "")
    SAME(mappings, "")
#undef SAME
}

/* Whatever failed, nothing was done out of order. */
static void look_for_hazards(const script *s)
{
    ccmr_sim_hazard hazard = {.size = sizeof(hazard)};

    if (sim->hazards() != 0) {
        (void)sim->hazard_read(0, &hazard);
        tell(s, "the end", hazard.text);
        (void)sim->forget_hazards();
    }
}

/* One run with one fault, and one without. Returns whether it was met. */
static int run_with_fault(script *s, uint64_t nth, int code)
{
    ccmr_sim_census before = census();
    watch w = {code, nth, NULL, 0, "none"};
    watch none = {0, 0, NULL, 1, "none"};

    s->context = &w;
    (void)api.cuCtxGetCurrent(&w.context);
    (void)sim->log(0);
    (void)sim->log(4096);
    (void)sim->fail(NULL, nth, code);
    script_run(s);
    (void)sim->forget_failures();
    (void)look_for_injection(&w);
    if (s->stuck) {
        tell(s, s->first_step, "refused again and again");
    }
    compare(s, "the end", &before);
    look_for_hazards(s);

    before = census();
    none.context = w.context;
    none.nth = nth;
    s->context = &none;
    script_run(s);
    if (s->failures != 0) {
        tell(s, s->first_step, "fails later, without a fault");
    }
    compare(s, "the end of a run without faults", &before);
    look_for_hazards(s);
    return w.injected;
}

/* Calls that one run makes on this stack. */
static uint64_t count_calls(script *s)
{
    watch none = {0, 0, NULL, 1, "none"};
    uint64_t before;

    (void)api.cuCtxGetCurrent(&none.context);
    s->context = &none;
    script_run(s);
    before = sim->calls(NULL);
    script_run(s);
    return sim->calls(NULL) - before;
}

static void run_stack(const char *stack)
{
    script s = {.stack = stack, .after = after_step};
    uint64_t calls;
    uint64_t nth;
    unsigned runs = 0;
    size_t i;

    faults_found = 0;
    calls = count_calls(&s);
    if (s.failures != 0) {
        tap_fail("%s: fails without faults: %s: %s", stack, s.first_step,
                 ccmr_status_name(s.first));
        return;
    }
    for (i = 0; i < CODES; i++) {
        /* A run with a fault may make a few calls more. */
        for (nth = 1; nth <= calls + 20; nth++, runs++) {
            if (!run_with_fault(&s, nth, codes[i]) && nth > calls) {
                break;
            }
        }
    }
    (void)sim->log(0);
    tap_ok(faults_found == 0, "%s: %u runs with a failing call", stack, runs);
}

/* --first N CODE: the first use of a process, with one fault. */
static int first_use(uint64_t nth, int code)
{
    script s = {.stack = "stream_ordered | device_plain", .after = after_step};
    watch w = {code, nth, NULL, 0, "none"};
    ccmr_resource *pool = NULL;
    void *ptr = NULL;
    ccmr_status status;
    int tries;

    if (nth == 0) {
        w.injected = 1;
    } else {
        (void)sim->log(4096);
        (void)sim->fail(NULL, nth, code);
    }
    s.context = &w;
    /* Again, since what was not set up may be tried again. */
    for (tries = 0; tries < (nth == 0 ? 1 : 2); tries++) {
        status = ccmr_init(NULL);
        after_step(&s, "init", status);
        if (status == CCMR_SUCCESS) {
            status = ccmr_stack_create("device_pool", &pool);
            after_step(&s, "create", status);
        }
        if (status == CCMR_SUCCESS) {
            status =
                ccmr_resource_allocate(pool, 512, 0, CCMR_STREAM_LEGACY, &ptr);
            after_step(&s, "allocate", status);
        }
        while (ptr != NULL &&
               ccmr_resource_deallocate(pool, ptr, 512, 0,
                                        CCMR_STREAM_READY) != CCMR_SUCCESS) {
            after_step(&s, "deallocate", ccmr_last_error()->status);
        }
        ptr = NULL;
        ccmr_resource_release(pool);
        pool = NULL;
    }
    /* A driver that calls an attribute invalid does not know it: that stays. */
    if (status != CCMR_SUCCESS &&
        (status != CCMR_ERROR_NOT_SUPPORTED ||
         code != CUDA_ERROR_INVALID_VALUE ||
         strcmp(w.call, "cuDeviceGetAttribute") != 0)) {
        tell(&s, "second try", ccmr_last_error()->message);
    }
    if (nth == 0) {
        printf("%llu\n", (unsigned long long)sim->calls(NULL));
    }
    return api_end(faults_found == 0 ? 0 : 1);
}

static int run_first(const char *program, uint64_t nth, int code, FILE *out)
{
    char nth_text[24];
    char code_text[16];
    char self[] = "driver_faults";
    char mode[] = "--first";
    char *arguments[] = {self, mode, nth_text, code_text, NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status = -1;

    (void)snprintf(nth_text, sizeof(nth_text), "%llu",
                   (unsigned long long)nth);
    (void)snprintf(code_text, sizeof(code_text), "%d", code);
    (void)posix_spawn_file_actions_init(&actions);
    if (out != NULL) {
        (void)posix_spawn_file_actions_adddup2(&actions, fileno(out), 1);
    }
    if (posix_spawn(&child, program, &actions, NULL, arguments, environ) ==
        0) {
        (void)waitpid(child, &status, 0);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return status;
}

static void run_first_uses(void)
{
    static const char program[] = "/proc/self/exe";
    FILE *out = tmpfile();
    unsigned long long calls = 0;
    unsigned bad = 0;
    unsigned runs = 0;
    uint64_t nth;
    size_t i;

    if (out == NULL || run_first(program, 0, 0, out) != 0) {
        tap_fail("first use without a fault");
        return;
    }
    rewind(out);
    if (fscanf(out, "%llu", &calls) != 1) {
        calls = 0;
    }
    (void)fclose(out);
    tap_ok(calls > 0, "a first use makes %llu calls", calls);
    for (i = 0; i < CODES; i++) {
        for (nth = 1; nth <= calls; nth++, runs++) {
            int status = run_first(program, nth, codes[i], NULL);

            if (status != 0) {
                bad++;
                tap_diag("first use, call %llu answers %d: wait status 0x%x",
                         (unsigned long long)nth, codes[i], (unsigned)status);
            }
        }
    }
    tap_ok(bad == 0, "%u first uses with a failing call", runs);
}

int main(int argc, char **argv)
{
    const char *const *stack;

    sim = api_simulator();
    if (argc == 4 && strcmp(argv[1], "--first") == 0) {
        return first_use(strtoull(argv[2], NULL, 10), atoi(argv[3]));
    }
    run_first_uses();
    if (ccmr_init(NULL) != CCMR_SUCCESS) {
        tap_bail_out("%s", ccmr_last_error()->message);
    }
    script_prepare();
    (void)sim->set_strict(0); /* hazards are told with what failed */
    (void)sim->check_order(1);
    usual_mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    (void)api.cuThreadExchangeStreamCaptureMode(
        &(CUstreamCaptureMode){CU_STREAM_CAPTURE_MODE_THREAD_LOCAL});
    for (stack = script_stacks; *stack != NULL; stack++) {
        run_stack(*stack);
    }
    script_end();
    return api_end(tap_finish());
}
