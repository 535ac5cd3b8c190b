/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A resource of one's own: keeps freed blocks, and hands them out again on any
 * stream. An event that the free recorded tells the next owner's stream when
 * the last one is done.
 */
#ifndef FREE_LIST_H
#define FREE_LIST_H

#include <cucoremr/cucoremr.h>

/** Mistakes that such allocators are written with. */
typedef enum fault {
    FAULT_NONE,
    FAULT_NO_WAIT,     /**< the next stream waits for nothing */
    FAULT_STALE_EVENT, /**< ... for the block's hand-out, not for its free */
    FAULT_SAME_HANDLE  /**< ... unless its handle is that of the last one */
} fault;

/** Over cuMemAlloc of device 0. Nothing was created on an error. */
ccmr_status free_list_create(fault planted, ccmr_resource **resource);

#endif
