/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bad input to statistics and tracking.
 */
#include "tests/process/bad_input.h"

static ccmr_status with_statistics_options(void *given)
{
    ccmr_resource *resource = NULL;
    ccmr_status status = ccmr_statistics_create(host, given, &resource);

    ccmr_resource_release(resource);
    return status;
}

void bad_ccmr_statistics_create(void)
{
    ccmr_statistics_options options = {
        .size = sizeof(options), .peaks = (ccmr_statistics_peaks)WILD_ENUM};

    BAD(ccmr_statistics_create(NULL, NULL, &no_resource), INVALID_ARGUMENT,
        "upstream");
    BAD(ccmr_statistics_create(host, NULL, NULL), INVALID_ARGUMENT,
        "resource");
    BAD(ccmr_statistics_create(host, &options, &no_resource), INVALID_ARGUMENT,
        "peaks");
    sizes_of("ccmr_statistics_options", sizeof(options),
             with_statistics_options, 1);
}

static ccmr_resource *counted;

static ccmr_status read_into(void *given)
{
    return ccmr_statistics_read(counted, given);
}

static ccmr_status read_thread_into(void *given)
{
    return ccmr_statistics_read_thread(counted, given);
}

static ccmr_status pop_into(void *given)
{
    ccmr_status status = ccmr_statistics_push(counted);

    return status == CCMR_SUCCESS ? ccmr_statistics_pop(counted, given)
                                  : status;
}

/* Each call with what is no statistics resource, and with wrong structs. */
static void bad_reading(ccmr_status (*call)(ccmr_resource *,
                                            ccmr_statistics *),
                        ccmr_status (*into)(void *), int needs_struct)
{
    ccmr_statistics statistics = {.size = sizeof(statistics)};

    BAD(call(NULL, &statistics), INVALID_ARGUMENT, "resource");
    BAD(call(host, &statistics), INVALID_ARGUMENT, "host");
    if (ccmr_statistics_create(host, NULL, &counted) != CCMR_SUCCESS) {
        tap_bail_out("%s", ccmr_last_error()->message);
    }
    if (needs_struct) {
        BAD(call(counted, NULL), INVALID_ARGUMENT, "statistics");
    }
    sizes_of("ccmr_statistics", sizeof(statistics), into, 0);
    ccmr_resource_release(counted);
}

void bad_ccmr_statistics_read(void)
{
    bad_reading(ccmr_statistics_read, read_into, 1);
}

void bad_ccmr_statistics_read_thread(void)
{
    bad_reading(ccmr_statistics_read_thread, read_thread_into, 1);
}

void bad_ccmr_statistics_pop(void)
{
    bad_reading(ccmr_statistics_pop, pop_into, 0);
}

void bad_ccmr_statistics_push(void)
{
    BAD(ccmr_statistics_push(NULL), INVALID_ARGUMENT, "resource");
    BAD(ccmr_statistics_push(host), INVALID_ARGUMENT, "host");
}

static ccmr_status with_tracking_options(void *given)
{
    ccmr_resource *resource = NULL;
    ccmr_status status = ccmr_tracking_create(host, given, &resource);

    ccmr_resource_release(resource);
    return status;
}

void bad_ccmr_tracking_create(void)
{
    BAD(ccmr_tracking_create(NULL, NULL, &no_resource), INVALID_ARGUMENT,
        "upstream");
    BAD(ccmr_tracking_create(host, NULL, NULL), INVALID_ARGUMENT, "resource");
    sizes_of("ccmr_tracking_options", sizeof(ccmr_tracking_options),
             with_tracking_options, 1);
}

static ccmr_resource *tracked;

static int visit_none(void *context, const ccmr_tracking_block *told)
{
    (void)context;
    (void)told;
    return 0;
}

void bad_ccmr_tracking_outstanding(void)
{
    BAD(ccmr_tracking_outstanding(NULL, visit_none, NULL), INVALID_ARGUMENT,
        "resource");
    BAD(ccmr_tracking_outstanding(host, visit_none, NULL), INVALID_ARGUMENT,
        "host");
    if (ccmr_tracking_create(host, NULL, &tracked) != CCMR_SUCCESS) {
        tap_bail_out("%s", ccmr_last_error()->message);
    }
    BAD(ccmr_tracking_outstanding(tracked, NULL, NULL), INVALID_ARGUMENT,
        "visit");
    ccmr_resource_release(tracked);
}

/* The address of a block that is live. */
static void *tracked_block;

static ccmr_status find_into(void *given)
{
    return ccmr_tracking_find(tracked, tracked_block, given);
}

void bad_ccmr_tracking_find(void)
{
    ccmr_tracking_block found = {.size = sizeof(found)};

    BAD(ccmr_tracking_find(NULL, &found, &found), INVALID_ARGUMENT,
        "resource");
    BAD(ccmr_tracking_find(host, &found, &found), INVALID_ARGUMENT, "host");
    if (ccmr_tracking_create(host, NULL, &tracked) != CCMR_SUCCESS ||
        ccmr_resource_allocate(tracked, 64, 0, CCMR_STREAM_LEGACY,
                               &tracked_block) != CCMR_SUCCESS) {
        tap_bail_out("%s", ccmr_last_error()->message);
    }
    BAD(ccmr_tracking_find(tracked, tracked_block, NULL), INVALID_ARGUMENT,
        "block");
    BAD(ccmr_tracking_find(tracked, NULL, &found), INVALID_POINTER, "lies");
    sizes_of("ccmr_tracking_block", sizeof(found), find_into, 0);
    (void)ccmr_resource_deallocate(tracked, tracked_block, 64, 0,
                                   CCMR_STREAM_LEGACY);
    ccmr_resource_release(tracked);
}
