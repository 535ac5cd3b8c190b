/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools that other processes can be given, and pointers into them.
 *
 * The descriptor of a pool names an area without bytes, which says no more
 * than what kind of pool it is; every window of such a pool is an area of its
 * own. What an exported pointer tells is in which of them the block lies.
 */
#include "sim/pool.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/device.h"

#define POSIX ((unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
#define MAGIC "ccmrptr"

/** What stands in CUmemPoolPtrExportData. */
struct pointer {
    char magic[8];
    uint64_t number; /**< of the file */
    uint64_t token;  /**< where the pool's label is */
    uint64_t window; /**< where the window's label is */
    uint64_t offset; /**< of the block in it */
    uint64_t bytes;  /**< as asked for */
};

bool sim_pool_is_shareable(const struct sim_pool *pool)
{
    return (pool->handle_types & POSIX) != 0;
}

struct sim_area *sim_pool_window_area(const struct sim_pool *pool, size_t size)
{
    struct sim_area *area = malloc(sizeof *area);
    struct sim_label label;

    if (area == NULL) {
        return NULL;
    }
    memset(&label, 0, sizeof label);
    label.location = pool->location;
    label.type = pool->type;
    if (!sim_area_take(area, SIM_AREA_POOL, size, &label)) {
        free(area);
        return NULL;
    }
    return area;
}

void sim_pool_unshare(struct sim_pool *pool)
{
    if (pool->descriptor >= 0) {
        close(pool->descriptor);
        pool->descriptor = -1;
    }
    sim_area_drop(&pool->token, 0);
}

/* Pools. */

/* A pool keeps a descriptor for itself from its first export on. */
static bool make_token(struct sim_pool *pool)
{
    struct sim_label label;

    if (pool->descriptor >= 0) {
        return true;
    }
    memset(&label, 0, sizeof label);
    label.location = pool->location;
    label.type = pool->type;
    if (pool->token.file < 0 &&
        !sim_area_take(&pool->token, SIM_AREA_POOL, 0, &label)) {
        return false;
    }
    pool->descriptor = sim_area_share(&pool->token, true);
    return pool->descriptor >= 0;
}

