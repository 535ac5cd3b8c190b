/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulator's check of order hears of every block that a test gets from a
 * resource and gives back: this header, included last, stands in front of the
 * calls that do so. What the check finds are hazards of the simulator's.
 *
 * A name in parentheses, `(ccmr_resource_deallocate)(...)`, is the call alone.
 * That is for calls that are wrong on purpose, since a free is told before it
 * is refused, and for host functions, which may not ask the simulator.
 *
 * Without the simulator, or while it does not check, nothing is added.
 */
#ifndef CCMR_TESTS_SUPPORT_TOLD_H
#define CCMR_TESTS_SUPPORT_TOLD_H

#include <cucoremr/cucoremr.h>

CCMR_NODISCARD ccmr_status told_allocate(ccmr_resource *resource, size_t bytes,
                                         size_t alignment, ccmr_stream stream,
                                         void **ptr);
ccmr_status told_deallocate(ccmr_resource *resource, void *ptr, size_t bytes,
                            size_t alignment, ccmr_stream stream);
CCMR_NODISCARD ccmr_status told_note_use(ccmr_resource *resource, void *ptr,
                                         ccmr_stream stream);
CCMR_NODISCARD ccmr_status told_hold_until_free(ccmr_resource *resource,
                                                void *ptr, ccmr_stream stream);
CCMR_NODISCARD ccmr_status told_buffer_create(
    ccmr_resource *resource, size_t bytes, const ccmr_buffer_options *options,
    ccmr_stream stream, ccmr_buffer **buffer);
CCMR_NODISCARD ccmr_status told_buffer_note_use(ccmr_buffer *buffer,
                                                ccmr_stream stream);
ccmr_status told_buffer_close(ccmr_buffer *buffer, ccmr_stream stream);
ccmr_status told_buffer_destroy(ccmr_buffer *buffer);

/* What was done by the call alone, told afterwards. */
void told_handed_out(ccmr_resource *resource, const void *ptr, size_t bytes,
                     ccmr_stream stream);
void told_freed(ccmr_resource *resource, const void *ptr, size_t bytes,
                ccmr_stream stream);
/* The host itself uses memory that it got. */
void told_touch(const void *ptr, size_t bytes);

#ifndef TOLD_NOTHING
#undef ccmr_resource_allocate
#undef ccmr_resource_deallocate
#undef ccmr_resource_note_use
#undef ccmr_resource_hold_until_free
#undef ccmr_buffer_create
#undef ccmr_buffer_note_use
#undef ccmr_buffer_close
#undef ccmr_buffer_destroy
#define ccmr_resource_allocate(resource, bytes, alignment, stream, ptr)       \
    told_allocate(resource, bytes, alignment, stream, ptr)
#define ccmr_resource_deallocate(resource, ptr, bytes, alignment, stream)     \
    told_deallocate(resource, ptr, bytes, alignment, stream)
#define ccmr_resource_note_use(resource, ptr, stream)                         \
    told_note_use(resource, ptr, stream)
#define ccmr_resource_hold_until_free(resource, ptr, stream)                  \
    told_hold_until_free(resource, ptr, stream)
#define ccmr_buffer_create(resource, bytes, options, stream, buffer)          \
    told_buffer_create(resource, bytes, options, stream, buffer)
#define ccmr_buffer_note_use(buffer, stream)                                  \
    told_buffer_note_use(buffer, stream)
#define ccmr_buffer_close(buffer, stream) told_buffer_close(buffer, stream)
#define ccmr_buffer_destroy(buffer) told_buffer_destroy(buffer)
#endif

#endif
