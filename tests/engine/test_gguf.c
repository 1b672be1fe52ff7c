/* What a GGUF file says is what is read out of it, by whichever type. */
#include "engine/gguf_walk.h"
#include "engine/gguf_writer.h"
#include "run_tests.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static gguf_out sample;
static gguf *g;
static trace_error error;

static void open_sample(void)
{
    error.text[0] = '\0';
    gguf_write_sample(&sample);
    ck_assert_msg(gguf_open_bytes(sample.bytes, sample.n, "m.gguf", &g, &error) == 0, "%s", error.text);
}

static void close_sample(void)
{
    gguf_close(g);
}

static void assert_line(int rc, const char *line)
{
    ck_assert_int_eq(rc, TRACE_BAD_INPUT);
    ck_assert_str_eq(error.text, line);
}

static void assert_text(gguf_text text, const char *want)
{
    ck_assert_uint_eq(text.n, strlen(want));
    ck_assert_int_eq(memcmp(text.at, want, text.n), 0);
}

START_TEST(whole_numbers_of_any_type)
{
    static const struct {
        const char *key;
        uint32_t want;
    } cases[] = {{"u8", 200}, {"u16", 60000}, {"u32", 4000000000}, {"u64", 7}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t value = 1;
        ck_assert_int_eq(gguf_u32(g, cases[i].key, &value, &error), 0);
        ck_assert_uint_eq(value, cases[i].want);
    }
}
END_TEST

START_TEST(whole_numbers_that_do_not_fit)
{
    static const char *const keys[] = {"i8", "i16", "i32", "i64", "large"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        uint32_t value = 77;
        char line[64];
        snprintf(line, sizeof line, "m.gguf: key %s: is not from 0 to 4294967295", keys[i]);
        assert_line(gguf_u32(g, keys[i], &value, &error), line);
        ck_assert_uint_eq(value, 77);
    }
}
END_TEST

START_TEST(floats_of_both_types)
{
    float value = 0;
    ck_assert_int_eq(gguf_f32(g, "f32", &value, &error), 0);
    ck_assert(value == -2.5F);
    ck_assert_int_eq(gguf_f32(g, "f64", &value, &error), 0);
    ck_assert(value == 1.5F);
    assert_line(gguf_f32(g, "infinite", &value, &error), "m.gguf: key infinite: is no finite number");
    assert_line(gguf_f32(g, "vast", &value, &error), "m.gguf: key vast: is no finite number");
    ck_assert(value == 1.5F);
}
END_TEST

START_TEST(truth_values)
{
    int value = 7;
    ck_assert_int_eq(gguf_bool(g, "yes", &value, &error), 0);
    ck_assert_int_eq(value, 1);
    ck_assert_int_eq(gguf_bool(g, "no", &value, &error), 0);
    ck_assert_int_eq(value, 0);
    assert_line(gguf_bool(g, "perhaps", &value, &error), "m.gguf: key perhaps: is 2, neither 0 nor 1");
}
END_TEST

START_TEST(strings)
{
    gguf_text text, *list;
    uint64_t n;
    ck_assert_int_eq(gguf_string(g, "text", &text, &error), 0);
    assert_text(text, "a\nb");
    ck_assert_int_eq(gguf_string(g, "nothing", &text, &error), 0);
    assert_text(text, "");
    ck_assert_int_eq(gguf_strings(g, "texts", &list, &n, &error), 0);
    ck_assert_uint_eq(n, 3);
    assert_text(list[0], "x");
    assert_text(list[1], "");
    assert_text(list[2], "yz");
    free(list);
    ck_assert_int_eq(gguf_strings(g, "none", &list, &n, &error), 0);
    ck_assert_uint_eq(n, 0);
    ck_assert_ptr_nonnull(list);
    free(list);
}
END_TEST

