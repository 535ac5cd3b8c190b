/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second table of calls that are tried in every situation: virtual memory,
 * sharing, managed memory, graphs.
 */
#include "tests/fidelity/calls.h"
#include "tests/fidelity/pieces.h"

#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* Beside the objects of the fixture; all idle. */
static struct {
    struct mapping mapping;             /* for everything but its end */
    struct mapping spent;               /* for unmapping */
    CUmemGenericAllocationHandle piece; /* not mapped */
    CUdeviceptr range;                  /* nothing mapped */
    int piece_fd;
    CUmemoryPool pool; /* that can be shared */
    CUdeviceptr block; /* of it */
    CUmemPoolPtrExportData pointer;
    int pool_fd;
    CUdeviceptr managed;
    CUgraph graph; /* allocates, fills, frees */
    CUgraphExec exec;
    CUgraph empty;
    CUuserObject object;
} more;

static void CUDA_CB do_nothing(void *unused)
{
    (void)unused;
}

/* ---- the objects ---- */

static CUmemPoolProps shareable(void)
{
    CUmemPoolProps props = pool_properties(fixture.device);

    props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    return props;
}

static CUresult make_pieces(void)
{
    more.piece = make_shareable_piece(PAGE_BYTES);
    more.range = make_range(PAGE_BYTES);
    if (more.piece == 0 || more.range == 0 ||
        !mapping_make(&more.mapping, PAGE_BYTES) ||
        !mapping_make(&more.spent, PAGE_BYTES)) {
        return CUDA_ERROR_UNKNOWN;
    }
    return drv.cuMemExportToShareableHandle(
        &more.piece_fd, more.piece, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        0);
}

static CUresult make_shared(void)
{
    CUmemPoolProps props = shareable();
    CUresult res = drv.cuMemPoolCreate(&more.pool, &props);

    if (res == CUDA_SUCCESS) {
        res = drv.cuMemAllocFromPoolAsync(&more.block, FIXTURE_BYTES,
                                          more.pool, fixture.side);
    }
    if (res == CUDA_SUCCESS) {
        res = drv.cuMemPoolExportToShareableHandle(
            &more.pool_fd, more.pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
            0);
    }
    if (res == CUDA_SUCCESS) {
        res = drv.cuMemPoolExportPointer(&more.pointer, more.block);
    }
    return res;
}

