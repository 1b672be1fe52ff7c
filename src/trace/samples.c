#include "trace/samples.h"

#include <stddef.h>

static void halve(samples *s)
{
    for (uint32_t i = 0; i < SAMPLES_MAX / 2; i++)
        s->points[i] = s->points[2 * i];
    s->n = SAMPLES_MAX / 2;
    s->stride *= 2;
}

bool samples_due(samples *s)
{
    if (!s)
        return false;
    if (s->stride == 0)
        s->stride = 1;
    if (s->n == SAMPLES_MAX)
        halve(s);
    return s->seen++ % s->stride == 0;
}

void samples_add(samples *s, sample value)
{
    s->points[s->n++] = value;
}
