/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces of virtual memory that are handed on as file descriptors: in the
 * process itself and to a second one. Pools are in pool_sharing.c.
 */
#include "tests/fidelity/facts.h"
#include "tests/fidelity/pieces.h"
#include "tests/fidelity/second.h"
#include "tests/fidelity/sharing.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum { LIMIT_MS = 20000 };

/* ---- export ---- */

static CUresult export_piece(int *fd, CUmemGenericAllocationHandle piece)
{
    *fd = -1;
    return drv.cuMemExportToShareableHandle(
        fd, piece, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
}

static CUresult import_piece(CUmemGenericAllocationHandle *piece, int fd)
{
    *piece = 0;
    return drv.cuMemImportFromShareableHandle(
        piece, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

static void see_export(const char *what, CUmemGenericAllocationHandle piece,
                       int type)
{
    /* Other types write more than a descriptor. */
    union {
        int fd;
        unsigned char bytes[64];
    } shared;
    CUresult res;

    memset(&shared, 0xff, sizeof shared);
    res = drv.cuMemExportToShareableHandle(&shared, piece,
                                           (CUmemAllocationHandleType)type, 0);
    fact_result(what, res);
    if (res == CUDA_SUCCESS &&
        type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
        close(shared.fd);
    }
}

/* Documented: the piece must have been made with the type asked for. */
static void export_types(void)
{
    CUmemGenericAllocationHandle piece = make_piece(PAGE_BYTES);
    CUmemGenericAllocationHandle shareable = make_shareable_piece(PAGE_BYTES);
    int fd = -1;

    see_export("ordinary_posix", piece, 1);
    see_export("ordinary_none", piece, 0);
    see_export("posix", shareable, 1);
    see_export("none", shareable, 0);
    see_export("win32", shareable, 2);
    see_export("fabric", shareable, 8);
    see_export("unknown", shareable, 0x40);
    SEE("flags",
        cuMemExportToShareableHandle(
            &fd, shareable, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1));
    SEE("null_output",
        cuMemExportToShareableHandle(
            NULL, shareable, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    drv.cuMemRelease(piece);
    drv.cuMemRelease(shareable);
}

/* Documented: the descriptor is the caller's, who closes it. */
static void descriptors(void)
{
    CUmemGenericAllocationHandle warm = make_shareable_piece(PAGE_BYTES);
    CUmemGenericAllocationHandle piece = 0;
    CUmemGenericAllocationHandle import = 0;
    int before;
    int fd[3];

    export_piece(&fd[0], warm);
    import_piece(&import, fd[0]);
    close(fd[0]);
    drv.cuMemRelease(import);
    drv.cuMemRelease(warm);
    before = open_descriptors();
    piece = make_shareable_piece(PAGE_BYTES);
    fact_number("created", open_descriptors() - before);
    fact_result("export", export_piece(&fd[0], piece));
    fact_number("exported", open_descriptors() - before);
    fact_yes("closed_on_exec", (fcntl(fd[0], F_GETFD) & FD_CLOEXEC) != 0);
    fact_result("export_again", export_piece(&fd[1], piece));
    fact_yes("another", fd[0] != fd[1]);
    fact_number("exported_twice", open_descriptors() - before);
    fact_result("import", import_piece(&import, fd[0]));
    fact_number("imported", open_descriptors() - before);
    drv.cuMemRelease(import);
    fact_number("import_released", open_descriptors() - before);
    drv.cuMemRelease(piece);
    fact_number("released", open_descriptors() - before);
    close(fd[0]);
    close(fd[1]);
    fact_number("closed", open_descriptors() - before);
}

/* A descriptor counts as a handle: the memory stays. */
static void descriptor_keeps_memory(void)
{
    size_t before = available_bytes();
    CUmemGenericAllocationHandle piece = make_shareable_piece(BIG_BYTES);
    CUmemGenericAllocationHandle import = 0;
    int fd = -1;

    fact_result("export", export_piece(&fd, piece));
    SEE("release", cuMemRelease(piece));
    see_taken("descriptor_left", before);
    fact_result("import", import_piece(&import, fd));
    close(fd);
    see_taken("import_left", before);
    SEE("release_import", cuMemRelease(import));
    see_taken("none_left", before);
}

/* ---- import in the same process ---- */

static void import_here(void)
{
    CUmemGenericAllocationHandle import = 0;
    CUmemGenericAllocationHandle again = 0;
    CUmemAllocationProp prop;
    CUdeviceptr range = make_range(PAGE_BYTES);
    CUdeviceptr alias = make_range(PAGE_BYTES);
    CUmemGenericAllocationHandle piece = make_shareable_piece(PAGE_BYTES);
    int fd = -1;

    memset(&prop, 0, sizeof prop);
    SEE("map", cuMemMap(range, PAGE_BYTES, 0, piece, 0));
    fact_result("access", set_access(range, PAGE_BYTES,
                                     CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    fact_result("export", export_piece(&fd, piece));
    fact_result("import", import_piece(&import, fd));
    fact_yes("same_handle", import == piece);
    fact_result("import_again", import_piece(&again, fd));
    fact_yes("again_same_handle", again == import);
    close(fd);
    SEE("properties", cuMemGetAllocationPropertiesFromHandle(&prop, import));
    fact("properties_are", "type %d, location %d %d, handle types %d",
         (int)prop.type, (int)prop.location.type, prop.location.id,
         (int)prop.requestedHandleTypes);
    SEE("map_import", cuMemMap(alias, PAGE_BYTES, 0, import, 0));
    fact_result(
        "access_import",
        set_access(alias, PAGE_BYTES, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    fact_result("fill", fill_bytes(range, 5, PAGE_BYTES));
    fact("import_holds", "%s", compare_bytes(alias, 5, PAGE_BYTES));
    fact_result("export_import", export_piece(&fd, import));
    close(fd);
    SEE("unmap", cuMemUnmap(range, PAGE_BYTES));
    SEE("release", cuMemRelease(piece));
    SEE("release_again", cuMemRelease(again));
    fact("import_still_holds", "%s", compare_bytes(alias, 5, PAGE_BYTES));
    SEE("unmap_import", cuMemUnmap(alias, PAGE_BYTES));
    SEE("release_import", cuMemRelease(import));
    drv.cuMemAddressFree(range, PAGE_BYTES);
    drv.cuMemAddressFree(alias, PAGE_BYTES);
}

static void see_import(const char *what, int fd, int type)
{
    CUmemGenericAllocationHandle piece = 0;
    CUresult res = drv.cuMemImportFromShareableHandle(
        &piece, (void *)(intptr_t)fd, (CUmemAllocationHandleType)type);

    fact_result(what, res);
    if (res == CUDA_SUCCESS) {
        drv.cuMemRelease(piece);
    }
}

static void import_wrong(void)
{
    CUmemGenericAllocationHandle piece = make_shareable_piece(PAGE_BYTES);
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    int pool_fd = shared_pool_descriptor();
    int fd = -1;

    export_piece(&fd, piece);
    see_import("minus_one", -1, 1);
    see_import("not_open", 999, 1);
    see_import("dev_null", null_fd, 1);
    see_import("pool", pool_fd, 1);
    see_import("type_none", fd, 0);
    see_import("type_unknown", fd, 0x40);
    SEE("null_output", cuMemImportFromShareableHandle(
                           NULL, (void *)(intptr_t)fd,
                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(fd);
    see_import("closed", fd, 1);
    close(null_fd);
    close(pool_fd);
    drv.cuMemRelease(piece);
}

static void export_null(void)
{
    see_export("result", 0, 1);
}

static void export_released(void)
{
    CUmemGenericAllocationHandle piece = make_shareable_piece(PAGE_BYTES);

    drv.cuMemRelease(piece);
    see_export("result", piece, 1);
}

/* Memory of the host's. */
static void export_host(void)
{
    CUmemAllocationProp prop = piece_properties();
    CUmemGenericAllocationHandle piece = 0;

    prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    SEE("create", cuMemCreate(&piece, PAGE_BYTES, &prop, 0));
    see_export("export", piece, 1);
    drv.cuMemRelease(piece);
}

/* ---- a second process ---- */

static void map_import(CUmemGenericAllocationHandle import, CUdeviceptr range)
{
    SEE("second_map", cuMemMap(range, PAGE_BYTES, 0, import, 0));
    fact_result(
        "second_access",
        set_access(range, PAGE_BYTES, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
}

static void piece_errand(void)
{
    CUdeviceptr range = make_range(PAGE_BYTES);
    CUmemGenericAllocationHandle import = 0;
    char word;
    int fd;

    if (!second_take(&word, 1, &fd)) {
        return;
    }
    fact_result("second_import", import_piece(&import, fd));
    close(fd);
    map_import(import, range);
    fact("second_sees", "%s", compare_bytes(range, 5, PAGE_BYTES));
    fact_result("second_fills", fill_bytes(range, 6, 4096));
    second_say_done();
    if (!second_take(&word, 1, &fd)) {
        return;
    }
    fact("second_still_sees", "%s", compare_bytes(range, 7, 4096));
    SEE("second_unmap", cuMemUnmap(range, PAGE_BYTES));
    SEE("second_release", cuMemRelease(import));
    second_say_done();
}

static void second_process(void)
{
    CUmemGenericAllocationHandle piece = make_shareable_piece(PAGE_BYTES);
    CUdeviceptr range = make_range(PAGE_BYTES);
    int fd = -1;

    drv.cuMemMap(range, PAGE_BYTES, 0, piece, 0);
    set_access(range, PAGE_BYTES, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    fact_result("fill", fill_bytes(range, 5, PAGE_BYTES));
    fact_result("export", export_piece(&fd, piece));
    if (second_start("piece")) {
        second_send("p", 1, fd);
        close(fd);
        second_done();
        fact("first_sees", "%s", compare_bytes(range, 6, 4096));
        fact_result("fill_again", fill_bytes(range, 7, 4096));
        SEE("unmap", cuMemUnmap(range, PAGE_BYTES));
        SEE("release", cuMemRelease(piece));
        second_send("p", 1, -1);
        second_done();
        second_end();
    }
    drv.cuMemAddressFree(range, PAGE_BYTES);
}

const struct fidelity_errand sharing_errands[] = {
    {"piece", piece_errand},
    {"pool", pool_errand},
    {"pool_twice", pool_twice_errand},
    {"pool_freed_first", pool_freed_first_errand},
    {"pool_host", pool_host_errand},
    {"pool_host_twice", pool_host_twice_errand},
    {NULL, NULL},
};

static const struct fidelity_case sharing_cases[] = {
    FIDELITY_CASE(export_types),
    FIDELITY_CASE(descriptors),
    FIDELITY_CASE(descriptor_keeps_memory),
    FIDELITY_CASE(import_here),
    FIDELITY_CASE(import_wrong),
    FIDELITY_CASE(export_host),
    FIDELITY_CASE(second_process),
    FIDELITY_CASE(export_null),
    FIDELITY_CASE(export_released),
    FIDELITY_END,
};

const struct fidelity_topic sharing_topic = {
    "sharing",
    sharing_cases,
    NULL,
    NULL,
    false,
    LIMIT_MS,
    "Documented: a descriptor stands for a piece and keeps it. What wrong "
    "ones answer was measured.",
};