static CUresult make_graphs(void)
{
    CUdeviceptr block = 0;
    CUresult res;

    res =
        drv.cuStreamBeginCapture(fixture.side, CU_STREAM_CAPTURE_MODE_RELAXED);
    if (res == CUDA_SUCCESS) {
        res = drv.cuMemAllocAsync(&block, FIXTURE_BYTES, fixture.side);
    }
    if (res == CUDA_SUCCESS) {
        res = drv.cuMemFreeAsync(block, fixture.side);
    }
    if (res == CUDA_SUCCESS) {
        res = drv.cuStreamEndCapture(fixture.side, &more.graph);
    }
    if (res == CUDA_SUCCESS) {
        res = drv.cuGraphInstantiateWithFlags(&more.exec, more.graph, 0);
    }
    if (res == CUDA_SUCCESS) {
        res = drv.cuGraphCreate(&more.empty, 0);
    }
    if (res == CUDA_SUCCESS) {
        res = drv.cuUserObjectCreate(&more.object, &more, do_nothing, 1,
                                     CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
    }
    return res;
}

static CUresult make_more(void)
{
    CUresult res;

    memset(&more, 0, sizeof more);
    more.piece_fd = -1;
    more.pool_fd = -1;
    res = make_pieces();
    if (res == CUDA_SUCCESS) {
        res = make_shared();
    }
    if (res == CUDA_SUCCESS) {
        res = drv.cuMemAllocManaged(&more.managed, FIXTURE_BYTES,
                                    CU_MEM_ATTACH_GLOBAL);
    }
    if (res == CUDA_SUCCESS) {
        res = make_graphs();
    }
    return res;
}

static void drop_graphs(void)
{
    if (more.exec != NULL) {
        drv.cuGraphExecDestroy(more.exec);
    }
    if (more.graph != NULL) {
        drv.cuGraphDestroy(more.graph);
    }
    if (more.empty != NULL) {
        drv.cuGraphDestroy(more.empty);
    }
    if (more.object != NULL) {
        drv.cuUserObjectRelease(more.object, 1);
    }
}

static void drop_more(void)
{
    drop_graphs();
    if (more.piece_fd >= 0) {
        close(more.piece_fd);
    }
    if (more.pool_fd >= 0) {
        close(more.pool_fd);
    }
    if (more.block != 0) {
        drv.cuMemFreeAsync(more.block, CU_STREAM_LEGACY);
        drv.cuStreamSynchronize(CU_STREAM_LEGACY);
    }
    if (more.pool != NULL) {
        drv.cuMemPoolDestroy(more.pool);
    }
    if (more.managed != 0) {
        drv.cuMemFree(more.managed);
    }
    mapping_drop(&more.mapping);
    mapping_drop(&more.spent);
    if (more.range != 0) {
        drv.cuMemAddressFree(more.range, PAGE_BYTES);
    }
    if (more.piece != 0) {
        drv.cuMemRelease(more.piece);
    }
    memset(&more, 0, sizeof more);
}

void more_prepare(void)
{
    fixture_make_more = make_more;
    fixture_drop_more = drop_more;
}

/* ---- virtual memory ---- */

static CUresult granularity(void)
{
    CUmemAllocationProp prop = piece_properties();
    size_t bytes;

    return drv.cuMemGetAllocationGranularity(&bytes, &prop,
                                             CU_MEM_ALLOC_GRANULARITY_MINIMUM);
}

static CUresult piece_create(void)
{
    CUmemAllocationProp prop = piece_properties();
    CUmemGenericAllocationHandle piece = 0;
    CUresult res = drv.cuMemCreate(&piece, PAGE_BYTES, &prop, 0);

    if (res == CUDA_SUCCESS) {
        drv.cuMemRelease(piece);
    }
    return res;
}

static CUresult piece_release(void)
{
    CUresult res = drv.cuMemRelease(more.piece);

    if (res == CUDA_SUCCESS) {
        more.piece = 0;
    }
    return res;
}

static CUresult range_reserve(void)
{
    CUdeviceptr range = 0;
    CUresult res = drv.cuMemAddressReserve(&range, PAGE_BYTES, 0, 0, 0);

    if (res == CUDA_SUCCESS) {
        drv.cuMemAddressFree(range, PAGE_BYTES);
    }
    return res;
}

static CUresult range_free(void)
{
    CUresult res = drv.cuMemAddressFree(more.range, PAGE_BYTES);

    if (res == CUDA_SUCCESS) {
        more.range = 0;
    }
    return res;
}

static CUresult range_map(void)
{
    CUresult res = drv.cuMemMap(more.range, PAGE_BYTES, 0, more.piece, 0);

    if (res == CUDA_SUCCESS) {
        drv.cuMemUnmap(more.range, PAGE_BYTES);
    }
    return res;
}

static CUresult range_unmap(void)
{
    return drv.cuMemUnmap(more.spent.address, PAGE_BYTES);
}

static CUresult access_set(void)
{
    return set_access(more.mapping.address, PAGE_BYTES,
                      CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

static CUresult access_get(void)
{
    unsigned long long flags;
    CUmemLocation location;

    memset(&location, 0, sizeof location);
    location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return drv.cuMemGetAccess(&flags, &location, more.mapping.address);
}

static CUresult piece_retain(void)
{
    CUmemGenericAllocationHandle piece = 0;
    CUresult res = drv.cuMemRetainAllocationHandle(
        &piece, (void *)(uintptr_t)more.mapping.address);

    if (res == CUDA_SUCCESS) {
        drv.cuMemRelease(piece);
    }
    return res;
}

static CUresult piece_properties_of(void)
{
    CUmemAllocationProp prop;

    return drv.cuMemGetAllocationPropertiesFromHandle(&prop, more.piece);
}

static CUresult piece_export(void)
{
    int fd = -1;
    CUresult res = drv.cuMemExportToShareableHandle(
        &fd, more.piece, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);

    if (res == CUDA_SUCCESS) {
        close(fd);
    }
    return res;
}

static CUresult piece_import(void)
{
    CUmemGenericAllocationHandle piece = 0;
    CUresult res = drv.cuMemImportFromShareableHandle(
        &piece, (void *)(intptr_t)more.piece_fd,
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);

    if (res == CUDA_SUCCESS) {
        drv.cuMemRelease(piece);
    }
    return res;
}

static CUresult pointer_of_mapping(void)
{
    CUmemorytype type;

    return drv.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                     more.mapping.address);
}

static CUresult range_of_mapping(void)
{
    CUdeviceptr base;
    size_t bytes;

    return drv.cuMemGetAddressRange(&base, &bytes, more.mapping.address);
}

/* ---- sharing ---- */

static CUresult pool_export(void)
{
    int fd = -1;
    CUresult res = drv.cuMemPoolExportToShareableHandle(
        &fd, more.pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);

    if (res == CUDA_SUCCESS) {
        close(fd);
    }
    return res;
}

static CUresult pointer_export(void)
{
    CUmemPoolPtrExportData data;

    return drv.cuMemPoolExportPointer(&data, more.block);
}

static CUresult ipc_handle(void)
{
    CUipcMemHandle handle;

    return drv.cuIpcGetMemHandle(&handle, fixture.plain);
}

static CUresult ipc_open_own(void)
{
    CUipcMemHandle handle;
    CUdeviceptr address = 0;
    CUresult res = drv.cuIpcGetMemHandle(&handle, fixture.plain);

    if (res == CUDA_SUCCESS) {
        res = drv.cuIpcOpenMemHandle(&address, handle,
                                     CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    }
    return res;
}

static CUresult ipc_close_own(void)
{
    return drv.cuIpcCloseMemHandle(fixture.plain);
}

/* ---- managed memory ---- */

static CUmemLocation here(void)
{
    CUmemLocation location;

    memset(&location, 0, sizeof location);
    location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    location.id = (int)fixture.device;
    return location;
}

static CUresult prefetch_on(CUstream stream)
{
    return drv.cuMemPrefetchAsync(more.managed, FIXTURE_BYTES, here(), 0,
                                  stream);
}

static CUresult prefetch_side(void)
{
    return prefetch_on(fixture.side);
}

static CUresult prefetch_main(void)
{
    return prefetch_on(fixture.main);
}

static CUresult prefetch_legacy(void)
{
    return prefetch_on(CU_STREAM_LEGACY);
}

static CUresult advise(void)
{
    return drv.cuMemAdvise(more.managed, FIXTURE_BYTES,
                           CU_MEM_ADVISE_SET_READ_MOSTLY, here());
}

static CUresult range_attribute(void)
{
    int value;

    return drv.cuMemRangeGetAttribute(&value, sizeof value,
                                      CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
                                      more.managed, FIXTURE_BYTES);
}

static CUresult attach_side(void)
{
    return drv.cuStreamAttachMemAsync(fixture.side, more.managed, 0,
                                      CU_MEM_ATTACH_GLOBAL);
}

static CUresult attach_main(void)
{
    return drv.cuStreamAttachMemAsync(fixture.main, more.managed, 0,
                                      CU_MEM_ATTACH_GLOBAL);
}

static CUresult managed_free(void)
{
    CUresult res = drv.cuMemFree(more.managed);

    if (res == CUDA_SUCCESS) {
        more.managed = 0;
    }
    return res;
}

static CUresult managed_free_side(void)
{
    CUresult res = drv.cuMemFreeAsync(more.managed, fixture.side);

    if (res == CUDA_SUCCESS) {
        more.managed = 0;
    }
    return res;
}

/* ---- graphs ---- */

static CUresult graph_memory_get(void)
{
    cuuint64_t value;

    return drv.cuDeviceGetGraphMemAttribute(
        fixture.device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &value);
}

static CUresult graph_memory_set(void)
{
    cuuint64_t value = 0;

    return drv.cuDeviceSetGraphMemAttribute(
        fixture.device, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value);
}

static CUresult graph_memory_trim(void)
{
    return drv.cuDeviceGraphMemTrim(fixture.device);
}

static CUresult graph_create(void)
{
    CUgraph graph = NULL;
    CUresult res = drv.cuGraphCreate(&graph, 0);

    if (res == CUDA_SUCCESS) {
        drv.cuGraphDestroy(graph);
    }
    return res;
}

static CUresult graph_destroy(void)
{
    CUresult res = drv.cuGraphDestroy(more.empty);

    if (res == CUDA_SUCCESS) {
        more.empty = NULL;
    }
    return res;
}

static CUresult graph_instantiate(void)
{
    CUgraphExec exec = NULL;
    CUresult res = drv.cuGraphInstantiateWithFlags(&exec, more.empty, 0);

    if (res == CUDA_SUCCESS) {
        drv.cuGraphExecDestroy(exec);
    }
    return res;
}

static CUresult graph_launch_side(void)
{
    return drv.cuGraphLaunch(more.exec, fixture.side);
}

static CUresult graph_launch_main(void)
{
    return drv.cuGraphLaunch(more.exec, fixture.main);
}

static CUresult graph_launch_legacy(void)
{
    return drv.cuGraphLaunch(more.exec, CU_STREAM_LEGACY);
}

static CUresult graph_upload_side(void)
{
    return drv.cuGraphUpload(more.exec, fixture.side);
}

static CUresult exec_destroy(void)
{
    CUresult res = drv.cuGraphExecDestroy(more.exec);

    if (res == CUDA_SUCCESS) {
        more.exec = NULL;
    }
    return res;
}

static CUresult object_create(void)
{
    CUuserObject object = NULL;
    CUresult res = drv.cuUserObjectCreate(&object, &more, do_nothing, 1,
                                          CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);

    if (res == CUDA_SUCCESS) {
        drv.cuUserObjectRelease(object, 1);
    }
    return res;
}

static CUresult object_release(void)
{
    CUresult res = drv.cuUserObjectRelease(more.object, 1);

    if (res == CUDA_SUCCESS) {
        more.object = NULL;
    }
    return res;
}

static CUresult object_retain(void)
{
    CUresult res = drv.cuUserObjectRetain(more.object, 1);

    if (res == CUDA_SUCCESS) {
        drv.cuUserObjectRelease(more.object, 1);
    }
    return res;
}

static CUresult object_by_graph(void)
{
    return drv.cuGraphRetainUserObject(more.empty, more.object, 1, 0);
}

const struct fidelity_case more_calls[] = {
    {"cuMemGetAllocationGranularity", NULL, granularity},
    {"cuMemCreate", NULL, piece_create},
    {"cuMemRelease", NULL, piece_release},
    {"cuMemAddressReserve", NULL, range_reserve},
    {"cuMemAddressFree", NULL, range_free},
    {"cuMemMap", NULL, range_map},
    {"cuMemUnmap", NULL, range_unmap},
    {"cuMemSetAccess", NULL, access_set},
    {"cuMemGetAccess", NULL, access_get},
    {"cuMemRetainAllocationHandle", NULL, piece_retain},
    {"cuMemGetAllocationPropertiesFromHandle", NULL, piece_properties_of},
    {"cuMemExportToShareableHandle", NULL, piece_export},
    {"cuMemImportFromShareableHandle", NULL, piece_import},
    {"cuPointerGetAttribute_virtual", NULL, pointer_of_mapping},
    {"cuMemGetAddressRange_virtual", NULL, range_of_mapping},
    {"cuMemPoolExportToShareableHandle", NULL, pool_export},
    {"cuMemPoolExportPointer", NULL, pointer_export},
    {"cuIpcGetMemHandle", NULL, ipc_handle},
    {"cuIpcOpenMemHandle_own", NULL, ipc_open_own},
    {"cuIpcCloseMemHandle_own", NULL, ipc_close_own},
    {"cuMemPrefetchAsync_side", NULL, prefetch_side},
    {"cuMemPrefetchAsync_main", NULL, prefetch_main},
    {"cuMemPrefetchAsync_legacy", NULL, prefetch_legacy},
    {"cuMemAdvise", NULL, advise},
    {"cuMemRangeGetAttribute", NULL, range_attribute},
    {"cuStreamAttachMemAsync_side", NULL, attach_side},
    {"cuStreamAttachMemAsync_main", NULL, attach_main},
    {"cuMemFree_managed", NULL, managed_free},
    {"cuMemFreeAsync_managed_side", NULL, managed_free_side},
    {"cuDeviceGetGraphMemAttribute", NULL, graph_memory_get},
    {"cuDeviceSetGraphMemAttribute", NULL, graph_memory_set},
    {"cuDeviceGraphMemTrim", NULL, graph_memory_trim},
    {"cuGraphCreate", NULL, graph_create},
    {"cuGraphDestroy", NULL, graph_destroy},
    {"cuGraphInstantiate", NULL, graph_instantiate},
    {"cuGraphLaunch_side", NULL, graph_launch_side},
    {"cuGraphLaunch_main", NULL, graph_launch_main},
    {"cuGraphLaunch_legacy", NULL, graph_launch_legacy},
    {"cuGraphUpload_side", NULL, graph_upload_side},
    {"cuGraphExecDestroy", NULL, exec_destroy},
    {"cuUserObjectCreate", NULL, object_create},
    {"cuUserObjectRelease", NULL, object_release},
    {"cuUserObjectRetain", NULL, object_retain},
    {"cuGraphRetainUserObject", NULL, object_by_graph},
    FIDELITY_END,
};
