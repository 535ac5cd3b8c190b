/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What shares pools between processes: a register of pools that are shared,
 * descriptors of blocks, and imports of them. Field cases L2, L3, L4, M2.
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/simulation/mistakes.h"

#define POSIX CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
#define SHARED 4
#define BYTES (64 * KIB)

/* ---- the register of shared pools ------------------------------------------------- */

struct shared {
    CUmemoryPool pool;
    int fd;
};

static struct shared shared[SHARED];
static unsigned shared_count;

/* The mistakes. */
static bool registers_first, never_counts, reads_short, trusts_size,
    clears_owner;

static CUresult share(CUmemoryPool pool)
{
    struct shared *entry = &shared[shared_count];
    int fd = -1;
    CUresult res;

    if (registers_first) {
        *entry = (struct shared){pool, fd};
        shared_count++;
    }
    res = drv.cuMemPoolExportToShareableHandle(&fd, pool, POSIX, 0);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    *entry = (struct shared){pool, fd};
    shared_count += !registers_first;
    return CUDA_SUCCESS;
}

static void share_no_more(void)
{
    while (shared_count > 0) {
        (void)close(shared[--shared_count].fd);
    }
}

static CUmemoryPool pool_for(int types)
{
    CUmemPoolProps props;
    CUmemoryPool pool = NULL;

    memset(&props, 0, sizeof props);
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    props.handleTypes = (CUmemAllocationHandleType)types;
    MUST(drv.cuMemPoolCreate(&pool, &props));
    return pool;
}

static void not_for_sharing(bool wrong)
{
    CUmemoryPool pool = pool_for(CU_MEM_HANDLE_TYPE_NONE);

    registers_first = wrong;
    if (share(pool) == CUDA_SUCCESS) {
        found(CHECK_STATUS, "a pool is shared that cannot be");
    }
    if (shared_count != 0) {
        found(CHECK_FIGURES, "%u pools are registered", shared_count);
    }
    MUST(drv.cuMemPoolDestroy(pool));
}

/* ---- descriptors and imports --------------------------------------------------------- */

#define DESCRIPTOR_VERSION 1u

struct descriptor {
    uint32_t version;
    uint32_t bytes; /* of the whole */
    CUmemPoolPtrExportData data;
};

struct import {
    CUdeviceptr address;
    unsigned count;
};

static struct import imported;

/* INVALID_VALUE: the descriptor is none. */
static CUresult open_block(CUmemoryPool pool, const void *bytes, size_t length,
                           CUdeviceptr *address)
{
    struct descriptor d;
    CUresult res;

    if (!reads_short && !trusts_size && length != sizeof d) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (trusts_size) {
        memcpy(&d.bytes, (const char *)bytes + 4, 4);
        memcpy(&d, bytes, d.bytes);
    } else {
        memcpy(&d, bytes, sizeof d);
    }
    if (d.version != DESCRIPTOR_VERSION || d.bytes != sizeof d) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    res = drv.cuMemPoolImportPointer(address, pool, &d.data);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    imported.count = imported.address == *address ? imported.count + 1 : 1;
    imported.address = *address;
    return CUDA_SUCCESS;
}

static CUresult close_block(CUdeviceptr address, CUstream stream)
{
    if (!never_counts && --imported.count > 0) {
        return CUDA_SUCCESS;
    }
    imported.address = 0;
    return drv.cuMemFreeAsync(address, stream);
}

/* ---- another process has the pool and a block ------------------------------------------- */

enum { LINE = 9 };

/* Send a descriptor, and its pool's file with it. */
static bool send_block(int line, const struct descriptor *d, int fd)
{
    char control[CMSG_SPACE(sizeof fd)] = {0};
    struct descriptor copy = *d;
    struct iovec part = {&copy, sizeof copy};
    struct msghdr message;
    struct cmsghdr *header;

    memset(&message, 0, sizeof message);
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    return sendmsg(line, &message, MSG_NOSIGNAL) == (ssize_t)sizeof copy;
}

