/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of another process: what it costs, and what becomes of it when a
 * process ends. Which calls answer what is the fidelity suite's business. */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/simulation/driver.h"
#include "tests/support/tap.h"

#define POSIX CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
#define PAGE (2 * MIB)

enum { LINE_FD = 9, ROUNDS = 10000, FEW_FILES = 64 };

/* ---- another process: this program again, with an argument ---- */

static int line = -1;
static pid_t other = -1;

static void start_other(const char *errand)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        tap_bail_out("no line");
    }
    other = fork();
    if (other == 0) {
        dup2(ends[1], LINE_FD);
        execl("/proc/self/exe", "shared", errand, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    line = ends[0];
}

static bool say(const void *bytes, size_t size, int fd)
{
    char control[CMSG_SPACE(sizeof(int))] = {0};
    char copy[256];
    struct iovec part = {copy, size};
    struct msghdr message;
    struct cmsghdr *header;

    memcpy(copy, bytes, size);
    memset(&message, 0, sizeof message);
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (fd >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(header), &fd, sizeof fd);
    }
    return sendmsg(line, &message, MSG_NOSIGNAL) == (ssize_t)size;
}

static bool hear(void *bytes, size_t size, int *fd)
{
    char control[CMSG_SPACE(sizeof(int))];
    struct iovec part = {bytes, size};
    struct msghdr message;
    struct cmsghdr *header;

    memset(&message, 0, sizeof message);
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (recvmsg(line, &message, MSG_CMSG_CLOEXEC) != (ssize_t)size) {
        return false;
    }
    header = CMSG_FIRSTHDR(&message);
    if (fd != NULL && header != NULL) {
        memcpy(fd, CMSG_DATA(header), sizeof *fd);
    }
    return true;
}

static bool heard(char word)
{
    char got = 0;

    return hear(&got, 1, NULL) && got == word;
}

static void end_other(void)
{
    int status = 0;

    close(line);
    waitpid(other, &status, 0);
    tap_ok(WIFEXITED(status) && WEXITSTATUS(status) == 0,
           "the other process ends well");
}

/* ---- what the other process does; its status tells of failures ---- */

static bool holds(CUdeviceptr address, unsigned char value)
{
    unsigned char byte = 0;

    return drv.cuMemcpyDtoH(&byte, address, 1) == CUDA_SUCCESS &&
           byte == value;
}

static bool take_piece(CUdeviceptr *range)
{
    CUmemGenericAllocationHandle piece = 0;
    CUmemAccessDesc desc;
    char word;
    int fd = -1;

    memset(&desc, 0, sizeof desc);
    desc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return hear(&word, 1, &fd) &&
           drv.cuMemImportFromShareableHandle(&piece, (void *)(intptr_t)fd,
                                              POSIX) == CUDA_SUCCESS &&
           close(fd) == 0 &&
           drv.cuMemAddressReserve(range, PAGE, 0, 0, 0) == CUDA_SUCCESS &&
           drv.cuMemMap(*range, PAGE, 0, piece, 0) == CUDA_SUCCESS &&
           drv.cuMemRelease(piece) == CUDA_SUCCESS &&
           drv.cuMemSetAccess(*range, PAGE, &desc, 1) == CUDA_SUCCESS;
}

static int errand_piece(void)
{
    CUdeviceptr range = 0;

    if (!take_piece(&range) || !holds(range, 3) || !say("t", 1, -1)) {
        return 1;
    }
    /* The first process has let go of it by then. */
    if (!heard('g') || !holds(range, 4)) {
        return 2;
    }
    if (drv.cuMemUnmap(range, PAGE) != CUDA_SUCCESS || !say("u", 1, -1)) {
        return 3;
    }
    return heard('e') ? 0 : 4;
}

static int errand_plain(void)
{
    CUipcMemHandle handle;
    CUdeviceptr address = 0;

    if (!hear(&handle, sizeof handle, NULL) ||
        drv.cuIpcOpenMemHandle(&address, handle,
                               CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) !=
            CUDA_SUCCESS ||
        !holds(address, 3) || !say("o", 1, -1)) {
        return 1;
    }
    if (!heard('c') || !holds(address, 3)) {
        return 2;
    }
    return drv.cuIpcCloseMemHandle(address) == CUDA_SUCCESS &&
                   say("c", 1, -1) && heard('e')
               ? 0
               : 3;
}

