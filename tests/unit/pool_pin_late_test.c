/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pins that come too late: of a block that was freed, while its memory moves
 * or goes. They are refused, or do no harm; the pool's books hold either way.
 * A spy between a pool and `virtual` makes them where a call is at work.
 */
#include "tests/unit/leaf.h"

#include "lib/resource_object.h"
#include "resources/pool/pool.h"
#include "tests/unit/adaptor.h"

#define UNIT (2 * MIB)

typedef struct spy spy;

typedef void (*spy_act)(spy *on, void *from, void *to);

struct spy {
    ccmr_resource *under; /* virtual */
    ccmr_resource *pool;
    spy_act before_move;
    spy_act after_move;
    spy_act before_decommit;
    int refuses; /* decommits, so many */
    int acted;
    void *address; /* for the acts */
};

static const ccmr_sim_table *sim;
static spy agent;

/* ---- the spy ---------------------------------------------------------------- */

static ccmr_status spy_allocate(void *self, size_t bytes, size_t alignment,
                                ccmr_stream stream, void **ptr)
{
    spy *on = self;

    return ccmr_resource_allocate(on->under, bytes, alignment, stream, ptr);
}

static ccmr_status spy_deallocate(void *self, void *ptr, size_t bytes,
                                  size_t alignment, ccmr_stream stream)
{
    spy *on = self;

    return ccmr_resource_deallocate(on->under, ptr, bytes, alignment, stream);
}

static void spy_destroy(void *self)
{
    spy *on = self;

    ccmr_resource_release(on->under);
    on->under = NULL;
}

static ccmr_status spy_describe(void *self, ccmr_properties *properties)
{
    spy *on = self;

    return ccmr_resource_describe(on->under, properties);
}

static ccmr_status spy_reserve(void *self, size_t bytes, void **base)
{
    spy *on = self;

    return on->under->ops.reserve(on->under->self, bytes, base);
}

static ccmr_status spy_unreserve(void *self, void *base, size_t bytes)
{
    spy *on = self;

    return on->under->ops.unreserve(on->under->self, base, bytes);
}

static ccmr_status spy_commit(void *self, void *address, size_t bytes)
{
    spy *on = self;

    return on->under->ops.commit(on->under->self, address, bytes);
}

static ccmr_status spy_decommit(void *self, void *address, size_t bytes)
{
    spy *on = self;

    if (on->before_decommit != NULL) {
        on->before_decommit(on, address, NULL);
    }
    if (on->refuses > 0 && (on->address == NULL || on->address == address)) {
        on->refuses--;
        return CCMR_ERROR_DRIVER;
    }
    return on->under->ops.decommit(on->under->self, address, bytes);
}

static ccmr_status spy_move(void *self, void *from, void *to, size_t bytes)
{
    spy *on = self;
    ccmr_status status;

    if (on->before_move != NULL) {
        on->before_move(on, from, to);
    }
    status = on->under->ops.move(on->under->self, from, to, bytes);
    if (on->after_move != NULL) {
        on->after_move(on, from, to);
    }
    return status;
}

static const ccmr_resource_ops spy_ops = {
    .size = sizeof(ccmr_resource_ops),
    .allocate = spy_allocate,
    .deallocate = spy_deallocate,
    .destroy = spy_destroy,
    .describe = spy_describe,
    .reserve = spy_reserve,
    .unreserve = spy_unreserve,
    .commit = spy_commit,
    .decommit = spy_decommit,
    .move = spy_move,
};

static void refuses_pin(spy *on, void *from, void *to)
{
    BAD(ccmr_resource_pin(on->pool, from, 1), CCMR_ERROR_INVALID_POINTER);
    if (to != NULL) {
        BAD(ccmr_resource_pin(on->pool, to, 1), CCMR_ERROR_INVALID_POINTER);
    }
    on->acted++;
}

/* ---- before and after --------------------------------------------------------- */

static void start(void)
{
    sim = leaf_start();
    (void)sim->set_mode(CCMR_SIM_LATE);
    (void)sim->check_order(1);
}

