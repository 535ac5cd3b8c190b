/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fidelity/calls.h"

#include <stdint.h>
#include <string.h>

struct fixture fixture;
CUresult (*fixture_make_more)(void);
void (*fixture_drop_more)(void);

static unsigned char host_bytes[FIXTURE_BYTES];
static unsigned char page[2 * FIXTURE_BYTES]
    __attribute__((aligned(FIXTURE_BYTES)));

/* ---- the objects ---- */

CUmemPoolProps pool_properties(CUdevice device)
{
    CUmemPoolProps props;

    memset(&props, 0, sizeof props);
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    props.location.id = (int)device;
    return props;
}

CUmemoryPool make_pool(size_t max_bytes)
{
    CUmemPoolProps props = pool_properties(0);
    CUmemoryPool pool = NULL;
    CUresult res;

    props.maxSize = max_bytes;
    res = drv.cuMemPoolCreate(&pool, &props);
    if (res != CUDA_SUCCESS) {
        fact_result("create_pool", res);
    }
    return pool;
}

CUstream make_stream(unsigned int flags)
{
    CUstream stream = NULL;
    CUresult res = drv.cuStreamCreate(&stream, flags);

    if (res != CUDA_SUCCESS) {
        fact_result("create_stream", res);
    }
    return stream;
}

static CUresult make_memory(void)
{
    CUmemPoolProps props = pool_properties(fixture.device);
    CUresult res;

    res = drv.cuMemAlloc(&fixture.plain, FIXTURE_BYTES);
    if (res == CUDA_SUCCESS) {
        res = drv.cuMemAlloc(&fixture.target, FIXTURE_BYTES);
    }
    if (res == CUDA_SUCCESS) {
        res = drv.cuMemHostAlloc(&fixture.pinned, FIXTURE_BYTES,
                                 CU_MEMHOSTALLOC_PORTABLE);
    }
    if (res == CUDA_SUCCESS) {
        res = drv.cuMemAllocAsync(&fixture.block, FIXTURE_BYTES, fixture.side);
    }
    if (res == CUDA_SUCCESS) {
        res = drv.cuMemPoolCreate(&fixture.pool, &props);
    }
    if (res == CUDA_SUCCESS) {
        res = drv.cuDeviceGetDefaultMemPool(&fixture.standard, fixture.device);
    }
    return res;
}

bool fixture_make(unsigned int main_flags)
{
    CUresult res;

    memset(&fixture, 0, sizeof fixture);
    res = drv.cuDeviceGet(&fixture.device, 0);
    if (res == CUDA_SUCCESS) {
        res = drv.cuCtxGetCurrent(&fixture.primary);
    }
    if (res == CUDA_SUCCESS) {
        res = drv.cuStreamCreate(&fixture.main, main_flags);
    }
    if (res == CUDA_SUCCESS) {
        res = drv.cuStreamCreate(&fixture.side, CU_STREAM_NON_BLOCKING);
    }
    if (res == CUDA_SUCCESS) {
        res = make_memory();
    }
    if (res == CUDA_SUCCESS) {
        res = drv.cuEventCreate(&fixture.event, CU_EVENT_DEFAULT);
    }
    if (res == CUDA_SUCCESS) {
        res = drv.cuEventRecord(fixture.event, fixture.side);
    }
    if (res == CUDA_SUCCESS) {
        res = drv.cuStreamSynchronize(fixture.side);
    }
    if (res == CUDA_SUCCESS && fixture_make_more != NULL) {
        res = fixture_make_more();
    }
    if (res == CUDA_SUCCESS) {
        res = drv.cuStreamSynchronize(fixture.side);
    }
    if (res != CUDA_SUCCESS) {
        fact_result("fixture", res);
        fixture_drop();
        return false;
    }
    return true;
}

