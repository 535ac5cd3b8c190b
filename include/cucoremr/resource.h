/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resource contract: what hands out memory in stream order, and how to
 * implement one.
 */
#ifndef CUCOREMR_RESOURCE_H
#define CUCOREMR_RESOURCE_H

#include <stddef.h>
#include <stdint.h>

#include <cucoremr/stats.h>
#include <cucoremr/status.h>
#include <cucoremr/stream.h>

/**
 * A memory resource, alone or as the top of a stack. Reference counted.
 * Every call on it may be made from any thread at once.
 * @since 0.1
 */
typedef struct ccmr_resource ccmr_resource;

/** Alignment that 0 stands for. @since 0.1 */
#define CCMR_DEFAULT_ALIGNMENT ((size_t)256)

/** Which stream a resource frees on when the caller names none. @since 0.1 */
typedef enum ccmr_free_stream_policy {
    CCMR_FREE_ON_ALLOCATION_STREAM = 0, /**< ordered on that stream */
    CCMR_FREE_ON_REQUESTED_STREAM = 1,  /**< one must be named */
    CCMR_FREE_SYNCHRONIZES = 2, /**< waits for that stream, then frees */
    CCMR_FREE_AT_ONCE = 3       /**< streams do not matter (host memory) */
} ccmr_free_stream_policy;

/** What a resource does on a stream that is capturing. @since 0.1 */
typedef enum ccmr_capture_behavior {
    CCMR_CAPTURE_REFUSED = 0,   /**< CCMR_ERROR_CAPTURING, capture unharmed */
    CCMR_CAPTURE_RESERVE = 1,   /**< served from a reserve tied to the graph */
    CCMR_CAPTURE_NODES = 2,     /**< becomes nodes of the graph */
    CCMR_CAPTURE_IRRELEVANT = 3 /**< streams do not matter */
} ccmr_capture_behavior;

/**
 * How a host-accessible resource hands memory back out. @since 0.1
 */
typedef enum ccmr_access {
    CCMR_ACCESS_HOST = 0,  /**< only when earlier GPU work is known finished */
    CCMR_ACCESS_STREAM = 1 /**< in stream order: synchronise before touching */
} ccmr_access;

/** Kinds of handles that memory can be exported as (bits). @since 0.1 */
#define CCMR_HANDLE_NONE 0u
#define CCMR_HANDLE_POSIX_FD 0x1u
#define CCMR_HANDLE_WIN32 0x2u
#define CCMR_HANDLE_WIN32_KMT 0x4u
#define CCMR_HANDLE_FABRIC 0x8u

/**
 * What a resource is. Filled by ccmr_resource_describe().
 * @since 0.1
 */
typedef struct ccmr_properties {
    size_t size;           /**< [in] sizeof(ccmr_properties) */
    const char *name;      /**< kind, "device_pool"; lives with resource */
    int device;            /**< ordinal, -1 if bound to none */
    int device_accessible; /**< 1 if kernels may use the memory */
    int host_accessible;   /**< 1 if the host may use the memory */
    int managed;           /**< 1 for managed (migrating) memory */
    size_t max_alignment;  /**< greatest alignment that is honoured */
    int free_may_block;    /**< 1 if a deallocate may wait for the device */
    ccmr_free_stream_policy free_stream;
    ccmr_capture_behavior capture;
    ccmr_access access;
    unsigned handle_kinds; /**< CCMR_HANDLE_... that can be exported */
    size_t granularity;    /**< unit of address ranges (`reserve` and so on),
                              a power of two; 0: they are not offered */
} ccmr_properties;

/**
 * One live block, as a resource that decides a stream sees it.
 * @since 0.1
 */
typedef struct ccmr_block {
    size_t size; /**< sizeof(ccmr_block) */
    void *ptr;
    size_t bytes;
    size_t alignment;
    ccmr_stream allocation_stream; /**< or CCMR_STREAM_UNSET if unknown */
} ccmr_block;

/**
 * Where a block lies in what was exported for it. Filled by
 * ccmr_resource_export_block().
 * @since 0.1
 */
typedef struct ccmr_export_place {
    size_t size;         /**< [in] sizeof(ccmr_export_place) */
    size_t offset;       /**< of the block's first byte in the handle */
    size_t bytes;        /**< of the block, from there on, that it has */
    size_t handle_bytes; /**< of all of it: what is imported is mapped so */
} ccmr_export_place;

