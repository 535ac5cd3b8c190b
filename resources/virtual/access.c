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

/* What is to be exported, and where it was found. */
typedef struct wanted {
    uintptr_t address;
    size_t bytes; /* 0: all of the only handle of what begins there */
    unsigned kind;
    void *handle;
    size_t handle_size;
    /* [out] */
    const ccmr__piece *piece;
    size_t offset; /* of the address in it */
} wanted;

static ccmr_status fail_unknown(const wanted *of, const char *what)
{
    return ccmr__fail(CCMR_ERROR_INVALID_POINTER,
                      "export: %p is not %s a live block or a commit",
                      (void *)of->address, what);
}

/* Under the lock of the books: the only handle behind an address. */
static ccmr_status find_whole(const ccmr__virtual *self, wanted *of)
{
    const ccmr__virtual_block *block =
        (const ccmr__virtual_block *)ccmr__tree_find(&self->blocks,
                                                     of->address);
    const ccmr__mapping *mapping =
        (const ccmr__mapping *)ccmr__tree_find(&self->mappings, of->address);

    if (block == NULL && mapping == NULL) {
        return fail_unknown(of, "the address of");
    }
    of->piece = block != NULL ? block->pieces : mapping->piece;
    if (of->piece->next != NULL) {
        return ccmr__fail(CCMR_ERROR_NOT_SUPPORTED,
                          "export: the block at %p has grown and is more than "
                          "one handle: ccmr_resource_export_block() exports "
                          "one at a time",
                          (void *)of->address);
    }
    return CCMR_SUCCESS;
}

/* The handle of a block that an offset lies in. The last one comes first. */
static void find_in_block(const ccmr__virtual_block *block, wanted *of)
{
    size_t offset = of->address - block->range.node.address;
    size_t start = block->mapped;

    for (of->piece = block->pieces; of->piece != NULL;
         of->piece = of->piece->next) {
        start -= of->piece->bytes;
        if (offset >= start) {
            break;
        }
    }
    of->offset = offset - start;
}

/* Under the lock of the books: the handle that an address lies in, of a block
 * (or a commit) that has all of the bytes. */
static ccmr_status find_part(const ccmr__virtual *self, wanted *of)
{
    const ccmr__virtual_block *block =
        (const ccmr__virtual_block *)ccmr__tree_last(&self->blocks,
                                                     of->address);
    const ccmr__mapping *mapping =
        (const ccmr__mapping *)ccmr__tree_last(&self->mappings, of->address);
    size_t left;

    if (block != NULL &&
        of->address - block->range.node.address < block->bytes) {
        left = block->bytes - (of->address - block->range.node.address);
        find_in_block(block, of);
    } else if (mapping != NULL &&
               of->address - mapping->node.address < mapping->piece->bytes) {
        of->piece = mapping->piece;
        of->offset = of->address - mapping->node.address;
        left = of->piece->bytes - of->offset;
    } else {
        return fail_unknown(of, "in");
    }
    if (of->bytes > left) {
        return ccmr__fail(CCMR_ERROR_INVALID_SIZE,
                          "export: %zu bytes at %p, of which the block has "
                          "%zu",
                          of->bytes, (void *)of->address, left);
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
static ccmr_status export_piece(ccmr__virtual *self, wanted *of, size_t *whole)
{
    union {
        int fd;
        CUmemFabricHandle fabric;
    } got;
    ccmr_status status;
    CUresult res;

    (void)pthread_mutex_lock(&self->books);
    status = of->bytes == 0 ? find_whole(self, of) : find_part(self, of);
    if (status == CCMR_SUCCESS) {
        *whole = of->piece->bytes;
    }
    (void)pthread_mutex_unlock(&self->books);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    res = CCMR__CU(cuMemExportToShareableHandle)(
        &got, of->piece->handle, (CUmemAllocationHandleType)of->kind, 0);
    if (res != CUDA_SUCCESS) {
        return ccmr__fail_driver((int)res, "cuMemExportToShareableHandle");
    }
    if (of->kind == CCMR_HANDLE_POSIX_FD) {
        status = keep_private(got.fd);
    }
    if (status == CCMR_SUCCESS) {
        memcpy(of->handle, &got, of->handle_size);
    }
    return status;
}

static ccmr_status export_found(ccmr__virtual *self, wanted *of, size_t *whole)
{
    ccmr_status status = check_kind(self, of->kind, of->handle_size);
    ccmr__scope scope;

    if (status == CCMR_SUCCESS) {
        status = ccmr__scope_enter(&scope, self->device, CCMR__SCOPE_RELAXED);
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    (void)pthread_rwlock_wrlock(&self->access);
    status = export_piece(self, of, whole);
    (void)pthread_rwlock_unlock(&self->access);
    ccmr__scope_leave(&scope);
    return status;
}

ccmr_status ccmr__virtual_export_handle(void *object, void *ptr, unsigned kind,
                                        void *handle, size_t handle_size)
{
    wanted of = {.address = (uintptr_t)ptr,
                 .kind = kind,
                 .handle = handle,
                 .handle_size = handle_size};
    size_t whole;

    return export_found(object, &of, &whole);
}

ccmr_status ccmr__virtual_export_block(void *object, void *ptr, size_t bytes,
                                       unsigned kind, void *handle,
                                       size_t handle_size,
                                       ccmr_export_place *place)
{
    wanted of = {.address = (uintptr_t)ptr,
                 .bytes = bytes,
                 .kind = kind,
                 .handle = handle,
                 .handle_size = handle_size};
    size_t whole;
    ccmr_status status = export_found(object, &of, &whole);

    if (status == CCMR_SUCCESS) {
        size_t left = whole - of.offset;

        place->offset = of.offset;
        place->bytes = bytes < left ? bytes : left;
        place->handle_bytes = whole;
    }
    return status;
}
