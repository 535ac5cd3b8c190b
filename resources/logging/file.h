/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log's file: whole rows or none.
 */
#ifndef CCMR_RESOURCES_LOGGING_FILE_H
#define CCMR_RESOURCES_LOGGING_FILE_H

#include <stddef.h>
#include <stdint.h>

#include <cucoremr/status.h>

/**
 * Open and truncate a file. A regular file is locked while it is open, so
 * that two logs, of this process or of others, do not write into one another:
 * CCMR_ERROR_BUSY. Otherwise CCMR_ERROR_IO.
 */
ccmr_status ccmr__file_open(const char *path, int *fd, int *regular);

/** -1 is fine. */
void ccmr__file_close(int fd);

/**
 * Write rows. `*size` is what a regular file holds and is kept up to date;
 * part of a row is taken back from it. Returns how many rows were lost, for
 * the reason `*error`.
 */
uint64_t ccmr__file_write(int fd, int regular, uint64_t *size,
                          const char *rows, size_t length, int *error);

/** How many newlines there are. */
uint64_t ccmr__rows_count(const char *rows, size_t length);

#endif /* CCMR_RESOURCES_LOGGING_FILE_H */
