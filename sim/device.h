/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: how many, how large, what they can do. */
#ifndef SIM_DEVICE_H
#define SIM_DEVICE_H

#include "sim/state.h"

/** The device of an ordinal, or NULL. */
struct sim_device *sim_device_find(CUdevice ordinal);
/** Take physical memory; false where the device has not enough left. */
bool sim_device_take(int device, uint64_t bytes);
void sim_device_give(int device, uint64_t bytes);
/** Can the one reach the other's memory? peer.c. */
bool sim_are_peers(CUdevice device, CUdevice peer);
/** Back to the attributes of an H200, and nothing taken. */
void sim_devices_default(uint64_t capacity);
/** A value an attribute may be set to and asked for. */
bool sim_attribute_known(int attribute);

#endif
