/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/physical.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim/device.h"
#include "sim/order.h"

/* Keys of pieces begin where no address is. */
#define FIRST_KEY ((uint64_t)1 << 56)

static struct sim_slots slots;
static struct sim_piece *pieces;
static uint64_t next_key = FIRST_KEY;
static uint64_t touched;
/* Pieces without holders, which descriptors alone may still keep. */
static uint64_t lingering;

uint64_t sim_pieces_touched(void)
{
    return touched;
}

/* Pieces. */

static struct sim_piece *new_piece(const CUmemLocation *location, size_t size)
{
    struct sim_piece *piece = calloc(1, sizeof *piece);

    if (piece == NULL) {
        return NULL;
    }
    piece->key = next_key;
    next_key += size;
    piece->location = *location;
    piece->size = size;
    piece->device = -1;
    piece->area = SIM_NO_AREA;
    piece->next = pieces;
    if (pieces != NULL) {
        pieces->prev = piece;
    }
    pieces = piece;
    return piece;
}

static void delete_piece(struct sim_piece *piece)
{
    sim_order_end(piece->key, piece->size);
    if (piece->prev != NULL) {
        piece->prev->next = piece->next;
    } else {
        pieces = piece->next;
    }
    if (piece->next != NULL) {
        piece->next->prev = piece->prev;
    }
    if (piece->bytes != NULL) {
        munmap(piece->bytes, piece->size);
        touched -= piece->size;
    }
    sim_area_drop(&piece->area, piece->size);
    if (piece->device >= 0) {
        sim_device_give(piece->device, piece->size);
    }
    free(piece);
}

static void drop_holder_of(struct sim_piece *piece)
{
    if (--piece->holders != 0) {
        return;
    }
    if (piece->area.own && sim_area_is_shared(&piece->area)) {
        lingering++;
        return;
    }
    delete_piece(piece);
}

void sim_pieces_reap(void)
{
    struct sim_piece *piece = lingering != 0 ? pieces : NULL;

    while (piece != NULL) {
        struct sim_piece *next = piece->next;

        if (piece->holders == 0 && !sim_area_is_shared(&piece->area)) {
            lingering--;
            delete_piece(piece);
        }
        piece = next;
    }
}

/* Holders. */

static struct sim_holder *new_holder(struct sim_piece *piece,
                                     const CUmemAllocationProp *properties)
{
    struct sim_holder *holder = calloc(1, sizeof *holder);

    if (holder == NULL) {
        return NULL;
    }
    holder->slot = sim_slot_take(&slots, holder);
    if (holder->slot == NULL) {
        free(holder);
        return NULL;
    }
    holder->piece = piece;
    holder->properties = *properties;
    holder->handles = 1;
    piece->holders++;
    return holder;
}

static void settle(struct sim_holder *holder)
{
    if (holder->handles == 0 && holder->mappings == 0) {
        sim_slot_give(&slots, holder->slot);
        drop_holder_of(holder->piece);
        free(holder);
    }
}

struct sim_holder *sim_holder_peek(const struct sim_thread *self,
                                   CUmemGenericAllocationHandle handle)
{
    const void *pointer = (const void *)(uintptr_t)handle;
    void *object;

    if (handle == 0) {
        return NULL;
    }
    switch (sim_slot_find(&slots, pointer, &object)) {
    case SIM_HANDLE_LIVE:
        return object;
    case SIM_HANDLE_DEAD:
        return NULL;
    case SIM_HANDLE_FOREIGN:
    default:
        sim_crash(self, "not a piece of memory:", pointer);
    }
}

struct sim_holder *sim_holder_find(const struct sim_thread *self,
                                   CUmemGenericAllocationHandle handle)
{
    struct sim_holder *holder = sim_holder_peek(self, handle);

    if (holder == NULL && handle != 0) {
        sim_crash(self, "released memory", (const void *)(uintptr_t)handle);
    }
    return holder;
}

void sim_holder_release(struct sim_holder *holder)
{
    holder->handles--;
    settle(holder);
}

void sim_holder_map(struct sim_holder *holder)
{
    holder->mappings++;
}

void sim_holder_unmap(struct sim_holder *holder)
{
    holder->mappings--;
    settle(holder);
}

