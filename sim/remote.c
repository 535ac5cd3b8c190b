/* SPDX-License-Identifier: Apache-2.0 */
/* cuIpcGetEventHandle and its kin, over what is described in remote.h. */
#include "sim/remote.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/context.h"
#include "sim/event.h"
#include "sim/operation.h"
#include "sim/schedule.h"

#define MAGIC "ccmrevt"

/* What stands in CUipcEventHandle. */
struct ticket {
    char magic[8];
    int32_t process;
    int32_t file;
    uint64_t number; /**< of the file */
    uint64_t start;  /**< of the area */
};

/* The shared page. */

/* The area becomes the remote's, also where this fails. */
static struct sim_remote *make(struct sim_area *area)
{
    struct sim_remote *remote = malloc(sizeof *remote);

    if (remote == NULL) {
        sim_area_drop(area, SIM_PAGE);
        return NULL;
    }
    remote->references = 1;
    remote->area = *area;
    remote->mine = 0;
    remote->page = sim_area_map(area, 0, sizeof *remote->page);
    if (remote->page == NULL) {
        sim_area_drop(&remote->area, SIM_PAGE);
        free(remote);
        return NULL;
    }
    return remote;
}

struct sim_remote *sim_remote_new(void)
{
    struct sim_label label;
    struct sim_area area;

    memset(&label, 0, sizeof label);
    return sim_area_take(&area, SIM_AREA_EVENT, sizeof(struct sim_remote_page),
                         &label)
               ? make(&area)
               : NULL;
}

void sim_remote_hold(struct sim_remote *remote)
{
    remote->references++;
}

/* When the owner's goes, its page reads as zero elsewhere: never recorded. */
void sim_remote_drop(struct sim_remote *remote)
{
    if (--remote->references == 0) {
        munmap(remote->page, sizeof *remote->page);
        sim_area_drop(&remote->area, SIM_PAGE);
        free(remote);
    }
}

uint64_t sim_remote_record(struct sim_remote *remote)
{
    remote->mine = atomic_fetch_add(&remote->page->recorded, 1) + 1;
    return remote->mine;
}

void sim_remote_reach(struct sim_remote *remote, uint64_t number)
{
    uint64_t before = atomic_load(&remote->page->reached);

    while (before < number && !atomic_compare_exchange_weak(
                                  &remote->page->reached, &before, number)) {
    }
}

uint64_t sim_remote_elsewhere(const struct sim_remote *remote)
{
    uint64_t last = atomic_load(&remote->page->recorded);

    return last != remote->mine ? last : 0;
}

/* A page that was given up counts as reached, so that nobody waits for it. */
bool sim_remote_is_reached(const struct sim_remote *remote, uint64_t number)
{
    return atomic_load(&remote->page->reached) >= number ||
           atomic_load(&remote->page->recorded) < number;
}

CUresult sim_remote_wait(struct sim_remote *remote, uint64_t number)
{
    sim_remote_hold(remote);
    sim.remote_waits++;
    while (!sim_remote_is_reached(remote, number)) {
        sim_step_or_wait();
    }
    sim.remote_waits--;
    sim.remote_since = 0;
    sim_remote_drop(remote);
    return CUDA_SUCCESS;
}

CUresult sim_remote_ask(const struct sim_remote *remote, uint64_t number)
{
    uint64_t most = sim_progress_of_asking();

    while (!sim_remote_is_reached(remote, number) && most > 0 &&
           sim_run(1) != 0) {
        most--;
    }
    return sim_remote_is_reached(remote, number) ? CUDA_SUCCESS
                                                 : CUDA_ERROR_NOT_READY;
}

void sim_remote_join(struct sim_op *op, struct sim_remote *remote,
                     uint64_t number)
{
    sim_remote_hold(remote);
    op->remote = remote;
    op->remote_number = number;
    sim.remote_waits += op->kind == SIM_OP_WAIT;
}

/* A record that goes without having run, too, so that nobody waits for it. */
void sim_remote_leave(struct sim_op *op)
{
    if (op->kind == SIM_OP_RECORD) {
        sim_remote_reach(op->remote, op->remote_number);
    }
    sim.remote_waits -= op->kind == SIM_OP_WAIT;
    sim_remote_drop(op->remote);
    op->remote = NULL;
}

/* Entry points. That the process of the event cannot open it is taken over
 * from memory, where it was seen. */

static CUresult get_handle(CUipcEventHandle *handle, CUevent event_handle)
{
    struct sim_event *event;
    struct ticket ticket;
    CUresult res = sim_event_find(event_handle, &event);

    if (res != CUDA_SUCCESS) {
        return res;
    }
    if (handle == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (event->remote == NULL || !event->remote->area.own) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    memset(&ticket, 0, sizeof ticket);
    memcpy(ticket.magic, MAGIC, sizeof MAGIC);
    ticket.process = (int32_t)getpid();
    ticket.file = event->remote->area.file;
    ticket.number = event->remote->area.number;
    ticket.start = event->remote->area.start;
    memset(handle, 0, sizeof *handle);
    memcpy(handle->reserved, &ticket, sizeof ticket);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuIpcGetEventHandle(CUipcEventHandle *pHandle, CUevent event)
{
    SIM_ENTRY(cuIpcGetEventHandle, get_handle(pHandle, event), NULL, event, 0,
              0);
}

static CUresult open_handle(struct sim_thread *self, CUevent *event,
                            const CUipcEventHandle *handle)
{
    struct sim_remote *remote;
    struct ticket ticket;
    struct sim_area area;

    memcpy(&ticket, handle->reserved, sizeof ticket);
    if (event == NULL || memcmp(ticket.magic, MAGIC, sizeof MAGIC) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (ticket.process == (int32_t)getpid()) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (!sim_area_visit(ticket.process, ticket.file, ticket.start,
                        SIM_AREA_EVENT, ticket.number, &area)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    remote = make(&area);
    if (remote == NULL) {
        return CUDA_ERROR_MAP_FAILED;
    }
    return sim_event_open(self, event, remote);
}

CUresult CUDAAPI cuIpcOpenEventHandle(CUevent *phEvent,
                                      CUipcEventHandle handle)
{
    SIM_ENTRY(cuIpcOpenEventHandle, open_handle(self, phEvent, &handle), NULL,
              SIM_OUT(phEvent), 0, 0);
}

static_assert(sizeof(struct ticket) <= sizeof(CUipcEventHandle),
              "a ticket fits");
