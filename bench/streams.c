/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/streams.h"

#include <stdlib.h>
#include <string.h>

#include "lib/driver.h"
#include "lib/error.h"

static ccmr_status make_one(const stream_set *of, ccmr_stream *stream)
{
    CUresult res;

    if (of->registered) {
        return ccmr_stream_create(of->device, CCMR_STREAM_FLAG_NON_BLOCKING,
                                  stream);
    }
    res = CCMR__CU(cuStreamCreate)(stream, CU_STREAM_NON_BLOCKING);
    return res == CUDA_SUCCESS
               ? CCMR_SUCCESS
               : ccmr__fail_driver((int)res, CCMR__CU_NAME(cuStreamCreate));
}

ccmr_status stream_set_open(stream_set *made, size_t count, size_t null_stream,
                            bool registered, int device)
{
    ccmr_status status = CCMR_SUCCESS;

    *made = (stream_set){.null_stream = null_stream,
                         .registered = registered,
                         .device = device};
    made->streams = calloc(count, sizeof(ccmr_stream));
    if (made->streams == NULL) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY, "out of host memory");
    }
    for (; made->count < count; made->count++) {
        if (made->count == null_stream) {
            made->streams[made->count] = CCMR_STREAM_LEGACY;
            continue;
        }
        status = make_one(made, &made->streams[made->count]);
        if (status != CCMR_SUCCESS) {
            stream_set_close(made);
            return status;
        }
    }
    return CCMR_SUCCESS;
}

ccmr_status stream_set_wait(const stream_set *of)
{
    for (size_t i = 0; i < of->count; i++) {
        CUresult res = CCMR__CU(cuStreamSynchronize)(of->streams[i]);

        if (res != CUDA_SUCCESS) {
            return ccmr__fail_driver((int)res,
                                     CCMR__CU_NAME(cuStreamSynchronize));
        }
    }
    return CCMR_SUCCESS;
}

void stream_set_close(stream_set *gone)
{
    for (size_t i = 0; i < gone->count; i++) {
        if (i == gone->null_stream) {
            continue;
        }
        if (gone->registered) {
            (void)ccmr_stream_destroy(gone->streams[i]);
        } else {
            (void)CCMR__CU(cuStreamDestroy)(gone->streams[i]);
        }
    }
    free(gone->streams);
    memset(gone, 0, sizeof(*gone));
}
