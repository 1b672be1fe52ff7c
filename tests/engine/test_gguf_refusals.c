/* GGUF files that are not what they say: each is refused with one line that names what is wrong. */
#include "engine/gguf_walk.h"
#include "engine/gguf_writer.h"
#include "run_tests.h"

#include <stdio.h>

static gguf_out out;

static void start(void)
{
    out.n = 0;
}

/* The bytes end where their memory does, so that a sanitizer sees a read past them. */
static int open_exactly(const unsigned char *bytes, size_t n, gguf **g, trace_error *error)
{
    unsigned char *exact = malloc(n ? n : 1);
    ck_assert_ptr_nonnull(exact);
    memcpy(exact, bytes, n);
    int rc = gguf_open_bytes(exact, n, "m.gguf", g, error);
    if (rc == 0)
        ck_assert_int_ge(gguf_walk(*g), 0);
    if (rc == 0)
        gguf_close(*g);
    free(exact);
    return rc;
}

/* What was written so far must be refused, with this line. */
static void refused(const char *line)
{
    gguf *g = NULL;
    trace_error error = {""};
    ck_assert_int_eq(open_exactly(out.bytes, out.n, &g, &error), TRACE_BAD_INPUT);
    ck_assert_str_eq(error.text, line);
    ck_assert_ptr_null(g);
    out.n = 0;
}

static void accepted(void)
{
    gguf *g = NULL;
    trace_error error = {""};
    ck_assert_msg(open_exactly(out.bytes, out.n, &g, &error) == 0, "%s", error.text);
    out.n = 0;
}

START_TEST(heads)
{
    WRITE(&out, U4(0x46554748));
    refused("m.gguf: is no GGUF file");
    WRITE(&out, U4(0x46554747), U2(3));
    refused("m.gguf: header: the file ends within it, at byte 6");
    WRITE(&out, HEAD(1, 0, 0));
    refused("m.gguf: header: version 1 is not known, 2 and 3 are");
    WRITE(&out, HEAD(4, 0, 0));
    refused("m.gguf: header: version 4 is not known, 2 and 3 are");
    WRITE(&out, HEAD(0, 0, 0));
    refused("m.gguf: header: version 0 is not known, 2 and 3 are");
    WRITE(&out, HEAD(0x03000000, 0, 0));
    refused("m.gguf: header: the file is big-endian");
    WRITE(&out, HEAD(3, 0, 0));
    accepted();
}
END_TEST

START_TEST(counts)
{
    WRITE(&out, HEAD(3, 131073, 0));
    refused("m.gguf: header: 131073 tensors, more than 131072");
    WRITE(&out, HEAD(3, 0, 65537));
    refused("m.gguf: header: 65537 keys, more than 65536");
    WRITE(&out, HEAD(3, UINT64_MAX, 0));
    refused("m.gguf: header: 18446744073709551615 tensors, more than 131072");
    WRITE(&out, HEAD(3, 2, 0), LINE("a", 0, 1, 0), U4(0));
    refused("m.gguf: header: 2 tensors have no room in the 37 bytes after it");
    WRITE(&out, HEAD(3, 0, 2), KEY_U32("a", 1));
    refused("m.gguf: header: 2 keys have no room in the 17 bytes after it");
    WRITE(&out, HEAD(3, 1, 1), KEY_U32("a", 1), TEXT("b"), U4(1), U2(1), U1(0));
    refused("m.gguf: tensor b: the file ends within it, at byte 57");
}
END_TEST

