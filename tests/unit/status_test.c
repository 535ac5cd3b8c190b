/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statuses, their names and texts, and the detail of the last failure.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include <cucoremr/status.h>

#include "lib/error.h"
#include "tests/support/api.h"

typedef struct entry {
    ccmr_status status;
    const char *name;
    const char *text;
} entry;

static const entry entries[] = {
#define ENTRY(name, value, text) {CCMR_##name, "CCMR_" #name, text},
    CCMR_STATUS_MAP(ENTRY)
#undef ENTRY
};
#define ENTRIES (sizeof(entries) / sizeof(entries[0]))

Test(status, names_and_texts_are_the_table_s)
{
    size_t i;

    for (i = 0; i < ENTRIES; i++) {
        cr_assert_str_eq(ccmr_status_name(entries[i].status), entries[i].name);
        cr_assert_str_eq(ccmr_status_text(entries[i].status), entries[i].text);
        cr_assert_neq(entries[i].text[strlen(entries[i].text) - 1], '.');
    }
}

Test(status, values_are_unique_and_errors_negative)
{
    size_t i;
    size_t k;

    cr_assert_eq(CCMR_SUCCESS, 0);
    for (i = 0; i < ENTRIES; i++) {
        cr_assert(entries[i].status == CCMR_SUCCESS || entries[i].status < 0);
        for (k = 0; k < i; k++) {
            cr_assert_neq(entries[i].status, entries[k].status);
        }
    }
}

/* Numbers of the first release: never to be changed. */
Test(status, values_are_kept)
{
    cr_assert_eq(CCMR_ERROR_INVALID_ARGUMENT, -1);
    cr_assert_eq(CCMR_ERROR_ALREADY_EXISTS, -13);
    cr_assert_eq(CCMR_ERROR_OUT_OF_DEVICE_MEMORY, -20);
    cr_assert_eq(CCMR_ERROR_LIMIT_EXCEEDED, -22);
    cr_assert_eq(CCMR_ERROR_DRIVER_NOT_FOUND, -40);
    cr_assert_eq(CCMR_ERROR_DEVICE_FAULT, -46);
    cr_assert_eq(CCMR_ERROR_CLOSED, -60);
    cr_assert_eq(CCMR_ERROR_USER, -66);
    cr_assert_eq(CCMR_ERROR_FORMAT, -81);
}

Test(status, numbers_that_are_none_have_a_name)
{
    cr_assert_str_eq(ccmr_status_name((ccmr_status)1), "CCMR_ERROR_UNKNOWN");
    cr_assert_str_eq(ccmr_status_name((ccmr_status)-14), "CCMR_ERROR_UNKNOWN");
    cr_assert_not_null(ccmr_status_text((ccmr_status)INT32_MIN));
}

Test(status, no_failure_at_first)
{
    const ccmr_error_detail *detail = ccmr_last_error();

    cr_assert_eq(detail->status, CCMR_SUCCESS);
    cr_assert_eq(detail->size, sizeof(*detail));
    cr_assert_eq(detail->message[0], '\0');
    cr_assert_eq(detail->device, -1);
}

Test(status, a_failure_starts_anew)
{
    ccmr_error_detail *detail;

    cr_assert_eq(ccmr__fail(CCMR_ERROR_BUSY, "%s %d", "first", 1),
                 CCMR_ERROR_BUSY);
    detail = ccmr__error();
    cr_assert_str_eq(detail->message, "first 1");
    detail->column = 5;
    detail->limit = 7;
    detail->device = 3;
    ccmr__error_name_resource("one");
    ccmr__error_name_resource("two");
    cr_assert_str_eq(ccmr_last_error()->resource, "one");
    (void)ccmr__fail(CCMR_ERROR_IO, "second");
    cr_assert_eq(detail->column, 0);
    cr_assert_eq(detail->limit, CCMR_BYTES_UNKNOWN);
    cr_assert_eq(detail->live, CCMR_BYTES_UNKNOWN);
    cr_assert_eq(detail->reserved, CCMR_BYTES_UNKNOWN);
    cr_assert_eq(detail->largest_free, CCMR_BYTES_UNKNOWN);
    cr_assert_eq(detail->pending, CCMR_BYTES_UNKNOWN);
    cr_assert_eq(detail->pinned, CCMR_BYTES_UNKNOWN);
    cr_assert_eq(detail->device, -1);
    cr_assert_eq(detail->resource[0], '\0');
    cr_assert_null(detail->driver_call);
}

