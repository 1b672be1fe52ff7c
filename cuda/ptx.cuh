/* cuda/ptx.cuh: every operation that CUDA C++ has no words for, in PTX; and beside each, the same on a CPU, so that the
 * kernels run in tests where no GPU is (tests/emulated). Needs sm_80. */
#ifndef KVK_CUDA_PTX_CUH
#define KVK_CUDA_PTX_CUH

#include "attention/convert.h"

#include <cuda_runtime.h>

#ifndef __CUDACC__
#include <cmath>
#endif

#define KVK_DEVICE __device__ __forceinline__
#define ALL_LANES 0xffffffffu

/* The block's dynamic shared memory, aligned to 16 bytes. */
KVK_DEVICE unsigned char *shared_memory()
{
#ifdef __CUDACC__
    extern __shared__ uint4 dynamic[];
    return reinterpret_cast<unsigned char *>(dynamic);
#else
    return emulated_shared_memory();
#endif
}

KVK_DEVICE uint32_t shared_address(const void *in_shared)
{
#ifdef __CUDACC__
    return static_cast<uint32_t>(__cvta_generic_to_shared(in_shared));
#else
    (void)in_shared;
    return 0;
#endif
}

/* ---- Asynchronous copies to shared memory: BYTES of 4 or 16, zeroes unless valid -------------------------------- */

template <int BYTES> KVK_DEVICE void copy_async(void *to, const void *from, bool is_valid)
{
    static_assert(BYTES == 4 || BYTES == 16, "what the copies here are made of");
#ifdef __CUDACC__
    int bytes = is_valid ? BYTES : 0;
    if constexpr (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared_address(to)), "l"(from), "r"(bytes)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(shared_address(to)), "l"(from), "r"(bytes)
                     : "memory");
#else
    emulated_copy(to, from, BYTES, is_valid);
#endif
}

/* Ends a group of copies, which may be empty. */
KVK_DEVICE void copy_commit()
{
#ifdef __CUDACC__
    asm volatile("cp.async.commit_group;\n" ::: "memory");
#else
    emulated_copy_commit();
#endif
}

/* Waits for this thread's groups of copies, but not for the last GROUPS_LEFT. A barrier must follow before others'
 * copies are read. */
template <int GROUPS_LEFT> KVK_DEVICE void copy_wait()
{
#ifdef __CUDACC__
    asm volatile("cp.async.wait_group %0;\n" ::"n"(GROUPS_LEFT) : "memory");
#else
    emulated_copy_wait(GROUPS_LEFT);
#endif
}

/* ---- Matrices of 8 x 8 pairs of bytes in shared memory: row i of the first at what lane i brings, of the second at
 * what lane 8 + i brings. Lane l gets of each the pairs 2 * (l % 4) and the next of row l / 4; transposed, those of
 * column l / 4 in rows 2 * (l % 4) and the next. ------------------------------------------------------------------ */

#ifndef __CUDACC__
struct emulated_rows {
    const unsigned char *mine, *rows[16];

    static void run(void *const lanes[32])
    {
        for (int i = 0; i < 32; i++)
            for (int row = 0; row < 16; row++)
                static_cast<emulated_rows *>(lanes[i])->rows[row] = static_cast<emulated_rows *>(lanes[row])->mine;
    }
};

/* Each lane reads when it is its turn: that all come to this operation is no barrier for memory. */
inline uint32_t emulated_pairs(const emulated_rows &r, int matrix, bool is_transposed)
{
    uint32_t pairs = 0;
    int lane = static_cast<int>(threadIdx.x % 32);
    for (int i = 0; i < 2; i++) {
        int row = is_transposed ? 2 * (lane % 4) + i : lane / 4, column = is_transposed ? lane / 4 : 2 * (lane % 4) + i;
        uint16_t pair;
        std::memcpy(&pair, r.rows[matrix * 8 + row] + column * 2, 2);
        pairs |= static_cast<uint32_t>(pair) << (16 * i);
    }
    return pairs;
}

inline void emulated_load_matrices(uint32_t out[2], const void *row, bool is_transposed)
{
    emulated_rows r = {static_cast<const unsigned char *>(row), {}};
    emulated_together(emulated_rows::run, &r);
    out[0] = emulated_pairs(r, 0, is_transposed);
    out[1] = emulated_pairs(r, 1, is_transposed);
}
#endif

KVK_DEVICE void load_matrices(uint32_t out[2], const void *row)
{
#ifdef __CUDACC__
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];\n"
                 : "=r"(out[0]), "=r"(out[1])
                 : "r"(shared_address(row))
                 : "memory");
#else
    emulated_load_matrices(out, row, false);
#endif
}

KVK_DEVICE void load_matrices_transposed(uint32_t out[2], const void *row)
{
#ifdef __CUDACC__
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];\n"
                 : "=r"(out[0]), "=r"(out[1])
                 : "r"(shared_address(row))
                 : "memory");
#else
    emulated_load_matrices(out, row, true);
#endif
}

/* ---- c += a * b: a 16 x 16, b 16 x 8, c 16 x 8 in single precision. With row = lane / 4 and k = 2 * (lane % 4), a
 * lane holds a(row, k and k + 1), a(row + 8, same), a(row, k + 8 and k + 9), a(row + 8, same); b(k and k + 1, row),
 * b(k + 8 and k + 9, row); c(row, k and k + 1), c(row + 8, same). -------------------------------------------------- */

#ifndef __CUDACC__
struct emulated_product {
    const uint4 *a;
    uint32_t b[2];
    float *c;
};

