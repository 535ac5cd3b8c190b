/* SPDX-License-Identifier: Apache-2.0 */
/* The table of functions with which a test steers the simulator. */
#include "sim/control.h"

#include <string.h>

#include "sim/capture.h"
#include "sim/config.h"
#include "sim/context.h"
#include "sim/cost.h"
#include "sim/device.h"
#include "sim/event.h"
#include "sim/fault.h"
#include "sim/graph_exec.h"
#include "sim/hazard.h"
#include "sim/log.h"
#include "sim/memory.h"
#include "sim/order.h"
#include "sim/plain.h"
#include "sim/pool.h"
#include "sim/schedule.h"
#include "sim/stream.h"
#include "sim/user_object.h"
#include "sim/virtual.h"

bool sim_control_begin(void)
{
    if (atomic_load(&sim_forked) != 0 || sim_self_unlocked() == NULL) {
        return false;
    }
    sim_lock_unlocked();
    sim_configure();
    return true;
}

int sim_control_end(int ret)
{
    sim_unlock();
    return ret;
}

/* The whole. */

static void count(ccmr_sim_census *census)
{
    int i;

    census->contexts = sim_contexts_live();
    census->streams = sim_streams_live();
    census->events = sim_events_live();
    census->pools = sim_pools_live();
    census->graphs = sim_graphs_owned();
    census->captures = sim.captures;
    sim_plain_count(census);
    sim_pools_count(&census->pool_blocks, &census->pool_bytes);
    census->pending_operations = sim_operations_pending();
    for (i = 0; i < SIM_MAX_DEVICES; i++) {
        census->device_bytes += sim.devices[i].taken;
    }
    census->touched_bytes = sim_touched();
    sim_pieces_count(&census->pieces, &census->piece_bytes);
    census->mappings = sim_mappings_live();
    census->graph_execs = sim_execs_live();
    census->user_objects = sim_user_objects_live();
}

static void copy_census(ccmr_sim_census *to, const ccmr_sim_census *from)
{
    size_t size = to->size < sizeof *from ? to->size : sizeof *from;

    memcpy(to, from, size);
    to->size = size;
}

static int take_census(ccmr_sim_census *census)
{
    ccmr_sim_census now = {.size = sizeof now};

    if (census == NULL || !sim_control_begin()) {
        return -1;
    }
    count(&now);
    copy_census(census, &now);
    return sim_control_end(0);
}

static uint64_t objects(const ccmr_sim_census *census)
{
    return census->contexts + census->streams + census->events +
           census->pools + census->graphs + census->captures +
           census->plain_blocks + census->pinned_blocks +
           census->registered_ranges + census->managed_blocks +
           census->pool_blocks + census->pieces + census->ranges +
           census->mappings + census->imports + census->graph_blocks +
           census->graph_execs + census->user_objects;
}

static void forget_everything(void)
{
    sim_contexts_reset();
    sim_execs_reset();
    sim_graphs_reset();
    sim_user_objects_reset();
    sim_chunks_reset();
    sim_pools_reset();
    sim_memory_reset();
    sim_streams_reset();
    sim_events_reset();
    sim_fault_forget();
    sim_hazards_forget();
    sim_order_check(false);
    sim_log_start(0);
    sim_cost_forget();
    memset(sim.calls, 0, sizeof sim.calls);
    memset(sim.hidden, 0, sizeof sim.hidden);
    sim.hidden_any = false;
    sim.stub = false;
    sim.deinitialized = false;
    sim.initialized = false;
    sim.configured = false;
    sim_note_special();
}

static uint64_t reset(ccmr_sim_census *left)
{
    ccmr_sim_census now = {.size = sizeof now};

    if (!sim_control_begin()) {
        return 0;
    }
    count(&now);
    if (left != NULL) {
        copy_census(left, &now);
    }
    forget_everything();
    sim_control_end(0);
    return objects(&now);
}

/* The machine. */

static int set_devices(int devices)
{
    if (!sim_control_begin()) {
        return -1;
    }
    if (sim.initialized || devices < 0 || devices > SIM_MAX_DEVICES) {
        return sim_control_end(-1);
    }
    sim.device_count = devices;
    return sim_control_end(0);
}

static int set_driver_version(int version)
{
    if (!sim_control_begin()) {
        return -1;
    }
    if (sim.initialized || version < 1000) {
        return sim_control_end(-1);
    }
    sim.driver_version = version;
    return sim_control_end(0);
}