/* It keeps what it imported to the end, and ends without a word. */
static int errand_dies(void)
{
    CUdeviceptr range = 0;

    if (take_piece(&range) && say("t", 1, -1)) {
        heard('x');
        raise(SIGKILL);
    }
    return 1;
}

static bool is(CUresult got, CUresult want)
{
    return got == want;
}

/* It waits for the first process's record, and then makes one of its own. */
static int errand_event(void)
{
    CUipcEventHandle handle;
    CUdeviceptr block = 0;
    CUevent event = NULL;
    CUstream stream = new_stream();

    if (!hear(&handle, sizeof handle, NULL) ||
        !is(drv.cuIpcOpenEventHandle(&event, handle), CUDA_SUCCESS) ||
        !is(drv.cuMemAlloc(&block, 4096), CUDA_SUCCESS) ||
        !is(drv.cuStreamWaitEvent(stream, event, 0), CUDA_SUCCESS) ||
        !is(drv.cuMemsetD8Async(block, 1, 4096, stream), CUDA_SUCCESS) ||
        !is(drv.cuStreamQuery(stream), CUDA_ERROR_NOT_READY) ||
        !is(drv.cuEventQuery(event), CUDA_ERROR_NOT_READY)) {
        return 1;
    }
    /* From now on the first process lets it happen. */
    if (!say("w", 1, -1) ||
        !is(drv.cuStreamSynchronize(stream), CUDA_SUCCESS) ||
        !is(drv.cuEventQuery(event), CUDA_SUCCESS) ||
        !is(drv.cuEventSynchronize(event), CUDA_SUCCESS)) {
        return 2;
    }
    sim->stall(stream);
    if (!is(drv.cuMemsetD8Async(block, 2, 4096, stream), CUDA_SUCCESS) ||
        !is(drv.cuEventRecord(event, stream), CUDA_SUCCESS) ||
        !is(drv.cuEventQuery(event), CUDA_ERROR_NOT_READY) ||
        !say("r", 1, -1) || !heard('q')) {
        return 3;
    }
    sim->release(stream);
    return is(drv.cuStreamSynchronize(stream), CUDA_SUCCESS) && heard('e') &&
                   is(drv.cuEventDestroy(event), CUDA_SUCCESS)
               ? 0
               : 4;
}

/* The first process never lets it go: that is told, and ends this one. */
static int errand_stuck(void)
{
    CUipcEventHandle handle;
    CUevent event = NULL;

    sim->set_wait_limit(50);
    if (hear(&handle, sizeof handle, NULL) &&
        is(drv.cuIpcOpenEventHandle(&event, handle), CUDA_SUCCESS)) {
        drv.cuEventSynchronize(event);
    }
    return 1;
}

static int run_errand(const char *name)
{
    line = LINE_FD;
    driver_load();
    driver_start(CCMR_SIM_EAGER, 0);
    if (strcmp(name, "piece") == 0) {
        return errand_piece();
    }
    if (strcmp(name, "event") == 0) {
        return errand_event();
    }
    if (strcmp(name, "stuck") == 0) {
        return errand_stuck();
    }
    return strcmp(name, "plain") == 0 ? errand_plain() : errand_dies();
}

/* ---- the tests ---- */

static size_t taken(void)
{
    size_t available = 0;
    size_t total = 0;

    /* Whoever asks finds out what others have let go of. */
    drv.cuMemGetInfo(&available, &total);
    return census_now().device_bytes;
}

static CUmemGenericAllocationHandle new_piece(int *fd)
{
    CUmemGenericAllocationHandle piece = 0;
    CUmemAllocationProp prop;

    memset(&prop, 0, sizeof prop);
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.requestedHandleTypes = POSIX;
    if (drv.cuMemCreate(&piece, PAGE, &prop, 0) != CUDA_SUCCESS ||
        drv.cuMemExportToShareableHandle(fd, piece, POSIX, 0) !=
            CUDA_SUCCESS) {
        tap_fail("a piece that can be shared");
    }
    return piece;
}

