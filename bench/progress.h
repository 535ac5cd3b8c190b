/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Telling a person that waits what is being done.
 */
#ifndef CCMR_BENCH_PROGRESS_H
#define CCMR_BENCH_PROGRESS_H

/** Show nothing from now on. */
void progress_silence(void);

/** Show one line on standard error, over the last one, if it is a terminal. */
void progress_show(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/** Take the line away. */
void progress_end(void);

#endif /* CCMR_BENCH_PROGRESS_H */