void fixture_drop(void)
{
    drv.cuCtxSetCurrent(fixture.primary);
    drv.cuCtxSynchronize();
    if (fixture_drop_more != NULL) {
        fixture_drop_more();
    }
    while (fixture.made_count > 0) {
        fixture.made_count--;
        fixture.undo[fixture.made_count](fixture.made[fixture.made_count]);
    }
    if (fixture.event != NULL) {
        drv.cuEventDestroy(fixture.event);
    }
    if (fixture.block != 0 && fixture.side != NULL) {
        drv.cuMemFreeAsync(fixture.block, fixture.side);
    }
    if (fixture.plain != 0) {
        drv.cuMemFree(fixture.plain);
    }
    if (fixture.target != 0) {
        drv.cuMemFree(fixture.target);
    }
    if (fixture.pinned != NULL) {
        drv.cuMemFreeHost(fixture.pinned);
    }
    if (fixture.main != NULL) {
        drv.cuStreamDestroy(fixture.main);
    }
    if (fixture.side != NULL) {
        drv.cuStreamDestroy(fixture.side);
    }
    drv.cuCtxSynchronize();
    if (fixture.pool != NULL) {
        drv.cuMemPoolDestroy(fixture.pool);
    }
    memset(&fixture, 0, sizeof fixture);
}

/* Undoing happens after the observation, in the primary context. */
static void undo_plain(void *made)
{
    drv.cuMemFree((CUdeviceptr)(uintptr_t)made);
}

static void undo_block(void *made)
{
    drv.cuMemFreeAsync((CUdeviceptr)(uintptr_t)made, CU_STREAM_LEGACY);
    drv.cuStreamSynchronize(CU_STREAM_LEGACY);
}

static void undo_pinned(void *made)
{
    drv.cuMemFreeHost(made);
}

static void undo_registered(void *made)
{
    drv.cuMemHostUnregister(made);
}

static void undo_stream(void *made)
{
    drv.cuStreamDestroy((CUstream)made);
}

static void undo_event(void *made)
{
    drv.cuEventDestroy((CUevent)made);
}

static void undo_pool(void *made)
{
    drv.cuMemPoolDestroy((CUmemoryPool)made);
}

static void undo_retain(void *made)
{
    (void)made;
    drv.cuDevicePrimaryCtxRelease(fixture.device);
}

static CUresult keep(CUresult res, void (*undo)(void *), void *made)
{
    if (res == CUDA_SUCCESS && fixture.made_count < FIXTURE_MADE) {
        fixture.undo[fixture.made_count] = undo;
        fixture.made[fixture.made_count] = made;
        fixture.made_count++;
    }
    return res;
}

static void *as_pointer(CUdeviceptr address)
{
    return (void *)(uintptr_t)address;
}

/* What a capture allocates belongs to its graph and goes with it. */
static CUresult keep_block(CUresult res, CUdeviceptr block, CUstream stream)
{
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;

    if (res == CUDA_SUCCESS && stream == fixture.main) {
        drv.cuStreamIsCapturing(stream, &capture);
    }
    if (capture != CU_STREAM_CAPTURE_STATUS_NONE) {
        return res;
    }
    return keep(res, undo_block, as_pointer(block));
}

/* ---- calls on a stream, each tried on four ---- */

#define ON_EACH_STREAM(id)                                                    \
    static CUresult id##_side(void)                                           \
    {                                                                         \
        return id(fixture.side);                                              \
    }                                                                         \
    static CUresult id##_main(void)                                           \
    {                                                                         \
        return id(fixture.main);                                              \
    }                                                                         \
    static CUresult id##_legacy(void)                                         \
    {                                                                         \
        return id(CU_STREAM_LEGACY);                                          \
    }                                                                         \
    static CUresult id##_per_thread(void)                                     \
    {                                                                         \
        return id(CU_STREAM_PER_THREAD);                                      \
    }

static CUresult is_capturing(CUstream stream)
{
    CUstreamCaptureStatus capture;

    return drv.cuStreamIsCapturing(stream, &capture);
}
ON_EACH_STREAM(is_capturing)

static CUresult get_id(CUstream stream)
{
    unsigned long long id;

    return drv.cuStreamGetId(stream, &id);
}
ON_EACH_STREAM(get_id)

static CUresult get_device(CUstream stream)
{
    CUdevice device;

    return drv.cuStreamGetDevice(stream, &device);
}
ON_EACH_STREAM(get_device)

static CUresult get_context(CUstream stream)
{
    CUcontext context;

    return drv.cuStreamGetCtx(stream, &context);
}
ON_EACH_STREAM(get_context)

static CUresult get_flags(CUstream stream)
{
    unsigned int flags;

    return drv.cuStreamGetFlags(stream, &flags);
}
ON_EACH_STREAM(get_flags)

static CUresult get_priority(CUstream stream)
{
    int priority;

    return drv.cuStreamGetPriority(stream, &priority);
}
ON_EACH_STREAM(get_priority)

