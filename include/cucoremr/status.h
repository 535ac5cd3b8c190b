/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every call answers, and what is known about the last failure.
 */
#ifndef CUCOREMR_STATUS_H
#define CUCOREMR_STATUS_H

#include <stddef.h>

#include <cucoremr/version.h>

/*
 * One table makes the enum, the names and the texts. Numbers are never
 * reused or renumbered; groups have gaps to grow into.
 *   X(name, value, text)
 */
#define CCMR_STATUS_MAP(X)                                                    \
    X(SUCCESS, 0, "success")                                                  \
    /* arguments */                                                           \
    X(ERROR_INVALID_ARGUMENT, -1, "invalid argument")                         \
    X(ERROR_INVALID_SIZE, -2, "size is too large or overflows")               \
    X(ERROR_INVALID_ALIGNMENT, -3,                                            \
      "alignment is not a power of two or more than the resource can do")     \
    X(ERROR_INVALID_STREAM, -4, "stream is not usable here")                  \
    X(ERROR_INVALID_POINTER, -5, "pointer does not belong to the resource")   \
    X(ERROR_WRONG_DEVICE, -6, "stream or memory belongs to another device")   \
    X(ERROR_WRONG_THREAD, -7,                                                 \
      "per-thread default stream of another thread is needed")                \
    X(ERROR_NOT_SUPPORTED, -8, "not supported")                               \
    X(ERROR_SYNTAX, -9, "syntax error in text")                               \
    X(ERROR_UNKNOWN_NAME, -10, "unknown name")                                \
    X(ERROR_OUT_OF_RANGE, -11, "offset or length out of range")               \
    X(ERROR_INVALID_STRUCT, -12,                                              \
      "structure size is wrong or an unknown member is set")                  \
    X(ERROR_ALREADY_EXISTS, -13, "already exists")                            \
    /* memory */                                                              \
    X(ERROR_OUT_OF_DEVICE_MEMORY, -20, "out of device memory")                \
    X(ERROR_OUT_OF_HOST_MEMORY, -21, "out of host memory")                    \
    X(ERROR_LIMIT_EXCEEDED, -22, "limit exceeded")                            \
    /* driver */                                                              \
    X(ERROR_DRIVER_NOT_FOUND, -40, "no CUDA driver found")                    \
    X(ERROR_DRIVER_STUB, -41, "the CUDA driver found is a stub library")      \
    X(ERROR_DRIVER_TOO_OLD, -42, "the CUDA driver lacks what is needed")      \
    X(ERROR_NO_DEVICE, -43, "no such CUDA device")                            \
    X(ERROR_DRIVER, -44, "a CUDA driver call failed")                         \
    X(ERROR_NOT_PERMITTED, -45, "not permitted in a stream callback")         \
    X(ERROR_DEVICE_FAULT, -46,                                                \
      "the CUDA context is unusable after an earlier fault")                  \
    /* state */                                                               \
    X(ERROR_CLOSED, -60, "buffer or object is closed")                        \
    X(ERROR_FORKED, -61, "not usable in a forked child")                      \
    X(ERROR_EXITING, -62, "the process is exiting")                           \
    X(ERROR_CAPTURING, -63, "the stream is capturing a graph")                \
    X(ERROR_BUSY, -64, "in use")                                              \
    X(ERROR_RELEASED, -65, "the resource has been released")                  \
    X(ERROR_USER, -66, "a user-defined resource or callback failed")          \
    /* files and texts */                                                     \
    X(ERROR_IO, -80, "file error")                                            \
    X(ERROR_FORMAT, -81, "file or record is malformed")

/**
 * Status of a call: 0 is success, everything else is negative. A call that
 * fails has changed nothing and written no output unless its text says so.
 * @since 0.1
 */
typedef enum ccmr_status {
#define CCMR_STATUS_ENUM(name, value, text) CCMR_##name = value,
    CCMR_STATUS_MAP(CCMR_STATUS_ENUM)
#undef CCMR_STATUS_ENUM
    /* The least, again: an enum of C++98 does not end with a comma. */
    CCMR_STATUS_LEAST_ = CCMR_ERROR_FORMAT
} ccmr_status;

/**
 * What is known about the last failure on a thread. Members that do not
 * apply are 0, NULL or empty; byte counts that are not known are
 * CCMR_BYTES_UNKNOWN.
 * @since 0.1
 */
typedef struct ccmr_error_detail {
    size_t size;             /**< sizeof(ccmr_error_detail) of the library */
    ccmr_status status;      /**< what the failing call returned */
    int driver_result;       /**< CUresult of driver_call, 0 if none */
    const char *driver_call; /**< "cuMemAlloc_v2", static; NULL if none */
    const char *driver_result_name; /**< "CUDA_ERROR_...", static or NULL */
    char resource[32];   /**< who refused: a resource's name in a stack */
    char message[256];   /**< one sentence that names the culprit */
    int column;          /**< in a stack text: 1-based column, else 0 */
    int device;          /**< device concerned, -1 if none */
    size_t requested;    /**< bytes asked for */
    size_t limit;        /**< limit, budget or device total */
    size_t live;         /**< bytes handed out, as the limit counts */
    size_t reserved;     /**< bytes taken from upstream or the driver */
    size_t largest_free; /**< largest free run */
    size_t pending;      /**< bytes freed but waiting for streams */
    size_t pinned;       /**< bytes freed but kept in place by pins */
} ccmr_error_detail;

/** A byte count that is not known. @since 0.1 */
#define CCMR_BYTES_UNKNOWN ((size_t)-1)

CCMR_BEGIN_DECLS

/**
 * Name of a status, "CCMR_ERROR_LIMIT_EXCEEDED"; "CCMR_ERROR_UNKNOWN" for a
 * number that is none. Static string; any thread, any state, never fails.
 * @since 0.1
 */
CCMR_API const char *ccmr_status_name(ccmr_status status);

/**
 * English text of a status, without a full stop. Static string; any thread,
 * any state, never fails.
 * @since 0.1
 */
CCMR_API const char *ccmr_status_text(ccmr_status status);

/**
 * Detail of the calling thread's last failing call. Never NULL; before any
 * failure its status is CCMR_SUCCESS. A successful call leaves it alone.
 * The pointer belongs to the library and its content is valid until the next
 * failing call on the same thread. When no memory was left for the detail,
 * only `status` and `message` say something.
 * @since 0.1
 */
CCMR_API const ccmr_error_detail *ccmr_last_error(void);

/**
 * For implementers of resources: describe the failure that the caller is
 * about to return, so that ccmr_last_error() tells it. `message` may be NULL.
 * Fills status, message and `requested`; returns `status`.
 * @since 0.1
 */
CCMR_API ccmr_status ccmr_error_set(ccmr_status status, size_t requested,
                                    const char *message);

CCMR_END_DECLS

#endif /* CUCOREMR_STATUS_H */
