#include "page/table.h"

uint32_t table_search(const table *t, uint32_t i)
{
    uint32_t low = 0, high = t->n, from_end = table_end(t) - i;
    if (from_end <= t->n && from_end > 0 && t->index[t->n - from_end] == i)
        return t->n - from_end;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (t->index[middle] < i)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