START_TEST(lists_of_numbers)
{
    int32_t *wholes;
    float *floats;
    uint64_t n;
    ck_assert_int_eq(gguf_i32s(g, "wholes", &wholes, &n, &error), 0);
    ck_assert_uint_eq(n, 3);
    ck_assert(wholes[0] == 1 && wholes[1] == -1 && wholes[2] == 300);
    free(wholes);
    assert_line(gguf_i32s(g, "wide", &wholes, &n, &error),
                "m.gguf: key wide: value 1 is not from -2147483648 to 2147483647");
    ck_assert_int_eq(gguf_f32s(g, "floats", &floats, &n, &error), 0);
    ck_assert_uint_eq(n, 2);
    ck_assert(floats[0] == 1 && floats[1] < -3.4e38F);
    free(floats);
    ck_assert_int_eq(gguf_f32s(g, "doubles", &floats, &n, &error), 0);
    ck_assert_uint_eq(n, 1);
    ck_assert(floats[0] == 2);
    free(floats);
}
END_TEST

/* Each getter on a key of each other kind. */
START_TEST(a_value_of_another_kind_is_named)
{
    uint32_t u;
    float f, *floats;
    int b;
    gguf_text text, *texts;
    int32_t *wholes;
    uint64_t n;
    assert_line(gguf_u32(g, "f32", &u, &error), "m.gguf: key f32: is no whole number");
    assert_line(gguf_u32(g, "wholes", &u, &error), "m.gguf: key wholes: is no whole number");
    assert_line(gguf_u32(g, "yes", &u, &error), "m.gguf: key yes: is no whole number");
    assert_line(gguf_f32(g, "u8", &f, &error), "m.gguf: key u8: is no float");
    assert_line(gguf_bool(g, "u8", &b, &error), "m.gguf: key u8: is no truth value");
    assert_line(gguf_string(g, "texts", &text, &error), "m.gguf: key texts: is no string");
    assert_line(gguf_strings(g, "text", &texts, &n, &error), "m.gguf: key text: is no array of strings");
    assert_line(gguf_strings(g, "nested", &texts, &n, &error), "m.gguf: key nested: is no array of strings");
    assert_line(gguf_i32s(g, "floats", &wholes, &n, &error), "m.gguf: key floats: is no array of whole numbers");
    assert_line(gguf_f32s(g, "wholes", &floats, &n, &error), "m.gguf: key wholes: is no array of floats");
}
END_TEST

START_TEST(a_key_that_is_not_there)
{
    uint32_t u;
    ck_assert(gguf_has(g, "u8") && gguf_has(g, "nested"));
    ck_assert(!gguf_has(g, "u") && !gguf_has(g, "u88") && !gguf_has(g, ""));
    assert_line(gguf_u32(g, "llama.block_count", &u, &error), "m.gguf: key llama.block_count: missing");
}
END_TEST

static void assert_row(const char *name, uint64_t row, const float *want, uint64_t n)
{
    const gguf_tensor *t;
    float got[64];
    ck_assert_int_eq(gguf_tensor_find(g, name, &t, &error), 0);
    ck_assert_uint_eq(t->dims[0], n);
    ck_assert_int_eq(gguf_row(t, row, got), 0);
    for (uint64_t i = 0; i < n; i++)
        ck_assert(got[i] == want[i]);
}

START_TEST(tensors)
{
    const gguf_tensor *t;
    ck_assert_int_eq(gguf_tensor_find(g, "table", &t, &error), 0);
    assert_text(t->name, "table");
    ck_assert(t->type == GGUF_F32 && t->n_dims == 2 && t->bytes == 24);
    ck_assert(t->dims[0] == 3 && t->dims[1] == 2 && t->dims[2] == 1 && t->dims[3] == 1);
    assert_row("table", 0, (const float[]){1, 2, 4}, 3);
    assert_row("table", 1, (const float[]){8, 16, 32}, 3);
    assert_row("halves", 0, (const float[]){1, -2}, 2);
    for (uint64_t row = 0; row < 4; row++)
        assert_row("deep", row, &(const float[]){1, 2, 3, -1}[row], 1);
    float quarters[64]; /* (0 - 8) / 2; (10 - 8) * 2 and (9 - 8) * 2 */
    for (int i = 0; i < 64; i++)
        quarters[i] = i < 32 ? -4 : i < 48 ? 4 : 2;
    assert_row("quarters", 0, quarters, 64);
}
END_TEST