static void end(void)
{
    ccmr_resource_release(agent.pool);
    MUST(agent.under == NULL);
    MUST(sim->hazards() == 0);
    MUST(leaf_census().pieces == 0);
    MUST(leaf_census().mappings == 0);
    MUST(leaf_census().ranges == 0);
    MUST(leaf_census().plain_blocks == 0);
    leaf_end();
}

TestSuite(pool_pin_late, .init = start, .fini = end);

static void make(const char *text)
{
    ccmr_resource *between;

    GOOD(ccmr_stack_create("virtual", &agent.under));
    GOOD(ccmr_resource_create(&spy_ops, &agent, &between));
    GOOD(ccmr_stack_create_over(text, between, &agent.pool));
    ccmr_resource_release(between);
}

static void give_finished(void *ptr, size_t bytes)
{
    GOOD(ccmr_resource_deallocate(agent.pool, ptr, bytes, 0,
                                  CCMR_STREAM_READY));
}

/* Trim all, of which so much goes and so much is pinned. */
static void check_trim(size_t released, size_t pinned)
{
    ccmr_trim_result result = {.size = sizeof(result)};

    GOOD(ccmr_resource_trim(agent.pool, 0, &result));
    GOOD(ccmr_resource_audit(agent.pool));
    cr_assert_eq(result.released_bytes, released, "%zu released",
                 result.released_bytes);
    cr_assert_eq(result.pinned_bytes, pinned, "%zu pinned",
                 result.pinned_bytes);
}

/* ---- over a range ---------------------------------------------------------------- */

Test(pool_pin_late, what_goes_is_not_pinned)
{
    char *ptr;

    make("pool handle=2MiB");
    ptr = take(agent.pool, 3 * UNIT);
    give_finished(ptr, 3 * UNIT);
    agent.before_decommit = refuses_pin;
    check_trim(3 * UNIT, 0);
    cr_assert_eq(agent.acted, 3);
    agent.before_decommit = NULL;
    /* Nothing of it is left at those addresses. */
    cr_assert_eq(take(agent.pool, 3 * UNIT), ptr);
    give_finished(ptr, 3 * UNIT);
    check_trim(3 * UNIT, 0);
}

/* The second one, and the third with it; pinned, they stay. */
Test(pool_pin_late, what_is_refused_is_pinned_as_ever)
{
    char *ptr;

    make("pool handle=2MiB");
    ptr = take(agent.pool, 3 * UNIT);
    give_finished(ptr, 3 * UNIT);
    agent.before_decommit = refuses_pin;
    agent.refuses = 1;
    BAD(ccmr_resource_trim(agent.pool, 0, NULL), CCMR_ERROR_DRIVER);
    GOOD(ccmr_resource_audit(agent.pool));
    GOOD(ccmr_resource_pin(agent.pool, ptr, 2 * UNIT));
    check_trim(UNIT, 2 * UNIT);
    GOOD(ccmr_resource_unpin(agent.pool, ptr, 2 * UNIT));
    check_trim(2 * UNIT, 0);
}

static void take_four(char **blocks)
{
    int i;

    for (i = 0; i < 4; i++) {
        blocks[i] = take(agent.pool, UNIT);
    }
}

Test(pool_pin_late, what_moves_is_not_pinned)
{
    char *blocks[4];
    void *ptr;

    make("pool hard=8MiB handle=2MiB");
    take_four(blocks);
    give_finished(blocks[1], UNIT);
    give_finished(blocks[3], UNIT);
    agent.before_move = refuses_pin;
    agent.after_move = refuses_pin;
    ptr = take(agent.pool, 2 * UNIT);
    cr_assert_geq(agent.acted, 2);
    GOOD(ccmr_resource_audit(agent.pool));
    give_finished(ptr, 2 * UNIT);
    give_finished(blocks[0], UNIT);
    give_finished(blocks[2], UNIT);
    check_trim(4 * UNIT, 0);
}

/* What has moved is memory again, and in nobody's set yet. */
static void pin_the_first(spy *on, void *from, void *to)
{
    (void)from;
    if (on->acted++ == 0) {
        on->address = to;
    } else if (on->acted == 2) {
        GOOD(ccmr_resource_pin(on->pool, on->address, UNIT));
    }
}

