/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams: CUDA's own handles, tokens for the default streams, and two words
 * of this library's: "nothing was said" and "all work is finished".
 */
#ifndef CUCOREMR_STREAM_H
#define CUCOREMR_STREAM_H

#include <stdint.h>

#include <cucoremr/status.h>

struct CUstream_st;

/**
 * A stream: the same type as CUDA's CUstream and cudaStream_t, which need no
 * conversion. A handle of a destroyed stream is never detected by CUDA: using
 * one is the caller's error and may end the process.
 *
 * Null (0) means the default stream: the legacy one, or the calling thread's
 * where the caller is compiled with CUDA_API_PER_THREAD_DEFAULT_STREAM. That
 * goes for arguments of calls; null in a struct is the legacy one always.
 * @since 0.1
 */
typedef struct CUstream_st *ccmr_stream;

/** The legacy default stream of the resource's device. @since 0.1 */
#define CCMR_STREAM_LEGACY ((ccmr_stream)(uintptr_t)1)
/** The calling thread's default stream of the resource's device. @since 0.1 */
#define CCMR_STREAM_PER_THREAD ((ccmr_stream)(uintptr_t)2)
/**
 * Nothing was said about the stream. ccmr_buffer_close() takes it and lets
 * the resource decide; allocate and deallocate refuse it.
 * @since 0.1
 */
#define CCMR_STREAM_UNSET ((ccmr_stream)(uintptr_t)-1)
/**
 * On a deallocate: all work on the block is known to be finished, its
 * allocation included: the stream that it was allocated on has got there.
 * Nothing needs to be waited for. An allocate refuses it.
 * @since 0.1
 */
#define CCMR_STREAM_READY ((ccmr_stream)(uintptr_t)-2)

/** Flags of ccmr_stream_create(). @since 0.1 */
#define CCMR_STREAM_FLAG_NON_BLOCKING 1u /**< as CU_STREAM_NON_BLOCKING */

/** The device of the current context, device 0 without one. @since 0.1 */
#define CCMR_DEVICE_CURRENT (-1)

CCMR_BEGIN_DECLS

/**
 * Create a stream on a device and register it (see ccmr_stream_register()).
 *
 * @param device  ordinal, or CCMR_DEVICE_CURRENT
 * @param flags   CCMR_STREAM_FLAG_... or 0
 * @param stream  [out] to be destroyed with ccmr_stream_destroy()
 *
 * The stream belongs to the device's primary context; the caller's current
 * context stays. May take a millisecond (it may create the context). Any
 * thread. Errors: argument, driver and state errors; nothing was created.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_stream_create(int device,
                                                       unsigned flags,
                                                       ccmr_stream *stream);

/**
 * Retire and destroy a stream made by ccmr_stream_create(). Work queued on it
 * still runs; does not block. On an error the stream is still there.
 * CCMR_ERROR_INVALID_STREAM: not one of ours. CCMR_ERROR_CAPTURING: as for
 * ccmr_stream_retire(). Any thread, but no other call may use the stream at the
 * same time.
 * @since 0.1
 */
CCMR_API ccmr_status ccmr_stream_destroy(ccmr_stream stream);

/**
 * Promise that a stream will be retired (ccmr_stream_retire()) before it is
 * destroyed, and that captures on it are announced
 * (ccmr_stream_set_capturing()). In return no call on it asks the driver what
 * the stream is, and resources may record events on it later. Tokens count as
 * registered already: they are accepted, without effect.
 *
 * The stream must be alive and not capturing: else CCMR_ERROR_CAPTURING.
 * Registering twice is harmless. Any thread. Errors leave it unregistered.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_stream_register(ccmr_stream stream);

/**
 * Tell every resource that a stream is about to be destroyed: what they keep
 * for it becomes usable by others, in order, and its registration ends. Also
 * for unregistered streams, where it is optional. The stream must still be
 * alive. Records events, does not wait. Tokens: CCMR_ERROR_INVALID_STREAM.
 * A stream of ccmr_stream_create() is still to be destroyed. Buffers that are
 * recorded on the stream have to be closed on a named one from now on.
 * A stream that is announced as capturing: CCMR_ERROR_CAPTURING; of one that is
 * not registered nobody asks but resources that have to know, and say the same.
 * On an error the stream is still registered; the call may be repeated.
 * @since 0.1
 */
CCMR_API ccmr_status ccmr_stream_retire(ccmr_stream stream);

/**
 * Announce that a registered stream starts (1) or has ended (0) capturing.
 * CCMR_ERROR_INVALID_STREAM if it is not registered.
 * @since 0.1
 */
CCMR_API ccmr_status ccmr_stream_set_capturing(ccmr_stream stream,
                                               int capturing);

/**
 * Convert what a foreign object's `__cuda_stream__` protocol yields, the pair
 * (version, handle), to a stream. Only version 0 is known:
 * CCMR_ERROR_NOT_SUPPORTED otherwise. Handle 0 is the legacy default stream.
 * No driver call is made.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status
ccmr_stream_from_protocol(int version, uint64_t handle, ccmr_stream *stream);

/**
 * Wait until the work queued on a stream is finished; blocks. Tokens are
 * those of `device` (ignored for other streams). Refuses capturing streams.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_stream_synchronize(ccmr_stream stream,
                                                            int device);

#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM) ||                            \
    defined(__CUDA_API_PER_THREAD_DEFAULT_STREAM)
/* This caller's null stream is the calling thread's default stream. */
#define CCMR_STREAM_OF_CALLER(stream)                                         \
    ((stream) != NULL ? (stream) : CCMR_STREAM_PER_THREAD)

#define ccmr_stream_synchronize(stream, device)                               \
    ccmr_stream_synchronize(CCMR_STREAM_OF_CALLER(stream), device)
#endif

CCMR_END_DECLS

#endif /* CUCOREMR_STREAM_H */
