/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtual on the simulated driver: memory that goes to other processes.
 */
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "lib/resource_object.h"
#include "tests/unit/leaf.h"

#define UNIT (2 * MIB)

static ccmr_resource *memory;
static ccmr_stream stream;

static void start(void)
{
    (void)leaf_start();
    stream = leaf_stream(0);
    cr_assert_eq(
        ccmr_stack_create("virtual room=64MiB export=posix_fd", &memory),
        CCMR_SUCCESS, "%s", ccmr_last_error()->message);
}

static void end(void)
{
    ccmr_resource_release(memory);
    cr_assert_eq(leaf_census().pieces, 0u);
    leaf_end();
}

TestSuite(virtual_export, .init = start, .fini = end);

#define GOOD(call)                                                            \
    cr_assert_eq(call, CCMR_SUCCESS, "%s", ccmr_last_error()->message)
#define REFUSED(call, status, word)                                           \
    do {                                                                      \
        cr_assert_eq(call, CCMR_ERROR_##status, "%s",                         \
                     ccmr_last_error()->message);                             \
        cr_assert_not_null(strstr(ccmr_last_error()->message, word), "%s",    \
                           ccmr_last_error()->message);                       \
    } while (0)

static ccmr_status export_fd(void *ptr, int *fd)
{
    return ccmr_resource_export_handle(memory, ptr, CCMR_HANDLE_POSIX_FD, fd,
                                       sizeof(*fd));
}

