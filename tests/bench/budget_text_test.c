/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a budget goes in a stack's text. Kinds are added whose bounds the
 * rules must find: they are never made.
 */
#include <stdlib.h>
#include <string.h>

#include <cucoremr/stack.h>

#include "bench/budget_text.h"
#include "tests/support/tap.h"

static ccmr_status make_none(const ccmr_kind *kind,
                             const ccmr_option_value *values,
                             ccmr_resource *const *upstreams, size_t count,
                             ccmr_resource **resource)
{
    (void)kind;
    (void)values;
    (void)upstreams;
    (void)count;
    (void)resource;
    return CCMR_ERROR_NOT_SUPPORTED;
}

static const ccmr_option bounded_options[] = {
    {"keep", CCMR_OPTION_BYTES, "0", NULL, "bytes kept"},
    {"hard", CCMR_OPTION_BYTES, "", NULL, "most bytes taken"},
    {NULL, CCMR_OPTION_TEXT, NULL, NULL, NULL},
};

static const ccmr_kind bounded = {.size = sizeof(bounded),
                                  .name = "bounded_thing",
                                  .help = "takes no more than it is told",
                                  .options = bounded_options,
                                  .max_upstreams = 1,
                                  .create = make_none};

static const ccmr_option worded_options[] = {
    {"hard", CCMR_OPTION_BOOLEAN, "no", NULL, "not a number of bytes"},
    {NULL, CCMR_OPTION_TEXT, NULL, NULL, NULL},
};

static const ccmr_kind worded = {.size = sizeof(worded),
                                 .name = "worded_thing",
                                 .help = "has another option of that name",
                                 .options = worded_options,
                                 .max_upstreams = 1,
                                 .create = make_none};

static void gives(const char *text, const char *wanted)
{
    char *made = NULL;

    if (budget_text(text, 4096, &made) != CCMR_SUCCESS) {
        tap_fail("%s: %s", text, ccmr_last_error()->message);
        return;
    }
    (void)tap_is_str(made, wanted, "%s", text);
    free(made);
}

static void refuses(const char *text, const char *reason)
{
    char *made = NULL;

    if (tap_is_int(budget_text(text, 4096, &made), CCMR_ERROR_INVALID_ARGUMENT,
                   "refused: %s", text)) {
        (void)tap_ok(strstr(ccmr_last_error()->message, reason) != NULL,
                     "because of %s: %s", reason, ccmr_last_error()->message);
    }
}

int main(void)
{
    (void)tap_is_int(ccmr_kind_register(&bounded), CCMR_SUCCESS, "a kind");
    (void)tap_is_int(ccmr_kind_register(&worded), CCMR_SUCCESS, "another");

    gives("a x={budget} | b y={budget}", "a x=4096 | b y=4096");
    gives("a { b | c } { limiting bytes={budget} | d }",
          "a { b | c } { limiting bytes=4096 | d }");

    gives("bounded_thing | device_plain",
          "bounded_thing  hard=4096 | device_plain");
    gives("bounded_thing keep=1KiB|device_plain",
          "bounded_thing keep=1KiB hard=4096 |device_plain");
    gives("bounded_thing | bounded_thing | device_pool",
          "bounded_thing | bounded_thing  hard=4096 | device_pool");
    gives("logging file=\"a | hard=1\" | bounded_thing",
          "logging file=\"a | hard=1\" | bounded_thing hard=4096 ");
    gives("worded_thing | device_plain",
          "worded_thing | limiting bytes=4096 |  device_plain");

    gives("device_pool", "device_pool own=yes maximum=4096 ");
    gives("a | device_pool device=1 own=yes",
          "a | device_pool device=1 own=yes maximum=4096 ");

    gives("device_plain", " limiting bytes=4096 | device_plain");
    gives("a|b\n|\nhost", "a|b\n| limiting bytes=4096 | \nhost");
    gives("logging file=\"x\\\" | {y}\" | host",
          "logging file=\"x\\\" | {y}\" | limiting bytes=4096 |  host");

    refuses("failover { a } { b }", "{budget}");
    refuses("bounded_thing hard=1GiB | device_plain", "hard={budget}");
    refuses("device_pool own=yes maximum=1GiB", "maximum={budget}");
    return tap_finish();
}
