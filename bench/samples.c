/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/samples.h"

#include <stdlib.h>
#include <string.h>

bool samples_reserve(samples *to, size_t more)
{
    uint64_t *larger;
    size_t bytes;
    size_t room;

    if (__builtin_add_overflow(to->count, more, &room) ||
        __builtin_mul_overflow(room, sizeof(*larger), &bytes)) {
        return false;
    }
    if (room <= to->room) {
        return true;
    }
    larger = realloc(to->values, bytes);
    if (larger == NULL) {
        return false;
    }
    /* The pages are there before anything is timed. */
    memset(larger + to->room, 0, (room - to->room) * sizeof(*larger));
    to->values = larger;
    to->room = room;
    return true;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* The nearest rank: 1 for the least value. */
static double percentile(const samples *of, unsigned percent)
{
    size_t rank = (of->count * percent + 99) / 100;

    return (double)of->values[rank > 0 ? rank - 1 : 0];
}

summary samples_summary(samples *of)
{
    summary says = {0};
    double sum = 0;

    says.count = of->count;
    if (of->count == 0) {
        return says;
    }
    qsort(of->values, of->count, sizeof(*of->values), by_value);
    for (size_t i = 0; i < of->count; i++) {
        sum += (double)of->values[i];
    }
    says.p50 = percentile(of, 50);
    says.p99 = percentile(of, 99);
    says.max = (double)of->values[of->count - 1];
    says.mean = sum / (double)of->count;
    return says;
}

void samples_free(samples *gone)
{
    free(gone->values);
    memset(gone, 0, sizeof(*gone));
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

double median_of(double *values, size_t count)
{
    if (count == 0) {
        return 0;
    }
    qsort(values, count, sizeof(*values), by_size);
    if (count % 2 == 1) {
        return values[count / 2];
    }
    return (values[count / 2 - 1] + values[count / 2]) / 2;
}
