/* NumPy's files: headers of all formats, types, and files that are not what they say. */
#include "run_tests.h"
#include "trace/npy.h"
#include "unit/mass_memory.h"

#include <check.h>
#include <math.h>
#include <string.h>

#define DICTIONARY(type, shape) "{'descr': '" type "', 'fortran_order': False, 'shape': " shape ", }"

/* A file in memory; `tail` are the bytes of the values. */
static FILE *file_of(const char *dictionary, const void *tail, size_t n)
{
    FILE *f = tmpfile();
    ck_assert_ptr_nonnull(f);
    write_npy_header(f, dictionary);
    ck_assert_uint_eq(fwrite(tail, 1, n, f), n);
    rewind(f);
    return f;
}

static void reads(const char *dictionary, const void *tail, size_t n_bytes, const float *want, size_t n)
{
    FILE *f = file_of(dictionary, tail, n_bytes);
    npy_reader npy;
    trace_error error = {""};
    float got[8];
    ck_assert_msg(npy_open(&npy, f, "f.npy", &error) == 0, "%s", error.text);
    for (int pass = 0; pass < 2; pass++) {
        ck_assert_int_eq(npy_read(&npy, got, n, &error), 0);
        for (size_t i = 0; i < n; i++)
            ck_assert_msg(isnan(want[i]) ? isnan(got[i]) : got[i] == want[i], "%zu: %g", i, (double)got[i]);
        ck_assert_int_eq(npy_rewind(&npy, &error), 0);
    }
    fclose(f);
}

/* IEEE 754: sign, exponent, fraction. */
START_TEST(floats_of_4_bytes)
{
    static const unsigned char bytes[] = {0, 0, 0x80, 0x3F, 0, 0, 0x20, 0xC0, 0, 0, 0xC0, 0x7F};
    static const float want[] = {1, -2.5F, NAN};
    reads(DICTIONARY("<f4", "(3,)"), bytes, sizeof bytes, want, 3);
    reads("{\"shape\":(1 ,3),\"fortran_order\":False,\"descr\":\"<f4\"}  \n", bytes, sizeof bytes, want, 3);
}
END_TEST

START_TEST(floats_of_8_bytes)
{
    static const unsigned char bytes[] = {0, 0, 0, 0, 0, 0, 0xF0, 0x3F, 0, 0, 0, 0, 0, 0, 4, 0xC0};
    static const float want[] = {1, -2.5F};
    reads(DICTIONARY("<f8", "(2,)"), bytes, sizeof bytes, want, 2);
}
END_TEST

/* 1; -2.5; the smallest above 0, 2^-24; 2^-14, the smallest normal one; 65504, the largest; infinity; NaN. */
START_TEST(floats_of_2_bytes)
{
    static const unsigned char bytes[] = {0, 0x3C, 0, 0xC1, 1, 0, 0, 4, 0xFF, 0x7B, 0, 0x7C, 0, 0x7E};
    static const float want[] = {1, -2.5F, 0x1p-24F, 0x1p-14F, 65504, INFINITY, NAN};
    reads(DICTIONARY("<f2", "(7,)"), bytes, sizeof bytes, want, 7);
}
END_TEST

START_TEST(formats_2_and_3_have_a_longer_length)
{
    for (char version = 2; version <= 3; version++) {
        const char *dictionary = DICTIONARY("<f4", "(1, 1)");
        FILE *f = tmpfile();
        ck_assert_ptr_nonnull(f);
        fprintf(f, "\x93NUMPY%c%c%c%c%c%c%s", version, 0, (int)strlen(dictionary), 0, 0, 0, dictionary);
        fwrite("\0\0\200\077", 1, 4, f);
        rewind(f);
        npy_reader npy;
        trace_error error;
        float value = 0;
        ck_assert_int_eq(npy_open(&npy, f, "f.npy", &error), 0);
        ck_assert_uint_eq(npy.n_axes, 2);
        ck_assert_int_eq(npy_read(&npy, &value, 1, &error), 0);
        ck_assert(value == 1);
        fclose(f);
    }
}
END_TEST

static void refuses(FILE *f, const char *line)
{
    npy_reader npy;
    trace_error error = {""};
    rewind(f);
    ck_assert_int_eq(npy_open(&npy, f, "f.npy", &error), TRACE_BAD_INPUT);
    ck_assert_str_eq(error.text, line);
    fclose(f);
}

typedef struct bad_header {
    const char *dictionary, *line;
} bad_header;

