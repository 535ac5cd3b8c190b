/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program knows while it runs: a correct program, which orders its own
 * uses of a block by events and leaves all else to the resource, and compares
 * every byte that it reads with what it wrote.
 *
 * Threads: one lock, `model.lock`, for everything here. It is held while work
 * is enqueued, so that the program's own driver calls have one order, and not
 * while the library allocates, frees, trims, or creates and destroys streams:
 * meanwhile a block is BUSY and its streams are pinned. A worker is its own
 * thread's.
 *
 * A mistake found ends the process at once: see fail().
 */
#ifndef CCMR_TESTS_GENERATOR_MODEL_H
#define CCMR_TESTS_GENERATOR_MODEL_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include <cucoremr/cucoremr.h>

#include "tests/generator/program.h"
#include "tests/generator/report.h"
#include "tests/support/api.h"

#define BLOCK_READERS 8
#define BLOCK_PAST 8
#define BLOCK_HELD 4
#define BLOCK_PARTS 6
#define PENDING_CHECKS 256
#define MODEL_EVENTS 1024
#define STAGING_BYTES ((size_t)4 << 20)

/*
 * One stream, from its creation on; never freed while the program runs, so
 * that what was enqueued on it stays known when it is gone.
 */
typedef struct track {
    struct track *next; /* of all tracks */
    CUstream handle;    /* or a token */
    uint8_t kind;       /* AS_..., or STREAM_LEGACY, STREAM_THREAD */
    int device;
    int alive;
    int registered; /* with the library; tokens are */
    int capturing;
    unsigned capturer; /* serial of the worker that began it */
    int relaxed;       /* the capture's mode: anybody may end it */
    unsigned owner;    /* serial of the worker, of a per-thread stream */
    unsigned pins;     /* library calls that have it */
    unsigned holds;    /* blocks whose free will wait for it */
    uint64_t enqueued; /* uses of blocks */
    uint64_t finished; /* those that the host knows to be done */
} track;

/* A use of a block, and the event after it. `on` NULL: none. */
typedef struct mem_use {
    track *on;
    uint64_t position;
    CUevent event;
    int noted; /* the library knows of it */
} mem_use;

/* Bytes up to `end` hold this word, over and over, from the block's start. */
typedef struct part {
    size_t end;
    uint32_t word;
} part;

typedef struct contents {
    unsigned count; /* 0: not known */
    part parts[BLOCK_PARTS];
} contents;

typedef enum block_state { BLOCK_NONE, BLOCK_LIVE, BLOCK_BUSY } block_state;

typedef struct block {
    block_state state;
    int going; /* BUSY, since it is being freed */
    void *ptr;
    size_t bytes;
    size_t alignment;
    ccmr_buffer *buffer; /* NULL: raw */
    track *recorded;     /* of a buffer; of a raw block, where it is from */
    int recorded_registered; /* it was registered when it was recorded */
    unsigned recorder;       /* serial of the worker that recorded it */
    int touchable;           /* the host may use it now, without waiting */
    contents holds;
    mem_use writer;
    mem_use readers[BLOCK_READERS];
    unsigned reader_count;
    /* With the check of order, which sees no use through another one: where it
       was handed out, and the last use on each stream before the writer. */
    mem_use born;
    mem_use past[BLOCK_PAST];
    unsigned past_count;
    track *held[BLOCK_HELD];
    unsigned held_count;
} block;

/* A copy to the host that is compared when it is known to be done. */
typedef struct pending_check {
    track *on;
    uint64_t position;
    const unsigned char *copy;
    size_t bytes;
    contents expected;
    unsigned op;
    uint8_t block;
    const void *ptr;
} pending_check;

/* One thread. */
typedef struct worker {
    unsigned index;
    unsigned serial; /* of this incarnation; never used again */
    track *own;      /* its per-thread stream */
    CUcontext usual; /* its current context, or NULL */
    CUstreamCaptureMode mode;
    unsigned op; /* that it executes */
} worker;

typedef struct model {
    const program *p;
    pthread_mutex_t lock;

    ccmr_resource *resource; /* NULL once nobody may name it */
    int released;            /* our reference is gone */
    ccmr_properties properties;
    int home; /* device whose streams and tokens are used */
    CUcontext primary[2];
    int has_limit;       /* a limit stands somewhere in the stack */
    int has_capacity;    /* memory may run out */
    uint64_t limit;      /* of the top, exactly; UINT64_MAX: none */
    uint64_t budget;     /* the least bound in the stack; UINT64_MAX: none */
    int registered_only; /* the stack is promised registered streams */
    int unguarded;       /* and captures that need no guard */
    int has_pool;        /* the kind `pool` is in the stack */
    int keeps_alone;     /* the top keeps free memory, nothing below does */
    unsigned lost;       /* streams that went without a word to the library */
    int events_may_stay; /* cuEventDestroy was made to fail */

    track *tracks;
    track *slots[PROGRAM_STREAMS];
    track *legacy;
    unsigned serials; /* of workers */
    unsigned captures;
    block blocks[PROGRAM_BLOCKS];
    uint64_t live_bytes; /* as asked for */
    uint64_t live_blocks;
    unsigned open_buffers;
    uint32_t fills; /* how many words have been used */

    CUevent events[MODEL_EVENTS]; /* spare ones */
    unsigned spare_events;
    unsigned made_events;

    unsigned char *staging; /* page-locked */
    size_t staged;
    CUdeviceptr scratch; /* what captured work writes to */
    pending_check checks[PENDING_CHECKS];
    unsigned check_count;

    /* An ordered failure for the next call of the library. One thread. */
    unsigned fault_nth;  /* 0: none */
    char fault_call[64]; /* "any": whatever is called */
} model;

