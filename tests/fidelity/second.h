/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second process: what a driver lets two processes share.
 *
 * The program is started once more, as somebody with an errand. The first
 * process sends it things and file descriptors, and waits until it says that
 * a step is done; so the two take turns. Both report facts of the same case.
 * Every wait has a limit, and the second process ends with the first one's
 * end of the line between them.
 *
 * Used by the thread that runs the case; one second process at a time.
 */
#ifndef FIDELITY_SECOND_H
#define FIDELITY_SECOND_H

#include <stdbool.h>
#include <stddef.h>

/* An errand; its facts begin with those of the case. */
struct fidelity_errand {
    const char *name;
    void (*run)(void);
};

/* Up to an entry without name. */
extern const struct fidelity_errand sharing_errands[];
extern const struct fidelity_errand ipc_errands[];

/* For the first process. */

/* Start an errand and wait until its driver is ready. Reports a fact and
 * returns false where that fails. */
bool second_start(const char *errand);
/* Send things, with a file descriptor or -1. */
bool second_send(const void *bytes, size_t size, int fd);
/* Wait until a step is done; reports a fact where it is not. */
bool second_done(void);
/* End it; reports a fact if it didn't end well. */
void second_end(void);

/* For the second process. */

/* What the program does with "--second ERRAND TOPIC CASE". */
int second_run(const char *errand, const char *topic, const char *name);
/* Take what was sent; false at the end of the line. */
bool second_take(void *bytes, size_t size, int *fd);
/* Say that a step is done. */
void second_say_done(void);

#endif
