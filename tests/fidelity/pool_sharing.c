/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools that are handed on as file descriptors, and pointers into them.
 */
#include "tests/fidelity/sharing.h"

#include "tests/fidelity/calls.h"
#include "tests/fidelity/facts.h"
#include "tests/fidelity/pieces.h"
#include "tests/fidelity/second.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum { LIMIT_MS = 20000, BLOCK_BYTES = 1 << 20, OFFSET = 4096 };

#define POSIX CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

int open_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    if (folder == NULL) {
        return -1;
    }
    while (readdir(folder) != NULL) {
        count++;
    }
    closedir(folder);
    return count;
}

static CUmemoryPool make_shareable_pool(void)
{
    CUmemPoolProps props = pool_properties(0);
    CUmemoryPool pool = NULL;
    CUresult res;

    props.handleTypes = POSIX;
    res = drv.cuMemPoolCreate(&pool, &props);
    if (res != CUDA_SUCCESS) {
        fact_result("create_pool", res);
    }
    return pool;
}

static CUdeviceptr make_block(CUmemoryPool pool)
{
    CUdeviceptr block = 0;
    CUresult res = drv.cuMemAllocFromPoolAsync(&block, BLOCK_BYTES, pool,
                                               CU_STREAM_LEGACY);

    if (res == CUDA_SUCCESS) {
        res = drv.cuStreamSynchronize(CU_STREAM_LEGACY);
    }
    if (res != CUDA_SUCCESS) {
        fact_result("make_block", res);
    }
    return block;
}

static CUresult free_block(CUdeviceptr block)
{
    CUresult res = drv.cuMemFreeAsync(block, CU_STREAM_LEGACY);

    drv.cuStreamSynchronize(CU_STREAM_LEGACY);
    return res;
}

static CUresult export_pool(int *fd, CUmemoryPool pool)
{
    *fd = -1;
    return drv.cuMemPoolExportToShareableHandle(fd, pool, POSIX, 0);
}

static CUresult import_pool(CUmemoryPool *pool, int fd)
{
    *pool = NULL;
    return drv.cuMemPoolImportFromShareableHandle(pool, (void *)(intptr_t)fd,
                                                  POSIX, 0);
}

int shared_pool_descriptor(void)
{
    CUmemoryPool pool = make_shareable_pool();
    int fd = -1;

    export_pool(&fd, pool);
    drv.cuMemPoolDestroy(pool);
    return fd;
}

/* ---- export ---- */

static void see_export(const char *what, CUmemoryPool pool, int type)
{
    union {
        int fd;
        unsigned char bytes[64];
    } shared;
    CUresult res;

    memset(&shared, 0xff, sizeof shared);
    res = drv.cuMemPoolExportToShareableHandle(
        &shared, pool, (CUmemAllocationHandleType)type, 0);
    fact_result(what, res);
    if (res == CUDA_SUCCESS && type == (int)POSIX) {
        close(shared.fd);
    }
}

/* Documented: the pool must have been made with the type asked for. */
static void export_types(void)
{
    CUmemoryPool ordinary = make_pool(0);
    CUmemoryPool pool = make_shareable_pool();
    CUmemoryPool standard = NULL;
    int fd = -1;

    drv.cuDeviceGetDefaultMemPool(&standard, 0);
    see_export("ordinary_posix", ordinary, 1);
    see_export("ordinary_none", ordinary, 0);
    see_export("standard", standard, 1);
    see_export("posix", pool, 1);
    see_export("none", pool, 0);
    see_export("win32", pool, 2);
    see_export("fabric", pool, 8);
    SEE("flags", cuMemPoolExportToShareableHandle(&fd, pool, POSIX, 1));
    SEE("null_pool", cuMemPoolExportToShareableHandle(&fd, NULL, POSIX, 0));
    SEE("null_output", cuMemPoolExportToShareableHandle(NULL, pool, POSIX, 0));
    drv.cuMemPoolDestroy(ordinary);
    drv.cuMemPoolDestroy(pool);
}

static void descriptors(void)
{
    CUmemoryPool pool;
    CUmemoryPool import = NULL;
    int before;
    int fd[2];

    close(shared_pool_descriptor());
    before = open_descriptors();
    pool = make_shareable_pool();
    fact_number("created", open_descriptors() - before);
    fact_result("export", export_pool(&fd[0], pool));
    fact_number("exported", open_descriptors() - before);
    fact_yes("closed_on_exec", (fcntl(fd[0], F_GETFD) & FD_CLOEXEC) != 0);
    fact_result("export_again", export_pool(&fd[1], pool));
    fact_yes("another", fd[0] != fd[1]);
    fact_number("exported_twice", open_descriptors() - before);
    fact_result("import", import_pool(&import, fd[0]));
    fact_number("imported", open_descriptors() - before);
    if (import != NULL) {
        SEE("destroy_import", cuMemPoolDestroy(import));
        fact_number("import_destroyed", open_descriptors() - before);
    }
    close(fd[0]);
    close(fd[1]);
    fact_number("closed", open_descriptors() - before);
    drv.cuMemPoolDestroy(pool);
    fact_number("destroyed", open_descriptors() - before);
}

