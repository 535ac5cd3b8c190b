/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/physical.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/device.h"

static struct sim_slots slots;
static struct sim_physical *pieces;
/* Pieces that descriptors alone may still hold. */
static uint64_t lingering;
static uint64_t touched;

static bool is_idle(const struct sim_physical *piece)
{
    return piece->handles == 0 && piece->mappings == 0;
}

uint64_t sim_physical_touched(void)
{
    return touched;
}

/* Life. */

static void enlist(struct sim_physical *piece)
{
    piece->id = sim_next_id();
    piece->next = pieces;
    if (pieces != NULL) {
        pieces->prev = piece;
    }
    pieces = piece;
}

static void delete_piece(struct sim_physical *piece)
{
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
    if (piece->file >= 0) {
        close(piece->file);
    }
    if (piece->device >= 0) {
        sim_device_give(piece->device, piece->size);
    }
    free(piece);
}

/* A piece that was exported may outlive its handles and mappings here. */
static void settle(struct sim_physical *piece)
{
    if (!is_idle(piece)) {
        return;
    }
    if (piece->file >= 0 && !piece->imported &&
        sim_file_is_shared(piece->file)) {
        lingering++;
        return;
    }
    delete_piece(piece);
}

void sim_physical_reap(void)
{
    struct sim_physical *piece = lingering != 0 ? pieces : NULL;

    while (piece != NULL) {
        struct sim_physical *next = piece->next;

        if (is_idle(piece) && !sim_file_is_shared(piece->file)) {
            lingering--;
            delete_piece(piece);
        }
        piece = next;
    }
}

static struct sim_physical *new_piece(const CUmemAllocationProp *properties,
                                      size_t size)
{
    struct sim_physical *piece = calloc(1, sizeof *piece);

    if (piece != NULL) {
        piece->properties = *properties;
        piece->size = size;
        piece->device = -1;
        piece->file = -1;
        enlist(piece);
    }
    return piece;
}

CUresult sim_physical_create(const CUmemAllocationProp *properties,
                             size_t size, CUmemGenericAllocationHandle *handle)
{
    struct sim_physical *piece;
    CUresult res;

    sim_physical_reap();
    piece = new_piece(properties, size);
    if (piece == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
        if (!sim_device_take(properties->location.id, size)) {
            delete_piece(piece);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        piece->device = properties->location.id;
    }
    res = sim_physical_hold(piece, handle);
    if (res != CUDA_SUCCESS) {
        delete_piece(piece);
    }
    return res;
}

/* References. */

struct sim_physical *sim_physical_find(CUmemGenericAllocationHandle handle)
{
    void *object;

    return sim_slot_find(&slots, (const void *)(uintptr_t)handle, &object) ==
                   SIM_HANDLE_LIVE
               ? object
               : NULL;
}

CUresult sim_physical_hold(struct sim_physical *piece,
                           CUmemGenericAllocationHandle *handle)
{
    if (piece->slot == NULL) {
        piece->slot = sim_slot_take(&slots, piece);
        if (piece->slot == NULL) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    piece->handles++;
    *handle = (CUmemGenericAllocationHandle)(uintptr_t)piece->slot;
    return CUDA_SUCCESS;
}

void sim_physical_release(struct sim_physical *piece)
{
    if (--piece->handles != 0) {
        return;
    }
    sim_slot_give(&slots, piece->slot);
    piece->slot = NULL;
    settle(piece);
}

void sim_physical_map(struct sim_physical *piece)
{
    piece->mappings++;
}

void sim_physical_unmap(struct sim_physical *piece)
{
    if (--piece->mappings == 0) {
        settle(piece);
    }
}

/* Bytes. */

char *sim_physical_bytes(struct sim_physical *piece)
{
    void *got;

    if (piece->bytes != NULL) {
        return piece->bytes;
    }
    if (piece->file >= 0) {
        got = sim_file_map(piece->file, 0, piece->size);
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

bool sim_physical_make_file(struct sim_physical *piece)
{
    struct sim_label label;
    int file;

    if (piece->file >= 0) {
        return true;
    }
    memset(&label, 0, sizeof label);
    label.properties = piece->properties;
    file = sim_file_new(SIM_FILE_PIECE, piece->size, &label);
    if (file < 0) {
        return false;
    }
    if (!sim_file_identify(file, &piece->file_id) ||
        (piece->bytes != NULL &&
         !sim_file_move(file, 0, piece->size, piece->bytes))) {
        close(file);
        return false;
    }
    piece->file = file;
    return true;
}

int sim_physical_export(struct sim_physical *piece)
{
    return sim_physical_make_file(piece) ? sim_file_share(piece->file) : -1;
}

static struct sim_physical *find_file(const struct sim_file_id *id)
{
    struct sim_physical *piece = pieces;

    while (piece != NULL &&
           (piece->file < 0 || !sim_file_same(&piece->file_id, id))) {
        piece = piece->next;
    }
    return piece;
}

static CUresult import_new(int file, const struct sim_label *label,
                           const struct sim_file_id *id,
                           CUmemGenericAllocationHandle *handle)
{
    struct sim_physical *piece = new_piece(&label->properties, label->size);
    CUresult res;

    if (piece == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    piece->imported = true;
    piece->file_id = *id;
    piece->file = sim_file_share(file);
    if (piece->file < 0) {
        delete_piece(piece);
        return CUDA_ERROR_INVALID_VALUE;
    }
    res = sim_physical_hold(piece, handle);
    if (res != CUDA_SUCCESS) {
        delete_piece(piece);
    }
    return res;
}

CUresult sim_physical_import(int file, CUmemGenericAllocationHandle *handle)
{
    struct sim_file_id id;
    struct sim_label label;
    struct sim_physical *piece;

    if (!sim_file_read(file, SIM_FILE_PIECE, &label) ||
        !sim_file_identify(file, &id)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    piece = find_file(&id);
    if (piece == NULL) {
        return import_new(file, &label, &id, handle);
    }
    if (is_idle(piece)) {
        lingering--;
    }
    return sim_physical_hold(piece, handle);
}

/* The whole. */

void sim_physical_count(uint64_t *count, uint64_t *bytes)
{
    const struct sim_physical *piece;

    *count = 0;
    *bytes = 0;
    for (piece = pieces; piece != NULL; piece = piece->next) {
        if (!is_idle(piece)) {
            *count += 1;
            *bytes += piece->size;
        }
    }
}

/* The mappings have gone before. */
void sim_physical_reset(void)
{
    while (pieces != NULL) {
        pieces->device = -1; /* what is taken is forgotten as a whole */
        delete_piece(pieces);
    }
    sim_slots_clear(&slots);
    lingering = 0;
}