/**
 * Gets a dump, a line a call, each ended by a newline and a 0 that is not in
 * `length`. Non-zero ends it.
 * @since 0.1
 */
typedef int (*ccmr_dump_write)(void *context, const char *line, size_t length);

/**
 * A resource's operations. An implementer fills this and calls
 * ccmr_resource_create(). The first member is the size; it grows at its end
 * only. `allocate`, `deallocate`, `destroy` and `describe` are required; all
 * others may be NULL. Operations are called from any thread at once, with no
 * lock of the library held. The library has checked before an op is called:
 * bytes > 0 and at most PTRDIFF_MAX; alignment a power of two, never 0, at
 * most max_alignment; a stream that is a handle, a token or (deallocate)
 * CCMR_STREAM_READY, never 0 and never CCMR_STREAM_UNSET; outputs not NULL.
 * An op that fails writes no output, leaves everything as it was, and may
 * call ccmr_error_set().
 * @since 0.1
 */
typedef struct ccmr_resource_ops {
    size_t size; /**< sizeof(ccmr_resource_ops) of the implementer */

    /** Memory usable by work enqueued on `stream` from now on. */
    ccmr_status (*allocate)(void *self, size_t bytes, size_t alignment,
                            ccmr_stream stream, void **ptr);
    /**
     * Take a block back in the order of `stream`; bytes and alignment are
     * those it was allocated with. Must not allocate host memory. Refused:
     * the block stays live.
     */
    ccmr_status (*deallocate)(void *self, void *ptr, size_t bytes,
                              size_t alignment, ccmr_stream stream);
    /** The last reference and the last block are gone: free `self`. */
    void (*destroy)(void *self);
    /**
     * Decide the stream of a deallocation, from the block's allocation stream
     * and what the caller asked for (CCMR_STREAM_UNSET: nothing). Without it,
     * the first upstream is asked; a leaf takes the requested stream, else
     * the allocation stream.
     */
    ccmr_status (*choose_free_stream)(void *self, const ccmr_block *block,
                                      ccmr_stream requested,
                                      ccmr_stream *chosen);
    /** Fill the properties; `size` tells how much may be written. */
    ccmr_status (*describe)(void *self, ccmr_properties *properties);
    /** The i-th upstream (borrowed), CCMR_ERROR_OUT_OF_RANGE past the last. */
    ccmr_status (*upstream)(void *self, size_t i, ccmr_resource **resource);
    /** Give back free memory beyond `keep` reserved bytes, live included. */
    ccmr_status (*trim)(void *self, size_t keep, ccmr_trim_result *result);
    /** Figures; may be slow. Prefilled with what the library counted. */
    ccmr_status (*stats)(void *self, ccmr_stats *stats);
    /** The stream is about to go: forget it, safely. */
    ccmr_status (*retire_stream)(void *self, ccmr_stream stream);
    /** The free must wait for what is enqueued on `stream` now. */
    ccmr_status (*note_use)(void *self, void *ptr, ccmr_stream stream);
    /** The free must wait for what is enqueued on `stream` until then. */
    ccmr_status (*hold_until_free)(void *self, void *ptr, ccmr_stream stream);
    /**
     * Address ranges and memory in them: for a pool above. All five or none;
     * addresses and sizes are multiples of the property `granularity`. None of
     * them waits for a stream, and none knows what work uses the memory: that
     * is the caller's business. No alignment or size is rounded.
     *
     * Address space without memory.
     */
    ccmr_status (*reserve)(void *self, size_t bytes, void **base);
    /**
     * Put memory at [address, address + bytes) of one range, where none is:
     * one new handle of exactly that size, usable at once by every device that
     * has access. CCMR_ERROR_ALREADY_EXISTS: there is memory;
     * CCMR_ERROR_OUT_OF_RANGE: it lies in no range.
     */
    ccmr_status (*commit)(void *self, void *address, size_t bytes);
    /**
     * Take from the address what one commit or one move put there: the same
     * address and bytes, a whole handle. It is freed with its last address.
     * The work that uses this address is finished.
     */
    ccmr_status (*decommit)(void *self, void *address, size_t bytes);
    /**
     * Put the handle that one commit or one move put at `from` at `to` as
     * well, where no memory is: a second address of the same bytes. `from`
     * stays usable until it is decommitted, so that this is right while work
     * uses it; until then, and to order what the two are used for, is the
     * caller's business.
     */
    ccmr_status (*move)(void *self, void *from, void *to, size_t bytes);
    /** Give a range back, whole and without memory: else CCMR_ERROR_BUSY. */
    ccmr_status (*unreserve)(void *self, void *base, size_t bytes);
    /**
     * Make a block larger in place, usable by work enqueued on `stream` from
     * now on; it goes back with `new_bytes`. CCMR_ERROR_OUT_OF_RANGE: there is
     * no room behind it.
     */
    ccmr_status (*grow)(void *self, void *ptr, size_t bytes, size_t new_bytes,
                        ccmr_stream stream);
    /**
     * Export the memory of a block (or of a commit) as a handle of one kind,
     * of exactly `handle_size` bytes: an int for POSIX_FD, closed on exec and
     * the caller's to close.
     */
    ccmr_status (*export_handle)(void *self, void *ptr, unsigned kind,
                                 void *handle, size_t handle_size);
    /** Grant (1) or take (0) access for another device, to all memory of the
     * resource, there is and there will be. */
    ccmr_status (*set_access)(void *self, int device, int granted);
    /**
     * An option's present value as text; `*length` is what it needs without
     * the final 0, also when `capacity` is too small (then it is cut).
     */
    ccmr_status (*option_get)(void *self, const char *name, char *text,
                              size_t capacity, size_t *length);
    /** Change an option while running. */
    ccmr_status (*option_set)(void *self, const char *name, const char *text);
    /** Would an allocation succeed now without waiting? Changes nothing. */
    ccmr_status (*would_fit)(void *self, size_t bytes, ccmr_stream stream,
                             int *fits);
    /** Check the resource's own books; CCMR_SUCCESS if they agree. */
    ccmr_status (*audit)(void *self);
    /**
     * What is at [ptr, ptr + bytes) stays there until it is unpinned as often,
     * whether its block is freed or not. Both or none.
     */
    ccmr_status (*pin)(void *self, void *ptr, size_t bytes);
    ccmr_status (*unpin)(void *self, void *ptr, size_t bytes);
    /**
     * Export the handle that a block begins in, and tell where. `place` is of
     * the library's size. If others may have that memory later, it is pinned:
     * unpin(ptr, place->bytes) ends that.
     */
    ccmr_status (*export_block)(void *self, void *ptr, size_t bytes,
                                unsigned kind, void *handle,
                                size_t handle_size, ccmr_export_place *place);
    /** Write what memory is where, a line a call; ends with CCMR_ERROR_USER
     * where `write` returns non-zero. No lock is held over it. */
    ccmr_status (*dump)(void *self, ccmr_dump_write write, void *context);
} ccmr_resource_ops;

