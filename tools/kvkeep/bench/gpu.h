/* bench/gpu.h: a step of some layers on a CUDA device: the work is prepared, each layer attends, masses are added. */
#ifndef KVKEEP_TOOLS_BENCH_GPU_H
#define KVKEEP_TOOLS_BENCH_GPU_H

#include "kvkeep/bench/batch.h"
#include "kvkeep/bench/bench.h"

typedef struct gpu_shape {
    attention_shape batch;
    kvk_dtype q_dtype; /* of q and o */
    uint32_t n_layers, split_tokens;
    int has_masses, has_near;
} gpu_shape;

typedef struct gpu_bench gpu_bench;

/* NULL without memory, or if the device refuses. */
gpu_bench *bench_gpu_open(const gpu_shape *shape);
void bench_gpu_close(gpu_bench *b);

/* Bytes of K and V that a step reads, without scales; tokens that it attends to; operations of its multiplications. */
double bench_gpu_bytes(const gpu_bench *b);
double bench_gpu_tokens(const gpu_bench *b);
double bench_gpu_operations(const gpu_bench *b);

/* Seconds of a step; NaN if the device failed. */
double bench_gpu_step(gpu_bench *b);

/* Seconds in which the device copies half of K and V onto the other half: as many bytes read and written as a step
 * reads. */
double bench_gpu_copy(gpu_bench *b);

/* Seconds of writing `tokens` new tokens of every layer from f32 rows. */
double bench_gpu_append(gpu_bench *b, uint32_t tokens);

/* Seconds of copying half of the pages onto the other half by kvk_cuda_moves, one group for all layers. */
double bench_gpu_moves(gpu_bench *b);

#endif
