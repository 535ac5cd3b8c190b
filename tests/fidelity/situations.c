/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every call of calls.c in each situation that a memory library meets: with no
 * context, with another one, while a stream is busy, while one is capturing.
 */
#include "tests/fidelity/calls.h"
#include "tests/fidelity/facts.h"
#include "tests/fidelity/hold.h"

#include <pthread.h>
#include <string.h>

enum { CASE_LIMIT_MS = 5000 };

/* ---- one call on a fresh thread ---- */

/*
 * The thread stays until the observation is over, and then waits for its own
 * default stream: what a driver does with the work of a thread that is gone is
 * another matter.
 */
struct visit {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool called, over; /* under lock */
    CUresult (*call)(void);
    CUcontext context; /* current there; NULL: the thread has none */
    bool relaxed;      /* with the thread's capture mode relaxed */
    CUresult res;
};

static CUresult call_relaxed(CUresult (*call)(void))
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUresult res;

    drv.cuThreadExchangeStreamCaptureMode(&mode);
    res = call();
    drv.cuThreadExchangeStreamCaptureMode(&mode);
    return res;
}

static void *visit_main(void *argument)
{
    struct visit *visit = argument;

    if (visit->context != NULL) {
        drv.cuCtxSetCurrent(visit->context);
    }
    visit->res = visit->relaxed ? call_relaxed(visit->call) : visit->call();
    pthread_mutex_lock(&visit->lock);
    visit->called = true;
    pthread_cond_broadcast(&visit->changed);
    while (!visit->over) {
        pthread_cond_wait(&visit->changed, &visit->lock);
    }
    pthread_mutex_unlock(&visit->lock);
    if (visit->context != NULL) {
        drv.cuStreamSynchronize(CU_STREAM_PER_THREAD);
    }
    return NULL;
}

/* Returns false, with a status, where there is no such thread. */
static bool visit_begin(struct visit *visit, CUresult (*call)(void),
                        CUcontext context, bool relaxed)
{
    memset(visit, 0, sizeof *visit);
    visit->call = call;
    visit->context = context;
    visit->relaxed = relaxed;
    pthread_mutex_init(&visit->lock, NULL);
    pthread_cond_init(&visit->changed, NULL);
    if (pthread_create(&visit->thread, NULL, visit_main, visit) != 0) {
        visit->res = CUDA_ERROR_OUT_OF_MEMORY;
        return false;
    }
    pthread_mutex_lock(&visit->lock);
    while (!visit->called) {
        pthread_cond_wait(&visit->changed, &visit->lock);
    }
    pthread_mutex_unlock(&visit->lock);
    return true;
}

static void visit_end(struct visit *visit)
{
    pthread_mutex_lock(&visit->lock);
    visit->over = true;
    pthread_cond_broadcast(&visit->changed);
    pthread_mutex_unlock(&visit->lock);
    pthread_join(visit->thread, NULL);
}

static CUresult call_elsewhere(CUresult (*call)(void), CUcontext context)
{
    struct visit visit;

    if (visit_begin(&visit, call, context, false)) {
        visit_end(&visit);
    }
    return visit.res;
}

/* ---- nothing special, for comparison ---- */

static void see_plainly(const struct fidelity_case *each)
{
    if (fixture_make(CU_STREAM_DEFAULT)) {
        fact_result("result", each->call());
        fixture_drop();
    }
}

const struct fidelity_topic plainly_topic = {
    "plainly",
    every_call,
    see_plainly,
    NULL,
    false,
    CASE_LIMIT_MS,
    "Measured: each call on its own, with nothing in its way; what the other "
    "situations are held against.",
};

/*
 * The rule as documented: a call that has a handle with a context of its own
 * may do without a current one; a call that acts on the current one answers
 * CUDA_ERROR_INVALID_CONTEXT. Which is which is not said call by call.
 */
static void see_without_context(const struct fidelity_case *each)
{
    if (fixture_make(CU_STREAM_DEFAULT)) {
        fact_result("result", call_elsewhere(each->call, NULL));
        fixture_drop();
    }
}

const struct fidelity_topic no_context_topic = {
    "no_context",
    every_call,
    see_without_context,
    NULL,
    false,
    CASE_LIMIT_MS,
    "Documented: calls that act in the current context fail without one. "
    "Which of them do was measured.",
};