static CUdeviceptr map_piece(CUmemGenericAllocationHandle piece)
{
    CUmemAccessDesc desc;
    CUdeviceptr range = 0;

    memset(&desc, 0, sizeof desc);
    desc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    drv.cuMemAddressReserve(&range, PAGE, 0, 0, 0);
    drv.cuMemMap(range, PAGE, 0, piece, 0);
    CHECK(drv.cuMemSetAccess(range, PAGE, &desc, 1));
    return range;
}

static void pieces(void)
{
    CUmemGenericAllocationHandle piece;
    CUdeviceptr range;
    int fd = -1;

    driver_start(CCMR_SIM_EAGER, 0);
    piece = new_piece(&fd);
    range = map_piece(piece);
    CHECK(drv.cuMemsetD8(range, 3, PAGE));
    start_other("piece");
    say("p", 1, fd);
    close(fd);
    tap_ok(heard('t'), "the other process has it");
    CHECK(drv.cuMemsetD8(range, 4, PAGE));
    CHECK(drv.cuMemUnmap(range, PAGE));
    CHECK(drv.cuMemRelease(piece));
    tap_is_size(taken(), PAGE, "it is still taken");
    say("g", 1, -1);
    tap_ok(heard('u'), "the other process lets go");
    tap_is_size(taken(), 0, "it comes back");
    say("e", 1, -1);
    end_other();
    drv.cuMemAddressFree(range, PAGE);
    check_nothing_left("pieces");
}

static void killed(void)
{
    CUmemGenericAllocationHandle piece;
    int status = 0;
    int fd = -1;

    driver_start(CCMR_SIM_EAGER, 0);
    piece = new_piece(&fd);
    start_other("dies");
    say("p", 1, fd);
    close(fd);
    tap_ok(heard('t'), "the other process has it");
    CHECK(drv.cuMemRelease(piece));
    tap_is_size(taken(), PAGE, "it is still taken");
    say("x", 1, -1);
    close(line);
    waitpid(other, &status, 0);
    tap_ok(WIFSIGNALED(status), "killed");
    tap_is_size(taken(), 0, "what it had comes back");
    check_nothing_left("killed");
}

static void plain(void)
{
    CUipcMemHandle handle;
    CUdeviceptr address = 0;

    driver_start(CCMR_SIM_EAGER, 0);
    drv.cuMemAlloc(&address, 4 * MIB);
    CHECK(drv.cuMemsetD8(address, 3, 4 * MIB));
    CHECK(drv.cuIpcGetMemHandle(&handle, address));
    start_other("plain");
    say(&handle, sizeof handle, -1);
    tap_ok(heard('o'), "the other process has opened it");
    CHECK(drv.cuMemFree(address));
    tap_is_size(taken(), 4 * MIB, "it is still taken");
    say("c", 1, -1);
    tap_ok(heard('c'), "the other process closes it");
    tap_is_size(taken(), 0, "it comes back");
    say("e", 1, -1);
    end_other();
    check_nothing_left("plain");
}

static CUevent new_event(unsigned flags)
{
    CUevent event = NULL;

    CHECK(drv.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | flags));
    return event;
}

