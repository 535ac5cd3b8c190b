/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles of cuIpcGetMemHandle, the older way to share memory; and what one
 * device says about itself as a peer.
 */
#include "tests/fidelity/calls.h"
#include "tests/fidelity/facts.h"
#include "tests/fidelity/pieces.h"
#include "tests/fidelity/second.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { LIMIT_MS = 20000, BYTES = 1 << 20, OFFSET = 4096 };

static void see_handle(const char *what, CUdeviceptr address)
{
    CUipcMemHandle handle;

    memset(&handle, 0, sizeof handle);
    SEE(what, cuIpcGetMemHandle(&handle, address));
}

/* Documented: for what cuMemAlloc gave. */
static void get_handle(void)
{
    CUipcMemHandle first;
    CUipcMemHandle second;
    CUdeviceptr plain = 0;
    CUdeviceptr block = 0;
    CUdeviceptr managed = 0;
    void *pinned = NULL;
    int local = 0;

    memset(&first, 0, sizeof first);
    memset(&second, 0, sizeof second);
    drv.cuMemAlloc(&plain, BYTES);
    SEE("plain", cuIpcGetMemHandle(&first, plain));
    SEE("again", cuIpcGetMemHandle(&second, plain));
    fact_yes("again_equal", memcmp(&first, &second, sizeof first) == 0);
    SEE("interior", cuIpcGetMemHandle(&second, plain + OFFSET));
    fact_yes("interior_equal", memcmp(&first, &second, sizeof first) == 0);
    SEE("null_output", cuIpcGetMemHandle(NULL, plain));
    drv.cuMemFree(plain);
    see_handle("freed", plain);
    drv.cuMemAllocAsync(&block, 4096, CU_STREAM_LEGACY);
    see_handle("pool_block", block);
    drv.cuMemFreeAsync(block, CU_STREAM_LEGACY);
    drv.cuStreamSynchronize(CU_STREAM_LEGACY);
    drv.cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL);
    see_handle("managed", managed);
    drv.cuMemFree(managed);
    drv.cuMemHostAlloc(&pinned, 4096, 0);
    see_handle("pinned", (CUdeviceptr)(uintptr_t)pinned);
    drv.cuMemFreeHost(pinned);
    see_handle("stack", (CUdeviceptr)(uintptr_t)&local);
    see_handle("null", 0);
}

/* Documented: not in the process that it comes from. */
static void open_here(void)
{
    const unsigned int lazy = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS;
    CUipcMemHandle handle;
    CUipcMemHandle garbage;
    CUdeviceptr plain = 0;
    CUdeviceptr address = 0;

    memset(&handle, 0, sizeof handle);
    memset(&garbage, 0x5a, sizeof garbage);
    drv.cuMemAlloc(&plain, BYTES);
    drv.cuIpcGetMemHandle(&handle, plain);
    SEE("result", cuIpcOpenMemHandle(&address, handle, lazy));
    SEE("flags_0", cuIpcOpenMemHandle(&address, handle, 0));
    SEE("flags_2", cuIpcOpenMemHandle(&address, handle, 2));
    SEE("null_output", cuIpcOpenMemHandle(NULL, handle, lazy));
    SEE("garbage", cuIpcOpenMemHandle(&address, garbage, lazy));
    memset(&garbage, 0, sizeof garbage);
    SEE("zeroes", cuIpcOpenMemHandle(&address, garbage, lazy));
    SEE("close_own", cuIpcCloseMemHandle(plain));
    SEE("close_null", cuIpcCloseMemHandle(0));
    SEE("close_garbage", cuIpcCloseMemHandle(0x1234));
    drv.cuMemFree(plain);
}

/* ---- a second process ---- */

