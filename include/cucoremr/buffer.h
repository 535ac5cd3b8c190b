/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers: one allocation and the whole recipe for giving it back.
 */
#ifndef CUCOREMR_BUFFER_H
#define CUCOREMR_BUFFER_H

#include <stddef.h>

#include <cucoremr/resource.h>

/**
 * A buffer. Calls on different buffers, and reading calls on one, may be made
 * from any threads at once; calls that change one buffer (close, set stream,
 * disown, note use, destroy) are the caller's to serialise.
 *
 * Life: created open; closed once its memory has been given back; destroyed
 * when the object itself is freed. A refused close leaves it open and whole.
 * @since 0.1
 */
typedef struct ccmr_buffer ccmr_buffer;

/** Options of ccmr_buffer_create(). @since 0.1 */
typedef struct ccmr_buffer_options {
    size_t size;      /**< sizeof(ccmr_buffer_options) */
    size_t alignment; /**< bytes; 0 for CCMR_DEFAULT_ALIGNMENT */
} ccmr_buffer_options;

/**
 * Where a foreign pointer comes from, for ccmr_buffer_from_handle(). Three
 * cases: `resource` set: the buffer owns the block and gives it back through
 * that resource. `release` set: the buffer borrows, and calls
 * release(owner) when it is closed. Neither: a plain reference.
 * @since 0.1
 */
typedef struct ccmr_buffer_source {
    size_t size;                  /**< sizeof(ccmr_buffer_source) */
    ccmr_resource *resource;      /**< the block is this resource's, or NULL */
    size_t alignment;             /**< as allocated; 0 for the default */
    ccmr_stream stream;           /**< allocation stream, with `resource` only;
                                  CCMR_STREAM_UNSET elsewhere */
    void (*release)(void *owner); /**< called once, with no lock held */
    void *owner;                  /**< handed to `release` */
    int device; /**< ordinal; -1 host or unknown; ignored with `resource` */
} ccmr_buffer_source;

/** Initialiser of a ccmr_buffer_source that is a plain reference. */
#define CCMR_BUFFER_SOURCE_INIT                                               \
    {                                                                         \
        sizeof(ccmr_buffer_source), NULL, 0, CCMR_STREAM_UNSET, NULL, NULL,   \
            -1                                                                \
    }

/** What is known about a buffer. @since 0.1 */
typedef struct ccmr_buffer_properties {
    size_t size; /**< [in] sizeof(ccmr_buffer_properties) */
    void *ptr;   /**< NULL for 0 bytes and when closed */
    size_t bytes;
    size_t alignment;
    ccmr_resource *resource; /**< borrowed; NULL if none */
    ccmr_stream stream;      /**< recorded deallocation stream */
    int device;              /**< ordinal, -1 if bound to none */
    int device_accessible;   /**< 1, 0, or -1: not known */
    int host_accessible;     /**< 1, 0, or -1: not known */
    int managed;             /**< 1, 0, or -1: not known */
    int owning;              /**< 1 if closing gives memory back */
    int closed;
} ccmr_buffer_properties;

CCMR_BEGIN_DECLS

/**
 * Allocate a buffer.
 *
 * @param resource  the buffer holds a reference to it
 * @param bytes     0 gives an open buffer with a NULL pointer
 * @param options   NULL for defaults
 * @param stream    allocation stream, also recorded for the close; null is the
 *                  default stream; CCMR_STREAM_UNSET is refused
 * @param buffer    [out] to be closed and destroyed
 *
 * Everything that the close will need is recorded here: resource, stream, the
 * thread if the stream is the per-thread token, device. Blocks as the
 * resource's allocate. On an error nothing was allocated.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_buffer_create(
    ccmr_resource *resource, size_t bytes, const ccmr_buffer_options *options,
    ccmr_stream stream, ccmr_buffer **buffer);

/**
 * Make a buffer of memory that exists. See ccmr_buffer_source for the three
 * cases; `source` NULL is a plain reference. With a resource, `stream` must
 * be said here: the close never has to guess.
 * Errors: nothing was consumed, `release` was not called.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_buffer_from_handle(
    void *ptr, size_t bytes, const ccmr_buffer_source *source,
    ccmr_buffer **buffer);

/**
 * Give the buffer's memory back.
 *
 * @param stream  CCMR_STREAM_UNSET: the resource decides, normally the
 *                recorded stream. Otherwise the free is ordered on `stream`;
 *                where the recorded stream is registered and another one, the
 *                edge recorded -> `stream` is added, else that order is the
 *                caller's duty. CCMR_STREAM_READY: all work is finished.
 *
 * Closing twice is harmless. A per-thread token recorded on another thread
 * and no stream given: CCMR_ERROR_WRONG_THREAD. A registered stream that was
 * retired or destroyed since and no stream given: CCMR_ERROR_INVALID_STREAM;
 * close buffers before their stream goes, or name another one. Any refusal leaves the buffer
 * open and whole, with its recorded stream. Blocks as the resource's
 * deallocate.
 * @since 0.1
 */
CCMR_API ccmr_status ccmr_buffer_close(ccmr_buffer *buffer,
                                       ccmr_stream stream);

