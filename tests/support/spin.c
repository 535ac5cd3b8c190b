/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/spin.h"

#include <string.h>
#include <time.h>

/* Says that it runs, then looks at the first word until that is not 0, or
   until the time is up. */
static const char text[] =
    ".version 7.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry spin(.param .u64 words, .param .u64 most)\n"
    "{\n"
    "    .reg .pred %p<3>;\n"
    "    .reg .b32 %r<3>;\n"
    "    .reg .b64 %rd<7>;\n"
    "    ld.param.u64 %rd1, [words];\n"
    "    cvta.to.global.u64 %rd2, %rd1;\n"
    "    ld.param.u64 %rd3, [most];\n"
    "    mov.u32 %r1, 1;\n"
    "    st.volatile.global.u32 [%rd2+4], %r1;\n"
    "    mov.u64 %rd4, %globaltimer;\n"
    "again:\n"
    "    ld.volatile.global.u32 %r2, [%rd2];\n"
    "    setp.ne.u32 %p1, %r2, 0;\n"
    "    @%p1 bra done;\n"
    "    mov.u64 %rd5, %globaltimer;\n"
    "    sub.u64 %rd6, %rd5, %rd4;\n"
    "    setp.lt.u64 %p2, %rd6, %rd3;\n"
    "    @%p2 bra again;\n"
    "done:\n"
    "    ret;\n"
    "}\n";

/* One of a row of calls; the first that fails names itself. */
#define DO(call)                                                              \
    do {                                                                      \
        if ((call) != CUDA_SUCCESS) {                                         \
            *reason = #call;                                                  \
            return -1;                                                        \
        }                                                                     \
    } while (0)

int spin_open(spin *made, CUstream stream, const char **reason)
{
    void *words;

    memset(made, 0, sizeof(*made));
    made->stream = stream;
    if (simulator != NULL) {
        return 0;
    }
    DO(api.cuModuleLoadData(&made->module, text));
    DO(api.cuModuleGetFunction(&made->kernel, made->module, "spin"));
    DO(api.cuMemHostAlloc(&words, 2 * sizeof(unsigned),
                          CU_MEMHOSTALLOC_DEVICEMAP |
                              CU_MEMHOSTALLOC_PORTABLE));
    made->words = words;
    DO(api.cuMemHostGetDevicePointer(&made->mapped, words, 0));
    return 0;
}

static unsigned read_word(const unsigned *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void write_word(unsigned *word, unsigned to)
{
    __atomic_store_n(word, to, __ATOMIC_RELEASE);
}

int spin_start(spin *on, const char **reason)
{
    const struct timespec pause = {0, 100000};
    unsigned long long most = SPIN_SECONDS * 1000000000ull;
    void *parameters[] = {&on->mapped, &most};
    int tries;

    if (simulator != NULL) {
        on->stalled = simulator->stall(on->stream) == 0;
        *reason = "stall";
        return on->stalled ? 0 : -1;
    }
    write_word(&on->words[0], 0);
    write_word(&on->words[1], 0);
    DO(api.cuLaunchKernel(on->kernel, 1, 1, 1, 1, 1, 1, 0, on->stream,
                          parameters, NULL));
    for (tries = 0; tries < 50000; tries++) {
        if (read_word(&on->words[1]) != 0) {
            return 0;
        }
        (void)nanosleep(&pause, NULL);
    }
    *reason = "the kernel does not start";
    return -1;
}

int spin_runs(const spin *on)
{
    return simulator != NULL
               ? on->stalled
               : api.cuStreamQuery(on->stream) == CUDA_ERROR_NOT_READY;
}

int spin_stop(spin *on)
{
    if (simulator != NULL) {
        on->stalled = 0;
        (void)simulator->release(on->stream);
    } else {
        write_word(&on->words[0], 1);
    }
    return api.cuStreamSynchronize(on->stream) == CUDA_SUCCESS ? 0 : -1;
}

void spin_close(spin *gone)
{
    if (gone->words != NULL) {
        (void)api.cuMemFreeHost(gone->words);
    }
    if (gone->module != NULL) {
        (void)api.cuModuleUnload(gone->module);
    }
}