/* Each process waits for what the other one recorded. */
static void events(ccmr_sim_mode mode)
{
    CUipcEventHandle handle;
    CUstream stream;
    CUevent event;

    driver_start(mode, 0);
    stream = new_stream();
    event = new_event(CU_EVENT_INTERPROCESS);
    CHECK(drv.cuIpcGetEventHandle(&handle, event));
    start_other("event");
    sim->stall(stream);
    CHECK(drv.cuEventRecord(event, stream));
    say(&handle, sizeof handle, -1);
    tap_ok(heard('w'), "the other process waits for it");
    usleep(20000);
    sim->release(stream);
    CHECK(drv.cuStreamSynchronize(stream));
    tap_ok(heard('r'), "it was let go, and has recorded the event itself");
    CHECK_IS(drv.cuEventQuery(event), CUDA_ERROR_NOT_READY);
    CHECK(drv.cuStreamWaitEvent(stream, event, 0));
    CHECK_IS(drv.cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    say("q", 1, -1);
    CHECK(drv.cuEventSynchronize(event));
    CHECK(drv.cuStreamSynchronize(stream));
    say("e", 1, -1);
    end_other();
    CHECK(drv.cuEventRecord(event, stream));
    CHECK(drv.cuEventSynchronize(event));
    drv.cuEventDestroy(event);
    drv.cuStreamDestroy(stream);
    check_nothing_left("events");
}

static void events_stuck(void)
{
    CUipcEventHandle handle;
    CUstream stream;
    CUevent event;
    int status = 0;

    driver_start(CCMR_SIM_LATE, 0);
    stream = new_stream();
    event = new_event(CU_EVENT_INTERPROCESS);
    CHECK(drv.cuIpcGetEventHandle(&handle, event));
    sim->stall(stream);
    CHECK(drv.cuEventRecord(event, stream));
    start_other("stuck");
    tap_diag("a word about a wait without end is expected");
    say(&handle, sizeof handle, -1);
    waitpid(other, &status, 0);
    close(line);
    tap_ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT,
           "whoever waits for ever is ended");
    sim->release(stream);
    CHECK(drv.cuStreamSynchronize(stream));
    drv.cuEventDestroy(event);
    drv.cuStreamDestroy(stream);
    check_nothing_left("stuck events");
}

static void events_wrong(void)
{
    CUipcEventHandle handle;
    CUevent event, local, opened;

    driver_start(CCMR_SIM_EAGER, 0);
    local = new_event(0);
    event = new_event(CU_EVENT_INTERPROCESS);
    CHECK_IS(drv.cuIpcGetEventHandle(&handle, local),
             CUDA_ERROR_INVALID_HANDLE);
    CHECK_IS(drv.cuIpcGetEventHandle(NULL, event), CUDA_ERROR_INVALID_VALUE);
    CHECK(drv.cuIpcGetEventHandle(&handle, event));
    CHECK_IS(drv.cuIpcOpenEventHandle(&opened, handle),
             CUDA_ERROR_INVALID_CONTEXT);
    memset(&handle, 0, sizeof handle);
    CHECK_IS(drv.cuIpcOpenEventHandle(&opened, handle),
             CUDA_ERROR_INVALID_VALUE);
    drv.cuEventDestroy(local);
    drv.cuEventDestroy(event);
    check_nothing_left("wrong events");
}

/* No descriptor is lost on the way, however often. */
static void rounds(void)
{
    struct rlimit limit, few;
    bool good = true;
    int i;

    driver_start(CCMR_SIM_EAGER, 0);
    getrlimit(RLIMIT_NOFILE, &limit);
    few = limit;
    few.rlim_cur = FEW_FILES;
    setrlimit(RLIMIT_NOFILE, &few);
    for (i = 0; i < ROUNDS && good; i++) {
        CUmemGenericAllocationHandle import = 0;
        CUmemGenericAllocationHandle piece;
        int fd = -1;

        piece = new_piece(&fd);
        good = fd >= 0 &&
               drv.cuMemImportFromShareableHandle(
                   &import, (void *)(intptr_t)fd, POSIX) == CUDA_SUCCESS;
        close(fd);
        good = good && drv.cuMemRelease(piece) == CUDA_SUCCESS &&
               drv.cuMemRelease(import) == CUDA_SUCCESS;
    }
    setrlimit(RLIMIT_NOFILE, &limit);
    tap_ok(good, "%d exports and imports", ROUNDS);
    tap_is_size(taken(), 0, "nothing is taken");
    check_nothing_left("rounds");
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        return run_errand(argv[1]);
    }
    driver_load();
    pieces();
    killed();
    plain();
    events(CCMR_SIM_EAGER);
    events(CCMR_SIM_LATE);
    events_stuck();
    events_wrong();
    rounds();
    return tap_finish();
}
