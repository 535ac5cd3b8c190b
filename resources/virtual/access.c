/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtual: rights of other devices, and handing memory to other processes.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/error.h"
#include "resources/virtual/virtual.h"

/* ---- rights ---------------------------------------------------------- */

/* Something mapped: a block's memory, or a mapping's. */
static size_t mapped_bytes(const ccmr__virtual *self, const ccmr__tree *tree,
                           const ccmr__tree_node *node)
{
    return tree == &self->blocks ? ((const ccmr__virtual_block *)node)->mapped
                                 : ((const ccmr__mapping *)node)->piece->bytes;
}

/* Set one device's rights to what is mapped below `end`. Where the driver
 * refuses, `*stopped` is the address. With `access` held alone, so that nothing
 * comes or goes. */
static CUresult set_tree(const ccmr__virtual *self, const ccmr__tree *tree,
                         const CUmemAccessDesc *entry, uintptr_t end,
                         uintptr_t *stopped)
{
    const ccmr__tree_node *node = ccmr__tree_first(tree, 0);
    CUresult res = CUDA_SUCCESS;

    while (node != NULL && node->address < end) {
        res =
            CCMR__CU(cuMemSetAccess)((CUdeviceptr)node->address,
                                     mapped_bytes(self, tree, node), entry, 1);
        if (res != CUDA_SUCCESS) {
            *stopped = node->address;
            break;
        }
        node = ccmr__tree_first(tree, node->address + 1);
    }
    return res;
}

/* All or nothing. */
static ccmr_status set_everywhere(const ccmr__virtual *self,
                                  const CUmemAccessDesc *entry)
{
    const uintptr_t all = UINTPTR_MAX;
    CUmemAccessDesc back = *entry;
    uintptr_t blocks_done = all;
    uintptr_t mappings_done = 0;
    uintptr_t ignored;
    CUresult res = set_tree(self, &self->blocks, entry, all, &blocks_done);

    if (res == CUDA_SUCCESS) {
        res = set_tree(self, &self->mappings, entry, all, &mappings_done);
    }
    if (res == CUDA_SUCCESS) {
        return CCMR_SUCCESS;
    }
    back.flags = entry->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE
                     ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                     : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    (void)set_tree(self, &self->blocks, &back, blocks_done, &ignored);
    (void)set_tree(self, &self->mappings, &back, mappings_done, &ignored);
    return ccmr__fail_driver((int)res, "cuMemSetAccess");
}

/* Where the device stands among those that have rights; their number if it is
 * not among them. */
static size_t find_entry(const ccmr__virtual *self, CUdevice device)
{
    size_t i = 0;

    while (i < self->entry_count && self->entries[i].location.id != device) {
        i++;
    }
    return i;
}

/* With `access` held alone, in the device's context. */
static ccmr_status change(ccmr__virtual *self, CUdevice device, int granted)
{
    size_t i = find_entry(self, device);
    const CUmemAccessDesc entry = {
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
        .flags = granted ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                         : CU_MEM_ACCESS_FLAGS_PROT_NONE,
    };
    ccmr_status status;

    if ((i < self->entry_count) == (granted != 0)) {
        return CCMR_SUCCESS;
    }
    status = set_everywhere(self, &entry);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (granted) {
        self->entries[self->entry_count++] = entry;
    } else {
        self->entries[i] = self->entries[--self->entry_count];
    }
    return CCMR_SUCCESS;
}

static ccmr_status check_peer(const ccmr__virtual *self,
                              const ccmr__device *peer)
{
    int can = 0;
    CUresult res = CCMR__CU(cuDeviceCanAccessPeer)(&can, peer->device,
                                                   self->device->device);

    if (res != CUDA_SUCCESS) {
        return ccmr__fail_driver((int)res, "cuDeviceCanAccessPeer");
    }
    if (!can) {
        return ccmr__fail(CCMR_ERROR_NOT_SUPPORTED,
                          "device %d cannot reach the memory of device %d",
                          peer->ordinal, self->device->ordinal);
    }
    return CCMR_SUCCESS;
}

ccmr_status ccmr__virtual_set_access(void *object, int device, int granted)
{
    ccmr__virtual *self = object;
    ccmr__device *peer;
    ccmr__scope scope;
    ccmr_status status = ccmr__device_find(device, &peer);

    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (peer == self->device) {
        return granted ? CCMR_SUCCESS
                       : ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                                    "device %d has access to its own memory, "
                                    "always",
                                    peer->ordinal);
    }
    if (granted) {
        status = check_peer(self, peer);
    }
    if (status == CCMR_SUCCESS) {
        status = ccmr__scope_enter(&scope, self->device, CCMR__SCOPE_RELAXED);
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    (void)pthread_rwlock_wrlock(&self->access);
    status = change(self, peer->device, granted);
    (void)pthread_rwlock_unlock(&self->access);
    ccmr__scope_leave(&scope);
    return status;
}

/* ---- export ---------------------------------------------------------- */

