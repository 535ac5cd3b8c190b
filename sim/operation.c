/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/operation.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/context.h"
#include "sim/graph_exec.h"
#include "sim/memory.h"
#include "sim/remote.h"
#include "sim/virtual.h"

static struct sim_op *spare;

struct sim_op *sim_op_new(enum sim_op_kind kind)
{
    struct sim_op *op = spare;

    if (op != NULL) {
        spare = op->next;
    } else {
        op = malloc(sizeof *op);
        if (op == NULL) {
            return NULL;
        }
    }
    memset(op, 0, sizeof *op);
    op->kind = kind;
    return op;
}

struct sim_op *sim_op_copy(const struct sim_op *op)
{
    struct sim_op *copy = sim_op_new(op->kind);

    if (copy != NULL) {
        copy->to = op->to;
        copy->from = op->from;
        copy->bytes = op->bytes;
        copy->value = op->value;
        copy->width = op->width;
        copy->function = op->function;
        copy->callback = op->callback;
        copy->data = op->data;
        copy->named = op->named;
    }
    return copy;
}

void sim_op_free(struct sim_op *op)
{
    struct sim_exec *exec = op->exec;

    sim_places_clear(&op->after);
    if (op->remote != NULL) {
        sim_remote_leave(op);
    }
    free(op->staged);
    op->staged = NULL;
    op->exec = NULL;
    op->next = spare;
    spare = op;
    if (exec != NULL) {
        sim_exec_drop(exec);
    }
}

/* Carrying out. */

/* What no program may do was done: work met memory that is not there. */
static void break_context(struct sim_context *context, uintptr_t address)
{
    fprintf(stderr,
            "libcucoremr-sim: work of a stream used %#" PRIxPTR
            ", where no memory is\n",
            address);
    context->broken = CUDA_ERROR_ILLEGAL_ADDRESS;
}

/* A device has rights to virtual memory only as given. */
static bool is_allowed(const struct sim_context *context, uintptr_t address,
                       size_t bytes, bool write)
{
    return !sim_is_range_address(address) ||
           sim_virtual_allows(context->device, address, bytes, write);
}

static void carry_copy(struct sim_context *context, const struct sim_op *op)
{
    uintptr_t from = op->staged != NULL ? (uintptr_t)op->staged : op->from;
    size_t done = 0;

    if (!is_allowed(context, op->to, op->bytes, true) ||
        !is_allowed(context, from, op->bytes, false)) {
        break_context(context, sim_is_range_address(op->to) ? op->to : from);
        return;
    }
    while (done < op->bytes) {
        size_t there, here;
        void *to = sim_bytes(op->to + done, op->bytes - done, &there);
        void *source = sim_bytes(from + done, op->bytes - done, &here);

        if (to == NULL || source == NULL) {
            break_context(context, (to == NULL ? op->to : from) + done);
            return;
        }
        if (here < there) {
            there = here;
        }
        memmove(to, source, there);
        done += there;
    }
}

static void fill_bytes(void *to, size_t bytes, unsigned value, unsigned width)
{
    size_t i;

    if (width == 1) {
        memset(to, (int)value, bytes);
    } else if (width == 2) {
        uint16_t *items = to;

        for (i = 0; i < bytes / 2; i++) {
            items[i] = (uint16_t)value;
        }
    } else {
        uint32_t *items = to;

        for (i = 0; i < bytes / 4; i++) {
            items[i] = value;
        }
    }
}

static void carry_fill(struct sim_context *context, const struct sim_op *op)
{
    size_t done = 0;

    if (!is_allowed(context, op->to, op->bytes, true)) {
        break_context(context, op->to);
        return;
    }
    while (done < op->bytes) {
        size_t there;
        void *to = sim_bytes(op->to + done, op->bytes - done, &there);

        if (to == NULL) {
            break_context(context, op->to + done);
            return;
        }
        fill_bytes(to, there, op->value, op->width);
        done += there;
    }
}

void sim_op_carry_out(struct sim_context *context, const struct sim_op *op)
{
    if (op->kind == SIM_OP_COPY) {
        carry_copy(context, op);
    } else {
        carry_fill(context, op);
    }
}
