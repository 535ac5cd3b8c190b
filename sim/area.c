/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/area.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC "ccmr-sim memory"
#define LABEL_VERSION 1
#define STEP ((size_t)65536)

static int store = -1;
static uint64_t store_number;
static uint64_t store_end;

/* Where the bytes are, in the file. */
static off_t place(const struct sim_area *area, size_t offset)
{
    return (off_t)(area->start + SIM_PAGE + offset);
}

/* The file. */

static bool number_of(int file, uint64_t *number)
{
    struct stat status;

    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
        return false;
    }
    *number = status.st_ino;
    return true;
}

static bool open_store(void)
{
    if (store >= 0) {
        return true;
    }
    store = memfd_create("ccmr-sim", MFD_CLOEXEC);
    store_end = 0;
    return store >= 0 && number_of(store, &store_number);
}

static bool write_label(const struct sim_area *area, enum sim_area_kind kind,
                        size_t size, const struct sim_label *label)
{
    struct sim_label written = *label;

    memset(written.magic, 0, sizeof written.magic);
    memcpy(written.magic, MAGIC, sizeof MAGIC);
    written.version = LABEL_VERSION;
    written.kind = kind;
    written.gone = 0;
    written.size = size;
    return pwrite(area->file, &written, sizeof written, (off_t)area->start) ==
           (ssize_t)sizeof written;
}

/* Areas of the file are never used again: it has no end. */
bool sim_area_take(struct sim_area *area, enum sim_area_kind kind, size_t size,
                   const struct sim_label *label)
{
    uint64_t end;

    if (!open_store()) {
        return false;
    }
    area->file = store;
    area->own = true;
    area->start = store_end;
    area->number = store_number;
    end = store_end + SIM_PAGE + (size + SIM_PAGE - 1) / SIM_PAGE * SIM_PAGE;
    if (ftruncate(store, (off_t)end) != 0 ||
        !write_label(area, kind, size, label)) {
        *area = SIM_NO_AREA;
        return false;
    }
    store_end = end;
    return true;
}

bool sim_area_find(int file, enum sim_area_kind kind, struct sim_area *area,
                   struct sim_label *label, CUresult *status)
{
    off_t start = lseek(file, 0, SEEK_CUR);

    *status = CUDA_ERROR_UNKNOWN;
    if (start < 0 || !number_of(file, &area->number) ||
        pread(file, label, sizeof *label, start) != (ssize_t)sizeof *label ||
        memcmp(label->magic, MAGIC, sizeof MAGIC) != 0 ||
        label->version != LABEL_VERSION) {
        return false;
    }
    area->file = file;
    area->own = store >= 0 && area->number == store_number;
    area->start = (uint64_t)start;
    if (label->kind != kind || label->gone != 0) {
        *status = label->kind != kind ? CUDA_ERROR_NOT_SUPPORTED
                                      : CUDA_ERROR_INVALID_VALUE;
        return false;
    }
    if (area->own) {
        area->file = store;
    }
    return true;
}

bool sim_area_visit(int process, int file, uint64_t start,
                    enum sim_area_kind kind, uint64_t number,
                    struct sim_area *area)
{
    struct sim_label label;
    CUresult status;
    char path[64];
    int found;
    bool joined;

    snprintf(path, sizeof path, "/proc/%d/fd/%d", process, file);
    found = open(path, O_RDWR | O_CLOEXEC);
    if (found < 0) {
        return false;
    }
    joined = lseek(found, (off_t)start, SEEK_SET) >= 0 &&
             sim_area_find(found, kind, area, &label, &status) &&
             area->number == number && sim_area_join(area);
    close(found);
    return joined;
}

bool sim_area_join(struct sim_area *area)
{
    int file = sim_area_share(area, true);

    if (file < 0) {
        return false;
    }
    area->file = file;
    return true;
}

void sim_area_drop(struct sim_area *area, size_t size)
{
    if (area->file >= 0 && area->own) {
        sim_area_bury(area);
        sim_area_forget(area, 0, size);
    } else if (area->file >= 0) {
        close(area->file);
    }
    *area = SIM_NO_AREA;
}

void sim_area_bury(const struct sim_area *area)
{
    const uint64_t gone = 1;

    (void)pwrite(area->file, &gone, sizeof gone,
                 (off_t)(area->start + offsetof(struct sim_label, gone)));
}

bool sim_area_same(const struct sim_area *a, const struct sim_area *b)
{
    return a->file >= 0 && b->file >= 0 && a->number == b->number &&
           a->start == b->start;
}

/* Descriptors. */

static struct flock lock_of(const struct sim_area *area, short type)
{
    struct flock lock;

    memset(&lock, 0, sizeof lock);
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = (off_t)area->start;
    lock.l_len = 1;
    return lock;
}

int sim_area_share(const struct sim_area *area, bool close_on_exec)
{
    struct flock lock = lock_of(area, F_RDLCK);
    char path[64];
    int shared;

    snprintf(path, sizeof path, "/proc/self/fd/%d", area->file);
    shared = open(path, O_RDWR | (close_on_exec ? O_CLOEXEC : 0));
    if (shared >= 0 && (lseek(shared, (off_t)area->start, SEEK_SET) < 0 ||
                        fcntl(shared, F_OFD_SETLK, &lock) != 0)) {
        close(shared);
        return -1;
    }
    return shared;
}

bool sim_area_is_shared(const struct sim_area *area)
{
    struct flock lock = lock_of(area, F_WRLCK);

    return area->file >= 0 && fcntl(area->file, F_OFD_GETLK, &lock) == 0 &&
           lock.l_type != F_UNLCK;
}

/* Bytes. */

void *sim_area_map(const struct sim_area *area, size_t offset, size_t size)
{
    void *got = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED,
                     area->file, place(area, offset));

    return got != MAP_FAILED ? got : NULL;
}

bool sim_area_map_at(const struct sim_area *area, size_t size, int prot,
                     void *at)
{
    void *got = mmap(at, size, prot, MAP_SHARED | MAP_FIXED_NOREPLACE,
                     area->file, place(area, 0));

    if (got != MAP_FAILED && got != at) {
        munmap(got, size);
    }
    return got == at;
}

static bool is_zero(const char *bytes, size_t size)
{
    size_t i;

    for (i = 0; i < size && bytes[i] == 0; i++) {
    }
    return i == size;
}

/* What is zero needs no memory in the file. */
bool sim_area_move(const struct sim_area *area, size_t size, void *at)
{
    const char *bytes = at;
    size_t done = 0;

    while (done < size) {
        size_t part = size - done < STEP ? size - done : STEP;

        if (!is_zero(bytes + done, part) &&
            pwrite(area->file, bytes + done, part, place(area, done)) !=
                (ssize_t)part) {
            return false;
        }
        done += part;
    }
    return mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                area->file, place(area, 0)) != MAP_FAILED;
}

void sim_area_forget(const struct sim_area *area, size_t offset, size_t size)
{
    /* Where it can't be done the bytes stay, and nothing else. */
    (void)fallocate(area->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    place(area, offset), (off_t)size);
}

void sim_areas_reset(void)
{
    if (store >= 0) {
        close(store);
    }
    store = -1;
}