Test(status, long_messages_and_names_are_cut)
{
    char text[1000];

    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    (void)ccmr__fail(CCMR_ERROR_USER, "%s", text);
    ccmr__error_name_resource(text);
    cr_assert_eq(strlen(ccmr_last_error()->message), 255);
    cr_assert_eq(strlen(ccmr_last_error()->resource), 31);
}

Test(status, error_set_is_for_implementers)
{
    cr_assert_eq(ccmr_error_set(CCMR_ERROR_OUT_OF_DEVICE_MEMORY, 99, "full"),
                 CCMR_ERROR_OUT_OF_DEVICE_MEMORY);
    cr_assert_eq(ccmr_last_error()->requested, 99);
    cr_assert_str_eq(ccmr_last_error()->message, "full");
    (void)ccmr_error_set(CCMR_ERROR_BUSY, 0, NULL);
    cr_assert_str_eq(ccmr_last_error()->message, "in use");
}

/* What a driver's result is to the library. */
Test(status, driver_results_are_mapped)
{
    static const struct {
        CUresult result;
        ccmr_status status;
    } map[] = {
        {CUDA_ERROR_OUT_OF_MEMORY, CCMR_ERROR_OUT_OF_DEVICE_MEMORY},
        {CUDA_ERROR_NOT_PERMITTED, CCMR_ERROR_NOT_PERMITTED},
        {CUDA_ERROR_NOT_SUPPORTED, CCMR_ERROR_NOT_SUPPORTED},
        {CUDA_ERROR_NO_DEVICE, CCMR_ERROR_NO_DEVICE},
        {CUDA_ERROR_STUB_LIBRARY, CCMR_ERROR_DRIVER_STUB},
        {CUDA_ERROR_INVALID_VALUE, CCMR_ERROR_DRIVER},
        {CUDA_ERROR_UNKNOWN, CCMR_ERROR_DRIVER},
        {CUDA_ERROR_ILLEGAL_ADDRESS, CCMR_ERROR_DEVICE_FAULT},
        {CUDA_ERROR_LAUNCH_FAILED, CCMR_ERROR_DEVICE_FAULT},
        {CUDA_ERROR_ECC_UNCORRECTABLE, CCMR_ERROR_DEVICE_FAULT},
        {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, CCMR_ERROR_CAPTURING},
        {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CCMR_ERROR_CAPTURING},
        {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, CCMR_ERROR_CAPTURING},
    };
    size_t i;

    for (i = 0; i < sizeof(map) / sizeof(map[0]); i++) {
        const ccmr_error_detail *detail;

        cr_assert_eq(ccmr__fail_driver((int)map[i].result, "cuSomething"),
                     map[i].status, "%d", (int)map[i].result);
        detail = ccmr_last_error();
        cr_assert_eq(detail->status, map[i].status);
        cr_assert_eq(detail->driver_result, (int)map[i].result);
        cr_assert_str_eq(detail->driver_call, "cuSomething");
        cr_assert_not_null(detail->driver_result_name);
        cr_assert_not_null(strstr(detail->message, "cuSomething"));
    }
    cr_assert_eq(
        ccmr__fail_driver_host(CUDA_ERROR_OUT_OF_MEMORY, "cuMemHostAlloc"),
        CCMR_ERROR_OUT_OF_HOST_MEMORY);
    cr_assert_eq(ccmr_last_error()->status, CCMR_ERROR_OUT_OF_HOST_MEMORY);
    cr_assert_eq(ccmr__fail_driver_host(CUDA_ERROR_UNKNOWN, "cuMemHostAlloc"),
                 CCMR_ERROR_DRIVER);
}

static void *fail_elsewhere(void *seen)
{
    const ccmr_error_detail *detail = ccmr_last_error();

    *(int *)seen = detail->status == CCMR_SUCCESS;
    (void)ccmr__fail(CCMR_ERROR_IO, "elsewhere");
    return NULL;
}

Test(status, each_thread_has_its_own_detail)
{
    pthread_t thread;
    int fresh = 0;

    (void)ccmr__fail(CCMR_ERROR_BUSY, "here");
    cr_assert_eq(pthread_create(&thread, NULL, fail_elsewhere, &fresh), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    cr_assert_eq(fresh, 1);
    cr_assert_str_eq(ccmr_last_error()->message, "here");
}
