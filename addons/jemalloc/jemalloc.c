/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jemalloc: host memory of an arena of its own, and the floor that the best of
 * host allocators sets.
 *
 * Streams: none matters, a free happens at once. Threads: any. Makes no driver
 * call.
 *
 * Each thread has a cache of its own in each arena, since jemalloc's automatic
 * cache would hand the arena's memory to anybody's malloc:
 *
 *   thread_caches (thread-local) -> flags[slot of the arena] = arena + cache
 *   arena                        -> slot
 *
 * Every call names both. A cache is made at a thread's first allocate; a
 * thread that only frees, one that found no memory for a cache, and arenas
 * beyond the number of slots go to the arena itself, which takes its lock.
 *
 * `lock` covers the list of threads, the slots, and the ends of caches: that
 * of a thread (by a key's destructor) and that of an arena may meet. A thread
 * reads and writes its own flags without it; another one clears them only when
 * the arena goes and nobody may use it any more.
 */
#include <cucoremr/resources/jemalloc.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <jemalloc/jemalloc.h>

#include <cucoremr/stack.h>

#define GREATEST_ALIGNMENT ((size_t)1 << 30)

/* Arenas whose threads have caches; the entry beyond is for all others. */
#define SLOTS 64

typedef struct jemalloc_arena {
    int flags;          /* the arena, and no cache; 0: not made */
    size_t small_bytes; /* greatest of the small size classes */
    size_t page;
    unsigned index;
    unsigned slot;
} jemalloc_arena;

typedef struct thread_caches {
    int flags[SLOTS + 1];  /* 0: not yet decided */
    unsigned cache[SLOTS]; /* jemalloc's number + 1; 0: none */
    pid_t process;         /* a forked child has no business here */
    struct thread_caches *next;
    struct thread_caches **link;
} thread_caches;

static _Thread_local thread_caches *own_caches
    __attribute__((tls_model("initial-exec")));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static thread_caches *threads;
static char slot_taken[SLOTS];
static pthread_key_t key;
static int key_made;

/* ---- caches ----------------------------------------------------------- */

/* Under the lock. */
static void end_cache(thread_caches *caches, unsigned slot)
{
    unsigned cache = caches->cache[slot];

    if (cache != 0) {
        cache--;
        (void)mallctl("tcache.destroy", NULL, NULL, &cache, sizeof(cache));
    }
    caches->cache[slot] = 0;
    caches->flags[slot] = 0;
}

/* A thread ends. */
static void end_thread(void *object)
{
    thread_caches *caches = object;
    unsigned slot;

    own_caches = NULL;
    if (caches->process != getpid()) {
        return;
    }
    (void)pthread_mutex_lock(&lock);
    *caches->link = caches->next;
    if (caches->next != NULL) {
        caches->next->link = caches->link;
    }
    for (slot = 0; slot < SLOTS; slot++) {
        end_cache(caches, slot);
    }
    (void)pthread_mutex_unlock(&lock);
    free(caches);
}

/* Under the lock: the calling thread's caches join the list. */
static int add_thread(thread_caches *caches)
{
    if (!key_made) {
        key_made = pthread_key_create(&key, end_thread) == 0;
    }
    if (!key_made || pthread_setspecific(key, caches) != 0) {
        return 0;
    }
    caches->process = getpid();
    caches->next = threads;
    caches->link = &threads;
    if (threads != NULL) {
        threads->link = &caches->next;
    }
    threads = caches;
    return 1;
}

static thread_caches *make_thread(void)
{
    thread_caches *caches = calloc(1, sizeof(*caches));
    int added;

    if (caches == NULL) {
        return NULL;
    }
    (void)pthread_mutex_lock(&lock);
    added = add_thread(caches);
    (void)pthread_mutex_unlock(&lock);
    if (!added) {
        free(caches);
        return NULL;
    }
    own_caches = caches;
    return caches;
}

/* The calling thread's first allocate from the arena: flags to use. */
static int __attribute__((cold, noinline))
make_cache(const jemalloc_arena *arena)
{
    thread_caches *caches = own_caches;
    size_t size = sizeof(unsigned);
    unsigned cache;

    if (arena->slot == SLOTS) {
        return arena->flags;
    }
    if (caches == NULL) {
        caches = make_thread();
    }
    if (caches == NULL) {
        return arena->flags;
    }
    if (mallctl("tcache.create", &cache, &size, NULL, 0) != 0) {
        caches->flags[arena->slot] = arena->flags;
        return arena->flags;
    }
    caches->cache[arena->slot] = cache + 1;
    caches->flags[arena->slot] =
        (int)(MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE(cache));
    return caches->flags[arena->slot];
}

/* Flags of the calling thread for an arena; 0 where it has none yet. */
static inline int find_flags(const jemalloc_arena *arena)
{
    const thread_caches *caches = own_caches;

    return __builtin_expect(caches != NULL, 1) ? caches->flags[arena->slot]
                                               : 0;
}

/* ---- operations ------------------------------------------------------- */

/*
 * Flags of a block, the same for its allocate and its deallocate. A cache may
 * serve what is aligned as its size class is anyway, and small blocks;
 * jemalloc takes others from the arena, and a cache that gets them back would
 * only hand them on.
 */
static inline int block_flags(const jemalloc_arena *arena, int flags,
                              size_t bytes, size_t alignment)
{
    size_t rounded = (bytes + alignment - 1) & ~(alignment - 1);

    if (alignment <= 8 || (alignment == 16 && bytes > 8)) {
        return flags;
    }
    if (rounded > arena->small_bytes || alignment > arena->page) {
        flags = arena->flags;
    }
    return flags | __builtin_ctzll(alignment); /* as MALLOCX_LG_ALIGN */
}

static ccmr_status jemalloc_allocate(void *self, size_t bytes,
                                     size_t alignment, ccmr_stream stream,
                                     void **ptr)
{
    const jemalloc_arena *arena = self;
    int flags = find_flags(arena);
    void *block;

    (void)stream;
    if (__builtin_expect(flags == 0, 0)) {
        flags = make_cache(arena);
    }
    block = mallocx(bytes, block_flags(arena, flags, bytes, alignment));
    if (__builtin_expect(block == NULL, 0)) {
        return ccmr_error_set(CCMR_ERROR_OUT_OF_HOST_MEMORY, bytes,
                              "the jemalloc arena has no such block");
    }
    *ptr = block;
    return CCMR_SUCCESS;
}

static ccmr_status jemalloc_deallocate(void *self, void *ptr, size_t bytes,
                                       size_t alignment, ccmr_stream stream)
{
    const jemalloc_arena *arena = self;
    int flags = find_flags(arena);

    (void)stream;
    if (__builtin_expect(flags == 0, 0)) {
        flags = arena->flags;
    }
    if (__builtin_expect(((uintptr_t)ptr & (alignment - 1)) != 0, 0)) {
        return ccmr_error_set(CCMR_ERROR_INVALID_POINTER, bytes,
                              "the address is not aligned as the block was");
    }
    sdallocx(ptr, bytes, block_flags(arena, flags, bytes, alignment));
    return CCMR_SUCCESS;
}

static ccmr_status jemalloc_describe(void *self, ccmr_properties *properties)
{
    (void)self;
    properties->name = "jemalloc";
    properties->device = -1;
    properties->device_accessible = 0;
    properties->host_accessible = 1;
    properties->managed = 0;
    properties->max_alignment = GREATEST_ALIGNMENT;
    properties->free_may_block = 0;
    properties->free_stream = CCMR_FREE_AT_ONCE;
    properties->capture = CCMR_CAPTURE_IRRELEVANT;
    properties->access = CCMR_ACCESS_HOST;
    properties->handle_kinds = CCMR_HANDLE_NONE;
    return CCMR_SUCCESS;
}

/* One of the arena's numbers of pages; 0 if jemalloc does not tell it. */
static size_t read_pages(const jemalloc_arena *arena, const char *what)
{
    size_t pages = 0;
    size_t size = sizeof(pages);
    char name[64];

    (void)snprintf(name, sizeof(name), "stats.arenas.%u.%s", arena->index,
                   what);
    return mallctl(name, &pages, &size, NULL, 0) == 0 ? pages : 0;
}

/* Bytes of the arena's pages: in use, and `*unused` of them not. What lies in
 * threads' caches is in use. */
static size_t read_reserved(const jemalloc_arena *arena, size_t *unused)
{
    uint64_t epoch = 1;

    (void)mallctl("epoch", NULL, NULL, &epoch, sizeof(epoch));
    *unused = arena->page *
              (read_pages(arena, "pdirty") + read_pages(arena, "pmuzzy"));
    return *unused + arena->page * read_pages(arena, "pactive");
}

static ccmr_status jemalloc_stats(void *self, ccmr_stats *stats)
{
    size_t unused;

    stats->reserved_bytes = read_reserved(self, &unused);
    stats->pending_bytes = 0;
    stats->exact |= CCMR_STAT_RESERVED_BYTES | CCMR_STAT_PENDING_BYTES;
    return CCMR_SUCCESS;
}

/*
 * jemalloc gives all unused pages back, or none: where some are to be kept,
 * all are. Caches of other threads cannot be emptied from here.
 */
static ccmr_status jemalloc_trim(void *self, size_t keep,
                                 ccmr_trim_result *result)
{
    const jemalloc_arena *arena = self;
    const thread_caches *caches = own_caches;
    size_t before;
    size_t unused;
    char name[64];

    if (caches != NULL && arena->slot < SLOTS &&
        caches->cache[arena->slot] != 0) {
        unsigned cache = caches->cache[arena->slot] - 1;

        (void)mallctl("tcache.flush", NULL, NULL, &cache, sizeof(cache));
    }
    before = read_reserved(arena, &unused);
    if (before - unused >= keep) {
        (void)snprintf(name, sizeof(name), "arena.%u.purge", arena->index);
        (void)mallctl(name, NULL, NULL, NULL, 0);
        result->released_bytes = before - read_reserved(arena, &unused);
    }
    before -= result->released_bytes;
    result->pinned_bytes = before > keep && unused > 0 ? before - keep : 0;
    return CCMR_SUCCESS;
}

/* ---- life ------------------------------------------------------------- */

static unsigned take_slot(void)
{
    unsigned slot;

    (void)pthread_mutex_lock(&lock);
    for (slot = 0; slot < SLOTS && slot_taken[slot]; slot++) {
    }
    if (slot < SLOTS) {
        slot_taken[slot] = 1;
    }
    (void)pthread_mutex_unlock(&lock);
    return slot;
}

static void give_slot(unsigned slot)
{
    thread_caches *caches;

    if (slot == SLOTS) {
        return;
    }
    (void)pthread_mutex_lock(&lock);
    for (caches = threads; caches != NULL; caches = caches->next) {
        end_cache(caches, slot);
    }
    slot_taken[slot] = 0;
    (void)pthread_mutex_unlock(&lock);
}

/* Caches go before their arena. */
static void jemalloc_destroy(void *self)
{
    jemalloc_arena *arena = self;
    char name[64];

    give_slot(arena->slot);
    if (arena->flags != 0) {
        (void)snprintf(name, sizeof(name), "arena.%u.destroy", arena->index);
        (void)mallctl(name, NULL, NULL, NULL, 0);
    }
    free(arena);
}

static const ccmr_resource_ops jemalloc_ops = {
    .size = sizeof(ccmr_resource_ops),
    .allocate = jemalloc_allocate,
    .deallocate = jemalloc_deallocate,
    .destroy = jemalloc_destroy,
    .describe = jemalloc_describe,
    .trim = jemalloc_trim,
    .stats = jemalloc_stats,
};

/* What jemalloc was built with. */
static int read_sizes(jemalloc_arena *arena)
{
    size_t size = sizeof(arena->page);
    unsigned bins = 0;
    size_t bins_size = sizeof(bins);
    char name[64];

    if (mallctl("arenas.page", &arena->page, &size, NULL, 0) != 0 ||
        mallctl("arenas.nbins", &bins, &bins_size, NULL, 0) != 0 ||
        bins == 0) {
        return 0;
    }
    (void)snprintf(name, sizeof(name), "arenas.bin.%u.size", bins - 1);
    size = sizeof(arena->small_bytes);
    return mallctl(name, &arena->small_bytes, &size, NULL, 0) == 0;
}

/* A new arena in which large blocks stay for reuse as small ones do. */
static int make_arena(jemalloc_arena *arena)
{
    size_t threshold = SIZE_MAX;
    size_t size = sizeof(arena->index);
    char name[64];

    if (!read_sizes(arena) ||
        mallctl("arenas.create", &arena->index, &size, NULL, 0) != 0) {
        return 0;
    }
    (void)snprintf(name, sizeof(name), "arena.%u.oversize_threshold",
                   arena->index);
    (void)mallctl(name, NULL, NULL, &threshold, sizeof(threshold));
    arena->flags = (int)(MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE_NONE);
    return 1;
}

ccmr_status ccmr_jemalloc_create(ccmr_resource **resource)
{
    ccmr_resource *made;
    jemalloc_arena *arena;
    ccmr_status status;

    if (resource == NULL) {
        return ccmr_error_set(CCMR_ERROR_INVALID_ARGUMENT, 0,
                              "ccmr_jemalloc_create: resource is NULL");
    }
    arena = calloc(1, sizeof(*arena));
    if (arena == NULL) {
        return ccmr_error_set(CCMR_ERROR_OUT_OF_HOST_MEMORY, sizeof(*arena),
                              "no memory for a jemalloc resource");
    }
    /* First what a forked child is refused: `lock` may be held there. */
    arena->slot = SLOTS;
    status = ccmr_resource_create(&jemalloc_ops, arena, &made);
    if (status != CCMR_SUCCESS) {
        free(arena);
        return status;
    }
    if (!make_arena(arena)) {
        ccmr_resource_release(made);
        return ccmr_error_set(CCMR_ERROR_OUT_OF_HOST_MEMORY, 0,
                              "jemalloc has no arena left");
    }
    arena->slot = take_slot();
    *resource = made;
    return CCMR_SUCCESS;
}

/* ---- the kind --------------------------------------------------------- */

static ccmr_status create_from_text(const ccmr_kind *kind,
                                    const ccmr_option_value *values,
                                    ccmr_resource *const *upstreams,
                                    size_t count, ccmr_resource **resource)
{
    (void)kind;
    (void)values;
    (void)upstreams;
    (void)count;
    return ccmr_jemalloc_create(resource);
}

static const ccmr_option no_options[] = {
    {NULL, CCMR_OPTION_TEXT, NULL, NULL, NULL},
};

static const ccmr_kind jemalloc_kind = {
    .size = sizeof(ccmr_kind),
    .name = "jemalloc",
    .help = "host memory of a jemalloc arena; needs no driver",
    .options = no_options,
    .create = create_from_text,
};

ccmr_status ccmr_jemalloc_register(void)
{
    static atomic_int registered;
    const ccmr_kind *known;
    ccmr_status status;
    size_t i;

    if (atomic_load_explicit(&registered, memory_order_acquire)) {
        return CCMR_SUCCESS;
    }
    status = ccmr_kind_register(&jemalloc_kind);
    if (status == CCMR_ERROR_ALREADY_EXISTS) {
        /* Ours, by another thread just now, or somebody else's. */
        for (i = 0; ccmr_kind_get(i, &known) == CCMR_SUCCESS; i++) {
            if (known == &jemalloc_kind) {
                status = CCMR_SUCCESS;
                break;
            }
        }
    }
    if (status == CCMR_SUCCESS) {
        atomic_store_explicit(&registered, 1, memory_order_release);
    }
    return status;
}
