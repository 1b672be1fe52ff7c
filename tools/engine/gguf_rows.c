/* gguf_rows.c: the numbers of tensors as floats. The blocks are ggml's (ggml-common.h says how each is laid out). */
#include "engine/gguf_file.h"

enum { BLOCK = 32, SUPER = 256 };

static void f32(const unsigned char *block, float *out)
{
    *out = float_of_bits(u32_at(block));
}

static void f16(const unsigned char *block, float *out)
{
    *out = half_at(block);
}

static void bf16(const unsigned char *block, float *out)
{
    *out = float_of_bits((uint32_t)u16_at(block) << 16);
}

static void q8_0(const unsigned char *block, float *out)
{
    float scale = half_at(block);
    for (uint32_t i = 0; i < BLOCK; i++)
        out[i] = (float)(int8_t)block[2 + i] * scale;
}

/* The low halves of 16 bytes are the first 16 numbers, the high ones the last. */
static uint32_t nibble(const unsigned char *nibbles, uint32_t i)
{
    return i < BLOCK / 2 ? nibbles[i] & 15u : (uint32_t)nibbles[i - BLOCK / 2] >> 4;
}

static void q4_0(const unsigned char *block, float *out)
{
    float scale = half_at(block);
    for (uint32_t i = 0; i < BLOCK; i++)
        out[i] = (float)((int32_t)nibble(block + 2, i) - 8) * scale;
}

static void q4_1(const unsigned char *block, float *out)
{
    float scale = half_at(block), least = half_at(block + 2);
    for (uint32_t i = 0; i < BLOCK; i++)
        out[i] = (float)nibble(block + 4, i) * scale + least;
}

/* Nibbles whose fifth bits stand in a word of their own. */
static uint32_t five_bits(uint32_t fifths, const unsigned char *nibbles, uint32_t i)
{
    return nibble(nibbles, i) | (fifths >> i & 1) << 4;
}

static void q5_0(const unsigned char *block, float *out)
{
    float scale = half_at(block);
    uint32_t fifths = u32_at(block + 2);
    for (uint32_t i = 0; i < BLOCK; i++)
        out[i] = (float)((int32_t)five_bits(fifths, block + 6, i) - 16) * scale;
}

static void q5_1(const unsigned char *block, float *out)
{
    float scale = half_at(block), least = half_at(block + 2);
    uint32_t fifths = u32_at(block + 4);
    for (uint32_t i = 0; i < BLOCK; i++)
        out[i] = (float)five_bits(fifths, block + 8, i) * scale + least;
}

/* ---- Blocks of 256 ---------------------------------------------------------------------------------------------- */

/* What a sub-block's numbers are multiplied by, and what is taken off them. */
typedef struct sub_scale {
    float scale, least;
} sub_scale;

/* Two halves scale 8 scales and 8 minima of 6 bits in 12 bytes. The first four of each are the low bits of a byte; of
 * the others, four bits are in the last bytes and two are the high bits of those of the first. */
static sub_scale sub_scale_at(const unsigned char *block, uint32_t j)
{
    const unsigned char *packed = block + 4;
    uint32_t scale, least;
    if (j < 4) {
        scale = packed[j] & 63u;
        least = packed[j + 4] & 63u;
    } else {
        scale = (packed[j + 4] & 15u) | (uint32_t)packed[j - 4] >> 6 << 4;
        least = (uint32_t)packed[j + 4] >> 4 | (uint32_t)packed[j] >> 6 << 4;
    }
    return (sub_scale){half_at(block) * (float)scale, half_at(block + 2) * (float)least};
}

/* 32 bytes hold two sub-blocks: the low nibbles are the first, the high ones the second. */
static void q4_k(const unsigned char *block, float *out)
{
    for (uint32_t j = 0; j < SUPER / 32; j++) {
        sub_scale s = sub_scale_at(block, j);
        const unsigned char *nibbles = block + 16 + j / 2 * 32;
        for (uint32_t i = 0; i < 32; i++)
            out[32 * j + i] = (float)(nibbles[i] >> 4 * (j & 1) & 15) * s.scale - s.least;
    }
}

/* As q4_k, with bit j of 32 more bytes as the fifth one of sub-block j. */
static void q5_k(const unsigned char *block, float *out)
{
    const unsigned char *fifths = block + 16;
    for (uint32_t j = 0; j < SUPER / 32; j++) {
        sub_scale s = sub_scale_at(block, j);
        const unsigned char *nibbles = block + 48 + j / 2 * 32;
        for (uint32_t i = 0; i < 32; i++)
            out[32 * j + i] = (float)((nibbles[i] >> 4 * (j & 1) & 15) | (fifths[i] >> j & 1) << 4) * s.scale - s.least;
    }
}

/* Two halves of 128 numbers, each of four rows of 32: 64 bytes hold the low nibbles of rows 0 and 1 and, as their high
 * ones, of rows 2 and 3; 32 bytes the two high bits, a row after the other from the lowest bit. 16 signed scales. */
static void q6_k(const unsigned char *block, float *out)
{
    const unsigned char *low = block, *high = block + 128, *scales = block + 192;
    float scale = half_at(block + 208);
    for (uint32_t i = 0; i < SUPER; i++) {
        uint32_t half = i / 128, row = i / 32 % 4, nibbles = low[64 * half + 32 * (row % 2) + i % 32];
        uint32_t bits = (nibbles >> row / 2 * 4 & 15) | (high[32 * half + i % 32] >> 2 * row & 3u) << 4;
        out[i] = (float)((int32_t)bits - 32) * ((float)(int8_t)scales[i / 16] * scale);
    }
}

const gguf_blocks *gguf_blocks_of(uint32_t type)
{
    static const gguf_blocks blocks[] = {
        [GGUF_F32] = {"F32", 1, 4, f32},          [GGUF_F16] = {"F16", 1, 2, f16},
        [GGUF_Q4_0] = {"Q4_0", BLOCK, 18, q4_0},  [GGUF_Q4_1] = {"Q4_1", BLOCK, 20, q4_1},
        [GGUF_Q5_0] = {"Q5_0", BLOCK, 22, q5_0},  [GGUF_Q5_1] = {"Q5_1", BLOCK, 24, q5_1},
        [GGUF_Q8_0] = {"Q8_0", BLOCK, 34, q8_0},  [GGUF_Q4_K] = {"Q4_K", SUPER, 144, q4_k},
        [GGUF_Q5_K] = {"Q5_K", SUPER, 176, q5_k}, [GGUF_Q6_K] = {"Q6_K", SUPER, 210, q6_k},
        [GGUF_BF16] = {"BF16", 1, 2, bf16},
    };
    return type < sizeof blocks / sizeof blocks[0] && blocks[type].name ? &blocks[type] : NULL;
}

int gguf_row(const gguf_tensor *t, uint64_t row, float *out)
{
    const gguf_blocks *b = gguf_blocks_of(t->type);
    if (!b || row >= t->dims[1] * t->dims[2] * t->dims[3])
        return TRACE_BAD_INPUT;
    uint64_t n = t->dims[0] / b->elements;
    const unsigned char *blocks = (const unsigned char *)t->data + row * n * b->bytes;
    for (uint64_t i = 0; i < n; i++)
        b->to_float(blocks + i * b->bytes, out + i * b->elements);
    return 0;
}
