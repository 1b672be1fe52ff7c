/* on_device.h: a case of the grid through kvk_cuda_prepare, _attention and _mass. */
#ifndef TESTS_ON_DEVICE_H
#define TESTS_ON_DEVICE_H

#include "attention/grid.h"

#include <kvkeep/cuda.h>

/* What a case becomes on the device. */
typedef struct device_case {
    const grid_case *c;
    kvk_kv kv;
    kvk_attention attention;
    kvk_attention_out out;
    const kvk_attention_out *host_out;
    kvk_cuda_plan plan;
    void *stream;     /* NULL: the default one */
    void *arrays[20]; /* of the device, to be freed */
    uint32_t n_arrays;
} device_case;

/* What is left open by a case. */
typedef struct device_options {
    uint32_t split_tokens, n_processors;
} device_options;

/* A plan with room for exactly this case. Its results are copies of what `out` holds. */
device_case *device_case_open(const grid_case *c, const kvk_attention_out *out, device_options options);
void device_case_close(device_case *d);

/* Takes workspace for the plan as it now is. */
void device_case_plan(device_case *d);

/* Prepares, attends and adds the masses: 0 or the first error. */
int device_case_run(device_case *d);

/* Copies the results back. */
void device_case_read(device_case *d);

/* All of it, as grid_version; ctx points to device_options. */
int attention_on_device(void *ctx, const grid_case *c, const kvk_attention_out *out);

/* Whether the kernels take a shape's types and sizes. */
int shape_is_for_device(const grid_shape *s);

/* What the kernels round weights to. */
grid_precision device_precision(const grid_shape *s);

#endif
