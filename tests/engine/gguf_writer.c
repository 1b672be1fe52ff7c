#include "engine/gguf_writer.h"

#include <check.h>
#include <string.h>

static void put(gguf_out *out, const void *bytes, size_t n)
{
    ck_assert_uint_le(n, sizeof out->bytes - out->n);
    memcpy(out->bytes + out->n, bytes, n);
    out->n += n;
}

static void put_number(gguf_out *out, uint64_t value, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        put(out, &(unsigned char){(unsigned char)(value >> 8 * i)}, 1);
}

void gguf_write_zeroes(gguf_out *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put_number(out, 0, 1);
}

void gguf_write(gguf_out *out, const gguf_piece *pieces)
{
    for (const gguf_piece *p = pieces; p->bytes || p->text || p->align; p++) {
        put_number(out, p->value, p->bytes);
        if (p->text) {
            put_number(out, strlen(p->text), 8);
            put(out, p->text, strlen(p->text));
        }
        while (p->align && out->n % p->align != 0)
            put_number(out, 0, 1);
    }
}

static void write_keys(gguf_out *out)
{
    WRITE(out, TEXT("u8"), U4(T_U8), U1(200), TEXT("i8"), U4(T_I8), U1(-2), TEXT("u16"), U4(T_U16), U2(60000),
          TEXT("i16"), U4(T_I16), U2(-3), TEXT("u32"), U4(T_U32), U4(4000000000), TEXT("i32"), U4(T_I32), U4(-4),
          TEXT("u64"), U4(T_U64), U8(7), TEXT("i64"), U4(T_I64), U8(-5), TEXT("large"), U4(T_U64), U8(1ull << 63));
    WRITE(out, TEXT("f32"), U4(T_F32), U4(0xC0200000), TEXT("f64"), U4(T_F64), U8(0x3FF8000000000000), TEXT("infinite"),
          U4(T_F32), U4(0x7F800000), TEXT("vast"), U4(T_F64), U8(0x7FE0000000000000));
    WRITE(out, TEXT("yes"), U4(T_BOOL), U1(1), TEXT("no"), U4(T_BOOL), U1(0), TEXT("perhaps"), U4(T_BOOL), U1(2),
          TEXT("text"), U4(T_STRING), TEXT("a\nb"), TEXT("nothing"), U4(T_STRING), TEXT(""));
    WRITE(out, TEXT("texts"), ARRAY_OF(T_STRING, 3), TEXT("x"), TEXT(""), TEXT("yz"), TEXT("none"),
          ARRAY_OF(T_STRING, 0), TEXT("wholes"), ARRAY_OF(T_I16, 3), U2(1), U2(-1), U2(300), TEXT("wide"),
          ARRAY_OF(T_U32, 2), U4(1), U4(0x80000000), TEXT("floats"), ARRAY_OF(T_F32, 2), U4(0x3F800000), U4(0xFF800000),
          TEXT("doubles"), ARRAY_OF(T_F64, 1), U8(0x4000000000000000));
    WRITE(out, TEXT("nested"), ARRAY_OF(T_ARRAY, 2), U4(T_U8), U8(2), U1(1), U1(2), U4(T_STRING), U8(1), TEXT("in"),
          KEY_U32("general.alignment", 16));
}

enum { SAMPLE_KEYS = 26 };

void gguf_write_sample(gguf_out *out)
{
    out->n = 0;
    WRITE(out, HEAD(3, 5, SAMPLE_KEYS));
    write_keys(out);
    /* Not in the order of their places. */
    WRITE(out, TABLE("table", 0, 3, 2, 16), LINE("halves", 1, 2, 0), LINE("quarters", 2, 64, 48),
          LINE("odd", 999, 7, 48), TEXT("deep"), U4(4), U8(1), U8(2), U8(1), U8(2), U4(30), U8(96), PAD(16));
    WRITE(out, U2(0x3C00), U2(0xC000), PAD(16)); /* 1, -2 */
    for (uint32_t i = 0; i < 6; i++)
        WRITE(out, U4(0x3F800000 + 0x800000 * i)); /* 1, 2, 4, .. 32 */
    WRITE(out, PAD(16), U2(0x3800));               /* 0.5, then nibbles */
    gguf_write_zeroes(out, 16);
    WRITE(out, U2(0x4000)); /* 2 */
    for (uint32_t i = 0; i < 16; i++)
        WRITE(out, U1(0x9A));
    WRITE(out, PAD(16), U2(0x3F80), U2(0x4000), U2(0x4040), U2(0xBF80)); /* 1, 2, 3, -1 */
}