/* ---- import ---- */

static void import_here(void)
{
    CUmemoryPool pool = make_shareable_pool();
    CUmemoryPool import = NULL;
    CUmemoryPool again = NULL;
    int fd = -1;

    export_pool(&fd, pool);
    fact_result("import", import_pool(&import, fd));
    fact_yes("same_handle", import == pool);
    fact_result("import_again", import_pool(&again, fd));
    fact_yes("again_same_handle", again == import);
    close(fd);
    if (again != NULL && again != import) {
        SEE("destroy_again", cuMemPoolDestroy(again));
    }
    if (import != NULL && import != pool) {
        SEE("destroy_import", cuMemPoolDestroy(import));
    }
    SEE("destroy", cuMemPoolDestroy(pool));
    facts_ruin();
}

static void see_import(const char *what, int fd, int type)
{
    CUmemoryPool pool = NULL;
    CUresult res = drv.cuMemPoolImportFromShareableHandle(
        &pool, (void *)(intptr_t)fd, (CUmemAllocationHandleType)type, 0);

    fact_result(what, res);
    if (res == CUDA_SUCCESS) {
        drv.cuMemPoolDestroy(pool);
    }
}

static void import_wrong(void)
{
    CUmemGenericAllocationHandle piece = make_shareable_piece(PAGE_BYTES);
    CUmemoryPool pool = make_shareable_pool();
    CUmemoryPool import = NULL;
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    int piece_fd = -1;
    int fd = -1;

    drv.cuMemExportToShareableHandle(&piece_fd, piece, POSIX, 0);
    export_pool(&fd, pool);
    see_import("minus_one", -1, 1);
    see_import("not_open", 999, 1);
    see_import("dev_null", null_fd, 1);
    see_import("piece", piece_fd, 1);
    see_import("type_none", fd, 0);
    see_import("type_unknown", fd, 0x40);
    SEE("flags", cuMemPoolImportFromShareableHandle(
                     &import, (void *)(intptr_t)fd, POSIX, 1));
    SEE("null_output", cuMemPoolImportFromShareableHandle(
                           NULL, (void *)(intptr_t)fd, POSIX, 0));
    close(fd);
    close(null_fd);
    close(piece_fd);
    drv.cuMemPoolDestroy(pool);
    drv.cuMemRelease(piece);
}

/* ---- pointers ---- */

static void see_pointer_export(const char *what, CUdeviceptr address)
{
    CUmemPoolPtrExportData data;

    SEE(what, cuMemPoolExportPointer(&data, address));
}

static void mark_for_export(CUmemoryPool pool)
{
    int fd = -1;

    export_pool(&fd, pool);
    close(fd);
}

/* Observed: the pool itself must have been exported before. */
static void pointer_export_early(void)
{
    CUmemoryPool pool = make_shareable_pool();
    CUdeviceptr block = make_block(pool);

    see_pointer_export("block", block);
    mark_for_export(pool);
    see_pointer_export("block_after", block);
    free_block(block);
    drv.cuMemPoolDestroy(pool);
}

static void pointer_export(void)
{
    CUmemoryPool pool = make_shareable_pool();
    CUmemoryPool ordinary = make_pool(0);
    CUdeviceptr block = make_block(pool);
    CUdeviceptr other = make_block(ordinary);
    CUdeviceptr plain = 0;

    mark_for_export(pool);
    see_pointer_export("block", block);
    see_pointer_export("again", block);
    see_pointer_export("interior", block + OFFSET);
    see_pointer_export("ordinary", other);
    drv.cuMemAlloc(&plain, 4096);
    see_pointer_export("plain", plain);
    drv.cuMemFree(plain);
    see_pointer_export("null", 0);
    SEE("null_output", cuMemPoolExportPointer(NULL, block));
    free_block(block);
    see_pointer_export("freed", block);
    free_block(other);
    drv.cuMemPoolDestroy(pool);
    drv.cuMemPoolDestroy(ordinary);
}