CCMR_BEGIN_DECLS

/**
 * Make a resource from operations.
 *
 * @param ops       copied; required members and groups are checked one by one
 * @param self      handed to every operation; owned by the resource on success
 * @param resource  [out] with one reference, to be released
 *
 * Calls ops->describe once. Any thread, does not block. Errors:
 * CCMR_ERROR_INVALID_STRUCT (size, or an unknown member that is set),
 * CCMR_ERROR_INVALID_ARGUMENT (a member that is missing, named in the detail),
 * what describe returned; nothing was created and `self` is the caller's.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_resource_create(
    const ccmr_resource_ops *ops, void *self, ccmr_resource **resource);

/** Take one more reference. Returns its argument; NULL is fine. @since 0.1 */
CCMR_API ccmr_resource *ccmr_resource_retain(ccmr_resource *resource);

/**
 * Give one reference back; NULL is fine. The last one destroys the resource
 * and releases its upstreams, unless blocks are live: then what is cached is
 * given back, blocks can only be freed any more (an allocate answers
 * CCMR_ERROR_RELEASED), and the last free destroys. Buffers count as
 * references. May block as the resource's destroy does. Any thread.
 *
 * Where the process is exiting or is a forked child, nothing is done.
 * @since 0.1
 */
CCMR_API void ccmr_resource_release(ccmr_resource *resource);