/**
 * Close the buffer as ccmr_buffer_close(buffer, CCMR_STREAM_UNSET) does if it
 * is open, and free the object. If the close is refused its status is
 * returned and the object is still there. NULL is fine.
 * @since 0.1
 */
CCMR_API ccmr_status ccmr_buffer_destroy(ccmr_buffer *buffer);

/**
 * Change the recorded deallocation stream. Adds no dependency: the caller has
 * ordered `stream` after earlier work. CCMR_STREAM_UNSET is refused, so is a
 * stream of another device; the old one stays recorded then.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_buffer_set_stream(ccmr_buffer *buffer,
                                                           ccmr_stream stream);

/**
 * The close must also wait for what is enqueued on `stream` now: an event is
 * recorded now, and the stream may be destroyed afterwards. Allocates host
 * memory; on an error the use is not noted.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_buffer_note_use(ccmr_buffer *buffer,
                                                         ccmr_stream stream);

/**
 * Copy between two buffers, in the order of `stream`, which must come after
 * the uses of both. Ranges are checked. 0 bytes is fine. Does not block, but
 * for memory that is neither device memory nor page-locked, as CUDA says.
 * Buffers of host memory alone are copied at once where there is no driver.
 * On a capturing stream the copy becomes part of the graph; the legacy stream
 * answers CCMR_ERROR_CAPTURING while a stream captures that is ordered with it.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_buffer_copy(
    ccmr_buffer *destination, size_t destination_offset, ccmr_buffer *source,
    size_t source_offset, size_t bytes, ccmr_stream stream);

/** Copy `bytes` at `offset` to host memory; rules of ccmr_buffer_copy().
 * @since 0.1 */
CCMR_API CCMR_NODISCARD ccmr_status
ccmr_buffer_copy_to_host(ccmr_buffer *buffer, size_t offset, void *host,
                         size_t bytes, ccmr_stream stream);

/** Copy `bytes` of host memory to `offset`; rules of ccmr_buffer_copy().
 * @since 0.1 */
CCMR_API CCMR_NODISCARD ccmr_status
ccmr_buffer_copy_from_host(ccmr_buffer *buffer, size_t offset,
                           const void *host, size_t bytes, ccmr_stream stream);

/**
 * Fill a range with a pattern of 1, 2 or 4 bytes, in the order of `stream`.
 * Offset and length must be multiples of `width`, and `value` fit into it.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status
ccmr_buffer_fill(ccmr_buffer *buffer, size_t offset, size_t bytes,
                 uint32_t value, unsigned width, ccmr_stream stream);

/**
 * Give up ownership: the buffer closes without freeing; the caller has to
 * deallocate through the resource with the buffer's bytes and alignment. For
 * a borrowing buffer `release` is not called. The reference that the buffer
 * held on the resource is gone: keep one. `ptr` may be NULL.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_buffer_disown(ccmr_buffer *buffer,
                                                       void **ptr);

/** The memory, NULL for 0 bytes, when closed, and for NULL. @since 0.1 */
CCMR_API void *ccmr_buffer_ptr(const ccmr_buffer *buffer);

/** The size in bytes as asked for; 0 when closed and for NULL. @since 0.1 */
CCMR_API size_t ccmr_buffer_bytes(const ccmr_buffer *buffer);

/**
 * Everything known about the buffer; `properties->size` must be set. Where no
 * resource says what the memory is, the driver is asked. Legal on a closed
 * buffer, which has only `closed` set.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status
ccmr_buffer_describe(ccmr_buffer *buffer, ccmr_buffer_properties *properties);

CCMR_END_DECLS

#ifdef CCMR_STREAM_OF_CALLER
#define ccmr_buffer_create(resource, bytes, options, stream, buffer)          \
    ccmr_buffer_create(resource, bytes, options,                              \
                       CCMR_STREAM_OF_CALLER(stream), buffer)
#define ccmr_buffer_close(buffer, stream)                                     \
    ccmr_buffer_close(buffer, CCMR_STREAM_OF_CALLER(stream))
#define ccmr_buffer_set_stream(buffer, stream)                                \
    ccmr_buffer_set_stream(buffer, CCMR_STREAM_OF_CALLER(stream))
#define ccmr_buffer_note_use(buffer, stream)                                  \
    ccmr_buffer_note_use(buffer, CCMR_STREAM_OF_CALLER(stream))
#define ccmr_buffer_copy(destination, destination_offset, source,             \
                         source_offset, bytes, stream)                        \
    ccmr_buffer_copy(destination, destination_offset, source, source_offset,  \
                     bytes, CCMR_STREAM_OF_CALLER(stream))
#define ccmr_buffer_copy_to_host(buffer, offset, host, bytes, stream)         \
    ccmr_buffer_copy_to_host(buffer, offset, host, bytes,                     \
                             CCMR_STREAM_OF_CALLER(stream))
#define ccmr_buffer_copy_from_host(buffer, offset, host, bytes, stream)       \
    ccmr_buffer_copy_from_host(buffer, offset, host, bytes,                   \
                               CCMR_STREAM_OF_CALLER(stream))
#define ccmr_buffer_fill(buffer, offset, bytes, value, width, stream)         \
    ccmr_buffer_fill(buffer, offset, bytes, value, width,                     \
                     CCMR_STREAM_OF_CALLER(stream))
#endif

#endif /* CUCOREMR_BUFFER_H */
