/* cuda/element.cuh: stored K and V as what a matrix unit multiplies: pairs of f16 or bf16 in 32 bits.
 *
 * 32 bits of a row hold `elements` of them, and give elements / 2 pairs: pair i is made of element i and element i +
 * elements / 2. In 32 bits that hold 16 bits of one token and then those of another, the halves of a pair are so the
 * same dimension of both. No conversion needs more than bit operations and one multiplication, which is exact. */
#ifndef KVK_CUDA_ELEMENT_CUH
#define KVK_CUDA_ELEMENT_CUH

#include "cuda/ptx.cuh"

/* What queries, weights and converted K and V are computed with. */
struct f16_math {
    static constexpr uint32_t dtype = KVK_F16;

    KVK_DEVICE static void mma(float c[4], const uint4 &a, uint32_t b0, uint32_t b1)
    {
        mma_f16(c, a, b0, b1);
    }
    KVK_DEVICE static uint32_t pack(float low, float high)
    {
        return pack_f16(low, high);
    }
    KVK_DEVICE static uint32_t multiply(uint32_t a, uint32_t b)
    {
        return fma_f16x2(a, b, 0x80008000u); /* -0 */
    }
    KVK_DEVICE static uint32_t of_e4m3(uint32_t bytes) /* exponents differ by 8 */
    {
        return multiply((bytes & 0x00800080u) << 8 | (bytes & 0x007f007fu) << 7, 0x5c005c00u);
    }
    KVK_DEVICE static uint32_t of_i8(uint32_t bytes) /* 1024 + x + 128, minus 1152 */
    {
        return fma_f16x2((bytes ^ 0x00800080u) | 0x64006400u, 0x3c003c00u, 0xe480e480u);
    }
    KVK_DEVICE static uint32_t of_i4(uint32_t nibbles) /* 1024 + x + 8, minus 1032 */
    {
        return fma_f16x2(nibbles | 0x64006400u, 0x3c003c00u, 0xe408e408u);
    }
};

struct bf16_math {
    static constexpr uint32_t dtype = KVK_BF16;

    KVK_DEVICE static void mma(float c[4], const uint4 &a, uint32_t b0, uint32_t b1)
    {
        mma_bf16(c, a, b0, b1);
    }
    KVK_DEVICE static uint32_t pack(float low, float high)
    {
        return pack_bf16(low, high);
    }
    KVK_DEVICE static uint32_t multiply(uint32_t a, uint32_t b)
    {
        return fma_bf16x2(a, b, 0x80008000u);
    }
    KVK_DEVICE static uint32_t of_e4m3(uint32_t bytes) /* exponents differ by 120 */
    {
        return multiply((bytes & 0x00800080u) << 8 | (bytes & 0x007f007fu) << 4, 0x7b807b80u);
    }
    /* x + 128 has 8 bits, one too many: 128 + the low 7, minus 128 or 256 as the highest is set or not */
    KVK_DEVICE static uint32_t of_i8(uint32_t bytes)
    {
        uint32_t shifted = bytes ^ 0x00800080u;
        return fma_bf16x2((shifted & 0x007f007fu) | 0x43004300u, 0x3f803f80u, (shifted & 0x00800080u) ^ 0xc380c380u);
    }
    KVK_DEVICE static uint32_t of_i4(uint32_t nibbles) /* 128 + x + 8, minus 136 */
    {
        return fma_bf16x2(nibbles | 0x43004300u, 0x3f803f80u, 0xc308c308u);
    }
};

/* How K and V are stored. */
template <class M> struct plain_kv {
    static constexpr int elements = 2;
    static constexpr bool has_scales = false;
    static constexpr uint32_t dtype = M::dtype;

    KVK_DEVICE static void unpack(uint32_t word, uint32_t pairs[1])
    {
        pairs[0] = word;
    }
};

template <class M> struct e4m3_kv {
    static constexpr int elements = 4;
    static constexpr bool has_scales = false;
    static constexpr uint32_t dtype = KVK_F8_E4M3;

    KVK_DEVICE static void unpack(uint32_t word, uint32_t pairs[2])
    {
        pairs[0] = M::of_e4m3(word & 0x00ff00ffu);
        pairs[1] = M::of_e4m3(word >> 8 & 0x00ff00ffu);
    }
};

template <class M> struct i8_kv {
    static constexpr int elements = 4;
    static constexpr bool has_scales = true;
    static constexpr uint32_t dtype = KVK_I8;

    KVK_DEVICE static void unpack(uint32_t word, uint32_t pairs[2])
    {
        pairs[0] = M::of_i8(word & 0x00ff00ffu);
        pairs[1] = M::of_i8(word >> 8 & 0x00ff00ffu);
    }
};

template <class M> struct i4_kv {
    static constexpr int elements = 8;
    static constexpr bool has_scales = true;
    static constexpr uint32_t dtype = KVK_I4;

    KVK_DEVICE static void unpack(uint32_t word, uint32_t pairs[4])
    {
#pragma unroll
        for (int i = 0; i < 4; i++)
            pairs[i] = M::of_i4(word >> (4 * i) & 0x000f000fu);
    }
};

#endif
