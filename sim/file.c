/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC "ccmr-sim memory"
#define LABEL_VERSION 1
#define STEP ((size_t)65536)

int sim_file_new(enum sim_file_kind kind, size_t size,
                 const struct sim_label *label)
{
    struct sim_label written = *label;
    int file = memfd_create("ccmr-sim", MFD_CLOEXEC);

    if (file < 0) {
        return -1;
    }
    memset(written.magic, 0, sizeof written.magic);
    memcpy(written.magic, MAGIC, sizeof MAGIC);
    written.version = LABEL_VERSION;
    written.kind = kind;
    written.size = size;
    if (!sim_file_resize(file, size) ||
        pwrite(file, &written, sizeof written, 0) != (ssize_t)sizeof written) {
        close(file);
        return -1;
    }
    return file;
}

bool sim_file_resize(int file, size_t size)
{
    return ftruncate(file, (off_t)(SIM_FILE_START + size)) == 0;
}

bool sim_file_read(int file, enum sim_file_kind kind, struct sim_label *label)
{
    struct stat status;

    if (file < 0 || fstat(file, &status) != 0 || !S_ISREG(status.st_mode) ||
        pread(file, label, sizeof *label, 0) != (ssize_t)sizeof *label) {
        return false;
    }
    return memcmp(label->magic, MAGIC, sizeof MAGIC) == 0 &&
           label->version == LABEL_VERSION && label->kind == kind;
}

bool sim_file_identify(int file, struct sim_file_id *id)
{
    struct stat status;

    if (fstat(file, &status) != 0) {
        return false;
    }
    id->device = status.st_dev;
    id->number = status.st_ino;
    return true;
}

bool sim_file_same(const struct sim_file_id *a, const struct sim_file_id *b)
{
    return a->device == b->device && a->number == b->number;
}

static struct flock whole_file(short type)
{
    struct flock lock;

    memset(&lock, 0, sizeof lock);
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    return lock;
}

/* Such a lock belongs to the open file, not to the process: copies of the
 * descriptor share it, wherever they are, and the last to close ends it. */
int sim_file_share(int file)
{
    struct flock lock = whole_file(F_RDLCK);
    char path[64];
    int shared;

    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    shared = open(path, O_RDWR | O_CLOEXEC);
    if (shared >= 0 && fcntl(shared, F_OFD_SETLK, &lock) != 0) {
        close(shared);
        return -1;
    }
    return shared;
}

bool sim_file_is_shared(int file)
{
    struct flock lock = whole_file(F_WRLCK);

    return fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

void *sim_file_map(int file, size_t offset, size_t size)
{
    void *got = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file,
                     (off_t)(SIM_FILE_START + offset));

    return got != MAP_FAILED ? got : NULL;
}

static bool is_zero(const char *bytes, size_t size)
{
    size_t i;

    for (i = 0; i < size && bytes[i] == 0; i++) {
    }
    return i == size;
}

bool sim_file_move(int file, size_t offset, size_t size, void *at)
{
    const char *bytes = at;
    size_t done = 0;

    /* What is zero needs no memory in the file. */
    while (done < size) {
        size_t part = size - done < STEP ? size - done : STEP;
        off_t to = (off_t)(SIM_FILE_START + offset + done);

        if (!is_zero(bytes + done, part) &&
            pwrite(file, bytes + done, part, to) != (ssize_t)part) {
            return false;
        }
        done += part;
    }
    return mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
                (off_t)(SIM_FILE_START + offset)) != MAP_FAILED;
}

bool sim_file_map_at(int file, size_t size, int prot, void *at)
{
    void *got = mmap(at, size, prot, MAP_SHARED | MAP_FIXED_NOREPLACE, file,
                     (off_t)SIM_FILE_START);

    if (got != MAP_FAILED && got != at) {
        munmap(got, size);
    }
    return got == at;
}

void sim_file_forget(int file, size_t offset, size_t size)
{
    /* Where it can't be done the bytes stay, and nothing else. */
    (void)fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    (off_t)(SIM_FILE_START + offset), (off_t)size);
}