START_TEST(keys)
{
    WRITE(&out, HEAD(3, 0, 1), U8(1ull << 40), U8(0));
    refused("m.gguf: key 1: the string at byte 24 has 1099511627776 bytes, more than 65535");
    WRITE(&out, HEAD(3, 0, 1), U8(65535), U8(0));
    refused("m.gguf: key 1: the file ends within it, at byte 40");
    WRITE(&out, HEAD(3, 0, 1), TEXT(""), U4(T_U32), U4(0));
    refused("m.gguf: key 1: has no name, before byte 32");
    WRITE(&out, HEAD(3, 0, 2), KEY_U32("a", 1), TEXT("bcd"), U4(T_U32), U2(0));
    refused("m.gguf: key bcd: the file ends within it, at byte 58");
    WRITE(&out, HEAD(3, 0, 1), TEXT("a"), U4(13), U8(0));
    refused("m.gguf: key a: value type 13 is not known, before byte 37");
    WRITE(&out, HEAD(3, 0, 3), KEY_U32("a", 1), KEY_U32("b", 1), KEY_U32("a", 2));
    refused("m.gguf: key a: stands there twice");
    WRITE(&out, HEAD(3, 0, 2), KEY_U32("a", 1), KEY_U32("aa", 1));
    accepted();
}
END_TEST

/* What is quoted neither adds a line nor sends a control character. */
START_TEST(names_of_strange_bytes)
{
    WRITE(&out, HEAD(3, 0, 2), KEY_U32("a\n\x1B[2J\xFF", 1), KEY_U32("a\n\x1B[2J\xFF", 1));
    refused("m.gguf: key a\\x0A\\x1B[2J\\xFF: stands there twice");
    char name[300], line[400];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    WRITE(&out, HEAD(3, 0, 1), TEXT(name), U4(99), U8(0));
    snprintf(line, sizeof line, "m.gguf: key %.128s: value type 99 is not known, before byte 335", name);
    refused(line);
}
END_TEST

START_TEST(strings)
{
    WRITE(&out, HEAD(3, 0, 1), TEXT("a"), U4(T_STRING), U8(16777217), U8(0));
    refused("m.gguf: key a: the string at byte 37 has 16777217 bytes, more than 16777216");
    WRITE(&out, HEAD(3, 0, 1), TEXT("a"), U4(T_STRING), U8(UINT64_MAX), U8(0));
    refused("m.gguf: key a: the string at byte 37 has 18446744073709551615 bytes, more than 16777216");
    WRITE(&out, HEAD(3, 0, 1), TEXT("a"), U4(T_STRING), U8(9), U8(0));
    refused("m.gguf: key a: the file ends within it, at byte 53");
    WRITE(&out, HEAD(3, 0, 1), TEXT("a"), ARRAY_OF(T_STRING, 2), TEXT("b"), U8(1ull << 32));
    refused("m.gguf: key a: the string at byte 58 has 4294967296 bytes, more than 16777216");
}
END_TEST

START_TEST(arrays)
{
    WRITE(&out, HEAD(3, 0, 1), TEXT("a"), ARRAY_OF(T_U32, 3), U8(0));
    refused("m.gguf: key a: an array of 3 values is larger than the 8 bytes that are left at byte 49");
    WRITE(&out, HEAD(3, 0, 1), TEXT("a"), ARRAY_OF(T_U64, 1ull << 61), U8(0)); /* times 8 is 0 */
    refused(
        "m.gguf: key a: an array of 2305843009213693952 values is larger than the 8 bytes that are left at byte 49");
    WRITE(&out, HEAD(3, 0, 1), TEXT("a"), ARRAY_OF(T_STRING, 3), TEXT("x"));
    refused("m.gguf: key a: an array of 3 values is larger than the 9 bytes that are left at byte 49");
    WRITE(&out, HEAD(3, 0, 1), TEXT("a"), ARRAY_OF(13, 0));
    refused("m.gguf: key a: value type 13 is not known, before byte 49");
    WRITE(&out, HEAD(3, 0, 1), TEXT("a"), ARRAY_OF(T_ARRAY, 1), U4(77), U8(0));
    refused("m.gguf: key a: value type 77 is not known, before byte 61");
}
END_TEST

START_TEST(arrays_of_arrays)
{
    for (int depth = 1; depth <= 5; depth++) {
        WRITE(&out, HEAD(3, 0, 1), TEXT("a"), U4(T_ARRAY));
        for (int i = 1; i < depth; i++)
            WRITE(&out, U4(T_ARRAY), U8(1));
        WRITE(&out, U4(T_U8), U8(1), U1(0));
        if (depth <= 4)
            accepted();
        else
            refused("m.gguf: key a: more than 4 arrays within each other, before byte 97");
    }
}
END_TEST