static CUresult query(CUstream stream)
{
    return drv.cuStreamQuery(stream);
}
ON_EACH_STREAM(query)

static CUresult synchronize(CUstream stream)
{
    return drv.cuStreamSynchronize(stream);
}
ON_EACH_STREAM(synchronize)

static CUresult wait_event(CUstream stream)
{
    return drv.cuStreamWaitEvent(stream, fixture.event, 0);
}
ON_EACH_STREAM(wait_event)

static CUresult capture_info(CUstream stream)
{
    CUstreamCaptureStatus capture;

    return drv.cuStreamGetCaptureInfo(stream, &capture, NULL, NULL, NULL, NULL,
                                      NULL);
}
ON_EACH_STREAM(capture_info)

static CUresult record(CUstream stream)
{
    return drv.cuEventRecord(fixture.event, stream);
}
ON_EACH_STREAM(record)

static CUresult allocate(CUstream stream)
{
    CUdeviceptr block = 0;
    CUresult res = drv.cuMemAllocAsync(&block, FIXTURE_BYTES, stream);

    return keep_block(res, block, stream);
}
ON_EACH_STREAM(allocate)

static CUresult allocate_from(CUstream stream)
{
    CUdeviceptr block = 0;
    CUresult res = drv.cuMemAllocFromPoolAsync(&block, FIXTURE_BYTES,
                                               fixture.pool, stream);

    return keep_block(res, block, stream);
}
ON_EACH_STREAM(allocate_from)

static CUresult free_block(CUstream stream)
{
    CUresult res = drv.cuMemFreeAsync(fixture.block, stream);

    if (res == CUDA_SUCCESS) {
        fixture.block = 0;
    }
    return res;
}
ON_EACH_STREAM(free_block)

static CUresult fill(CUstream stream)
{
    return drv.cuMemsetD8Async(fixture.target, 1, FIXTURE_BYTES, stream);
}
ON_EACH_STREAM(fill)

static CUresult copy(CUstream stream)
{
    return drv.cuMemcpyDtoDAsync(fixture.target, fixture.target + 1024, 1024,
                                 stream);
}
ON_EACH_STREAM(copy)

static void CUDA_CB do_nothing(void *unused)
{
    (void)unused;
}

static CUresult host_function(CUstream stream)
{
    return drv.cuLaunchHostFunc(stream, do_nothing, NULL);
}
ON_EACH_STREAM(host_function)

/* ---- streams and events ---- */

static CUresult stream_create(void)
{
    CUstream stream = NULL;
    CUresult res = drv.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);

    return keep(res, undo_stream, stream);
}

static CUresult stream_destroy_side(void)
{
    CUresult res = drv.cuStreamDestroy(fixture.side);

    if (res == CUDA_SUCCESS) {
        fixture.side = NULL;
    }
    return res;
}

static CUresult stream_destroy_main(void)
{
    CUresult res = drv.cuStreamDestroy(fixture.main);

    if (res == CUDA_SUCCESS) {
        fixture.main = NULL;
    }
    return res;
}

static CUresult event_create(void)
{
    CUevent event = NULL;
    CUresult res = drv.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);

    return keep(res, undo_event, event);
}

static CUresult event_query(void)
{
    return drv.cuEventQuery(fixture.event);
}

static CUresult event_synchronize(void)
{
    return drv.cuEventSynchronize(fixture.event);
}

static CUresult event_elapsed(void)
{
    float ms;

    return drv.cuEventElapsedTime(&ms, fixture.event, fixture.event);
}

static CUresult event_destroy(void)
{
    CUresult res = drv.cuEventDestroy(fixture.event);

    if (res == CUDA_SUCCESS) {
        fixture.event = NULL;
    }
    return res;
}

/* ---- plain, managed and pinned memory ---- */

static CUresult plain_alloc(void)
{
    CUdeviceptr address = 0;
    CUresult res = drv.cuMemAlloc(&address, FIXTURE_BYTES);

    return keep(res, undo_plain, as_pointer(address));
}

static CUresult plain_free(void)
{
    CUresult res = drv.cuMemFree(fixture.plain);

    if (res == CUDA_SUCCESS) {
        fixture.plain = 0;
    }
    return res;
}

