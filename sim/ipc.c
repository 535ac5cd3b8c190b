/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuIpcGetMemHandle and its kin. A handle tells in which process and in which
 * area of its file a block is; whoever opens it goes there by way of /proc.
 */
#include "sim/ipc.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/area.h"
#include "sim/context.h"
#include "sim/device.h"

#define MAGIC "ccmripc"

/** What stands in CUipcMemHandle. */
struct ticket {
    char magic[8];
    int32_t process;
    int32_t file;
    uint64_t number; /**< of the file */
    uint64_t start;  /**< of the area */
    uint64_t offset; /**< of the block in it */
    uint64_t bytes;  /**< as asked for */
    int32_t device;
    int32_t unused;
};

/** Memory that is gone here and open elsewhere. */
struct kept {
    struct kept *next;
    struct sim_area area;
    int device;
    size_t size;
};

static struct kept *all_kept;

/* Giving. */

/* From now on the bytes are in an area, wherever they were. */
static bool make_area(struct sim_region *region)
{
    struct sim_area *area;
    struct sim_label label;

    if (region->area != NULL) {
        return true;
    }
    area = malloc(sizeof *area);
    if (area == NULL) {
        return false;
    }
    memset(&label, 0, sizeof label);
    label.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    label.location.id = region->device;
    if (!sim_area_take(area, SIM_AREA_PLAIN, region->size, &label)) {
        free(area);
        return false;
    }
    if (region->backing[0] != NULL &&
        !sim_area_move(area, region->size, region->backing[0])) {
        sim_area_drop(area, region->size);
        free(area);
        return false;
    }
    region->area = area;
    return true;
}

static CUresult get_handle(CUipcMemHandle *handle, CUdeviceptr address)
{
    struct sim_block block;
    struct ticket ticket;

    if (handle == NULL || !sim_block_find(address, &block) ||
        (block.region->kind != SIM_REGION_PLAIN &&
         block.region->kind != SIM_REGION_CHUNK)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!make_area(block.region)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memset(&ticket, 0, sizeof ticket);
    memcpy(ticket.magic, MAGIC, sizeof MAGIC);
    ticket.process = (int32_t)getpid();
    ticket.file = block.region->area->file;
    ticket.number = block.region->area->number;
    ticket.start = block.region->area->start;
    ticket.offset = block.base - block.region->base;
    ticket.bytes = block.size;
    ticket.device = block.region->device;
    memset(handle, 0, sizeof *handle);
    memcpy(handle->reserved, &ticket, sizeof ticket);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
    SIM_ENTRY(cuIpcGetMemHandle, get_handle(pHandle, dptr), NULL, dptr, 0, 0);
}

/* Opening. */

static struct sim_region *find_open(const struct ticket *ticket)
{
    struct sim_region *region = sim_regions();

    while (region != NULL &&
           (region->kind != SIM_REGION_IMPORT || region->area == NULL ||
            region->area->number != ticket->number ||
            region->source != ticket->start + ticket->offset)) {
        region = region->next;
    }
    return region;
}

static CUresult open_first(struct sim_context *context,
                           const struct ticket *ticket,
                           struct sim_region **made)
{
    struct sim_area *area = malloc(sizeof *area);
    struct sim_region *region;

    if (area == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!sim_area_visit(ticket->process, ticket->file, ticket->start,
                        SIM_AREA_PLAIN, ticket->number, area)) {
        free(area);
        return CUDA_ERROR_INVALID_VALUE;
    }
    region =
        sim_region_import(ticket->device, area, ticket->offset, ticket->bytes);
    if (region == NULL) {
        sim_area_drop(area, 0);
        free(area);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    region->area = area;
    region->asked = ticket->bytes;
    region->context = context;
    region->source = ticket->start + ticket->offset;
    *made = region;
    return CUDA_SUCCESS;
}

/* Opened again, it is the same, and must be closed as often. */
static CUresult open_handle(struct sim_thread *self, CUdeviceptr *address,
                            const CUipcMemHandle *handle, unsigned flags)
{
    struct sim_region *region;
    struct ticket ticket;
    CUresult res;

    memcpy(&ticket, handle->reserved, sizeof ticket);
    if (address == NULL || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS ||
        memcmp(ticket.magic, MAGIC, sizeof MAGIC) != 0 ||
        sim_device_find(ticket.device) == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (ticket.process == (int32_t)getpid()) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    region = find_open(&ticket);
    if (region == NULL) {
        res = open_first(sim_context_current(self), &ticket, &region);
        if (res != CUDA_SUCCESS) {
            return res;
        }
    }
    region->opens++;
    *address = region->base;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle,
                                    unsigned int Flags)
{
    SIM_ENTRY(cuIpcOpenMemHandle, open_handle(self, pdptr, &handle, Flags),
              NULL, SIM_OUT(pdptr), Flags, 0);
}

static CUresult close_handle(CUdeviceptr address)
{
    struct sim_region *region = sim_region_find(address);

    if (region == NULL || region->kind != SIM_REGION_IMPORT ||
        region->pool != NULL || region->base != address) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    region->opens--;
    if (region->opens == 0) {
        sim_region_free(region);
    }
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuIpcCloseMemHandle(CUdeviceptr dptr)
{
    SIM_ENTRY(cuIpcCloseMemHandle, close_handle(dptr), NULL, dptr, 0, 0);
}

/* The owner's side. */

bool sim_ipc_keep(struct sim_region *region)
{
    struct kept *kept;

    if (region->area == NULL || !sim_area_is_shared(region->area)) {
        return false;
    }
    kept = malloc(sizeof *kept);
    if (kept == NULL) {
        return false;
    }
    sim_area_bury(region->area);
    kept->area = *region->area;
    kept->device = region->device;
    kept->size = region->size;
    kept->next = all_kept;
    all_kept = kept;
    free(region->area);
    region->area = NULL;
    return true;
}

static void forget(struct kept **link)
{
    struct kept *kept = *link;

    *link = kept->next;
    sim_area_drop(&kept->area, kept->size);
    free(kept);
}

void sim_ipc_reap(void)
{
    struct kept **link = &all_kept;

    while (*link != NULL) {
        if (sim_area_is_shared(&(*link)->area)) {
            link = &(*link)->next;
        } else {
            sim_device_give((*link)->device, (*link)->size);
            forget(link);
        }
    }
}

void sim_ipc_reset(void)
{
    while (all_kept != NULL) {
        forget(&all_kept);
    }
}

static_assert(sizeof(struct ticket) <= sizeof(CUipcMemHandle),
              "a ticket fits");