START_TEST(alignments)
{
    static const uint32_t bad[] = {0, 1, 4, 12, 33, 0xFFFFFFFF};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char line[128];
        WRITE(&out, HEAD(3, 0, 1), KEY_U32("general.alignment", bad[i]));
        snprintf(line, sizeof line, "m.gguf: key general.alignment: is %u, no power of 2 from 8 on", bad[i]);
        refused(line);
    }
    WRITE(&out, HEAD(3, 0, 1), TEXT("general.alignment"), U4(T_STRING), TEXT("32"));
    refused("m.gguf: key general.alignment: is no whole number");
    WRITE(&out, HEAD(3, 1, 1), KEY_U32("general.alignment", 0x80000000), LINE("a", 0, 1, 0), U4(0));
    refused("m.gguf: tensor a: 4 bytes at offset 0 run past the end of the file, at byte 94");
    WRITE(&out, HEAD(3, 1, 1), KEY_U32("general.alignment", 8), LINE("a", 0, 1, 8), PAD(8), U8(0), U4(0));
    accepted();
}
END_TEST

START_TEST(tensors_that_are_none)
{
    WRITE(&out, HEAD(3, 1, 0), LINE("", 0, 1, 0), U8(0));
    refused("m.gguf: tensor 1: has no name, before byte 32");
    WRITE(&out, HEAD(3, 1, 0), U8(65));
    gguf_write_zeroes(&out, 100);
    refused("m.gguf: tensor 1: the string at byte 24 has 65 bytes, more than 64");
    WRITE(&out, HEAD(3, 1, 0), TEXT("a"), U4(5), U8(1), U8(1), U8(1), U8(1), U8(1), U4(0), U8(0));
    refused("m.gguf: tensor a: has 5 dimensions, not 1 to 4, before byte 37");
    WRITE(&out, HEAD(3, 1, 0), TEXT("a"), U4(0), U4(0), U8(0), U8(0));
    refused("m.gguf: tensor a: has 0 dimensions, not 1 to 4, before byte 37");
    WRITE(&out, HEAD(3, 1, 0), TABLE("a", 0, 1, 0, 0));
    refused("m.gguf: tensor a: dimension 1 is 0, before byte 53");
    WRITE(&out, HEAD(3, 2, 0), LINE("b", 0, 1, 0), LINE("b", 0, 1, 32), PAD(32));
    gguf_write_zeroes(&out, 64);
    refused("m.gguf: tensor b: stands there twice");
}
END_TEST

START_TEST(sizes_of_tensors)
{
    WRITE(&out, HEAD(3, 1, 0), LINE("a", 2, 33, 0));
    refused("m.gguf: tensor a: rows of 33 numbers are no whole blocks of 32, which Q4_0 has");
    WRITE(&out, HEAD(3, 1, 0), TABLE("a", 14, 128, 2, 0));
    refused("m.gguf: tensor a: rows of 128 numbers are no whole blocks of 256, which Q6_K has");
    WRITE(&out, HEAD(3, 1, 0), TABLE("a", 0, 1ull << 32, 1ull << 30, 0)); /* times 4 is 0 */
    refused("m.gguf: tensor a: has too many numbers");
    WRITE(&out, HEAD(3, 1, 0), TABLE("a", 8, UINT64_MAX - 31, 1, 0));
    refused("m.gguf: tensor a: has too many numbers");
}
END_TEST