static int set_memory(int device, uint64_t bytes)
{
    int i;

    if (!sim_control_begin()) {
        return -1;
    }
    if (device < -1 || device >= SIM_MAX_DEVICES ||
        bytes > (uint64_t)1 << 38) {
        return sim_control_end(-1);
    }
    for (i = 0; i < SIM_MAX_DEVICES; i++) {
        if (device < 0 || i == device) {
            sim.devices[i].capacity = bytes;
        }
    }
    return sim_control_end(0);
}

static int set_attribute(int device, int attribute, int value)
{
    int i;

    if (!sim_control_begin()) {
        return -1;
    }
    if (device < -1 || device >= SIM_MAX_DEVICES ||
        !sim_attribute_known(attribute)) {
        return sim_control_end(-1);
    }
    for (i = 0; i < SIM_MAX_DEVICES; i++) {
        if (device < 0 || i == device) {
            sim.devices[i].attributes[attribute] = value;
        }
    }
    return sim_control_end(0);
}

static int set_peers(int device, int peer, int on)
{
    uint32_t bit;

    if (device < 0 || device >= SIM_MAX_DEVICES || peer < 0 ||
        peer >= SIM_MAX_DEVICES || !sim_control_begin()) {
        return -1;
    }
    bit = (uint32_t)1 << peer;
    sim.apart[device] =
        on != 0 ? sim.apart[device] & ~bit : sim.apart[device] | bit;
    return sim_control_end(0);
}

static int hide(const char *call)
{
    return call != NULL && sim_control_begin()
               ? sim_control_end(sim_hide(call, true))
               : -1;
}

static int unhide(const char *call)
{
    return call != NULL && sim_control_begin()
               ? sim_control_end(sim_hide(call, false))
               : -1;
}

static int set_stub(int on)
{
    if (!sim_control_begin()) {
        return -1;
    }
    sim.stub = on != 0;
    sim_note_special();
    return sim_control_end(0);
}

static int set_deinitialized(int on)
{
    if (!sim_control_begin()) {
        return -1;
    }
    sim.deinitialized = on != 0;
    sim_note_special();
    return sim_control_end(0);
}

/* The schedule. */

static int set_mode(ccmr_sim_mode mode)
{
    if ((mode != CCMR_SIM_EAGER && mode != CCMR_SIM_LATE) ||
        !sim_control_begin()) {
        return -1;
    }
    sim.mode = mode;
    sim_released();
    return sim_control_end(0);
}

static int set_seed(uint64_t seed)
{
    if (!sim_control_begin()) {
        return -1;
    }
    sim_schedule_seed(seed);
    return sim_control_end(0);
}

static int stall(void *handle)
{
    struct sim_stream *stream;

    if (!sim_control_begin()) {
        return -1;
    }
    stream = sim_stream_peek(sim_self_unlocked(), handle);
    if (stream == NULL) {
        return sim_control_end(-1);
    }
    sim_stall(stream, handle);
    return sim_control_end(0);
}

static int release(void *handle)
{
    return sim_control_begin() ? sim_control_end(sim_release(handle) ? 0 : -1)
                               : -1;
}

static uint64_t run(uint64_t operations)
{
    uint64_t ran;

    if (!sim_control_begin()) {
        return 0;
    }
    ran = sim_run(operations);
    sim_control_end(0);
    return ran;
}

static uint64_t pending(void *handle)
{
    struct sim_stream *stream;
    uint64_t left = 0;

    if (!sim_control_begin()) {
        return 0;
    }
    stream = sim_stream_peek(sim_self_unlocked(), handle);
    if (stream != NULL) {
        left = stream->enqueued - stream->completed;
    }
    sim_control_end(0);
    return left;
}

static int set_wait_limit(uint64_t milliseconds)
{
    if (!sim_control_begin()) {
        return -1;
    }
    sim.wait_limit = milliseconds;
    return sim_control_end(0);
}

/* Faults, counts, log. */

static int fail(const char *call, uint64_t nth, int result)
{
    return sim_control_begin()
               ? sim_control_end(sim_fault_order(call, nth, result, false))
               : -1;
}

static int fail_after(const char *call, uint64_t nth, int result)
{
    return sim_control_begin()
               ? sim_control_end(sim_fault_order(call, nth, result, true))
               : -1;
}

static uint64_t forget_failures(void)
{
    uint64_t left;

    if (!sim_control_begin()) {
        return 0;
    }
    left = sim_fault_forget();
    sim_control_end(0);
    return left;
}