/* Documented: a pointer is for another process. */
static void pointer_import_here(void)
{
    CUmemoryPool pool = make_shareable_pool();
    CUmemoryPool import = NULL;
    CUdeviceptr block = make_block(pool);
    CUdeviceptr address = 0;
    CUmemPoolPtrExportData data;
    int fd = -1;

    memset(&data, 0, sizeof data);
    mark_for_export(pool);
    SEE("export", cuMemPoolExportPointer(&data, block));
    SEE("into_the_pool", cuMemPoolImportPointer(&address, pool, &data));
    export_pool(&fd, pool);
    fact_result("import", import_pool(&import, fd));
    close(fd);
    if (import != NULL) {
        SEE("into_the_import",
            cuMemPoolImportPointer(&address, import, &data));
    }
    SEE("null_pool", cuMemPoolImportPointer(&address, NULL, &data));
    fact_result("free", free_block(block));
    facts_ruin();
}

/* ---- a second process ---- */

struct parcel {
    CUmemPoolPtrExportData data;
};

/* Make a pool, a block of fives, and send both. */
static bool send_pool(const char *errand, CUmemoryPool pool, CUdeviceptr block)
{
    struct parcel parcel;
    int fd = -1;

    memset(&parcel, 0, sizeof parcel);
    fact_result("fill", fill_bytes(block, 5, BLOCK_BYTES));
    fact_result("export_pool", export_pool(&fd, pool));
    SEE("export_pointer", cuMemPoolExportPointer(&parcel.data, block));
    if (fd < 0 || !second_start(errand)) {
        return false;
    }
    second_send(&parcel, sizeof parcel, fd);
    close(fd);
    return second_done();
}

static void go_on(void)
{
    second_send("g", 1, -1);
    second_done();
}

static bool wait_for_word(void)
{
    char word;

    return second_take(&word, 1, NULL);
}

static bool take_pool(CUmemoryPool *pool, CUdeviceptr *address,
                      struct parcel *parcel)
{
    int fd = -1;

    *address = 0;
    if (!second_take(parcel, sizeof *parcel, &fd)) {
        return false;
    }
    fact_result("second_import", import_pool(pool, fd));
    close(fd);
    SEE("second_pointer",
        cuMemPoolImportPointer(address, *pool, &parcel->data));
    return *address != 0;
}

static void see_second_attribute(const char *what, CUmemoryPool pool,
                                 CUmemPool_attribute attribute)
{
    cuuint64_t value = 99;
    CUresult res = drv.cuMemPoolGetAttribute(pool, attribute, &value);

    if (res != CUDA_SUCCESS) {
        fact_result(what, res);
    } else {
        fact_number(what, (long long)value);
    }
}

