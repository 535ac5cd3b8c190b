/* SPDX-License-Identifier: Apache-2.0 */
/* Devices as peers of one another. */
#include "sim/context.h"
#include "sim/device.h"

bool sim_are_peers(CUdevice device, CUdevice peer)
{
    return device != peer && (sim.apart[device] >> peer & 1) == 0;
}

static CUresult can_access(int *can, CUdevice device, CUdevice peer)
{
    if (can == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (sim_device_find(device) == NULL || sim_device_find(peer) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *can = sim_are_peers(device, peer);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev,
                                       CUdevice peerDev)
{
    SIM_ENTRY(cuDeviceCanAccessPeer, can_access(canAccessPeer, dev, peerDev),
              NULL, dev, peerDev, 0);
}

static CUresult get_attribute(int *value, CUdevice_P2PAttribute attribute,
                              CUdevice device, CUdevice peer)
{
    if (value == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (sim_device_find(device) == NULL || sim_device_find(peer) == NULL ||
        device == peer) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    switch ((int)attribute) {
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
        *value = 0;
        return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
        *value = sim_are_peers(device, peer);
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult CUDAAPI cuDeviceGetP2PAttribute(int *value,
                                         CUdevice_P2PAttribute attrib,
                                         CUdevice srcDevice,
                                         CUdevice dstDevice)
{
    SIM_ENTRY(cuDeviceGetP2PAttribute,
              get_attribute(value, attrib, srcDevice, dstDevice), NULL,
              srcDevice, dstDevice, 0);
}

static CUresult peer_access(struct sim_thread *self, CUcontext handle,
                            bool enable)
{
    struct sim_context *context = sim_context_current(self);
    struct sim_context *peer = sim_context_find(handle);
    uint32_t bit;

    if (peer == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    bit = (uint32_t)1 << peer->device;
    if (enable && !sim_are_peers(context->device, peer->device)) {
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    }
    if (((context->peers & bit) != 0) == enable) {
        return enable ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
                      : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    }
    context->peers ^= bit;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxEnablePeerAccess(CUcontext peerContext,
                                       unsigned int Flags)
{
    SIM_ENTRY(cuCtxEnablePeerAccess,
              Flags != 0 ? CUDA_ERROR_INVALID_VALUE
                         : peer_access(self, peerContext, true),
              NULL, peerContext, 0, 0);
}

CUresult CUDAAPI cuCtxDisablePeerAccess(CUcontext peerContext)
{
    SIM_ENTRY(cuCtxDisablePeerAccess, peer_access(self, peerContext, false),
              NULL, peerContext, 0, 0);
}
