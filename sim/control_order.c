/* SPDX-License-Identifier: Apache-2.0 */
/* What tests say about memory and are told about hazards. */
#include "sim/control.h"

#include "sim/hazard.h"
#include "sim/order.h"
#include "sim/stream.h"

/* Hazards. */

uint64_t sim_control_hazards(void)
{
    uint64_t total;

    if (!sim_control_begin()) {
        return 0;
    }
    total = sim_hazard_count();
    sim_control_end(0);
    return total;
}

int sim_control_hazard_read(size_t index, ccmr_sim_hazard *hazard)
{
    return sim_control_begin()
               ? sim_control_end(sim_hazard_read(index, hazard))
               : -1;
}

uint64_t sim_control_forget_hazards(void)
{
    uint64_t total;

    if (!sim_control_begin()) {
        return 0;
    }
    total = sim_hazards_forget();
    sim_control_end(0);
    return total;
}

int sim_control_set_strict(int on)
{
    if (!sim_control_begin()) {
        return -1;
    }
    sim.strict = on != 0;
    return sim_control_end(0);
}

/* The check of order. */

int sim_control_check_order(int on)
{
    if (!sim_control_begin()) {
        return -1;
    }
    sim_order_check(on != 0);
    return sim_control_end(0);
}

/* The stream that a test means; NULL for the host. */
static bool find_stream(void *handle, struct sim_stream **stream)
{
    *stream = NULL;
    if (handle == CCMR_SIM_HOST) {
        return true;
    }
    *stream = sim_stream_peek(sim_self_unlocked(), handle);
    return *stream != NULL && (*stream)->capture == NULL;
}

typedef void tell_function(uintptr_t address, size_t bytes,
                           struct sim_stream *stream);

static int tell(uint64_t address, uint64_t bytes, void *handle,
                tell_function *function)
{
    struct sim_stream *stream;

    if (address == 0 || bytes == 0 || bytes > UINT64_MAX - address ||
        !sim_control_begin()) {
        return -1;
    }
    if (!find_stream(handle, &stream)) {
        return sim_control_end(-1);
    }
    if (sim.order) {
        function(address, bytes, stream);
    }
    return sim_control_end(0);
}

int sim_control_handed_out(uint64_t address, uint64_t bytes, void *handle)
{
    return tell(address, bytes, handle, sim_order_hand_out);
}

int sim_control_freed(uint64_t address, uint64_t bytes, void *handle)
{
    return tell(address, bytes, handle, sim_order_free);
}

int sim_control_not_freed(uint64_t address, uint64_t bytes)
{
    return tell(address, bytes, CCMR_SIM_HOST, sim_order_refuse);
}

int sim_control_noted(uint64_t address, uint64_t bytes, void *handle,
                      int until_free)
{
    if (handle == CCMR_SIM_HOST) {
        return -1;
    }
    return tell(address, bytes, handle,
                until_free != 0 ? sim_order_hold : sim_order_note);
}

int sim_control_used(uint64_t address, uint64_t bytes, void *handle)
{
    return tell(address, bytes, handle, sim_order_use_now);
}

int sim_control_learned(void *handle)
{
    struct sim_stream *stream;

    if (handle == CCMR_SIM_HOST || !sim_control_begin()) {
        return -1;
    }
    if (!find_stream(handle, &stream)) {
        return sim_control_end(-1);
    }
    sim_order_learn(stream);
    return sim_control_end(0);
}