/* What an imported pool can do. */
static void see_imported(CUmemoryPool pool, CUdeviceptr address)
{
    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    CUmemPoolPtrExportData data;
    CUmemLocation location;
    CUmemAccessDesc desc;
    CUdeviceptr block = 0;
    cuuint64_t value = 0;
    int fd = -1;

    memset(&location, 0, sizeof location);
    location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    memset(&desc, 0, sizeof desc);
    desc.location = location;
    desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    SEE("second_alloc",
        cuMemAllocFromPoolAsync(&block, 4096, pool, CU_STREAM_LEGACY));
    SEE("second_get_access", cuMemPoolGetAccess(&flags, pool, &location));
    fact_number("second_access", flags);
    SEE("second_set_access", cuMemPoolSetAccess(pool, &desc, 1));
    SEE("second_trim", cuMemPoolTrimTo(pool, 0));
    SEE("second_set_threshold",
        cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                              &value));
    see_second_attribute("second_used", pool,
                         CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
    see_second_attribute("second_reserved", pool,
                         CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    fact_result("second_export_pool", export_pool(&fd, pool));
    if (fd >= 0) {
        close(fd);
    }
    SEE("second_export_pointer", cuMemPoolExportPointer(&data, address));
    SEE("second_set_current", cuDeviceSetMemPool(0, pool));
}

void pool_errand(void)
{
    CUmemoryPool pool = NULL;
    CUdeviceptr address = 0;
    struct parcel parcel;

    if (!take_pool(&pool, &address, &parcel)) {
        return;
    }
    fact("second_sees", "%s", compare_bytes(address, 5, BLOCK_BYTES));
    fact_result("second_fills", fill_bytes(address, 6, 4096));
    see_imported(pool, address);
    see_pointer(address);
    second_say_done();
    if (!wait_for_word()) {
        return;
    }
    fact_result("second_frees", free_block(address));
    SEE("second_destroys", cuMemPoolDestroy(pool));
    second_say_done();
}

/* Documented: whoever imports frees first, then the owner. */
static void second_process(void)
{
    CUmemoryPool pool = make_shareable_pool();
    CUdeviceptr block = make_block(pool);

    if (send_pool("pool", pool, block)) {
        fact("first_sees", "%s", compare_bytes(block, 6, 4096));
        go_on();
        fact("first_still_sees", "%s", compare_bytes(block, 6, 4096));
    }
    second_end();
    fact_result("free", free_block(block));
    SEE("destroy", cuMemPoolDestroy(pool));
}

void pool_twice_errand(void)
{
    CUmemoryPool pool = NULL;
    CUdeviceptr address = 0;
    CUdeviceptr again = 0;
    struct parcel parcel;

    if (!take_pool(&pool, &address, &parcel)) {
        return;
    }
    SEE("second_pointer_again",
        cuMemPoolImportPointer(&again, pool, &parcel.data));
    fact_yes("same_address", again == address);
    fact_result("second_frees", free_block(address));
    fact("second_sees", "%s", compare_bytes(again, 5, 4096));
    fact_result("second_frees_again", free_block(again));
    second_say_done();
}

/* Reported: both imports are one, and the first free ends both. */
static void imported_twice(void)
{
    CUmemoryPool pool = make_shareable_pool();
    CUdeviceptr block = make_block(pool);

    send_pool("pool_twice", pool, block);
    second_end();
    fact_result("free", free_block(block));
    SEE("destroy", cuMemPoolDestroy(pool));
}

void pool_freed_first_errand(void)
{
    CUmemoryPool pool = NULL;
    CUdeviceptr address = 0;
    struct parcel parcel;

    if (!take_pool(&pool, &address, &parcel)) {
        return;
    }
    second_say_done();
    if (wait_for_word()) {
        fact_result("second_frees", free_block(address));
        SEE("second_destroys", cuMemPoolDestroy(pool));
        second_say_done();
    }
}

/* The owner frees before the importer does, against the rule. */
static void freed_first(void)
{
    CUmemoryPool pool = make_shareable_pool();
    CUdeviceptr block = make_block(pool);

    if (send_pool("pool_freed_first", pool, block)) {
        fact_result("free", free_block(block));
        SEE("trim", cuMemPoolTrimTo(pool, 0));
        go_on();
    }
    second_end();
    SEE("destroy", cuMemPoolDestroy(pool));
}

static CUresult let_device_use(CUmemoryPool pool)
{
    CUmemAccessDesc desc;

    memset(&desc, 0, sizeof desc);
    desc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return drv.cuMemPoolSetAccess(pool, &desc, 1);
}

static void see_host_import(bool twice)
{
    CUmemoryPool pool = NULL;
    CUdeviceptr address = 0;
    CUdeviceptr again = 0;
    struct parcel parcel;

    if (!take_pool(&pool, &address, &parcel)) {
        return;
    }
    fact_result("second_access", let_device_use(pool));
    if (twice) {
        SEE("second_pointer_again",
            cuMemPoolImportPointer(&again, pool, &parcel.data));
    }
    fact("second_sees", "%s", compare_bytes(address, 5, BLOCK_BYTES));
    see_pointer(address);
    fact_result("second_frees", free_block(address));
    second_say_done();
}

void pool_host_errand(void)
{
    see_host_import(false);
}

void pool_host_twice_errand(void)
{
    see_host_import(true);
}

static void see_host_pool(const char *errand)
{
    CUmemPoolProps props = pool_properties(0);
    CUmemoryPool pool = NULL;
    CUdeviceptr block;
    CUresult res;

    props.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    props.handleTypes = POSIX;
    res = drv.cuMemPoolCreate(&pool, &props);
    fact_result("create", res);
    if (res != CUDA_SUCCESS) {
        return;
    }
    fact_result("access", let_device_use(pool));
    block = make_block(pool);
    send_pool(errand, pool, block);
    second_end();
    fact("sees", "%s", compare_bytes(block, 5, BLOCK_BYTES));
    fact_result("free", free_block(block));
    SEE("destroy", cuMemPoolDestroy(pool));
}

static void host_pool(void)
{
    see_host_pool("pool_host");
}

/* Reported: a second import of a pointer to host memory is refused. */
static void host_pool_twice(void)
{
    see_host_pool("pool_host_twice");
}

static const struct fidelity_case pool_sharing_cases[] = {
    FIDELITY_CASE(export_types),
    FIDELITY_CASE(descriptors),
    FIDELITY_CASE(import_wrong),
    FIDELITY_CASE(pointer_export_early),
    FIDELITY_CASE(pointer_export),
    FIDELITY_CASE(second_process),
    FIDELITY_CASE(imported_twice),
    FIDELITY_CASE(freed_first),
    FIDELITY_CASE(host_pool),
    FIDELITY_CASE(host_pool_twice),
    FIDELITY_CASE(import_here),
    FIDELITY_CASE(pointer_import_here),
    FIDELITY_END,
};

const struct fidelity_topic pool_sharing_topic = {
    "pool_sharing",
    pool_sharing_cases,
    NULL,
    NULL,
    false,
    LIMIT_MS,
    "Documented: an importer cannot allocate, and frees before the owner "
    "does. What happens against the rule was measured.",
};