static CUresult plain_free_block(void)
{
    CUresult res = drv.cuMemFree(fixture.block);

    if (res == CUDA_SUCCESS) {
        fixture.block = 0;
    }
    return res;
}

static CUresult plain_info(void)
{
    size_t available;
    size_t total;

    return drv.cuMemGetInfo(&available, &total);
}

static CUresult plain_range(void)
{
    CUdeviceptr base;
    size_t bytes;

    return drv.cuMemGetAddressRange(&base, &bytes, fixture.plain);
}

static CUresult pointer_type(CUdeviceptr address)
{
    CUmemorytype type;

    return drv.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                     address);
}

static CUresult pointer_plain(void)
{
    return pointer_type(fixture.plain);
}

static CUresult pointer_block(void)
{
    return pointer_type(fixture.block);
}

static CUresult pointer_pinned(void)
{
    return pointer_type((CUdeviceptr)(uintptr_t)fixture.pinned);
}

static CUresult pointer_device(void)
{
    int ordinal;

    return drv.cuPointerGetAttribute(
        &ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, fixture.plain);
}

static CUresult managed_alloc(void)
{
    CUdeviceptr address = 0;
    CUresult res =
        drv.cuMemAllocManaged(&address, FIXTURE_BYTES, CU_MEM_ATTACH_GLOBAL);

    return keep(res, undo_plain, as_pointer(address));
}

static CUresult host_alloc(void)
{
    void *address = NULL;
    CUresult res = drv.cuMemHostAlloc(&address, FIXTURE_BYTES, 0);

    return keep(res, undo_pinned, address);
}

static CUresult alloc_host(void)
{
    void *address = NULL;
    CUresult res = drv.cuMemAllocHost(&address, FIXTURE_BYTES);

    return keep(res, undo_pinned, address);
}

static CUresult free_host(void)
{
    CUresult res = drv.cuMemFreeHost(fixture.pinned);

    if (res == CUDA_SUCCESS) {
        fixture.pinned = NULL;
    }
    return res;
}

static CUresult host_device_pointer(void)
{
    CUdeviceptr address;

    return drv.cuMemHostGetDevicePointer(&address, fixture.pinned, 0);
}

static CUresult host_flags(void)
{
    unsigned int flags;

    return drv.cuMemHostGetFlags(&flags, fixture.pinned);
}

static CUresult host_register(void)
{
    return keep(drv.cuMemHostRegister(page, FIXTURE_BYTES, 0), undo_registered,
                page);
}

/* ---- pools ---- */

static CUresult pool_create(void)
{
    CUmemPoolProps props = pool_properties(fixture.device);
    CUmemoryPool pool = NULL;
    CUresult res = drv.cuMemPoolCreate(&pool, &props);

    return keep(res, undo_pool, pool);
}

static CUresult pool_destroy(void)
{
    CUresult res = drv.cuMemPoolDestroy(fixture.pool);

    if (res == CUDA_SUCCESS) {
        fixture.pool = NULL;
    }
    return res;
}

static CUresult pool_get(void)
{
    cuuint64_t value;

    return drv.cuMemPoolGetAttribute(fixture.pool,
                                     CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value);
}

static CUresult pool_get_threshold(void)
{
    cuuint64_t value;

    return drv.cuMemPoolGetAttribute(
        fixture.standard, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value);
}

static CUresult pool_set(void)
{
    cuuint64_t value = 0;

    return drv.cuMemPoolSetAttribute(
        fixture.pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value);
}

static CUresult pool_set_reuse(void)
{
    int value = 1;

    return drv.cuMemPoolSetAttribute(
        fixture.pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &value);
}

static CUresult pool_trim(void)
{
    return drv.cuMemPoolTrimTo(fixture.pool, 0);
}

static CUresult pool_trim_standard(void)
{
    return drv.cuMemPoolTrimTo(fixture.standard, 0);
}

static CUresult pool_set_access(void)
{
    CUmemAccessDesc access;

    memset(&access, 0, sizeof access);
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = (int)fixture.device;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return drv.cuMemPoolSetAccess(fixture.pool, &access, 1);
}

static CUresult pool_get_access(void)
{
    CUmemAccess_flags flags;
    CUmemLocation location;

    memset(&location, 0, sizeof location);
    location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    location.id = (int)fixture.device;
    return drv.cuMemPoolGetAccess(&flags, fixture.pool, &location);
}