START_TEST(places_of_tensors)
{
    WRITE(&out, HEAD(3, 1, 0), LINE("a", 0, 8, 0), PAD(32));
    gguf_write_zeroes(&out, 31);
    refused("m.gguf: tensor a: 32 bytes at offset 0 run past the end of the file, at byte 95");
    WRITE(&out, HEAD(3, 1, 0), LINE("a", 0, 1, UINT64_MAX - 31), PAD(32), U4(0)); /* plus 64 is 32 */
    refused("m.gguf: tensor a: 4 bytes at offset 18446744073709551584 run past the end of the file, at byte 68");
    WRITE(&out, HEAD(3, 1, 0), LINE("a", 0, 1, 16), PAD(32));
    gguf_write_zeroes(&out, 64);
    refused("m.gguf: tensor a: offset 16 is no multiple of the alignment, 32");
    WRITE(&out, HEAD(3, 1, 0), LINE("a", 999, 1, 32), PAD(32));
    refused("m.gguf: tensor a: 0 bytes at offset 32 run past the end of the file, at byte 64");
}
END_TEST

START_TEST(tensors_that_overlap)
{
    WRITE(&out, HEAD(3, 2, 0), LINE("b", 0, 1, 32), LINE("a", 0, 9, 0), PAD(32));
    gguf_write_zeroes(&out, 64);
    refused("m.gguf: tensor b: offset 32 is within tensor a, 36 bytes at offset 0");
    WRITE(&out, HEAD(3, 2, 0), LINE("a", 0, 1, 0), LINE("b", 1, 1, 0), PAD(32));
    gguf_write_zeroes(&out, 64);
    refused("m.gguf: tensor a: offset 0 is within tensor b, 2 bytes at offset 0");
    WRITE(&out, HEAD(3, 2, 0), LINE("a", 0, 9, 0), LINE("odd", 999, 1, 32), PAD(32));
    gguf_write_zeroes(&out, 64);
    refused("m.gguf: tensor odd: offset 32 is within tensor a, 36 bytes at offset 0");
    WRITE(&out, HEAD(3, 2, 0), LINE("b", 0, 1, 32), LINE("a", 0, 8, 0), PAD(32));
    gguf_write_zeroes(&out, 64);
    accepted();
}
END_TEST

/* ---- A sound file, harmed --------------------------------------------------------------------------------------- */

static void assert_refusal_is_a_line(int rc, const trace_error *error, size_t at)
{
    ck_assert_msg(rc == TRACE_BAD_INPUT && gguf_error_is_a_line(rc, error), "at byte %zu: %d, %s", at, rc, error->text);
    ck_assert_int_eq(strncmp(error->text, "m.gguf: ", 8), 0);
}

START_TEST(cut_at_every_byte)
{
    gguf_write_sample(&out);
    for (size_t n = 0; n < out.n; n++) {
        gguf *g = NULL;
        trace_error error = {""};
        assert_refusal_is_a_line(open_exactly(out.bytes, n, &g, &error), &error, n);
    }
    accepted();
}
END_TEST

START_TEST(any_bit_changed)
{
    gguf_write_sample(&out);
    for (size_t i = 0; i < 8 * out.n; i++) {
        gguf *g = NULL;
        trace_error error = {""};
        out.bytes[i / 8] ^= (unsigned char)(1 << i % 8);
        int rc = open_exactly(out.bytes, out.n, &g, &error);
        if (rc < 0)
            assert_refusal_is_a_line(rc, &error, i / 8);
        out.bytes[i / 8] ^= (unsigned char)(1 << i % 8);
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("gguf_refusals");
    tcase_add_checked_fixture(t, start, NULL);
    tcase_add_test(t, heads);
    tcase_add_test(t, counts);
    tcase_add_test(t, keys);
    tcase_add_test(t, names_of_strange_bytes);
    tcase_add_test(t, strings);
    tcase_add_test(t, arrays);
    tcase_add_test(t, arrays_of_arrays);
    tcase_add_test(t, alignments);
    tcase_add_test(t, tensors_that_are_none);
    tcase_add_test(t, sizes_of_tensors);
    tcase_add_test(t, places_of_tensors);
    tcase_add_test(t, tensors_that_overlap);
    tcase_add_test(t, cut_at_every_byte);
    tcase_add_test(t, any_bit_changed);
    return run_tests("gguf_refusals", t);
}
