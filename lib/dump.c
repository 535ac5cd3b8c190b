/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a stack holds, as lines: each resource's figures, then what it says of
 * its memory.
 */
#include <string.h>

#include "lib/error.h"
#include "lib/process.h"
#include "lib/resource_object.h"
#include "lib/text.h"
#include "lib/upstream.h"

static void add_figure(ccmr__text *line, const char *name, size_t bytes)
{
    if (bytes != CCMR_BYTES_UNKNOWN) {
        ccmr__text_add(line, " %s=%zu", name, bytes);
    }
}

static ccmr_status write_figures(ccmr_resource *resource, unsigned depth,
                                 ccmr_dump_write write, void *context)
{
    ccmr_stats stats = {.size = sizeof(stats)};
    ccmr_status status = ccmr_resource_stats(resource, &stats);
    char text[256];
    ccmr__text line;

    if (status != CCMR_SUCCESS) {
        return status;
    }
    ccmr__text_init(&line, text, sizeof(text));
    ccmr__text_add(&line, "resource %s depth=%u blocks=%llu", resource->name,
                   depth, (unsigned long long)stats.live_blocks);
    add_figure(&line, "live", stats.live_bytes);
    add_figure(&line, "reserved", stats.reserved_bytes);
    add_figure(&line, "pending", stats.pending_bytes);
    ccmr__text_add(&line, "\n");
    if (write(context, text, line.length) != 0) {
        return ccmr__fail(CCMR_ERROR_USER,
                          "ccmr_resource_dump: the callback ended it");
    }
    return CCMR_SUCCESS;
}

/* A resource, and after it what is under it. */
static ccmr_status dump_down(ccmr_resource *resource, unsigned depth,
                             ccmr_dump_write write, void *context)
{
    unsigned before = ccmr__thread_self()->failures;
    ccmr_resource *upstream;
    ccmr_status status;
    size_t i;

    if (depth > CCMR__STACK_MOST) {
        return ccmr__fail_depth(resource);
    }
    status = write_figures(resource, depth, write, context);
    if (status == CCMR_SUCCESS && resource->ops.dump != NULL) {
        status = resource->ops.dump(resource->self, write, context);
        if (status != CCMR_SUCCESS) {
            return ccmr__describe_failure(resource, status, 0, before);
        }
    }
    for (i = 0;
         status == CCMR_SUCCESS && resource->ops.upstream != NULL &&
         resource->ops.upstream(resource->self, i, &upstream) == CCMR_SUCCESS;
         i++) {
        status = dump_down(upstream, depth + 1, write, context);
    }
    return status;
}

ccmr_status ccmr_resource_dump(ccmr_resource *resource, ccmr_dump_write write,
                               void *context)
{
    ccmr_status status = ccmr__process_check();

    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (resource == NULL || write == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "ccmr_resource_dump: %s is NULL",
                          resource == NULL ? "resource" : "write");
    }
    return dump_down(resource, 0, write, context);
}
