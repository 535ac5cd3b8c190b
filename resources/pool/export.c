/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool: export of blocks, which are parts of handles. Whoever imports one sees
 * all of it, also what other blocks are in there: that has to be asked for, by
 * export=handle. The handle is pinned, so that what the other process has
 * mapped and what is at the address here are the same.
 */
#include "lib/error.h"
#include "lib/resource_object.h"
#include "resources/pool/pin.h"
#include "resources/pool/pool.h"
#include "resources/pool/range.h"

ccmr_status ccmr__pool_export_handle(void *object, void *ptr, unsigned kind,
                                     void *handle, size_t handle_size)
{
    const ccmr__pool *pool = object;

    (void)ptr;
    (void)kind;
    (void)handle;
    (void)handle_size;
    return ccmr__fail(CCMR_ERROR_NOT_SUPPORTED,
                      pool->options.exported
                          ? "export: a block of a pool is a part of a handle: "
                            "ccmr_resource_export_block() tells which"
                          : "export: a block of a pool is a part of a handle, "
                            "and others are in it, too; the option "
                            "export=handle allows that");
}

/* The handle that an address lies in; it is pinned, unless somebody else ended
 * that pin: then there may be none. 1 or 0. */
static int look(ccmr__pool_range *range, uintptr_t address, uintptr_t *base,
                size_t *bytes)
{
    uint32_t page;

    ccmr__pool_range_lock(range);
    page = ccmr__pool_handle_at(range, ccmr__pool_page_of(range, address));
    if (page != CCMR__POOL_NO_PAGE) {
        *base = ccmr__pool_page_address(range, page);
        *bytes = range->runs[page].pages * range->unit;
    }
    ccmr__pool_range_unlock(range);
    return page != CCMR__POOL_NO_PAGE;
}

/* So many of the bytes as are in the first handle. They are pinned; another
 * pin, of these alone, comes before that goes. */
static ccmr_status export_first(ccmr__pool *pool, void *ptr, size_t bytes,
                                unsigned kind, void *handle,
                                size_t handle_size, ccmr_export_place *place)
{
    ccmr_resource *upstream = pool->upstream;
    uintptr_t base;
    size_t whole;
    size_t part;
    ccmr_status status;

    if (!look(pool->range, (uintptr_t)ptr, &base, &whole)) {
        return ccmr__fail(CCMR_ERROR_INVALID_POINTER,
                          "export: the memory at %p was unpinned meanwhile",
                          ptr);
    }
    part = whole - ((uintptr_t)ptr - base);
    part = part < bytes ? part : bytes;
    status = ccmr__pool_pin_for(pool, ptr, part, "export");
    if (status != CCMR_SUCCESS) {
        return status;
    }
    status = upstream->ops.export_handle(upstream->self, (void *)base, kind,
                                         handle, handle_size);
    if (status != CCMR_SUCCESS) {
        ccmr_error_detail told = *ccmr__error();

        (void)ccmr__pool_unpin_memory(pool, ptr, part);
        *ccmr__error() = told;
        return status;
    }
    place->offset = (uintptr_t)ptr - base;
    place->bytes = part;
    place->handle_bytes = whole;
    return CCMR_SUCCESS;
}

ccmr_status ccmr__pool_export_block(void *object, void *ptr, size_t bytes,
                                    unsigned kind, void *handle,
                                    size_t handle_size,
                                    ccmr_export_place *place)
{
    ccmr__pool *pool = object;
    ccmr_status status;

    if (!pool->options.exported) {
        return ccmr__pool_export_handle(object, ptr, kind, handle,
                                        handle_size);
    }
    /* All of it has to be there, and stays while it is looked at. */
    status = ccmr__pool_pin_for(pool, ptr, bytes, "export");
    if (status == CCMR_SUCCESS) {
        status =
            export_first(pool, ptr, bytes, kind, handle, handle_size, place);
        (void)ccmr__pool_unpin_memory(pool, ptr, bytes);
    }
    return status;
}