static uint64_t calls(const char *call)
{
    uint64_t total = 0;
    enum sim_call number;
    int i;

    if (!sim_control_begin()) {
        return 0;
    }
    if (call != NULL) {
        number = sim_call_find(call);
        total = number < SIM_CALL_COUNT ? sim.calls[number] : 0;
    } else {
        for (i = 0; i < SIM_CALL_COUNT; i++) {
            total += sim.calls[i];
        }
    }
    sim_control_end(0);
    return total;
}

static int forget_calls(void)
{
    if (!sim_control_begin()) {
        return -1;
    }
    memset(sim.calls, 0, sizeof sim.calls);
    return sim_control_end(0);
}

static int log_start(size_t capacity)
{
    return sim_control_begin() ? sim_control_end(sim_log_start(capacity)) : -1;
}

static size_t log_count(void)
{
    size_t held;

    if (!sim_control_begin()) {
        return 0;
    }
    held = sim_log_count();
    sim_control_end(0);
    return held;
}

static int log_read(size_t index, ccmr_sim_record *record)
{
    return sim_control_begin() ? sim_control_end(sim_log_read(index, record))
                               : -1;
}

/* Costs. */

static int set_costs(int on)
{
    if (!sim_control_begin()) {
        return -1;
    }
    sim_cost_count(on != 0);
    return sim_control_end(0);
}

static int forget_costs(void)
{
    if (!sim_control_begin()) {
        return -1;
    }
    sim_cost_forget();
    return sim_control_end(0);
}

/* A number about the call of that name, or all calls; 0 for unknown names. */
static uint64_t about_call(const char *call,
                           uint64_t (*number)(enum sim_call call))
{
    enum sim_call which = SIM_CALL_COUNT;
    uint64_t found = 0;

    if (!sim_control_begin()) {
        return 0;
    }
    if (call != NULL) {
        which = sim_call_find(call);
    }
    if (call == NULL || which != SIM_CALL_COUNT) {
        found = number(which);
    }
    sim_control_end(0);
    return found;
}

static uint64_t cost(const char *call)
{
    return about_call(call, sim_cost_of);
}

static uint64_t cost_unknown(const char *call)
{
    return about_call(call, sim_cost_unknown);
}

static uint64_t thread_cost(void)
{
    uint64_t ps;

    if (!sim_control_begin()) {
        return 0;
    }
    ps = sim_self_unlocked()->cost;
    sim_control_end(0);
    return (ps + 500) / 1000;
}

/* Looking inside. */

static void *peek(uint64_t address, size_t bytes)
{
    void *memory = NULL;
    size_t length;

    if (bytes == 0 || !sim_control_begin()) {
        return NULL;
    }
    if (sim_range_usable(address, bytes)) {
        memory = sim_bytes(address, bytes, &length);
        if (length < bytes) {
            memory = NULL;
        }
    }
    sim_control_end(0);
    return memory;
}

static int is_alive(uint64_t address)
{
    struct sim_block block;
    bool alive;

    if (!sim_control_begin()) {
        return 0;
    }
    alive = sim_block_find(address, &block) && block.base == address;
    return sim_control_end(alive);
}

__attribute__((visibility("default")))
const ccmr_sim_table ccmr_sim_control = {
    .size = sizeof(ccmr_sim_table),
    .reset = reset,
    .census = take_census,
    .set_devices = set_devices,
    .set_driver_version = set_driver_version,
    .set_memory = set_memory,
    .set_attribute = set_attribute,
    .hide = hide,
    .unhide = unhide,
    .set_stub = set_stub,
    .set_deinitialized = set_deinitialized,
    .set_mode = set_mode,
    .set_seed = set_seed,
    .stall = stall,
    .release = release,
    .run = run,
    .pending = pending,
    .set_wait_limit = set_wait_limit,
    .fail = fail,
    .fail_after = fail_after,
    .forget_failures = forget_failures,
    .calls = calls,
    .forget_calls = forget_calls,
    .log = log_start,
    .log_count = log_count,
    .log_read = log_read,
    .peek = peek,
    .is_alive = is_alive,
    .hazards = sim_control_hazards,
    .hazard_read = sim_control_hazard_read,
    .forget_hazards = sim_control_forget_hazards,
    .set_strict = sim_control_set_strict,
    .check_order = sim_control_check_order,
    .handed_out = sim_control_handed_out,
    .freed = sim_control_freed,
    .noted = sim_control_noted,
    .used = sim_control_used,
    .learned = sim_control_learned,
    .not_freed = sim_control_not_freed,
    .set_peers = set_peers,
    .set_costs = set_costs,
    .cost = cost,
    .thread_cost = thread_cost,
    .cost_unknown = cost_unknown,
    .forget_costs = forget_costs,
};