/**
 * Allocate memory that work enqueued on `stream` from now on may use.
 *
 * @param bytes      size; 0 succeeds with *ptr = NULL and no other effect
 * @param alignment  bytes, a power of two, 0 for CCMR_DEFAULT_ALIGNMENT; more
 *                   than the resource can do is refused
 * @param stream     handle or token; null is the default stream;
 *                   CCMR_STREAM_UNSET and CCMR_STREAM_READY are refused
 * @param ptr        [out] give it back with ccmr_resource_deallocate()
 *
 * Blocks only where the resource says so. Any thread. Out of device memory,
 * out of host memory and limit exceeded are three codes that stay what they
 * are through a stack; see ccmr_last_error() for the numbers.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status
ccmr_resource_allocate(ccmr_resource *resource, size_t bytes, size_t alignment,
                       ccmr_stream stream, void **ptr);

/**
 * Give a block back in the order of `stream`: work enqueued there before may
 * still use it. The caller has ordered other uses before that.
 *
 * @param ptr        what allocate gave; NULL with 0 bytes is fine
 * @param bytes      as allocated
 * @param alignment  as allocated
 * @param stream     handle, token, or CCMR_STREAM_READY; null is the default
 *                   stream; CCMR_STREAM_UNSET is refused
 *
 * Never fails for want of memory. Refused: the block stays live. Blocks only
 * where the properties say free_may_block. Any thread.
 * @since 0.1
 */
CCMR_API ccmr_status ccmr_resource_deallocate(ccmr_resource *resource,
                                              void *ptr, size_t bytes,
                                              size_t alignment,
                                              ccmr_stream stream);

/**
 * Which stream a deallocation of a block would use; the decision is the
 * resource's (see ccmr_resource_ops). `requested` may be CCMR_STREAM_UNSET.
 * If nothing decides (no request, allocation stream unknown) the answer is
 * CCMR_ERROR_INVALID_STREAM. No driver call, does not block, any thread.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_resource_choose_free_stream(
    ccmr_resource *resource, const ccmr_block *block, ccmr_stream requested,
    ccmr_stream *chosen);

/**
 * What the resource is. `properties->size` must be set. Any thread.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status
ccmr_resource_describe(ccmr_resource *resource, ccmr_properties *properties);

/**
 * Name of the resource's kind; lives as long as the resource. NULL for NULL.
 * @since 0.1
 */
CCMR_API const char *ccmr_resource_name(const ccmr_resource *resource);

/**
 * The i-th upstream, borrowed: it lives as long as `resource`.
 * CCMR_ERROR_OUT_OF_RANGE past the last (a leaf has none).
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_resource_upstream(
    ccmr_resource *resource, size_t i, ccmr_resource **upstream);

/**
 * Give reserved memory that is not live back, down to `keep` bytes (live
 * included), here and in every upstream. `result` may be NULL; its size must
 * be set. Waits for nothing but what the memory's own free needs. Resources
 * that keep nothing succeed with zeros.
 * @since 0.1
 */
CCMR_API ccmr_status ccmr_resource_trim(ccmr_resource *resource, size_t keep,
                                        ccmr_trim_result *result);