static CUresult pool_default(void)
{
    CUmemoryPool pool;

    return drv.cuDeviceGetDefaultMemPool(&pool, fixture.device);
}

static CUresult pool_current(void)
{
    CUmemoryPool pool;

    return drv.cuDeviceGetMemPool(&pool, fixture.device);
}

static CUresult pool_set_current(void)
{
    return drv.cuDeviceSetMemPool(fixture.device, fixture.standard);
}

static CUresult pool_default_by_location(void)
{
    CUmemoryPool pool;
    CUmemLocation location;

    memset(&location, 0, sizeof location);
    location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    location.id = (int)fixture.device;
    return drv.cuMemGetDefaultMemPool(&pool, &location,
                                      CU_MEM_ALLOCATION_TYPE_PINNED);
}

/* ---- copies and fills that have no stream argument ---- */

static CUresult copy_in(void)
{
    return drv.cuMemcpyHtoD(fixture.target, host_bytes, sizeof host_bytes);
}

static CUresult copy_out(void)
{
    return drv.cuMemcpyDtoH(host_bytes, fixture.target, sizeof host_bytes);
}

static CUresult copy_within(void)
{
    return drv.cuMemcpyDtoD(fixture.target, fixture.target + 1024, 1024);
}

static CUresult fill_now(void)
{
    return drv.cuMemsetD8(fixture.target, 1, FIXTURE_BYTES);
}

/* ---- contexts and devices ---- */

static CUresult primary_retain(void)
{
    CUcontext context = NULL;
    CUresult res = drv.cuDevicePrimaryCtxRetain(&context, fixture.device);

    return keep(res, undo_retain, context);
}

static CUresult primary_state(void)
{
    unsigned int flags;
    int active;

    return drv.cuDevicePrimaryCtxGetState(fixture.device, &flags, &active);
}

static CUresult context_get(void)
{
    CUcontext context;

    return drv.cuCtxGetCurrent(&context);
}

static CUresult context_device(void)
{
    CUdevice device;

    return drv.cuCtxGetDevice(&device);
}

static CUresult context_push_pop(void)
{
    CUcontext popped;
    CUresult res = drv.cuCtxPushCurrent(fixture.primary);

    if (res == CUDA_SUCCESS) {
        res = drv.cuCtxPopCurrent(&popped);
    }
    return res;
}

static CUresult context_synchronize(void)
{
    return drv.cuCtxSynchronize();
}

static CUresult exchange_mode(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUresult res = drv.cuThreadExchangeStreamCaptureMode(&mode);

    if (res == CUDA_SUCCESS) {
        res = drv.cuThreadExchangeStreamCaptureMode(&mode);
    }
    return res;
}

static CUresult init_again(void)
{
    return drv.cuInit(0);
}

static CUresult driver_version(void)
{
    int version;

    return drv.cuDriverGetVersion(&version);
}

static CUresult device_count(void)
{
    int count;

    return drv.cuDeviceGetCount(&count);
}

static CUresult device_attribute(void)
{
    int value;

    return drv.cuDeviceGetAttribute(
        &value, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, fixture.device);
}

static CUresult device_total(void)
{
    size_t bytes;

    return drv.cuDeviceTotalMem(&bytes, fixture.device);
}

static CUresult proc_address(void)
{
    void *address;
    CUdriverProcAddressQueryResult found;

    return drv.cuGetProcAddress("cuMemAlloc", &address, 12000, 0, &found);
}

/* ---- the table ---- */

