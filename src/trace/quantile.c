#include "trace/quantile.h"

#include <math.h>
#include <stdlib.h>

int quantile_add(quantile *q, memory *from, uint64_t value)
{
    if (value == 0) {
        q->zeroes++;
        return 0;
    }
    int rc = memory_grow(from, &q->values, &q->cap, (uint64_t)q->n + 1, sizeof *q->values);
    if (rc == 0)
        q->values[q->n++] = value;
    return rc;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

uint64_t quantile_at(quantile *q, double share)
{
    uint64_t rank = (uint64_t)ceil(share * (double)(q->zeroes + q->n));
    if (rank <= q->zeroes)
        return 0;
    qsort(q->values, q->n, sizeof *q->values, compare);
    return q->values[rank - q->zeroes - 1];
}

void quantile_close(quantile *q, memory *from)
{
    memory_give(from, q->values, q->cap * sizeof *q->values);
    *q = (quantile){.zeroes = 0};
}
