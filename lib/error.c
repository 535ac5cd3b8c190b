/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calling thread's last error.
 */
#include "lib/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/driver.h"
#include "lib/process.h"
#include "lib/thread.h"

const ccmr_error_detail *ccmr_last_error(void)
{
    return &ccmr__thread_self()->detail;
}

ccmr_error_detail *ccmr__error(void)
{
    return &ccmr__thread_self()->detail;
}

static ccmr_error_detail *detail_start(ccmr_status status)
{
    ccmr__thread *self = ccmr__thread_self();
    ccmr_error_detail *detail = &self->detail;

    self->failures++;
    memset(detail, 0, sizeof(*detail));
    detail->size = sizeof(*detail);
    detail->status = status;
    detail->device = -1;
    detail->limit = CCMR_BYTES_UNKNOWN;
    detail->live = CCMR_BYTES_UNKNOWN;
    detail->reserved = CCMR_BYTES_UNKNOWN;
    detail->largest_free = CCMR_BYTES_UNKNOWN;
    detail->pending = CCMR_BYTES_UNKNOWN;
    detail->pinned = CCMR_BYTES_UNKNOWN;
    return detail;
}

ccmr_status ccmr__fail(ccmr_status status, const char *format, ...)
{
    ccmr_error_detail *detail = detail_start(status);
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(detail->message, sizeof(detail->message), format,
                    arguments);
    va_end(arguments);
    return status;
}

ccmr_status ccmr_error_set(ccmr_status status, size_t requested,
                           const char *message)
{
    if (message == NULL) {
        message = ccmr_status_text(status);
    }
    (void)ccmr__fail(status, "%s", message);
    ccmr__error()->requested = requested;
    return status;
}

static ccmr_status status_of_result(CUresult res)
{
    switch ((int)res) {
    case CUDA_ERROR_OUT_OF_MEMORY:
        return CCMR_ERROR_OUT_OF_DEVICE_MEMORY;
    case CUDA_ERROR_NOT_SUPPORTED:
        return CCMR_ERROR_NOT_SUPPORTED;
    case CUDA_ERROR_NOT_PERMITTED:
        return CCMR_ERROR_NOT_PERMITTED;
    case CUDA_ERROR_STUB_LIBRARY:
        return CCMR_ERROR_DRIVER_STUB;
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_DEVICE:
        return CCMR_ERROR_NO_DEVICE;
    case CUDA_ERROR_DEINITIALIZED:
        ccmr__process_set_exiting();
        return CCMR_ERROR_EXITING;
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
    case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
    case CUDA_ERROR_STREAM_CAPTURE_MERGE:
    case CUDA_ERROR_STREAM_CAPTURE_UNMATCHED:
    case CUDA_ERROR_STREAM_CAPTURE_UNJOINED:
    case CUDA_ERROR_STREAM_CAPTURE_ISOLATION:
    case CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:
    case CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD:
    case CUDA_ERROR_CAPTURED_EVENT:
        return CCMR_ERROR_CAPTURING;
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
        return CCMR_ERROR_DEVICE_FAULT;
    default:
        return CCMR_ERROR_DRIVER;
    }
}

ccmr_status ccmr__fail_driver(int result, const char *call)
{
    ccmr_status status = status_of_result((CUresult)result);
    const char *name = NULL;
    ccmr_error_detail *detail;

    if (CCMR__CU(cuGetErrorName) == NULL ||
        CCMR__CU(cuGetErrorName)((CUresult)result, &name) != CUDA_SUCCESS ||
        name == NULL) {
        name = "unknown result";
    }
    (void)ccmr__fail(status, "%s returned %s (%d)", call, name, result);
    detail = ccmr__error();
    detail->driver_result = result;
    detail->driver_call = call;
    detail->driver_result_name = name;
    return status;
}

ccmr_status ccmr__fail_driver_host(int result, const char *call)
{
    ccmr_status status = ccmr__fail_driver(result, call);

    if (status == CCMR_ERROR_OUT_OF_DEVICE_MEMORY) {
        status = CCMR_ERROR_OUT_OF_HOST_MEMORY;
        ccmr__error()->status = status;
    }
    return status;
}

void ccmr__error_name_resource(const char *name)
{
    ccmr_error_detail *detail = ccmr__error();

    if (detail->resource[0] == '\0') {
        (void)snprintf(detail->resource, sizeof(detail->resource), "%s", name);
    }
}
