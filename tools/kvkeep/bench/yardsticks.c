#include "kvkeep/bench/yardsticks.h"

#include <stddef.h>
#include <stdlib.h>
#if KVK_HAVE_OPENBLAS
#include <cblas.h>
#endif

#define STREAM_BYTES 65536u

typedef uint64_t words __attribute__((vector_size(16)));

/* As many sums as registers hold beside what is loaded. */
uint64_t bench_read(const char *from, uint64_t bytes, const char *next)
{
    const words *in = (const words *)(const void *)from;
    words sums[8] = {{0}};
    for (uint64_t i = 0; i + 8 <= bytes / sizeof *in; i += 8) {
        if (next) {
            __builtin_prefetch(next + i * sizeof *in, 0, 2);
            __builtin_prefetch(next + i * sizeof *in + 64, 0, 2);
        }
        for (uint32_t k = 0; k < 8; k++)
            sums[k] ^= in[i + k];
    }
    for (uint32_t k = 1; k < 8; k++)
        sums[0] ^= sums[k];
    return sums[0][0] ^ sums[0][1];
}

double bench_read_stream(const char *from, uint64_t bytes)
{
    int64_t n = (int64_t)(bytes / STREAM_BYTES);
    double start = bench_now_ns();
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++) {
        uint64_t sum = bench_read(from + (uint64_t)i * STREAM_BYTES, STREAM_BYTES, NULL);
        __asm__ volatile("" : : "r"(sum) : "memory");
    }
    return (bench_now_ns() - start) / 1e9;
}

#if KVK_HAVE_OPENBLAS

#define SIDE ((uint64_t)BENCH_SGEMM)

float *bench_sgemm_open(void)
{
    float *matrices = calloc(3 * SIDE * SIDE, sizeof *matrices);
    for (uint64_t i = 0; matrices && i < 2 * SIDE * SIDE; i++)
        matrices[i] = (float)(i % 17) - 8;
    return matrices;
}

double bench_sgemm(float *matrices)
{
    float *a = matrices, *b = a + SIDE * SIDE, *c = b + SIDE * SIDE;
    int n = (int)SIDE;
    double start = bench_now_ns();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a, n, b, n, 0, c, n);
    return 2.0 * (double)(SIDE * SIDE * SIDE) / (bench_now_ns() - start);
}

#endif