static int hear_block(int line, struct descriptor *d)
{
    char control[CMSG_SPACE(sizeof(int))];
    struct iovec part = {d, sizeof *d};
    struct msghdr message;
    struct cmsghdr *header;
    int fd = -1;

    memset(&message, 0, sizeof message);
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (recvmsg(line, &message, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof *d ||
        (header = CMSG_FIRSTHDR(&message)) == NULL) {
        found(CHECK_STATUS, "the other process shares nothing");
    }
    memcpy(&fd, CMSG_DATA(header), sizeof fd);
    return fd;
}

/* It shares a block, and ends when nobody listens any more. */
int mistakes_export(void)
{
    struct descriptor d = {.version = DESCRIPTOR_VERSION, .bytes = sizeof d};
    CUdeviceptr block = 0;
    CUmemoryPool pool;
    CUstream stream;
    char word;

    driver_start(CCMR_SIM_EAGER, 0);
    stream = new_stream();
    pool = pool_for(POSIX);
    MUST(share(pool));
    MUST(drv.cuMemAllocFromPoolAsync(&block, BYTES, pool, stream));
    MUST(drv.cuMemsetD8Async(block, 6, BYTES, stream));
    MUST(drv.cuStreamSynchronize(stream));
    MUST(drv.cuMemPoolExportPointer(&d.data, block));
    if (send_block(LINE, &d, shared[0].fd)) {
        (void)!read(LINE, &word, 1);
    }
    share_no_more();
    MUST(drv.cuMemFreeAsync(block, stream));
    MUST(drv.cuMemPoolDestroy(pool));
    MUST(drv.cuStreamDestroy(stream));
    return 0;
}

/* What is had of it here. */
struct other {
    pid_t process;
    int line;
    CUstream stream;
    CUmemoryPool import;
    struct descriptor d;
};

static void begin(struct other *o)
{
    int ends[2];
    int fd;

    memset(o, 0, sizeof *o);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        found(CHECK_STATUS, "no line");
    }
    o->process = fork();
    if (o->process == 0) {
        (void)dup2(ends[1], LINE);
        (void)execl("/proc/self/exe", "mistakes", EXPORTER, (char *)NULL);
        _exit(127);
    }
    (void)close(ends[1]);
    o->line = ends[0];
    fd = hear_block(o->line, &o->d);
    o->stream = new_stream();
    MUST(drv.cuMemPoolImportFromShareableHandle(
        &o->import, (void *)(intptr_t)fd, POSIX, 0));
    (void)close(fd);
}

static void end(const struct other *o)
{
    int status = 0;

    MUST(drv.cuStreamSynchronize(o->stream));
    MUST(drv.cuMemPoolDestroy(o->import));
    MUST(drv.cuStreamDestroy(o->stream));
    (void)close(o->line);
    if (waitpid(o->process, &status, 0) != o->process || status != 0) {
        found(CHECK_STATUS, "the other process ends with status 0x%x",
              (unsigned)status);
    }
}

static void opened_twice(bool wrong)
{
    CUdeviceptr first = 0;
    CUdeviceptr second = 0;
    struct other o;

    never_counts = wrong;
    begin(&o);
    MUST(open_block(o.import, &o.d, sizeof o.d, &first));
    MUST(open_block(o.import, &o.d, sizeof o.d, &second));
    MUST(close_block(first, o.stream));
    MUST(drv.cuStreamSynchronize(o.stream));
    holds(second, BYTES, 6);
    MUST(close_block(second, o.stream));
    end(&o);
}

/* Bytes that end where memory does. */
static const void *at_the_end(const void *bytes, size_t length)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (two == MAP_FAILED || mprotect(two + page, page, PROT_NONE) != 0) {
        found(CHECK_STATUS, "no pages");
    }
    memcpy(two + page - length, bytes, length);
    return two + page - length;
}

static void refuse(const struct other *o, const void *bytes, size_t length,
                   const char *what)
{
    CUdeviceptr address = 0;

    if (open_block(o->import, at_the_end(bytes, length), length, &address) ==
        CUDA_SUCCESS) {
        found(CHECK_STATUS, "opened: %s", what);
    }
}