/**
 * Figures of this resource alone; `stats->size` must be set. May be slow.
 * Any thread; exact when nothing else runs, see `stats->exact`.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status
ccmr_resource_stats(ccmr_resource *resource, ccmr_stats *stats);

/**
 * The block's free must also wait for what is enqueued on `stream` now (an
 * event is recorded now; the stream may go afterwards).
 * CCMR_ERROR_NOT_SUPPORTED where the resource does not offer it: of those of
 * 0.1 the pool does, and adaptors that keep no blocks (limiting, logging,
 * statistics, tracking) pass it on. ccmr_buffer_note_use() works over every
 * resource of a device.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status
ccmr_resource_note_use(ccmr_resource *resource, void *ptr, ccmr_stream stream);

/**
 * The block's free must also wait for what will be enqueued on `stream` until
 * then; the stream must be registered, or alive at that time. A free while the
 * stream captures is refused with CCMR_ERROR_CAPTURING; one that is not
 * registered must not begin to during the free. For the per-thread token the
 * thread that held the block has to free it: CCMR_ERROR_WRONG_THREAD.
 * CCMR_ERROR_NOT_SUPPORTED where the resource does not offer it, as
 * ccmr_resource_note_use().
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_resource_hold_until_free(
    ccmr_resource *resource, void *ptr, ccmr_stream stream);

/**
 * Make a block larger where it is: what it holds stays, and work enqueued on
 * `stream` from now on may use all of it. From now on it is freed with
 * `new_bytes`.
 *
 * @param ptr        a live block; nobody else grows or frees it meanwhile
 * @param bytes      as allocated, or as it has grown
 * @param new_bytes  at least `bytes`
 * @param stream     as for ccmr_resource_allocate()
 *
 * CCMR_ERROR_OUT_OF_RANGE where there is no room behind the block: allocate
 * and copy then. CCMR_ERROR_NOT_SUPPORTED where the resource does not offer
 * it: `virtual` does, and no adaptor. Refused: the block is what it was.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_resource_grow(ccmr_resource *resource,
                                                       void *ptr, size_t bytes,
                                                       size_t new_bytes,
                                                       ccmr_stream stream);

/**
 * Grant (1) or take (0) another device's right to use the resource's memory,
 * what is allocated and what will be. The resource's own device has it for
 * good. Taking it: no work of that device uses the memory any more.
 * CCMR_ERROR_NOT_SUPPORTED where the resource does not offer it (`virtual`
 * does) or the device cannot reach the memory; all or nothing. May take long.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status
ccmr_resource_set_access(ccmr_resource *resource, int device, int granted);

/**
 * Export the memory of a block for another process.
 *
 * @param kind         one of CCMR_HANDLE_..., which the properties have
 * @param handle       [out] POSIX_FD: an int, closed on exec, the caller's to
 *                     close; FABRIC: the driver's 64 bytes
 * @param handle_size  exactly that many bytes
 *
 * What imports it sees whole units of the resource's granularity. The memory
 * lives until the block is freed and nothing has it imported.
 * CCMR_ERROR_NOT_SUPPORTED where the resource does not offer it (`virtual`
 * does), lacks the kind, or the block is not one handle since it has grown.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status
ccmr_resource_export_handle(ccmr_resource *resource, void *ptr, unsigned kind,
                            void *handle, size_t handle_size);

/**
 * Keep the memory of a live block, or a part of it, where it is: for what is
 * registered with a network card or a communication library. Until it is
 * unpinned, this address means this memory, also when the block has been freed
 * and others have it: it is not moved, unmapped or given back. It is handed
 * out as ever. A trim tells how much of what is free is pinned.
 *
 * @param ptr    in a live block
 * @param bytes  from there on in the block; a resource that keeps no sizes of
 *               blocks cannot know where it ends
 *
 * A block that was freed is not to be pinned, which a resource that keeps no
 * blocks cannot always see: such a pin is refused, or it counts like any other.
 *
 * Pins of the same bytes are counted. The last reference's release takes them
 * along: end what was registered before. CCMR_ERROR_INVALID_POINTER: there is
 * no memory of the resource. CCMR_ERROR_NOT_SUPPORTED where the resource does
 * not offer it: of those of 0.1 the pool does, and adaptors that keep no blocks
 * pass it on. No driver call, any thread.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_resource_pin(ccmr_resource *resource,
                                                      void *ptr, size_t bytes);

/**
 * The end of one ccmr_resource_pin() of exactly these bytes; their block may
 * have been freed. CCMR_ERROR_INVALID_POINTER: they are not pinned. Any thread.
 * @since 0.1
 */
CCMR_API ccmr_status ccmr_resource_unpin(ccmr_resource *resource, void *ptr,
                                         size_t bytes);