/* ---- run.c ---- */

/* Execute a program in this process, which must be fresh, and leave it. */
_Noreturn void run_program(const program *p);

/* ---- world.c ---- */

void world_begin(model *m);
/* May the last reference or block go now? */
int world_may_end(const model *m);
/* Everything checked, freed and compared. On the main thread. */
void world_end(model *m);
/* A worker comes to life, goes. On its own thread. */
void worker_begin(model *m, worker *w);
void worker_end(model *m, worker *w);

/* A call of the library: what it must leave as it was is compared, and an
   ordered failure stands meanwhile. Returns whether that was met. */
void library_enter(model *m);
int library_leave(model *m, const worker *w);

/* The program's own driver calls: in the home context, disturbing no
   capture. */
typedef struct inside {
    CUstreamCaptureMode mode;
} inside;
void driver_enter(const model *m, inside *in);
void driver_leave(inside *in);
void need(CUresult res, const char *call);

/* ---- order.c: under the lock ---- */

track *track_new(model *m, CUstream handle, uint8_t kind, int device);
/* The stream that an operation of this worker names; NULL: there is none. */
track *track_of(const model *m, const worker *w, uint8_t stream);
/* A use has been enqueued on the stream. */
void use_note(model *m, track *on, mem_use *use);
void use_forget(model *m, mem_use *use);
/* What is enqueued on the stream from now on comes after that use. */
void use_before(track *on, const mem_use *use);
/* The host waits for that use. */
void use_finish(mem_use *use);
/* The same for all uses of a block; a new writer waits for all, a reader for
   the writer. */
void block_before_write(const block *b, track *on);
void block_before_read(const block *b, track *on);
void block_finish(block *b);
void block_forget_uses(model *m, block *b);
/* The block goes: all that is known of it. */
void block_forget(model *m, block *b);
/* A read, a write has been enqueued. 0: no room for more readers. */
int block_can_read(const block *b);
void block_was_read(model *m, block *b, track *on);
void block_was_written(model *m, block *b, track *on);
void track_sync(track *t, const worker *w);
/* The host waits for everything that it can wait for. */
void sync_all(model *m, const worker *w);

/* ---- contents.c: under the lock ---- */

/* Fill with a new word on a stream, or by the host. */
void block_fill(model *m, block *b, track *on);
void block_fill_on_host(model *m, block *b);
void block_check_on_host(model *m, const block *b, unsigned number);
/* Copy to the host; compared later. 0: no room. */
int block_check(model *m, block *b, track *on, unsigned number);
/* Copy one to the start of another. 0: not possible. */
int block_copy(model *m, block *to, block *from, track *on);
/* Compare what is known to be done. */
void checks_compare(model *m);

/* ---- acts: under the lock, which they give up while the library works ---- */

/* Execute one operation; takes the lock. */
void act(model *m, worker *w, const op *o);
/* The operation makes no sense here. */
void leave_out(void);
/* Around a call of the library that other threads may go beside. `met`: an
   ordered failure was met. */
void call_begin(model *m, const worker *w);
int call_end(model *m, const worker *w);
/* Only success, or an ordered failure, is right. */
void expect_success(const char *call, ccmr_status status, int met);

/* act_memory.c */
void act_allocate(model *m, worker *w, const op *o);
void act_free(model *m, worker *w, const op *o);
void act_note(model *m, worker *w, const op *o);
void act_hold(model *m, worker *w, const op *o);
void act_record(model *m, worker *w, const op *o);
void act_disown(model *m, worker *w, const op *o);
void act_adopt(model *m, worker *w, const op *o);
/* Free a block, at the end. */
void free_finally(model *m, worker *w, block *b);

/* act_stream.c */
void act_stream(model *m, worker *w, const op *o);
void act_destroy(model *m, worker *w, const op *o);
void act_register(model *m, worker *w, const op *o);
void act_retire(model *m, worker *w, const op *o);
void act_capture(model *m, worker *w, const op *o);
void act_end(model *m, worker *w, const op *o);
void capture_end(model *m, track *t);

/* ---- announce.c: under the lock, inside driver_enter ---- */

/* The block was handed out on the stream; is about to be freed on it (NULL:
   all work is done). */
void announce_handed_out(const model *m, const block *b, const track *t);
void announce_freed(const model *m, const block *b, const track *t);
/* The free was refused. */
void announce_not_freed(const model *m, const block *b);
/* The resource knows of the stream's uses of it: those up to now, or up to
   the free. */
void announce_noted(const model *m, const block *b, const track *t,
                    int until_free);
/* The host itself reads or writes it. */
void announce_touched(const model *m, const block *b);
/* Fails if the simulator has seen a hazard. */
void hazards_check(void);

#endif