/* Objects of the primary context, used with another context current. */
static void see_with_other_context(const struct fidelity_case *each)
{
    static CUcontext other;
    CUcontext primary;
    CUresult res;

    if (other == NULL) {
        drv.cuCtxGetCurrent(&primary);
        res = drv.cuCtxCreate(&other, NULL, 0, 0);
        drv.cuCtxSetCurrent(primary);
        if (res != CUDA_SUCCESS) {
            fact_result("context", res);
            return;
        }
    }
    if (fixture_make(CU_STREAM_DEFAULT)) {
        fact_result("result", call_elsewhere(each->call, other));
        fixture_drop();
    }
}

const struct fidelity_topic other_context_topic = {
    "other_context",
    every_call,
    see_with_other_context,
    NULL,
    false,
    CASE_LIMIT_MS,
    "Documented: a handle belongs to the context that it was made in. Which "
    "calls mind was measured.",
};

/* ---- while a stream is busy ---- */

/*
 * Only stream order binds a call to other work, says the documentation, apart
 * from calls that synchronise (by name, or as cuMemFree does). Whether the call
 * came back while `main` was still held is what a library has to know.
 */
static void see_held(const struct fidelity_case *each, unsigned int flags)
{
    CUresult res;

    if (!fixture_make(flags)) {
        return;
    }
    if (hold(fixture.main)) {
        let_go_after(HOLD_DELAY_MS);
        res = each->call();
        fact("result", "%s%s", result_name(res),
             let_go() ? "" : ", after waiting");
    }
    fixture_drop();
}

static void see_held_blocking(const struct fidelity_case *each)
{
    see_held(each, CU_STREAM_DEFAULT);
}

static void see_held_nonblocking(const struct fidelity_case *each)
{
    see_held(each, CU_STREAM_NON_BLOCKING);
}

const struct fidelity_topic held_topic = {
    "held",
    every_call,
    see_held_blocking,
    NULL,
    false,
    CASE_LIMIT_MS,
    "Documented: which calls wait for work, while a blocking stream has "
    "some. Whether they do was measured.",
};

const struct fidelity_topic held_nonblocking_topic = {
    "held_nonblocking",
    every_call,
    see_held_nonblocking,
    NULL,
    false,
    CASE_LIMIT_MS,
    "As held, with a stream that does not wait for the legacy one.",
};

/* ---- while a stream is capturing ---- */

struct capture {
    CUstreamCaptureMode mode;
    unsigned int flags; /* of the capturing stream */
    bool relaxed;       /* the call is made in relaxed mode all the same */
};

static const char *end_capture(CUstream stream)
{
    CUgraph graph = NULL;
    CUresult res;

    if (stream == NULL) {
        return "stream is gone";
    }
    res = drv.cuStreamEndCapture(stream, &graph);
    if (res == CUDA_SUCCESS && graph != NULL) {
        drv.cuGraphDestroy(graph);
    }
    return res == CUDA_SUCCESS ? "valid" : result_name(res);
}

/* Make the call, end the capture, report both. */
static void see_call(const struct fidelity_case *each,
                     const struct capture *capture)
{
    CUresult res = capture->relaxed ? call_relaxed(each->call) : each->call();

    fact("same_thread", "%s, capture %s", result_name(res),
         end_capture(fixture.main));
}

static void see_call_elsewhere(const struct fidelity_case *each,
                               const struct capture *capture)
{
    struct visit visit;
    bool begun =
        visit_begin(&visit, each->call, fixture.primary, capture->relaxed);

    fact("other_thread", "%s, capture %s", result_name(visit.res),
         end_capture(fixture.main));
    if (begun) {
        visit_end(&visit);
    }
}

/* What the call answers, and what becomes of the capture. */
static void see_capture_once(const struct fidelity_case *each,
                             const struct capture *capture, bool elsewhere)
{
    CUresult res;

    if (!fixture_make(capture->flags)) {
        return;
    }
    res = drv.cuStreamBeginCapture(fixture.main, capture->mode);
    if (res != CUDA_SUCCESS) {
        fact_result("begin", res);
        fixture_drop();
        return;
    }
    if (elsewhere) {
        see_call_elsewhere(each, capture);
    } else {
        see_call(each, capture);
    }
    fixture_drop();
}