static const bad_header bad_headers[] = {
    {"", "f.npy: field header: is no dictionary as NumPy writes it near ''"},
    {"{", "f.npy: field header: is no dictionary as NumPy writes it near ''"},
    {"{'descr'", "f.npy: field header: is no dictionary as NumPy writes it near ''"},
    {"{descr: 1}", "f.npy: field header: is no dictionary as NumPy writes it near 'descr: 1}'"},
    {"{'descr': '<f4' 'x'", "f.npy: field header: is no dictionary as NumPy writes it near ''x''"},
    {"{}", "f.npy: field descr: missing"},
    {"{'descr': '<f4', 'shape': (1,)}", "f.npy: field fortran_order: missing"},
    {"{'descr': '<f4', 'fortran_order': False}", "f.npy: field shape: missing"},
    {"{'descr': '<f4', 'descr': '<f4'}", "f.npy: field descr: stands there twice"},
    {"{'color': 1}", "f.npy: field color: is not known"},
    {"{'descr': '>f4'}", "f.npy: field descr: '>f4' is none of <f2, <f4, <f8"},
    {"{'descr': '<i4'}", "f.npy: field descr: '<i4' is none of <f2, <f4, <f8"},
    {"{'descr': [('a', '<f4')]}", "f.npy: field descr: is no type of numbers near '[('a', '<f4')]}'"},
    {"{'fortran_order': True",
     "f.npy: field fortran_order: must be False: the last axis is to vary fastest near 'True'"},
    {"{'shape': 3", "f.npy: field shape: is no tuple of whole numbers near '3'"},
    {"{'shape': (3 4)", "f.npy: field shape: is no tuple of whole numbers near '4)'"},
    {"{'shape': (-3,)", "f.npy: field shape: is no tuple of whole numbers near '-3,)'"},
    {"{'shape': (", "f.npy: field shape: is no tuple of whole numbers near ''"},
    {"{'shape': (18446744073709551616,)", "f.npy: field shape: is too large near '6,)'"},
    {"{'shape': (1,1,1,1,1,1,1,1,1)", "f.npy: field shape: has too many axes near '1)'"},
    {DICTIONARY("<f4", "(1,)") " x", "f.npy: field header: goes on after its dictionary near 'x'"},
    {DICTIONARY("<f4", "(9223372036854775808, 4)"), "f.npy: field shape: is too large"},
    {DICTIONARY("<f4", "(4294967296, 1073741824)"), "f.npy: field shape: is too large"},
    {DICTIONARY("<f4", "(3,)"), "f.npy: field shape: asks for 12 bytes of values, the file has 8"},
    {DICTIONARY("<f4", "(1,)"), "f.npy: field shape: asks for 4 bytes of values, the file has 8"},
    {DICTIONARY("<f4", "(1, 0)"), "f.npy: field shape: asks for 0 bytes of values, the file has 8"},
};

START_TEST(a_bad_header_is_named)
{
    const bad_header *b = &bad_headers[_i];
    bool whole = strstr(b->dictionary, "shape': (") && strchr(b->dictionary, '}');
    refuses(file_of(b->dictionary, "12345678", whole ? 8 : 0), b->line);
}
END_TEST

static FILE *bytes(const char *text, size_t n)
{
    FILE *f = tmpfile();
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(text, 1, n, f), n);
    return f;
}

START_TEST(a_file_that_is_none_is_named)
{
    refuses(bytes("", 0), "f.npy: ends within its header");
    refuses(bytes("\x93NUMPY\1", 7), "f.npy: ends within its header");
    refuses(bytes("\x93NUMPY\1\0\5", 9), "f.npy: ends within its header");
    refuses(bytes("\x93NUMPY\1\0\5\0{}", 12), "f.npy: ends within its header");
    refuses(bytes("PK\3\4 an npz", 11), "f.npy: is no .npy file");
    refuses(bytes("\x93NUMPY\4\0\5\0{}   ", 15), "f.npy: field version: is 4: 1, 2 and 3 are known");
    refuses(bytes("\x93NUMPY\2\0\1\0\1\0{}", 14), "f.npy: field header: is longer than 65536 bytes");
    refuses(bytes("\x93NUMPY\1\0\5\0{}\0  ", 15), "f.npy: field header: holds a NUL byte");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("npy");
    tcase_add_test(t, floats_of_4_bytes);
    tcase_add_test(t, floats_of_8_bytes);
    tcase_add_test(t, floats_of_2_bytes);
    tcase_add_test(t, formats_2_and_3_have_a_longer_length);
    tcase_add_loop_test(t, a_bad_header_is_named, 0, (int)(sizeof bad_headers / sizeof bad_headers[0]));
    tcase_add_test(t, a_file_that_is_none_is_named);
    return run_tests("trace_mass_npy", t);
}