Test(pool_pin_late, what_has_moved_stays_pinned)
{
    char *blocks[4];
    void *ptr;

    make("pool hard=8MiB handle=2MiB");
    take_four(blocks);
    give_finished(blocks[0], UNIT);
    give_finished(blocks[2], UNIT);
    agent.before_move = pin_the_first;
    ptr = take(agent.pool, 2 * UNIT);
    cr_assert_eq(agent.acted, 2);
    GOOD(ccmr_resource_audit(agent.pool));
    give_finished(ptr, 2 * UNIT);
    check_trim(UNIT, UNIT);
    GOOD(ccmr_resource_unpin(agent.pool, agent.address, UNIT));
    check_trim(UNIT, 0);
    give_finished(blocks[1], UNIT);
    give_finished(blocks[3], UNIT);
    check_trim(2 * UNIT, 0);
}

/* Between two that are free is a page without memory, and a large one, which
 * does not fit there, has to go for it; it is refused once. */
Test(pool_pin_late, what_comes_back_is_as_it_was)
{
    char *large;
    char *other;
    char *row;

    make("pool handle=4MiB");
    large = take(agent.pool, 2 * UNIT);
    other = take(agent.pool, UNIT);
    row = take(agent.pool, UNIT);
    cr_assert_eq(take(agent.pool, UNIT), row + UNIT);
    cr_assert_eq(take(agent.pool, UNIT), row + 2 * UNIT);
    give_finished(row + UNIT, UNIT);
    check_trim(UNIT, 0);
    GOOD(ccmr_resource_option_set(agent.pool, "hard", "10MiB"));
    give_finished(row, UNIT);
    give_finished(row + 2 * UNIT, UNIT);
    give_finished(large, 2 * UNIT);
    agent.before_decommit = refuses_pin;
    agent.refuses = 1;
    cr_assert_eq(take(agent.pool, 3 * UNIT), row); /* by a later step */
    cr_assert_eq(agent.refuses, 0);
    cr_assert_geq(agent.acted, 2);
    GOOD(ccmr_resource_audit(agent.pool));
    give_finished(row, 3 * UNIT);
    give_finished(other, UNIT);
    check_trim(4 * UNIT, 0);
}

/* ---- over segments ------------------------------------------------------------------ */

static ccmr__pool *books(void)
{
    return agent.pool->self;
}

/* Between the look whether it is pinned and its way upstream. */
Test(pool_pin_late, a_pinned_segment_does_not_go)
{
    ccmr__pool_segment *segment;
    char *ptr;

    GOOD(ccmr_stack_create("pool | device_plain", &agent.pool));
    ptr = take(agent.pool, UNIT);
    GOOD(ccmr_resource_pin(agent.pool, ptr, UNIT));
    segment = ccmr__pool_segment_of(books(), (uintptr_t)ptr);
    cr_assert_not_null(segment);
    BAD(ccmr__pool_segment_give(books(), segment), CCMR_ERROR_BUSY);
    cr_assert_eq(ccmr__pool_segment_of(books(), (uintptr_t)ptr), segment);
    give_finished(ptr, UNIT);
    check_trim(0, UNIT);
    GOOD(ccmr_resource_unpin(agent.pool, ptr, UNIT));
    check_trim(UNIT, 0);
    BAD(ccmr_resource_pin(agent.pool, ptr, UNIT), CCMR_ERROR_INVALID_POINTER);
}

Test(pool_pin_late, the_audit_counts_pins_of_segments)
{
    ccmr__pool_segment *segment;
    char *ptr;

    GOOD(ccmr_stack_create("pool | device_plain", &agent.pool));
    ptr = take(agent.pool, UNIT);
    GOOD(ccmr_resource_pin(agent.pool, ptr, UNIT));
    GOOD(ccmr_resource_audit(agent.pool));
    segment = ccmr__pool_segment_of(books(), (uintptr_t)ptr);
    segment->pins++;
    BAD(ccmr_resource_audit(agent.pool), CCMR_ERROR_INVALID_ARGUMENT);
    segment->pins -= 2;
    BAD(ccmr_resource_audit(agent.pool), CCMR_ERROR_INVALID_ARGUMENT);
    segment->pins++;
    GOOD(ccmr_resource_audit(agent.pool));
    GOOD(ccmr_resource_unpin(agent.pool, ptr, UNIT));
    give_finished(ptr, UNIT);
}