static void refuse_all(const struct other *o)
{
    unsigned char longer[sizeof o->d + 1] = {0};
    struct descriptor bad = o->d;
    size_t bit;

    refuse(o, &o->d, 0, "nothing");
    refuse(o, &o->d, 1, "one byte");
    refuse(o, &o->d, sizeof o->d - 1, "a byte too few");
    memcpy(longer, &o->d, sizeof o->d);
    refuse(o, longer, sizeof longer, "a byte too many");
    bad.version = 2;
    refuse(o, &bad, sizeof bad, "another version");
    bad = o->d;
    bad.bytes = UINT32_MAX;
    refuse(o, &bad, sizeof bad, "a size of -1");
    for (bit = 0; bit < 64; bit++) { /* of what says whose it is */
        bad = o->d;
        bad.data.reserved[bit / 8] ^= (unsigned char)(1u << bit % 8);
        refuse(o, &bad, sizeof bad, "a wrong bit");
    }
}

static void descriptors(void)
{
    CUdeviceptr address = 0;
    struct other o;

    begin(&o);
    refuse_all(&o);
    MUST(open_block(o.import, at_the_end(&o.d, sizeof o.d), sizeof o.d,
                    &address));
    holds(address, BYTES, 6);
    MUST(close_block(address, o.stream));
    end(&o);
}

static void short_ones(bool wrong)
{
    reads_short = wrong;
    descriptors();
}

static void sizes(bool wrong)
{
    trusts_size = wrong;
    descriptors();
}

/* ---- access of peers -------------------------------------------------------------------- */

static CUmemAccess_flags access_of(CUmemoryPool pool, int device)
{
    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    CUmemLocation location;

    memset(&location, 0, sizeof location);
    location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    location.id = device;
    MUST(drv.cuMemPoolGetAccess(&flags, pool, &location));
    return flags;
}

static CUresult set_access(CUmemoryPool pool, const int *devices, size_t count,
                           CUmemAccess_flags flags)
{
    CUmemAccessDesc desc[2];
    size_t i;

    memset(desc, 0, sizeof desc);
    for (i = 0; i < count; i++) {
        desc[i].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        desc[i].location.id = devices[i];
        desc[i].flags = flags;
    }
    return drv.cuMemPoolSetAccess(pool, desc, count);
}

/* A pool's handle comes again, and with it the access that was not cleared. */
static void end_pool(CUmemoryPool pool)
{
    static const int all[] = {0, 1};

    if (clears_owner) {
        (void)set_access(pool, all, 2, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    } else {
        MUST(set_access(pool, &all[1], 1, CU_MEM_ACCESS_FLAGS_PROT_NONE));
    }
    MUST(drv.cuMemPoolDestroy(pool));
}

static void recycled_pool(bool wrong)
{
    const int peer = 1;
    int round;

    clears_owner = wrong;
    for (round = 0; round < 6; round++) {
        CUmemoryPool pool = pool_for(CU_MEM_HANDLE_TYPE_NONE);

        if (access_of(pool, peer) != CU_MEM_ACCESS_FLAGS_PROT_NONE) {
            found(CHECK_FIGURES, "a new pool has access for a peer");
        }
        MUST(set_access(pool, &peer, 1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
        end_pool(pool);
    }
}

const struct mistake mistakes_sharing[] = {
    {"not for sharing", "L2", "a pool is registered before it is exported",
     not_for_sharing, CHECK_FIGURES},
    {"opened twice", "L3", "two imports of one block are not counted",
     opened_twice, CHECK_STATUS},
    {"short descriptor", "L4", "a descriptor's length is not looked at",
     short_ones, CHECK_CRASH},
    {"size in descriptor", "L4", "a descriptor is believed its size", sizes,
     CHECK_CRASH},
    {"recycled pool", "M2", "access is cleared for the owner, too, in vain",
     recycled_pool, CHECK_FIGURES},
    {NULL, NULL, NULL, NULL, CHECK_NONE},
};