/* Import it as another process would. The handle is the caller's. */
static CUmemGenericAllocationHandle import(int fd)
{
    CUmemGenericAllocationHandle handle = 0;

    cr_assert_eq(api.cuMemImportFromShareableHandle(
                     &handle, (void *)(intptr_t)fd,
                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                 CUDA_SUCCESS);
    return handle;
}

/* The memory of a block that is freed lives as long as it is imported. */
Test(virtual_export, outlives_the_block)
{
    CUmemGenericAllocationHandle handle;
    void *ptr;
    int fd = -1;

    GOOD(ccmr_resource_allocate(memory, 100 * MIB, 0, stream, &ptr));
    cr_assert_eq(leaf_census().pieces, 1u); /* one handle: it can go whole */
    GOOD(export_fd(ptr, &fd));
    cr_assert_geq(fd, 0);
    cr_assert_neq(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    handle = import(fd);
    cr_assert_eq(close(fd), 0);
    GOOD(ccmr_resource_deallocate(memory, ptr, 100 * MIB, 0, stream));
    cr_assert_eq(leaf_census().piece_bytes, 100 * MIB);
    cr_assert_eq(api.cuMemRelease(handle), CUDA_SUCCESS);
    cr_assert_eq(leaf_census().pieces, 0u);
}

/* What a pool committed can be exported, too, at any of its addresses. */
Test(virtual_export, exports_commits)
{
    const ccmr_resource_ops *ops = &memory->ops;
    CUmemGenericAllocationHandle handle;
    void *range;
    char *base;
    int fd = -1;

    GOOD(ops->reserve(memory->self, 8 * UNIT, &range));
    base = range;
    GOOD(ops->commit(memory->self, base, 2 * UNIT));
    GOOD(ops->move(memory->self, base, base + 4 * UNIT, 2 * UNIT));
    GOOD(export_fd(base + 4 * UNIT, &fd));
    handle = import(fd);
    cr_assert_eq(close(fd), 0);
    cr_assert_eq(api.cuMemRelease(handle), CUDA_SUCCESS);
    REFUSED(export_fd(base + UNIT, &fd), INVALID_POINTER, "commit");
    GOOD(ops->decommit(memory->self, base, 2 * UNIT));
    GOOD(ops->decommit(memory->self, base + 4 * UNIT, 2 * UNIT));
    GOOD(ops->unreserve(memory->self, base, 8 * UNIT));
}

static ccmr_status export_part(void *ptr, size_t bytes, int *fd,
                               ccmr_export_place *place)
{
    *place = (ccmr_export_place){.size = sizeof(*place)};
    return ccmr_resource_export_block(memory, ptr, bytes, CCMR_HANDLE_POSIX_FD,
                                      fd, sizeof(*fd), place);
}

static void check_part(void *ptr, size_t bytes, size_t offset, size_t part,
                       size_t whole)
{
    ccmr_export_place place;
    int fd = -1;

    GOOD(export_part(ptr, bytes, &fd, &place));
    cr_assert_eq(close(fd), 0);
    cr_assert_eq(place.offset, offset, "%zu", place.offset);
    cr_assert_eq(place.bytes, part, "%zu", place.bytes);
    cr_assert_eq(place.handle_bytes, whole, "%zu", place.handle_bytes);
}

/* From anywhere in a block, to its end and no further. */
Test(virtual_export, exports_parts_of_a_block)
{
    ccmr_export_place place;
    char *block;
    void *ptr;
    int fd = -7;

    GOOD(ccmr_resource_allocate(memory, 3 * MIB, 0, stream, &ptr));
    block = ptr;
    check_part(block, 3 * MIB, 0, 3 * MIB, 2 * UNIT);
    check_part(block + 5000, 3 * MIB - 5000, 5000, 3 * MIB - 5000, 2 * UNIT);
    check_part(block + 3 * MIB - 1, 1, 3 * MIB - 1, 1, 2 * UNIT);
    REFUSED(export_part(block, 3 * MIB + 1, &fd, &place), INVALID_SIZE,
            "has 3145728");
    REFUSED(export_part(block + 1, 3 * MIB, &fd, &place), INVALID_SIZE,
            "has 3145727");
    REFUSED(export_part(block, (size_t)1 << 40, &fd, &place), INVALID_SIZE,
            "has 3145728");
    REFUSED(export_part(block + 3 * MIB, 1, &fd, &place), INVALID_POINTER,
            "not in");
    REFUSED(export_part(block - 1, 1, &fd, &place), INVALID_POINTER, "not in");
    cr_assert_eq(fd, -7);
    GOOD(ccmr_resource_deallocate(memory, ptr, 3 * MIB, 0, stream));
    REFUSED(export_part(block, 1, &fd, &place), INVALID_POINTER, "not in");
}

/* A handle a call, each where the one before ended. */
Test(virtual_export, exports_a_block_that_has_grown)
{
    char *block;
    void *ptr;
    int fd = -1;

    GOOD(ccmr_resource_allocate(memory, UNIT, 0, stream, &ptr));
    block = ptr;
    GOOD(ccmr_resource_grow(memory, ptr, UNIT, 4 * UNIT, stream));
    GOOD(ccmr_resource_grow(memory, ptr, 4 * UNIT, 4 * UNIT + 1, stream));
    REFUSED(export_fd(block, &fd), NOT_SUPPORTED, "export_block");
    check_part(block, 4 * UNIT + 1, 0, UNIT, UNIT);
    check_part(block + UNIT, 3 * UNIT + 1, 0, 3 * UNIT, 3 * UNIT);
    check_part(block + 4 * UNIT, 1, 0, 1, UNIT);
    check_part(block + 2 * UNIT, 2 * UNIT, UNIT, 2 * UNIT, 3 * UNIT);
    GOOD(ccmr_resource_deallocate(memory, ptr, 4 * UNIT + 1, 0, stream));
}

Test(virtual_export, refuses_what_cannot_go)
{
    ccmr_resource *plain;
    unsigned char fabric[64];
    void *ptr;
    int fd = -7;

    GOOD(ccmr_resource_allocate(memory, UNIT, 0, stream, &ptr));
    REFUSED(ccmr_resource_export_handle(memory, ptr, CCMR_HANDLE_FABRIC,
                                        fabric, sizeof(fabric)),
            NOT_SUPPORTED, "0x8");
    REFUSED(ccmr_resource_export_handle(memory, ptr, CCMR_HANDLE_WIN32, &fd,
                                        sizeof(fd)),
            NOT_SUPPORTED, "0x2");
    REFUSED(ccmr_resource_export_handle(memory, ptr, 0, &fd, sizeof(fd)),
            NOT_SUPPORTED, "0x0");
    REFUSED(
        ccmr_resource_export_handle(memory, ptr, CCMR_HANDLE_POSIX_FD, &fd, 8),
        INVALID_SIZE, "4 bytes");
    REFUSED(export_fd((char *)ptr + 256, &fd), INVALID_POINTER, "live block");
    cr_assert_eq(
        simulator->fail("cuMemExportToShareableHandle", 1, CUDA_ERROR_UNKNOWN),
        0);
    REFUSED(export_fd(ptr, &fd), DRIVER, "cuMemExportToShareableHandle");
    GOOD(ccmr_resource_grow(memory, ptr, UNIT, 3 * UNIT, stream));
    REFUSED(export_fd(ptr, &fd), NOT_SUPPORTED, "more than one handle");
    cr_assert_eq(fd, -7);
    GOOD(ccmr_resource_deallocate(memory, ptr, 3 * UNIT, 0, stream));

    GOOD(ccmr_virtual_create(0, NULL, &plain));
    GOOD(ccmr_resource_allocate(plain, UNIT, 0, stream, &ptr));
    REFUSED(ccmr_resource_export_handle(plain, ptr, CCMR_HANDLE_POSIX_FD, &fd,
                                        sizeof(fd)),
            NOT_SUPPORTED, "option export");
    GOOD(ccmr_resource_deallocate(plain, ptr, UNIT, 0, stream));
    ccmr_resource_release(plain);
}

static int open_files(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    if (folder == NULL) {
        return -1;
    }
    while (readdir(folder) != NULL) {
        count++;
    }
    (void)closedir(folder);
    return count;
}

/* L9: no descriptor stays, whatever fails. */
Test(virtual_export, leaks_no_file)
{
    int before = 0;
    int fd = -1;
    void *ptr;
    int i;

    for (i = 0; i < 300; i++) {
        GOOD(ccmr_resource_allocate(memory, UNIT, 0, stream, &ptr));
        GOOD(export_fd(ptr, &fd));
        cr_assert_eq(close(fd), 0);
        GOOD(ccmr_resource_deallocate(memory, ptr, UNIT, 0, stream));
        if (i == 0) {
            before = open_files();
        }
    }
    cr_assert_eq(open_files(), before);
}
