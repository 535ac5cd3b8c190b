/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/fault.h"

#include <stdlib.h>

struct sim_fault {
    struct sim_fault *next;
    enum sim_call call; /**< SIM_CALL_COUNT: any */
    uint64_t left;      /**< calls until it is due */
    CUresult result;
    bool after;
};

bool sim_fault_due(struct sim_frame *frame, CUresult *result)
{
    struct sim_fault **link = &sim.faults;
    bool due = false;

    while (*link != NULL) {
        struct sim_fault *fault = *link;

        if ((fault->call != frame->call && fault->call != SIM_CALL_COUNT) ||
            --fault->left != 0) {
            link = &fault->next;
            continue;
        }
        frame->injected = true;
        if (fault->after) {
            frame->forced = true;
            frame->forced_result = fault->result;
        } else {
            due = true;
            *result = fault->result;
        }
        *link = fault->next;
        free(fault);
    }
    sim_note_special();
    return due;
}

int sim_fault_order(const char *call, uint64_t nth, int result, bool after)
{
    struct sim_fault *fault;
    enum sim_call number = SIM_CALL_COUNT;

    if (call != NULL) {
        number = sim_call_find(call);
        if (number == SIM_CALL_COUNT) {
            return -1;
        }
    }
    if (nth == 0) {
        return -1;
    }
    fault = malloc(sizeof *fault);
    if (fault == NULL) {
        return -1;
    }
    fault->call = number;
    fault->left = nth;
    fault->result = (CUresult)result;
    fault->after = after;
    fault->next = sim.faults;
    sim.faults = fault;
    sim_note_special();
    return 0;
}

uint64_t sim_fault_forget(void)
{
    uint64_t count = 0;

    while (sim.faults != NULL) {
        struct sim_fault *fault = sim.faults;

        sim.faults = fault->next;
        free(fault);
        count++;
    }
    sim_note_special();
    return count;
}