CUresult sim_piece_create(const CUmemAllocationProp *properties, size_t size,
                          CUmemGenericAllocationHandle *handle)
{
    struct sim_piece *piece;
    struct sim_holder *holder;

    piece = new_piece(&properties->location, size);
    if (piece == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
        if (!sim_device_take(properties->location.id, size)) {
            goto err_delete_piece;
        }
        piece->device = properties->location.id;
    }
    holder = new_holder(piece, properties);
    if (holder == NULL) {
        goto err_delete_piece;
    }
    *handle = sim_holder_handle(holder);
    return CUDA_SUCCESS;

err_delete_piece:
    delete_piece(piece);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Bytes. */

char *sim_piece_bytes(struct sim_piece *piece)
{
    void *got;

    if (piece->bytes != NULL) {
        return piece->bytes;
    }
    if (piece->area.file >= 0) {
        got = sim_area_map(&piece->area, 0, piece->size);
    } else {
        got = mmap(NULL, piece->size, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        got = got != MAP_FAILED ? got : NULL;
    }
    piece->bytes = got;
    if (got != NULL) {
        touched += piece->size;
    }
    return got;
}

/* Sharing. */

bool sim_piece_make_area(struct sim_piece *piece)
{
    struct sim_label label;

    if (piece->area.file >= 0) {
        return true;
    }
    memset(&label, 0, sizeof label);
    label.properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    label.properties.location = piece->location;
    if (!sim_area_take(&piece->area, SIM_AREA_PIECE, piece->size, &label)) {
        return false;
    }
    if (piece->bytes != NULL &&
        !sim_area_move(&piece->area, piece->size, piece->bytes)) {
        sim_area_drop(&piece->area, piece->size);
        return false;
    }
    return true;
}

int sim_piece_export(struct sim_piece *piece)
{
    return sim_piece_make_area(piece) ? sim_area_share(&piece->area, true)
                                      : -1;
}

static struct sim_piece *find_area(const struct sim_area *area)
{
    struct sim_piece *piece = pieces;

    while (piece != NULL && !sim_area_same(&piece->area, area)) {
        piece = piece->next;
    }
    return piece;
}

/* Another process's memory: its device's share is not taken twice. */
static struct sim_piece *join_piece(const struct sim_area *area,
                                    const struct sim_label *label)
{
    struct sim_piece *piece =
        new_piece(&label->properties.location, label->size);

    if (piece != NULL) {
        piece->area = *area;
        if (!sim_area_join(&piece->area)) {
            piece->area = SIM_NO_AREA;
            delete_piece(piece);
            return NULL;
        }
    }
    return piece;
}

CUresult sim_piece_import(int file, CUmemGenericAllocationHandle *handle)
{
    struct sim_area area;
    struct sim_label label;
    struct sim_piece *piece;
    struct sim_holder *holder;
    CUresult status;

    if (!sim_area_find(file, SIM_AREA_PIECE, &area, &label, &status)) {
        return status;
    }
    piece = find_area(&area);
    if (piece == NULL && !area.own) {
        piece = join_piece(&area, &label);
    }
    if (piece == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    holder = new_holder(piece, &label.properties);
    if (holder == NULL) {
        if (!piece->area.own && piece->holders == 0) {
            delete_piece(piece);
        }
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (piece->area.own && piece->holders == 1) {
        lingering--;
    }
    *handle = sim_holder_handle(holder);
    return CUDA_SUCCESS;
}

/* The whole. */

void sim_pieces_count(uint64_t *count, uint64_t *bytes)
{
    const struct sim_piece *piece;

    *count = 0;
    *bytes = 0;
    for (piece = pieces; piece != NULL; piece = piece->next) {
        if (piece->holders != 0) {
            *count += 1;
            *bytes += piece->size;
        }
    }
}

/* The mappings have gone before. */
void sim_pieces_reset(void)
{
    size_t i;

    for (i = 0; i < slots.used; i++) {
        free(((struct sim_slot *)(void *)slots.base + i)->object);
    }
    sim_slots_clear(&slots);
    while (pieces != NULL) {
        pieces->device = -1; /* what is taken is forgotten as a whole */
        delete_piece(pieces);
    }
    lingering = 0;
}