#define STREAM_CALL(name, id)                                                 \
    {name "_side", NULL, id##_side}, {name "_main", NULL, id##_main},         \
        {name "_legacy", NULL, id##_legacy},                                  \
    {                                                                         \
        name "_per_thread", NULL, id##_per_thread                             \
    }

const struct fidelity_case every_call[] = {
    STREAM_CALL("cuStreamIsCapturing", is_capturing),
    STREAM_CALL("cuStreamGetId", get_id),
    STREAM_CALL("cuStreamGetDevice", get_device),
    STREAM_CALL("cuStreamGetCtx", get_context),
    STREAM_CALL("cuStreamGetFlags", get_flags),
    STREAM_CALL("cuStreamGetPriority", get_priority),
    STREAM_CALL("cuStreamGetCaptureInfo", capture_info),
    STREAM_CALL("cuStreamQuery", query),
    STREAM_CALL("cuStreamSynchronize", synchronize),
    STREAM_CALL("cuStreamWaitEvent", wait_event),
    STREAM_CALL("cuEventRecord", record),
    STREAM_CALL("cuMemAllocAsync", allocate),
    STREAM_CALL("cuMemAllocFromPoolAsync", allocate_from),
    STREAM_CALL("cuMemFreeAsync", free_block),
    STREAM_CALL("cuMemsetD8Async", fill),
    STREAM_CALL("cuMemcpyDtoDAsync", copy),
    STREAM_CALL("cuLaunchHostFunc", host_function),
    {"cuStreamCreate", NULL, stream_create},
    {"cuStreamDestroy_side", NULL, stream_destroy_side},
    {"cuEventCreate", NULL, event_create},
    {"cuEventQuery", NULL, event_query},
    {"cuEventSynchronize", NULL, event_synchronize},
    {"cuEventElapsedTime", NULL, event_elapsed},
    {"cuEventDestroy", NULL, event_destroy},
    {"cuMemAlloc", NULL, plain_alloc},
    {"cuMemFree", NULL, plain_free},
    {"cuMemFree_pool_block", NULL, plain_free_block},
    {"cuMemGetInfo", NULL, plain_info},
    {"cuMemGetAddressRange", NULL, plain_range},
    {"cuPointerGetAttribute_plain", NULL, pointer_plain},
    {"cuPointerGetAttribute_pool_block", NULL, pointer_block},
    {"cuPointerGetAttribute_pinned", NULL, pointer_pinned},
    {"cuPointerGetAttribute_ordinal", NULL, pointer_device},
    {"cuMemAllocManaged", NULL, managed_alloc},
    {"cuMemHostAlloc", NULL, host_alloc},
    {"cuMemAllocHost", NULL, alloc_host},
    {"cuMemFreeHost", NULL, free_host},
    {"cuMemHostGetDevicePointer", NULL, host_device_pointer},
    {"cuMemHostGetFlags", NULL, host_flags},
    {"cuMemHostRegister", NULL, host_register},
    {"cuMemPoolCreate", NULL, pool_create},
    {"cuMemPoolDestroy", NULL, pool_destroy},
    {"cuMemPoolGetAttribute", NULL, pool_get},
    {"cuMemPoolGetAttribute_default", NULL, pool_get_threshold},
    {"cuMemPoolSetAttribute", NULL, pool_set},
    {"cuMemPoolSetAttribute_reuse", NULL, pool_set_reuse},
    {"cuMemPoolTrimTo", NULL, pool_trim},
    {"cuMemPoolTrimTo_default", NULL, pool_trim_standard},
    {"cuMemPoolSetAccess", NULL, pool_set_access},
    {"cuMemPoolGetAccess", NULL, pool_get_access},
    {"cuDeviceGetDefaultMemPool", NULL, pool_default},
    {"cuDeviceGetMemPool", NULL, pool_current},
    {"cuDeviceSetMemPool", NULL, pool_set_current},
    {"cuMemGetDefaultMemPool", NULL, pool_default_by_location},
    {"cuMemcpyHtoD", NULL, copy_in},
    {"cuMemcpyDtoH", NULL, copy_out},
    {"cuMemcpyDtoD", NULL, copy_within},
    {"cuMemsetD8", NULL, fill_now},
    {"cuDevicePrimaryCtxRetain", NULL, primary_retain},
    {"cuDevicePrimaryCtxGetState", NULL, primary_state},
    {"cuCtxGetCurrent", NULL, context_get},
    {"cuCtxGetDevice", NULL, context_device},
    {"cuCtxPushPop", NULL, context_push_pop},
    {"cuCtxSynchronize", NULL, context_synchronize},
    {"cuThreadExchangeStreamCaptureMode", NULL, exchange_mode},
    {"cuInit", NULL, init_again},
    {"cuDriverGetVersion", NULL, driver_version},
    {"cuDeviceGetCount", NULL, device_count},
    {"cuDeviceGetAttribute", NULL, device_attribute},
    {"cuDeviceTotalMem", NULL, device_total},
    {"cuGetProcAddress", NULL, proc_address},
    /* Last, since a capture whose stream is gone may haunt its thread. */
    {"cuStreamDestroy_main", NULL, stream_destroy_main},
    FIDELITY_END,
};