static CUresult open_handle(CUdeviceptr *address, CUipcMemHandle handle)
{
    *address = 0;
    return drv.cuIpcOpenMemHandle(address, handle,
                                  CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
}

static CUdeviceptr take_handle(CUipcMemHandle *handle)
{
    CUdeviceptr address = 0;

    if (second_take(handle, sizeof *handle, NULL)) {
        fact_result("second_open", open_handle(&address, *handle));
    }
    return address;
}

static bool go_on(void)
{
    return second_send("g", 1, -1) && second_done();
}

static bool wait_for_word(void)
{
    char word;

    second_say_done();
    return second_take(&word, 1, NULL);
}

static void errand(void)
{
    CUipcMemHandle handle;
    CUdeviceptr address = take_handle(&handle);
    CUdeviceptr again = 0;
    CUipcMemHandle own;

    if (address == 0) {
        return;
    }
    fact("second_sees", "%s", compare_bytes(address, 5, BYTES));
    fact_result("second_fills", fill_bytes(address, 6, 4096));
    fact_result("second_open_again", open_handle(&again, handle));
    fact_yes("same_address", again == address);
    see_pointer(address);
    SEE("second_handle_of_it", cuIpcGetMemHandle(&own, address));
    SEE("second_frees", cuMemFree(address));
    SEE("second_frees_async", cuMemFreeAsync(address, CU_STREAM_LEGACY));
    SEE("second_closes_interior", cuIpcCloseMemHandle(address + OFFSET));
    if (!wait_for_word()) {
        return;
    }
    SEE("second_closes", cuIpcCloseMemHandle(address));
    fact("second_sees_still", "%s", compare_bytes(address, 6, 4096));
    SEE("second_closes_again", cuIpcCloseMemHandle(address));
    SEE("second_closes_once_more", cuIpcCloseMemHandle(address));
    second_say_done();
}

static CUdeviceptr send_handle(const char *name, size_t bytes, size_t offset)
{
    CUipcMemHandle handle;
    CUdeviceptr plain = 0;

    memset(&handle, 0, sizeof handle);
    drv.cuMemAlloc(&plain, bytes);
    fact_result("fill", fill_bytes(plain, 5, bytes));
    SEE("handle", cuIpcGetMemHandle(&handle, plain + offset));
    if (second_start(name) && second_send(&handle, sizeof handle, -1)) {
        second_done();
    }
    return plain;
}

static void second_process(void)
{
    CUdeviceptr plain = send_handle("open", BYTES, 0);

    fact("first_sees", "%s", compare_bytes(plain, 6, 4096));
    go_on();
    second_end();
    SEE("free", cuMemFree(plain));
}

/* A handle means a whole block of the driver's, or what cuMemAlloc gave. */
static void errand_small(void)
{
    CUipcMemHandle handle;
    CUdeviceptr address = take_handle(&handle);
    CUdeviceptr base = 0;
    size_t bytes = 0;

    if (address == 0) {
        return;
    }
    fact("second_sees", "%s", compare_bytes(address, 5, 4096));
    SEE("second_range", cuMemGetAddressRange(&base, &bytes, address));
    fact_yes("second_range_starts_there", base == address);
    fact("second_range_bytes", "%s",
         bytes == 4096         ? "as asked for"
         : bytes == PAGE_BYTES ? "2 MiB"
                               : "others");
    SEE("second_closes", cuIpcCloseMemHandle(address));
    second_say_done();
}

static void second_process_small(void)
{
    CUdeviceptr before = 0;
    CUdeviceptr plain;

    drv.cuMemAlloc(&before, 4096);
    plain = send_handle("open_small", 4096, 0);
    second_end();
    drv.cuMemFree(plain);
    drv.cuMemFree(before);
}

/* The owner frees first, against the rule. */
static void errand_freed(void)
{
    CUipcMemHandle handle;
    CUdeviceptr address = take_handle(&handle);
    CUdeviceptr again = 0;

    if (address == 0 || !wait_for_word()) {
        return;
    }
    fact("second_sees", "%s", compare_bytes(address, 5, 4096));
    fact_result("second_open_again", open_handle(&again, handle));
    SEE("second_closes", cuIpcCloseMemHandle(address));
    /* One of two openings is left until the end of the line. */
    wait_for_word();
}

static void freed_first(void)
{
    size_t before = available_bytes();
    CUdeviceptr plain = send_handle("freed", BIG_BYTES, 0);

    SEE("free", cuMemFree(plain));
    see_taken("freed", before);
    go_on();
    see_taken("closed", before);
    second_end();
}

/* A handle of what was freed before it was opened. */
static void errand_late(void)
{
    CUipcMemHandle handle;

    take_handle(&handle);
    second_say_done();
}

static void opened_late(void)
{
    CUipcMemHandle handle;
    CUdeviceptr plain = 0;

    memset(&handle, 0, sizeof handle);
    drv.cuMemAlloc(&plain, 4 * PAGE_BYTES);
    SEE("handle", cuIpcGetMemHandle(&handle, plain));
    SEE("free", cuMemFree(plain));
    if (second_start("late")) {
        second_send(&handle, sizeof handle, -1);
        second_done();
    }
    second_end();
}

const struct fidelity_errand ipc_errands[] = {
    {"open", errand},
    {"open_small", errand_small},
    {"freed", errand_freed},
    {"late", errand_late},
    {NULL, NULL},
};

/* ---- peers ---- */

#define P2P(name)                                                             \
    {                                                                         \
#name, CU_DEVICE_P2P_ATTRIBUTE_##name                                 \
    }

static void peer_attributes(void)
{
    static const struct {
        const char *name;
        CUdevice_P2PAttribute attribute;
    } list[] = {
        P2P(PERFORMANCE_RANK),
        P2P(ACCESS_SUPPORTED),
        P2P(NATIVE_ATOMIC_SUPPORTED),
        P2P(CUDA_ARRAY_ACCESS_SUPPORTED),
    };
    int value = 99;

    for (size_t i = 0; i < FIDELITY_COUNT(list); i++) {
        SEE(list[i].name,
            cuDeviceGetP2PAttribute(&value, list[i].attribute, 0, 0));
    }
    SEE("unknown_device",
        cuDeviceGetP2PAttribute(
            &value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1000));
    SEE("unknown_attribute",
        cuDeviceGetP2PAttribute(&value, (CUdevice_P2PAttribute)99, 0, 0));
    SEE("null", cuDeviceGetP2PAttribute(
                    NULL, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0));
}

/* Documented: between contexts of two devices. */
static void peer_access(void)
{
    CUcontext primary = NULL;
    CUcontext other = NULL;

    drv.cuCtxGetCurrent(&primary);
    SEE("itself", cuCtxEnablePeerAccess(primary, 0));
    SEE("disable_itself", cuCtxDisablePeerAccess(primary));
    SEE("null", cuCtxEnablePeerAccess(NULL, 0));
    SEE("disable_null", cuCtxDisablePeerAccess(NULL));
    SEE("flags", cuCtxEnablePeerAccess(primary, 1));
    if (drv.cuCtxCreate(&other, NULL, 0, 0) == CUDA_SUCCESS) {
        drv.cuCtxSetCurrent(primary);
        SEE("same_device", cuCtxEnablePeerAccess(other, 0));
        SEE("disable_same_device", cuCtxDisablePeerAccess(other));
        drv.cuCtxDestroy(other);
    }
}

static void peer_copies(void)
{
    CUcontext primary = NULL;
    CUdeviceptr first = 0;
    CUdeviceptr second = 0;

    drv.cuCtxGetCurrent(&primary);
    drv.cuMemAlloc(&first, 4096);
    drv.cuMemAlloc(&second, 4096);
    fact_result("fill", fill_bytes(first, 4, 4096));
    SEE("copy", cuMemcpyPeer(second, primary, first, primary, 4096));
    fact("copied", "%s", compare_bytes(second, 4, 4096));
    SEE("copy_async", cuMemcpyPeerAsync(second, primary, first, primary, 4096,
                                        CU_STREAM_LEGACY));
    SEE("null_context", cuMemcpyPeer(second, NULL, first, primary, 4096));
    SEE("zero_bytes", cuMemcpyPeer(second, primary, first, primary, 0));
    SEE("synchronize", cuCtxSynchronize());
    drv.cuMemFree(first);
    drv.cuMemFree(second);
}

/* Handles of events, here: what crosses to another process is its matter. */
static void event_handles(void)
{
    const unsigned shared = CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    CUipcEventHandle handle;
    CUevent local = NULL;
    CUevent event = NULL;
    CUevent opened = NULL;

    memset(&handle, 0, sizeof handle);
    SEE("open_zero", cuIpcOpenEventHandle(&opened, handle));
    drv.cuEventCreate(&local, CU_EVENT_DISABLE_TIMING);
    SEE("get_local", cuIpcGetEventHandle(&handle, local));
    SEE("create", cuEventCreate(&event, shared));
    SEE("get", cuIpcGetEventHandle(&handle, event));
    SEE("open_here", cuIpcOpenEventHandle(&opened, handle));
    drv.cuEventDestroy(event);
    drv.cuEventDestroy(local);
}

static const struct fidelity_case ipc_cases[] = {
    FIDELITY_CASE(get_handle),
    FIDELITY_CASE(open_here),
    FIDELITY_CASE(second_process),
    FIDELITY_CASE(second_process_small),
    FIDELITY_CASE(freed_first),
    FIDELITY_CASE(opened_late),
    FIDELITY_CASE(peer_attributes),
    FIDELITY_CASE(peer_access),
    FIDELITY_CASE(peer_copies),
    FIDELITY_CASE(event_handles),
    FIDELITY_END,
};

const struct fidelity_topic ipc_topic = {
    "ipc",
    ipc_cases,
    NULL,
    NULL,
    false,
    LIMIT_MS,
    "Documented: a handle opens in other processes alone, and gives one "
    "address however often. The rest was measured.",
};