static CUresult export_pool(void *shared, CUmemoryPool handle,
                            CUmemAllocationHandleType type,
                            unsigned long long flags)
{
    struct sim_pool *pool = sim_pool_find(handle);
    int file;

    if (shared == NULL || pool == NULL || flags != 0 ||
        (unsigned)type != POSIX || !sim_pool_is_shareable(pool)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    file = make_token(pool) ? sim_area_share(&pool->token, false) : -1;
    if (file < 0) {
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    memcpy(shared, &file, sizeof file);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolExportToShareableHandle(
    void *handle_out, CUmemoryPool pool, CUmemAllocationHandleType handleType,
    unsigned long long flags)
{
    SIM_ENTRY(cuMemPoolExportToShareableHandle,
              export_pool(handle_out, pool, handleType, flags), NULL, pool, 0,
              0);
}

static CUresult make_import(const struct sim_area *token,
                            const struct sim_label *label,
                            struct sim_pool **made)
{
    CUmemPoolProps properties;
    struct sim_pool *pool;

    memset(&properties, 0, sizeof properties);
    properties.allocType = label->type;
    properties.location = label->location;
    pool = sim_pool_new(&properties);
    if (pool == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pool->imported = true;
    pool->foreign = !token->own;
    pool->token = *token;
    pool->token.own = false;
    if (!sim_area_join(&pool->token)) {
        pool->token = SIM_NO_AREA;
        sim_pool_delete(pool);
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    if (!sim_pool_take_handle(pool)) {
        sim_pool_delete(pool);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *made = pool;
    return CUDA_SUCCESS;
}

/* Imported again, a pool is the same. */
static CUresult import_pool(CUmemoryPool *handle, const void *shared,
                            CUmemAllocationHandleType type,
                            unsigned long long flags)
{
    struct sim_area token;
    struct sim_label label;
    struct sim_pool *pool;
    CUresult res;

    if (handle == NULL || flags != 0 || (unsigned)type != POSIX) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!sim_area_find((int)(intptr_t)shared, SIM_AREA_POOL, &token, &label,
                       &res)) {
        return res;
    }
    if (label.location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
        sim_device_find(label.location.id) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    pool = sim_pool_imported(&token);
    if (pool == NULL) {
        res = make_import(&token, &label, &pool);
        if (res != CUDA_SUCCESS) {
            return res;
        }
    }
    *handle = pool->handle;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolImportFromShareableHandle(
    CUmemoryPool *pool_out, void *handle, CUmemAllocationHandleType handleType,
    unsigned long long flags)
{
    SIM_ENTRY(cuMemPoolImportFromShareableHandle,
              import_pool(pool_out, handle, handleType, flags), NULL,
              SIM_OUT(pool_out), 0, 0);
}

/* Pointers. */

static CUresult export_pointer(CUmemPoolPtrExportData *data,
                               CUdeviceptr address)
{
    struct sim_block block;
    struct pointer pointer;
    const struct sim_pool *pool;

    if (data == NULL || !sim_block_find(address, &block) ||
        block.extent == NULL || block.region->pool == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    pool = block.region->pool;
    if (pool->descriptor < 0 || block.region->area == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    memset(&pointer, 0, sizeof pointer);
    memcpy(pointer.magic, MAGIC, sizeof MAGIC);
    pointer.number = pool->token.number;
    pointer.token = pool->token.start;
    pointer.window = block.region->area->start;
    pointer.offset = block.base - block.region->base;
    pointer.bytes = block.size;
    memset(data, 0, sizeof *data);
    memcpy(data->reserved, &pointer, sizeof pointer);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolExportPointer(CUmemPoolPtrExportData *shareData_out,
                                        CUdeviceptr ptr)
{
    SIM_ENTRY(cuMemPoolExportPointer, export_pointer(shareData_out, ptr), NULL,
              ptr, 0, 0);
}

static struct sim_region *find_import(const struct sim_pool *pool,
                                      const struct pointer *pointer)
{
    struct sim_region *region = sim_regions();

    while (region != NULL &&
           (region->pool != pool || region->asked == 0 ||
            region->source != pointer->window + pointer->offset)) {
        region = region->next;
    }
    return region;
}

static CUresult map_pointer(struct sim_pool *pool,
                            const struct pointer *pointer,
                            struct sim_region **made)
{
    struct sim_area window = pool->token;
    struct sim_region *region;

    window.start = pointer->window;
    region = sim_region_import(pool->device, &window, pointer->offset,
                               pointer->bytes);
    if (region == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    region->pool = pool;
    region->asked = pointer->bytes;
    region->source = pointer->window + pointer->offset;
    *made = region;
    return CUDA_SUCCESS;
}

/* A second import of a device's memory is the first one again, and is not
 * counted; one of the host's is refused, and takes the first one's mapping
 * with it: copies then answer that there is no memory, a free still works. */
static CUresult import_pointer(CUdeviceptr *address, CUmemoryPool handle,
                               const CUmemPoolPtrExportData *data)
{
    struct sim_pool *pool = sim_pool_find(handle);
    struct sim_region *region;
    struct pointer pointer;
    CUresult res;

    if (address == NULL || pool == NULL || data == NULL || !pool->foreign) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(&pointer, data->reserved, sizeof pointer);
    if (memcmp(pointer.magic, MAGIC, sizeof MAGIC) != 0 ||
        pointer.number != pool->token.number ||
        pointer.token != pool->token.start || pointer.bytes == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    region = find_import(pool, &pointer);
    if (region != NULL && pool->device < 0) {
        region->lost = true;
        return CUDA_ERROR_ALREADY_MAPPED;
    }
    if (region == NULL) {
        res = map_pointer(pool, &pointer, &region);
        if (res != CUDA_SUCCESS) {
            return res;
        }
    }
    *address = region->base;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolImportPointer(CUdeviceptr *ptr_out,
                                        CUmemoryPool pool,
                                        CUmemPoolPtrExportData *shareData)
{
    SIM_ENTRY(cuMemPoolImportPointer, import_pointer(ptr_out, pool, shareData),
              NULL, SIM_OUT(ptr_out), pool, 0);
}

static_assert(sizeof(struct pointer) <= sizeof(CUmemPoolPtrExportData),
              "a pointer fits");