START_TEST(no_such_tensor_or_row)
{
    const gguf_tensor *t = NULL;
    float row[4] = {77};
    assert_line(gguf_tensor_find(g, "tables", &t, &error), "m.gguf: tensor tables: missing");
    assert_line(gguf_tensor_find(g, "odd", &t, &error), "m.gguf: tensor odd: is of type 999, which is not known");
    ck_assert_ptr_null(t);
    ck_assert_int_eq(gguf_tensor_find(g, "deep", &t, &error), 0);
    ck_assert_int_eq(gguf_row(t, 4, row), TRACE_BAD_INPUT);
    ck_assert_int_eq(gguf_row(&(gguf_tensor){.type = 999, .dims = {1, 1, 1, 1}}, 0, row), TRACE_BAD_INPUT);
    ck_assert(row[0] == 77);
}
END_TEST

/* Not for i8, i16, i32, i64, large, infinite, vast, perhaps, wide, nested; nor for the tensor odd. */
START_TEST(everything_can_be_asked_for)
{
    ck_assert_int_eq(gguf_walk(g), 26 - 10 + 4);
}
END_TEST

/* A file of version 2 has the same layout. */
START_TEST(version_2)
{
    gguf *old;
    sample.bytes[4] = 2;
    ck_assert_int_eq(gguf_open_bytes(sample.bytes, sample.n, "m.gguf", &old, &error), 0);
    ck_assert(gguf_has(old, "u8"));
    gguf_close(old);
}
END_TEST

/* ---- From the disk ---------------------------------------------------------------------------------------------- */

static char path[64];

static void write_file(const void *bytes, size_t n)
{
    strcpy(path, "/tmp/kvkeep-gguf-XXXXXX");
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(write(file, bytes, n), (ssize_t)n);
    close(file);
}

START_TEST(a_file_is_mapped)
{
    gguf *mapped;
    uint32_t value = 0;
    write_file(sample.bytes, sample.n);
    ck_assert_int_eq(gguf_open(path, &mapped, &error), 0);
    unlink(path);
    ck_assert_str_eq(gguf_path(mapped), path);
    ck_assert_int_eq(gguf_u32(mapped, "u16", &value, &error), 0);
    ck_assert_uint_eq(value, 60000);
    gguf_close(mapped);
    gguf_close(NULL);
}
END_TEST

static void refuses(const char *line_after_path)
{
    gguf *none = NULL;
    char line[128];
    snprintf(line, sizeof line, "%s: %s", path, line_after_path);
    assert_line(gguf_open(path, &none, &error), line);
    ck_assert_ptr_null(none);
}

START_TEST(what_is_no_file_is_refused)
{
    write_file("", 0);
    refuses("header: the file ends within it, at byte 0");
    unlink(path);
    refuses("cannot open: No such file or directory");
    ck_assert_int_eq(mkdir(path, 0700), 0);
    refuses("is a directory");
    rmdir(path);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    refuses("is no regular file");
    unlink(path);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("gguf");
    tcase_add_checked_fixture(t, open_sample, close_sample);
    tcase_add_test(t, whole_numbers_of_any_type);
    tcase_add_test(t, whole_numbers_that_do_not_fit);
    tcase_add_test(t, floats_of_both_types);
    tcase_add_test(t, truth_values);
    tcase_add_test(t, strings);
    tcase_add_test(t, lists_of_numbers);
    tcase_add_test(t, a_value_of_another_kind_is_named);
    tcase_add_test(t, a_key_that_is_not_there);
    tcase_add_test(t, tensors);
    tcase_add_test(t, no_such_tensor_or_row);
    tcase_add_test(t, everything_can_be_asked_for);
    tcase_add_test(t, version_2);
    tcase_add_test(t, a_file_is_mapped);
    tcase_add_test(t, what_is_no_file_is_refused);
    return run_tests("gguf", t);
}
