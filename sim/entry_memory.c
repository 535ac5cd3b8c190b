/* SPDX-License-Identifier: Apache-2.0 */
/* Entry points of virtual memory, sharing, managed memory and graphs. */
#include "sim/entry.h"

#include "sim/per_thread.h"

const struct sim_entry sim_memory_entries[] = {
    {SIM_cuMemAddressReserve, 10020, (sim_function)cuMemAddressReserve, NULL},
    {SIM_cuMemAddressFree, 10020, (sim_function)cuMemAddressFree, NULL},
    {SIM_cuMemCreate, 10020, (sim_function)cuMemCreate, NULL},
    {SIM_cuMemRelease, 10020, (sim_function)cuMemRelease, NULL},
    {SIM_cuMemMap, 10020, (sim_function)cuMemMap, NULL},
    {SIM_cuMemUnmap, 10020, (sim_function)cuMemUnmap, NULL},
    {SIM_cuMemSetAccess, 10020, (sim_function)cuMemSetAccess, NULL},
    {SIM_cuMemGetAccess, 10020, (sim_function)cuMemGetAccess, NULL},
    {SIM_cuMemRetainAllocationHandle, 11000,
     (sim_function)cuMemRetainAllocationHandle, NULL},
    {SIM_cuMemGetAllocationPropertiesFromHandle, 10020,
     (sim_function)cuMemGetAllocationPropertiesFromHandle, NULL},
    {SIM_cuMemExportToShareableHandle, 10020,
     (sim_function)cuMemExportToShareableHandle, NULL},
    {SIM_cuMemImportFromShareableHandle, 10020,
     (sim_function)cuMemImportFromShareableHandle, NULL},
    {SIM_cuMemPoolExportToShareableHandle, 11020,
     (sim_function)cuMemPoolExportToShareableHandle, NULL},
    {SIM_cuMemPoolImportFromShareableHandle, 11020,
     (sim_function)cuMemPoolImportFromShareableHandle, NULL},
    {SIM_cuMemPoolExportPointer, 11020, (sim_function)cuMemPoolExportPointer,
     NULL},
    {SIM_cuMemPoolImportPointer, 11020, (sim_function)cuMemPoolImportPointer,
     NULL},
    {SIM_cuIpcGetMemHandle, 4010, (sim_function)cuIpcGetMemHandle, NULL},
    {SIM_cuIpcOpenMemHandle, 11000, (sim_function)cuIpcOpenMemHandle, NULL},
    {SIM_cuIpcCloseMemHandle, 4010, (sim_function)cuIpcCloseMemHandle, NULL},
    {SIM_cuDeviceGetP2PAttribute, 8000, (sim_function)cuDeviceGetP2PAttribute,
     NULL},
    {SIM_cuMemcpyPeer, 4000, (sim_function)cuMemcpyPeer,
     (sim_function)cuMemcpyPeer_ptds},
    {SIM_cuMemcpyPeerAsync, 4000, (sim_function)cuMemcpyPeerAsync,
     (sim_function)cuMemcpyPeerAsync_ptsz},
    {SIM_cuMemPrefetchAsync, 12020, (sim_function)cuMemPrefetchAsync,
     (sim_function)cuMemPrefetchAsync_v2_ptsz},
    {SIM_cuMemAdvise, 12020, (sim_function)cuMemAdvise, NULL},
    {SIM_cuMemRangeGetAttribute, 8000, (sim_function)cuMemRangeGetAttribute,
     NULL},
    {SIM_cuMemRangeGetAttributes, 8000, (sim_function)cuMemRangeGetAttributes,
     NULL},
    {SIM_cuStreamAttachMemAsync, 6000, (sim_function)cuStreamAttachMemAsync,
     (sim_function)cuStreamAttachMemAsync_ptsz},
};

const size_t sim_memory_entry_count =
    sizeof sim_memory_entries / sizeof sim_memory_entries[0];
