/* trace/samples.h: a curve of bounded size out of any number of values: when it is full, every second point goes and
 * from then on only half as many are taken. */
#ifndef KVKEEP_TRACE_SAMPLES_H
#define KVKEEP_TRACE_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

enum { SAMPLES_MAX = 2048 };

typedef struct sample {
    double x, a, b;
} sample;

typedef struct samples {
    uint64_t seen, stride; /* of `seen` values every stride-th was kept; all zero is an empty curve */
    uint32_t n;
    sample points[SAMPLES_MAX];
} samples;

/* Counts one more value and says whether it is to be added. NULL wants none. */
bool samples_due(samples *s);

void samples_add(samples *s, sample value);

#endif
