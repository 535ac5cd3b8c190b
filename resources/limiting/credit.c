/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cap's slow half: `granted`, recalls, the share.
 */
#include "resources/limiting/credit.h"

#include <sched.h>
#include <stdint.h>

/* Less than this a slot is not worth a recall. */
#define SHARE_LEAST ((size_t)4096)
/* Credit and any number of bytes do not overflow together. */
#define SHARE_MOST ((size_t)PTRDIFF_MAX / 2)

int ccmr__credit_init(ccmr__credit *credit, size_t limit)
{
    int i;

    atomic_init(&credit->share, 0);
    atomic_init(&credit->recalling, 0);
    atomic_init(&credit->limit, limit);
    atomic_init(&credit->granted, 0);
    atomic_init(&credit->slots_known, 0);
    for (i = 0; i < CCMR__SLOTS; i++) {
        atomic_init(&credit->slots[i].credit, 0);
        atomic_init(&credit->slots[i].inside, 0);
        credit->slots[i].known = 0;
    }
    return pthread_mutex_init(&credit->lock, NULL) == 0 ? 0 : -1;
}

void ccmr__credit_destroy(ccmr__credit *credit)
{
    (void)pthread_mutex_destroy(&credit->lock);
}

static size_t load(atomic_size_t *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

/* All credit, as it is seen from here. */
static size_t sum_of_slots(ccmr__credit *credit)
{
    size_t sum = 0;
    int i;

    for (i = 0; i < CCMR__SLOTS; i++) {
        sum += load(&credit->slots[i].credit);
    }
    return sum;
}

size_t ccmr__credit_live(ccmr__credit *credit)
{
    size_t granted = load(&credit->granted);
    size_t unused = sum_of_slots(credit);

    return granted > unused ? granted - unused : 0;
}

/* Returns 0 where it would go below 0: the bytes were never counted. */
static int granted_lower(ccmr__credit *credit, size_t bytes)
{
    size_t granted = load(&credit->granted);

    do {
        if (granted < bytes) {
            return 0;
        }
    } while (!atomic_compare_exchange_weak_explicit(
        &credit->granted, &granted, granted - bytes, memory_order_relaxed,
        memory_order_relaxed));
    return 1;
}

/* Compare without adding. Raises by bytes, and by up to `most` more if there
 * is room; says how many more. Returns 0 if there is no room for the bytes. */
static int granted_raise(ccmr__credit *credit, size_t bytes, size_t most,
                         size_t *more)
{
    size_t granted = load(&credit->granted);
    size_t limit;

    do {
        limit = load(&credit->limit);
        if (granted > limit || bytes > limit - granted) {
            return 0;
        }
        *more = (limit - granted - bytes) / 2;
        if (*more > most) {
            *more = most;
        }
    } while (!atomic_compare_exchange_weak_explicit(
        &credit->granted, &granted, granted + bytes + *more,
        memory_order_relaxed, memory_order_relaxed));
    return 1;
}

/* ---- under the lock --------------------------------------------------- */

static void recall_begin(ccmr__credit *credit)
{
    size_t sum = 0;
    int i;

    atomic_store_explicit(&credit->recalling, 1, memory_order_relaxed);
    ccmr__census_barrier();
    for (i = 0; i < CCMR__SLOTS; i++) {
        ccmr__credit_slot *slot = &credit->slots[i];

        while (atomic_load_explicit(&slot->inside, memory_order_acquire) !=
               0) {
            (void)sched_yield();
        }
        sum += load(&slot->credit);
        atomic_store_explicit(&slot->credit, 0, memory_order_relaxed);
    }
    if (!granted_lower(credit, sum)) {
        /* Only after frees of what was never counted. */
        atomic_store_explicit(&credit->granted, 0, memory_order_relaxed);
    }
}

static void recall_end(ccmr__credit *credit)
{
    atomic_store_explicit(&credit->recalling, 0, memory_order_release);
}

/* The share that what is unused now allows. */
static size_t fair_share(ccmr__credit *credit)
{
    size_t granted = load(&credit->granted);
    size_t limit = load(&credit->limit);
    size_t slots =
        atomic_load_explicit(&credit->slots_known, memory_order_relaxed);
    size_t share = 0;

    if (granted < limit) {
        share = (limit - granted) / (4 * (slots != 0 ? slots : 1));
    }
    if (share < SHARE_LEAST) {
        share = 0;
    }
    return share < SHARE_MOST ? share : SHARE_MOST;
}

static void set_share(ccmr__credit *credit, size_t share)
{
    atomic_store_explicit(&credit->share, share, memory_order_relaxed);
}

/* Would the bytes pass the limit even if every slot had a whole share? */
static int hopeless(ccmr__credit *credit, size_t bytes)
{
    size_t granted = load(&credit->granted);
    size_t limit = load(&credit->limit);
    size_t slots =
        atomic_load_explicit(&credit->slots_known, memory_order_relaxed);
    size_t unused;

    if (__builtin_mul_overflow(slots, load(&credit->share), &unused)) {
        return 0;
    }
    granted = granted > unused ? granted - unused : 0;
    return granted > limit || bytes > limit - granted;
}

/* The last word: taken, or rightly refused. */
static int claim_last(ccmr__credit *credit, size_t bytes, size_t *live)
{
    size_t more;
    int taken = granted_raise(credit, bytes, 0, &more);

    if (!taken && !hopeless(credit, bytes)) {
        recall_begin(credit);
        taken = granted_raise(credit, bytes, 0, &more);
        *live = load(&credit->granted);
        set_share(credit, fair_share(credit));
        recall_end(credit);
    } else if (!taken) {
        *live = ccmr__credit_live(credit);
    }
    return taken;
}

void ccmr__credit_set_limit(ccmr__credit *credit, size_t limit)
{
    (void)pthread_mutex_lock(&credit->lock);
    recall_begin(credit);
    atomic_store_explicit(&credit->limit, limit, memory_order_relaxed);
    set_share(credit, fair_share(credit));
    recall_end(credit);
    (void)pthread_mutex_unlock(&credit->lock);
}

int ccmr__credit_audit(ccmr__credit *credit)
{
    int good;

    (void)pthread_mutex_lock(&credit->lock);
    good = sum_of_slots(credit) <= load(&credit->granted);
    (void)pthread_mutex_unlock(&credit->lock);
    return good;
}

/* ---- any thread -------------------------------------------------------- */

/* More is unused than the share was made for. Where somebody else is at it
 * already it is left to them. */
static void raise_share(ccmr__credit *credit)
{
    size_t fair = fair_share(credit);

    if (fair / 2 < load(&credit->share) || fair == 0 ||
        pthread_mutex_trylock(&credit->lock) != 0) {
        return;
    }
    fair = fair_share(credit);
    if (fair > load(&credit->share)) {
        set_share(credit, fair);
    }
    (void)pthread_mutex_unlock(&credit->lock);
}

/* The calling thread's slot, NULL for the threads that share one. */
static ccmr__credit_slot *own_slot(ccmr__credit *credit)
{
    unsigned index = ccmr__thread_self()->slot;
    ccmr__credit_slot *slot = &credit->slots[index];

    if (index == CCMR__SLOT_SHARED) {
        return NULL;
    }
    if (!slot->known) {
        slot->known = 1;
        atomic_fetch_add_explicit(&credit->slots_known, 1,
                                  memory_order_relaxed);
    }
    return slot;
}

/* Take the bytes from `granted`, and some more for the slot. */
static int claim_open(ccmr__credit *credit, size_t bytes)
{
    ccmr__credit_slot *slot = own_slot(credit);
    size_t more;
    int taken;

    if (slot == NULL) {
        return granted_raise(credit, bytes, 0, &more);
    }
    if (ccmr__credit_enter(credit, slot)) {
        size_t have = load(&slot->credit);
        size_t half = load(&credit->share) / 2;

        taken =
            granted_raise(credit, bytes, half > have ? half - have : 0, &more);
        if (taken) {
            atomic_store_explicit(&slot->credit, have + more,
                                  memory_order_relaxed);
        }
    } else {
        taken = granted_raise(credit, bytes, 0, &more);
    }
    ccmr__credit_leave(slot);
    return taken;
}

int ccmr__credit_claim(ccmr__credit *credit, size_t bytes, size_t *live)
{
    int taken;

    if (claim_open(credit, bytes)) {
        raise_share(credit);
        return 1;
    }
    (void)pthread_mutex_lock(&credit->lock);
    taken = claim_last(credit, bytes, live);
    (void)pthread_mutex_unlock(&credit->lock);
    return taken;
}

/* The bytes, and what the slot has beyond half a share, so that the next ones
 * stay there. Returns 0 if that is more than was granted. */
static int return_open(ccmr__credit *credit, size_t bytes)
{
    ccmr__credit_slot *slot = own_slot(credit);
    int done;

    if (slot == NULL) {
        return granted_lower(credit, bytes);
    }
    if (ccmr__credit_enter(credit, slot)) {
        size_t have = load(&slot->credit);
        size_t half = load(&credit->share) / 2;
        size_t over = have > half ? have - half : 0;

        done = granted_lower(credit, bytes + over);
        if (done) {
            atomic_store_explicit(&slot->credit, have - over,
                                  memory_order_relaxed);
        }
    } else {
        done = granted_lower(credit, bytes);
    }
    ccmr__credit_leave(slot);
    return done;
}

void ccmr__credit_return(ccmr__credit *credit, size_t bytes)
{
    if (return_open(credit, bytes)) {
        raise_share(credit);
        return;
    }
    /* More comes back than was counted: a free of another resource's block,
     * or of a wrong size. Start again from what is left. */
    (void)pthread_mutex_lock(&credit->lock);
    recall_begin(credit);
    if (!granted_lower(credit, bytes)) {
        atomic_store_explicit(&credit->granted, 0, memory_order_relaxed);
    }
    set_share(credit, fair_share(credit));
    recall_end(credit);
    (void)pthread_mutex_unlock(&credit->lock);
}