template <float (*FLOAT_OF)(uint16_t)> struct emulated_mma {
    static float half(uint32_t pair, int i)
    {
        return FLOAT_OF(static_cast<uint16_t>(pair >> (16 * i)));
    }

    static void gather(void *const lanes[32], float a[16][16], float b[16][8])
    {
        for (int lane = 0; lane < 32; lane++) {
            const emulated_product *p = static_cast<emulated_product *>(lanes[lane]);
            const uint32_t pairs[4] = {p->a->x, p->a->y, p->a->z, p->a->w};
            int row = lane / 4, k = 2 * (lane % 4);
            for (int i = 0; i < 8; i++)
                a[row + i / 2 % 2 * 8][k + i / 4 * 8 + i % 2] = half(pairs[i / 2], i % 2);
            for (int i = 0; i < 4; i++)
                b[k + i / 2 * 8 + i % 2][row] = half(p->b[i / 2], i % 2);
        }
    }

    static void run(void *const lanes[32])
    {
        float a[16][16], b[16][8];
        gather(lanes, a, b);
        for (int row = 0; row < 16; row++) {
            float sum[8] = {};
            for (int k = 0; k < 16; k++)
                for (int column = 0; column < 8; column++)
                    sum[column] += a[row][k] * b[k][column];
            for (int column = 0; column < 8; column++) {
                int lane = row % 8 * 4 + column / 2;
                static_cast<emulated_product *>(lanes[lane])->c[row / 8 * 2 + column % 2] += sum[column];
            }
        }
    }
};
#endif

KVK_DEVICE void mma_f16(float c[4], const uint4 &a, uint32_t b0, uint32_t b1)
{
#ifdef __CUDACC__
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};\n"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
#else
    emulated_product p = {&a, {b0, b1}, c};
    emulated_together(emulated_mma<float_of_f16>::run, &p);
#endif
}

KVK_DEVICE void mma_bf16(float c[4], const uint4 &a, uint32_t b0, uint32_t b1)
{
#ifdef __CUDACC__
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};\n"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
#else
    emulated_product p = {&a, {b0, b1}, c};
    emulated_together(emulated_mma<float_of_bf16>::run, &p);
#endif
}

/* ---- Pairs of 16-bit floats in 32 bits, the first in the low half ------------------------------------------------ */

/* a * b + c in each half, rounded once. */
KVK_DEVICE uint32_t fma_f16x2(uint32_t a, uint32_t b, uint32_t c)
{
#ifdef __CUDACC__
    uint32_t d;
    asm("fma.rn.f16x2 %0, %1, %2, %3;\n" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
#else
    uint32_t d = 0;
    for (int i = 0; i < 32; i += 16) {
        float product = float_of_f16(static_cast<uint16_t>(a >> i)) * float_of_f16(static_cast<uint16_t>(b >> i));
        d |= static_cast<uint32_t>(f16_of_float(product + float_of_f16(static_cast<uint16_t>(c >> i)))) << i;
    }
    return d;
#endif
}

KVK_DEVICE uint32_t fma_bf16x2(uint32_t a, uint32_t b, uint32_t c)
{
#ifdef __CUDACC__
    uint32_t d;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;\n" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
#else
    uint32_t d = 0;
    for (int i = 0; i < 32; i += 16) {
        float product = float_of_bf16(static_cast<uint16_t>(a >> i)) * float_of_bf16(static_cast<uint16_t>(b >> i));
        d |= static_cast<uint32_t>(bf16_of_float(product + float_of_bf16(static_cast<uint16_t>(c >> i)))) << i;
    }
    return d;
#endif
}

KVK_DEVICE uint32_t pack_f16(float low, float high)
{
#ifdef __CUDACC__
    uint32_t d;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;\n" : "=r"(d) : "f"(high), "f"(low));
    return d;
#else
    return static_cast<uint32_t>(f16_of_float(high)) << 16 | f16_of_float(low);
#endif
}

KVK_DEVICE uint32_t pack_bf16(float low, float high)
{
#ifdef __CUDACC__
    uint32_t d;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n" : "=r"(d) : "f"(high), "f"(low));
    return d;
#else
    return static_cast<uint32_t>(bf16_of_float(high)) << 16 | bf16_of_float(low);
#endif
}

/* ---- Powers and logarithms of 2, within a few units in the last place; of -inf and 0 they are 0 and -inf --------- */

KVK_DEVICE float exp2_fast(float x)
{
#ifdef __CUDACC__
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
    return y;
#else
    return std::exp2(x);
#endif
}

KVK_DEVICE float log2_fast(float x)
{
#ifdef __CUDACC__
    float y;
    asm("lg2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
    return y;
#else
    return std::log2(x);
#endif
}

/* ---- Global memory that other blocks of the same launch have written: from L2, past this processor's own cache --- */

KVK_DEVICE float2 load_from_others(const float2 *at)
{
#ifdef __CUDACC__
    float2 pair;
    asm volatile("ld.global.cg.v2.f32 {%0, %1}, [%2];\n" : "=f"(pair.x), "=f"(pair.y) : "l"(at) : "memory");
    return pair;
#else
    return *at;
#endif
}

/* Four at once, at a multiple of 16 bytes. */
KVK_DEVICE void load_from_others(const float *at, float out[4])
{
#ifdef __CUDACC__
    asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];\n"
                 : "=f"(out[0]), "=f"(out[1]), "=f"(out[2]), "=f"(out[3])
                 : "l"(at)
                 : "memory");
#else
    std::memcpy(out, at, 16);
#endif
}

#endif
