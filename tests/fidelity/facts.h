/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a topic reports what it saw. A fact is one line
 *
 *     topic.case.what = value
 *
 * whose value is the same in every run: a CUresult's name, a small integer,
 * yes or no, an ordering. Sizes and addresses are reduced to such first.
 */
#ifndef FIDELITY_FACTS_H
#define FIDELITY_FACTS_H

#include "tests/fidelity/driver.h"

#include <stdbool.h>
#include <stddef.h>

struct fidelity_case {
    const char *name;
    void (*run)(void);
    /* Tables of single calls, run by the topic's `each`, use this one. */
    CUresult (*call)(void);
};

/*
 * A topic runs in a process of its own; after a case that kills or hangs it,
 * a new process goes on with the next case. So cases never depend on each
 * other.
 */
struct fidelity_topic {
    const char *name;
    const struct fidelity_case *cases; /* up to FIDELITY_END */
    /* For tables of single calls: observe one of them. */
    void (*each)(const struct fidelity_case *);
    /* Called before the driver is loaded; may be NULL. */
    void (*prepare)(void);
    /* The driver is loaded but not initialised before the first case. */
    bool bare;
    /* A case that prints nothing for so long is killed. */
    int limit_ms;
    /* The documented rule in our words, or what was measured: what a driver
     * may be expected to do, whichever it is. */
    const char *rests_on;
};

/* A case is named after its function. */
#define FIDELITY_CASE(function)                                               \
    {                                                                         \
#function, function, NULL                                             \
    }
#define FIDELITY_END                                                          \
    {                                                                         \
        NULL, NULL, NULL                                                      \
    }

#define FIDELITY_COUNT(array) (sizeof(array) / sizeof(array)[0])

/* The names that the next facts start with. Any thread may report facts. */
void facts_begin(const char *topic, const char *name);
const char *facts_topic(void);
const char *facts_case(void);

void fact(const char *what, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void fact_result(const char *what, CUresult res);
void fact_number(const char *what, long long value);
void fact_yes(const char *what, bool value);

/* This case may have corrupted the driver: the next one gets a new process. */
void facts_ruin(void);
bool facts_ruined(void);

/* Write a line that is no fact: a message to the parent process. */
void facts_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Report the status of one driver call: SEE("create", cuCtxCreate(...)). */
#define SEE(what, call) fact_result(what, drv.call)

extern const struct fidelity_topic init_topic;
extern const struct fidelity_topic device_topic;
extern const struct fidelity_topic context_topic;
extern const struct fidelity_topic plain_topic;
extern const struct fidelity_topic pinned_topic;
extern const struct fidelity_topic pool_topic;
extern const struct fidelity_topic reuse_topic;
extern const struct fidelity_topic drain_topic;
extern const struct fidelity_topic stream_topic;
extern const struct fidelity_topic event_topic;
extern const struct fidelity_topic context_event_topic;
extern const struct fidelity_topic capture_topic;
extern const struct fidelity_topic pointer_topic;
extern const struct fidelity_topic copy_topic;
extern const struct fidelity_topic exit_topic;

/* Every call of calls.c in a certain situation. */
extern const struct fidelity_topic plainly_topic;
extern const struct fidelity_topic no_context_topic;
extern const struct fidelity_topic other_context_topic;
extern const struct fidelity_topic held_topic;
extern const struct fidelity_topic held_nonblocking_topic;
extern const struct fidelity_topic capture_global_topic;
extern const struct fidelity_topic capture_thread_topic;
extern const struct fidelity_topic capture_relaxed_topic;
extern const struct fidelity_topic capture_nonblocking_topic;
extern const struct fidelity_topic capture_guarded_topic;
extern const struct fidelity_topic in_callback_topic;

/* Virtual memory, sharing, managed memory, graphs. */
extern const struct fidelity_topic virtual_topic;
extern const struct fidelity_topic mapping_topic;
extern const struct fidelity_topic access_topic;
extern const struct fidelity_topic sharing_topic;
extern const struct fidelity_topic pool_sharing_topic;
extern const struct fidelity_topic ipc_topic;
extern const struct fidelity_topic managed_topic;
extern const struct fidelity_topic graph_topic;
extern const struct fidelity_topic graph_memory_topic;
extern const struct fidelity_topic object_topic;

/* Every call of more_calls.c in the same situations. */
extern const struct fidelity_topic more_plainly_topic;
extern const struct fidelity_topic more_no_context_topic;
extern const struct fidelity_topic more_other_context_topic;
extern const struct fidelity_topic more_held_topic;
extern const struct fidelity_topic more_held_nonblocking_topic;
extern const struct fidelity_topic more_capture_global_topic;
extern const struct fidelity_topic more_capture_thread_topic;
extern const struct fidelity_topic more_capture_relaxed_topic;
extern const struct fidelity_topic more_capture_nonblocking_topic;
extern const struct fidelity_topic more_capture_guarded_topic;
extern const struct fidelity_topic more_in_callback_topic;
extern const struct fidelity_topic more_forked_topic;
extern const struct fidelity_topic forked_topic;

#endif