/* Under the lock of the books: the only handle behind an address. */
static ccmr_status find_piece(const ccmr__virtual *self, const void *ptr,
                              const ccmr__piece **piece)
{
    uintptr_t address = (uintptr_t)ptr;
    const ccmr__virtual_block *block =
        (const ccmr__virtual_block *)ccmr__tree_find(&self->blocks, address);
    const ccmr__mapping *mapping =
        (const ccmr__mapping *)ccmr__tree_find(&self->mappings, address);

    if (block == NULL && mapping == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_POINTER,
                          "export: %p is not the address of a live block or "
                          "of a commit",
                          ptr);
    }
    *piece = block != NULL ? block->pieces : mapping->piece;
    if ((*piece)->next != NULL) {
        return ccmr__fail(CCMR_ERROR_NOT_SUPPORTED,
                          "export: the block at %p has grown and is more than "
                          "one handle",
                          ptr);
    }
    return CCMR_SUCCESS;
}

static ccmr_status check_kind(const ccmr__virtual *self, unsigned kind,
                              size_t handle_size)
{
    size_t needed =
        kind == CCMR_HANDLE_FABRIC ? sizeof(CUmemFabricHandle) : sizeof(int);

    if (kind != CCMR_HANDLE_POSIX_FD && kind != CCMR_HANDLE_FABRIC) {
        return ccmr__fail(CCMR_ERROR_NOT_SUPPORTED,
                          "export: kind 0x%x is neither posix_fd nor fabric",
                          kind);
    }
    if ((self->made.handle_kinds & kind) == 0) {
        return ccmr__fail(CCMR_ERROR_NOT_SUPPORTED,
                          "export: the resource was made without the handle "
                          "kind 0x%x; the option export asks for it",
                          kind);
    }
    if (handle_size != needed) {
        return ccmr__fail(CCMR_ERROR_INVALID_SIZE,
                          "export: a handle of kind 0x%x has %zu bytes, not "
                          "%zu",
                          kind, needed, handle_size);
    }
    return CCMR_SUCCESS;
}

/* A file descriptor is not for programs that are started meanwhile. */
static ccmr_status keep_private(int fd)
{
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) == 0) {
        return CCMR_SUCCESS;
    }
    (void)close(fd);
    return ccmr__fail(CCMR_ERROR_IO,
                      "export: the file descriptor cannot be closed on exec");
}

/* In the device's context, with `access` held alone: the piece stays. */
static ccmr_status export_piece(ccmr__virtual *self, const void *ptr,
                                unsigned kind, void *handle,
                                size_t handle_size, size_t *bytes)
{
    union {
        int fd;
        CUmemFabricHandle fabric;
    } got;
    const ccmr__piece *piece = NULL;
    ccmr_status status;
    CUresult res;

    (void)pthread_mutex_lock(&self->books);
    status = find_piece(self, ptr, &piece);
    if (status == CCMR_SUCCESS) {
        *bytes = piece->bytes;
    }
    (void)pthread_mutex_unlock(&self->books);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    res = CCMR__CU(cuMemExportToShareableHandle)(
        &got, piece->handle, (CUmemAllocationHandleType)kind, 0);
    if (res != CUDA_SUCCESS) {
        return ccmr__fail_driver((int)res, "cuMemExportToShareableHandle");
    }
    if (kind == CCMR_HANDLE_POSIX_FD) {
        status = keep_private(got.fd);
    }
    if (status == CCMR_SUCCESS) {
        memcpy(handle, &got, handle_size);
    }
    return status;
}

static ccmr_status export_whole(ccmr__virtual *self, const void *ptr,
                                unsigned kind, void *handle,
                                size_t handle_size, size_t *bytes)
{
    ccmr_status status = check_kind(self, kind, handle_size);
    ccmr__scope scope;

    if (status == CCMR_SUCCESS) {
        status = ccmr__scope_enter(&scope, self->device, CCMR__SCOPE_RELAXED);
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    (void)pthread_rwlock_wrlock(&self->access);
    status = export_piece(self, ptr, kind, handle, handle_size, bytes);
    (void)pthread_rwlock_unlock(&self->access);
    ccmr__scope_leave(&scope);
    return status;
}

ccmr_status ccmr__virtual_export_handle(void *object, void *ptr, unsigned kind,
                                        void *handle, size_t handle_size)
{
    size_t bytes;

    return export_whole(object, ptr, kind, handle, handle_size, &bytes);
}

ccmr_status ccmr__virtual_export_block(void *object, void *ptr, size_t bytes,
                                       unsigned kind, void *handle,
                                       size_t handle_size,
                                       ccmr_export_place *place)
{
    size_t whole;
    ccmr_status status =
        export_whole(object, ptr, kind, handle, handle_size, &whole);

    if (status == CCMR_SUCCESS) {
        place->offset = 0;
        place->bytes = bytes < whole ? bytes : whole;
        place->handle_bytes = whole;
    }
    return status;
}
