/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/random.h"

#include <math.h>

uint64_t random_log_uniform(uint64_t *state, uint64_t least, uint64_t most)
{
    double low = log2((double)least);
    double high = log2((double)most);
    double unit = (double)(random_next(state) >> 11) * 0x1p-53;
    double value = exp2(low + unit * (high - low));

    if (value <= (double)least) {
        return least;
    }
    return value >= (double)most ? most : (uint64_t)value;
}