static void see_capture(const struct fidelity_case *each,
                        const struct capture *capture)
{
    see_capture_once(each, capture, false);
    see_capture_once(each, capture, true);
}

static void see_capture_global(const struct fidelity_case *each)
{
    static const struct capture capture = {CU_STREAM_CAPTURE_MODE_GLOBAL,
                                           CU_STREAM_DEFAULT, false};

    see_capture(each, &capture);
}

static void see_capture_thread(const struct fidelity_case *each)
{
    static const struct capture capture = {CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                           CU_STREAM_DEFAULT, false};

    see_capture(each, &capture);
}

static void see_capture_relaxed(const struct fidelity_case *each)
{
    static const struct capture capture = {CU_STREAM_CAPTURE_MODE_RELAXED,
                                           CU_STREAM_DEFAULT, false};

    see_capture(each, &capture);
}

static void see_capture_nonblocking(const struct fidelity_case *each)
{
    static const struct capture capture = {CU_STREAM_CAPTURE_MODE_GLOBAL,
                                           CU_STREAM_NON_BLOCKING, false};

    see_capture(each, &capture);
}

static void see_capture_guarded(const struct fidelity_case *each)
{
    static const struct capture capture = {CU_STREAM_CAPTURE_MODE_GLOBAL,
                                           CU_STREAM_NON_BLOCKING, true};

    see_capture(each, &capture);
}

/*
 * Documented: in global mode potentially unsafe calls of this thread, and of
 * any thread that has not exchanged its mode, are refused and invalidate the
 * capture; in thread-local mode those of this thread; in relaxed mode none.
 * Calls on the capturing stream itself, and on the legacy stream where the
 * capturing one is a blocking one, have rules of their own.
 */
const struct fidelity_topic capture_global_topic = {
    "capture_global",
    every_call,
    see_capture_global,
    NULL,
    false,
    CASE_LIMIT_MS,
    "Documented: unsafe calls of any thread are refused and ruin the "
    "capture. Which are unsafe was measured.",
};

const struct fidelity_topic capture_thread_topic = {
    "capture_thread",
    every_call,
    see_capture_thread,
    NULL,
    false,
    CASE_LIMIT_MS,
    "Documented: only those of the capturing thread are. Which are unsafe "
    "was measured.",
};

const struct fidelity_topic capture_relaxed_topic = {
    "capture_relaxed",
    every_call,
    see_capture_relaxed,
    NULL,
    false,
    CASE_LIMIT_MS,
    "Documented: no call is. That some calls ruin a capture all the same was "
    "measured.",
};

const struct fidelity_topic capture_nonblocking_topic = {
    "capture_nonblocking",
    every_call,
    see_capture_nonblocking,
    NULL,
    false,
    CASE_LIMIT_MS,
    "As capture_global, with a stream that the legacy one does not wait for.",
};

/* A global capture, and the call made with the thread's mode relaxed: what a
 * library does that must not disturb anyone. */
const struct fidelity_topic capture_guarded_topic = {
    "capture_guarded",
    every_call,
    see_capture_guarded,
    NULL,
    false,
    CASE_LIMIT_MS,
    "Documented: a thread that changed its mode to relaxed may make unsafe "
    "calls. Measured: most do no harm then.",
};

/* ---- the same with the calls of more_calls.c ---- */

#define MORE(situation, see)                                                  \
    const struct fidelity_topic more_##situation##_topic = {                  \
        "more_" #situation,                                                   \
        more_calls,                                                           \
        see,                                                                  \
        more_prepare,                                                         \
        false,                                                                \
        CASE_LIMIT_MS,                                                        \
        "The same with the calls of more_calls.c.",                           \
    };

MORE(plainly, see_plainly)
MORE(no_context, see_without_context)
MORE(other_context, see_with_other_context)
MORE(held, see_held_blocking)
MORE(held_nonblocking, see_held_nonblocking)
MORE(capture_global, see_capture_global)
MORE(capture_thread, see_capture_thread)
MORE(capture_relaxed, see_capture_relaxed)
MORE(capture_nonblocking, see_capture_nonblocking)
MORE(capture_guarded, see_capture_guarded)