/**
 * Export a block of which the handle may be larger, or the first of several.
 *
 * @param ptr          in a live block
 * @param bytes        from there on, in the block
 * @param kind         as for ccmr_resource_export_handle()
 * @param handle       [out] the handle that `ptr` lies in
 * @param handle_size  exactly its bytes
 * @param place        [out] where the block is in it, and how much of it; the
 *                     size must be set. What is missing is exported by another
 *                     call, with `ptr` + `place->bytes`
 *
 * A pool (made with `export=handle`) pins what it exported: until
 * ccmr_resource_unpin(ptr, place->bytes), when nobody has it imported any more.
 * Whoever imports it can reach all of the handle, other blocks included.
 * A block of `virtual` is all of its handle, and has more of them once it has
 * grown. CCMR_ERROR_INVALID_POINTER: no live block; CCMR_ERROR_INVALID_SIZE:
 * more bytes than the block has, where the resource keeps its size.
 * CCMR_ERROR_NOT_SUPPORTED where the resource does not offer it (`virtual` and
 * `pool` do) or lacks the kind. Any thread.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_resource_export_block(
    ccmr_resource *resource, void *ptr, size_t bytes, unsigned kind,
    void *handle, size_t handle_size, ccmr_export_place *place);

/**
 * An option's present value as text, as a stack text would spell it.
 * `*length` (may be NULL) is the length without the final 0; text longer than
 * `capacity` - 1 is cut. CCMR_ERROR_UNKNOWN_NAME: no such option.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status
ccmr_resource_option_get(ccmr_resource *resource, const char *name, char *text,
                         size_t capacity, size_t *length);

/**
 * Change an option of a live resource. CCMR_ERROR_NOT_SUPPORTED if it is
 * fixed, CCMR_ERROR_UNKNOWN_NAME if there is none of that name; nothing was
 * changed.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_resource_option_set(
    ccmr_resource *resource, const char *name, const char *text);

/**
 * Would ccmr_resource_allocate() of `bytes` succeed now without waiting?
 * CCMR_ERROR_NOT_SUPPORTED where the resource cannot tell.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_resource_would_fit(
    ccmr_resource *resource, size_t bytes, ccmr_stream stream, int *fits);

/**
 * Let the resource check its own books. CCMR_SUCCESS where there are none.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status
ccmr_resource_audit(ccmr_resource *resource);

/**
 * Write what a stack holds: for each resource, from the top, a line
 *
 *     resource NAME depth=N blocks=N live=BYTES reserved=BYTES pending=BYTES
 *
 * (figures that it does not know are missing), and then what it says of its
 * memory. A pool has, in the order of addresses, `KIND ADDRESS BYTES`:
 *
 *     segment, handle   memory that it has from upstream
 *     pinned            the same, and it stays where it is
 *     leaving           an address that a moved handle has left, and work may
 *                       still use
 *     taken             at work: about to come or to go
 *     out               live, or in a thread's cache
 *     free              free and finished
 *     waits ... streams=A+B   free, but work of these streams (ids; 0: of one
 *                       that has gone) is not known to be finished
 *     total reserved= out= free= waits= pinned= leaving= largest_free=
 *           free_runs=    in one line
 *
 * with reserved = out + free + waits, of one moment; a segment that is about to
 * come or to go may have a line and not be in it. Later versions may add
 * lines and figures. `write` is called with no lock held and may use any
 * resource. CCMR_ERROR_USER: it ended the dump. CCMR_ERROR_OUT_OF_HOST_MEMORY:
 * not all was written. No driver call but for the figures; any thread; may be
 * slow.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_resource_dump(ccmr_resource *resource,
                                                       ccmr_dump_write write,
                                                       void *context);

CCMR_END_DECLS

#ifdef CCMR_STREAM_OF_CALLER
#define ccmr_resource_allocate(resource, bytes, alignment, stream, ptr)       \
    ccmr_resource_allocate(resource, bytes, alignment,                        \
                           CCMR_STREAM_OF_CALLER(stream), ptr)
#define ccmr_resource_deallocate(resource, ptr, bytes, alignment, stream)     \
    ccmr_resource_deallocate(resource, ptr, bytes, alignment,                 \
                             CCMR_STREAM_OF_CALLER(stream))
#define ccmr_resource_choose_free_stream(resource, block, requested, chosen)  \
    ccmr_resource_choose_free_stream(                                         \
        resource, block, CCMR_STREAM_OF_CALLER(requested), chosen)
#define ccmr_resource_note_use(resource, ptr, stream)                         \
    ccmr_resource_note_use(resource, ptr, CCMR_STREAM_OF_CALLER(stream))
#define ccmr_resource_hold_until_free(resource, ptr, stream)                  \
    ccmr_resource_hold_until_free(resource, ptr, CCMR_STREAM_OF_CALLER(stream))
#define ccmr_resource_grow(resource, ptr, bytes, new_bytes, stream)           \
    ccmr_resource_grow(resource, ptr, bytes, new_bytes,                       \
                       CCMR_STREAM_OF_CALLER(stream))
#define ccmr_resource_would_fit(resource, bytes, stream, fits)                \
    ccmr_resource_would_fit(resource, bytes, CCMR_STREAM_OF_CALLER(stream),   \
                            fits)
#endif

#endif /* CUCOREMR_RESOURCE_H */
