/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program: a head, which says what it runs on, and a list of operations.
 *
 * Programs are made from a seed or read from a script, and both are the same:
 * what is written can be read. Any part of a program is a program, since an
 * operation that makes no sense where it stands (free a block that is not
 * there) is left out when it is executed. That is what shrinking lives on.
 *
 *     stack stream_ordered | device_plain
 *     schedule 17
 *     threads 2
 *     t0 stream stream=s1 as=plain
 *     t0 allocate block=b0 bytes=4096 align=256 stream=s1 as=raw
 *     t1 free block=b0 stream=s1
 *
 * Lines that start with ## are comments; "# " in front of a line is ignored,
 * so that a script can be taken out of a test's output as it is.
 *
 * Streams are s0 to s7, `legacy`, and `thread`: the per-thread default stream
 * of whoever executes the operation. Blocks are b0 to b31, threads t0 to t3.
 */
#ifndef CCMR_TESTS_GENERATOR_PROGRAM_H
#define CCMR_TESTS_GENERATOR_PROGRAM_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PROGRAM_BLOCKS 32
#define PROGRAM_STREAMS 8
#define PROGRAM_THREADS 4
#define PROGRAM_MOST_OPS 4096
#define PROGRAM_STACK 512

/* Streams beside the numbered ones. */
enum {
    STREAM_NAMED = PROGRAM_STREAMS, /* the first of these */
    STREAM_LEGACY = STREAM_NAMED,
    STREAM_THREAD,
    STREAM_UNSET, /* on a free alone, as READY */
    STREAM_READY,
    STREAM_COUNT
};

/*
 * X(kind, name, fields, words). Fields, in the order in which they are
 * written: t thread, b block, c the block that is copied from, s stream, r
 * the stream that is waited for, n bytes, a alignment, k a number, w a word
 * out of `words`.
 */
#define OP_MAP(X)                                                             \
    /* streams */                                                             \
    X(STREAM, "stream", "sw", "plain|blocking|ours|registered|elsewhere")     \
    X(DESTROY, "destroy", "sw", "plain|retired")                              \
    X(REGISTER, "register", "s", "")                                          \
    X(RETIRE, "retire", "s", "")                                              \
    X(WAIT, "wait", "sr", "")                                                 \
    X(SYNC, "sync", "s", "")                                                  \
    X(SETTLE, "settle", "", "")                                               \
    X(RUN, "run", "k", "")                                                    \
    X(CAPTURE, "capture", "sw", "global|thread_local|relaxed")                \
    X(END, "end", "s", "")                                                    \
    /* blocks */                                                              \
    X(ALLOCATE, "allocate", "bnasw", "raw|buffer")                            \
    X(FREE, "free", "bs", "")                                                 \
    X(FILL, "fill", "bs", "")                                                 \
    X(COPY, "copy", "bcs", "")                                                \
    X(CHECK, "check", "bs", "")                                               \
    X(WRITE, "write", "b", "")                                                \
    X(READ, "read", "b", "")                                                  \
    X(NOTE, "note", "bs", "")                                                 \
    X(HOLD, "hold", "bs", "")                                                 \
    X(RECORD, "record", "bs", "")                                             \
    X(DISOWN, "disown", "b", "")                                              \
    X(ADOPT, "adopt", "bs", "")                                               \
    /* the resource and the process */                                        \
    X(TRIM, "trim", "n", "")                                                  \
    X(QUERY, "query", "", "")                                                 \
    X(FAIL, "fail", "kw",                                                     \
      "any|cuMemAlloc|cuMemFree|cuMemHostAlloc|cuMemFreeHost|"                \
      "cuMemAllocFromPoolAsync|cuMemFreeAsync|cuMemPoolTrimTo|"               \
      "cuEventCreate|cuEventRecord|cuEventQuery|cuEventSynchronize|"          \
      "cuEventDestroy|cuStreamWaitEvent|cuStreamIsCapturing|cuStreamGetId|"   \
      "cuStreamGetDevice|cuStreamSynchronize|cuCtxPushCurrent|"               \
      "cuCtxPopCurrent|cuThreadExchangeStreamCaptureMode|"                    \
      "cuMemAddressReserve|cuMemCreate|cuMemMap|cuMemSetAccess|cuMemUnmap|"   \
      "cuMemRelease|cuMemAddressFree")                                        \
    X(FORK, "fork", "", "")                                                   \
    X(LEAVE, "leave", "", "")                                                 \
    X(RELEASE, "release", "", "")

typedef enum op_kind {
#define OP_ENUM(kind, name, fields, words) OP_##kind,
    OP_MAP(OP_ENUM)
#undef OP_ENUM
        OP_COUNT
} op_kind;

/* Words by their place in the map. */
enum {
    AS_PLAIN,
    AS_BLOCKING,
    AS_OURS,
    AS_REGISTERED,
    AS_ELSEWHERE,
};
enum { DESTROY_PLAIN, DESTROY_RETIRED };
enum { AS_RAW, AS_BUFFER };

typedef struct op {
    uint8_t kind;
    uint8_t thread;
    uint8_t block;
    uint8_t from; /* a block */
    uint8_t stream;
    uint8_t second; /* a stream */
    uint8_t word;
    uint32_t alignment;
    uint32_t number;
    uint64_t bytes;
} op;

typedef struct program {
    char stack[PROGRAM_STACK];
    uint64_t seed;     /* that it was made from; 0: none */
    uint64_t schedule; /* seed of the simulator */
    unsigned threads;
    unsigned devices;
    uint64_t memory;  /* of each device; 0: plenty */
    int order;        /* the simulator checks the order of accesses */
    int free_running; /* threads run as they like, else in the order of ops */
    int abandon;      /* the process ends with all that is alive */
    int patient; /* the resource waits for what it has before it says full */
    size_t count;
    op ops[PROGRAM_MOST_OPS];
} program;

const char *op_name(unsigned kind);
/* Has the operation that field? */
int op_has(unsigned kind, char field);
/* The i-th of the operation's words into `word`; 0 if there is none. */
int op_word(unsigned kind, unsigned i, char *word, size_t size);
/* How many words the operation has to choose from. */
unsigned op_words(unsigned kind);

/* One operation as a line, without its end. */
void op_print(const op *o, char *text, size_t size);
void program_print(const program *p, FILE *to);
/* 0, or the line in which something is wrong, told by `*why`. */
unsigned program_read(program *p, FILE *from, const char **why);

/* "64MiB" in bytes. */
uint64_t program_bytes(const char *text);
/* The least of all bounds that options of that name (with what stands before
   it, and '=') set in the stack; UINT64_MAX: none. */
uint64_t program_bound(const program *p, const char *option);

/* Make one from a seed. stack, free_running, patient are set before, and so
   are those of threads, devices and memory that are not 0, and order if it is
   not -1; about `operations`
   operations. */
void program_make(program *p, uint64_t seed, unsigned operations);

#endif
