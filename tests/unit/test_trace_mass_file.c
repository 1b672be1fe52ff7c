/* Masses in files: what is read from them, and one line for whatever is wrong with them. */
#define _GNU_SOURCE /* fmemopen, mkdtemp */
#include "run_tests.h"
#include "trace/mass_file.h"
#include "unit/mass_memory.h"

#include <check.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#define ABOUT(more) "{\"page_tokens\": 2, \"groups\": 1, \"heads\": 4, \"aggregation\": \"mean\"" more "}"

static int read_about(const char *text, mass_about *about, trace_error *error)
{
    char copy[512];
    snprintf(copy, sizeof copy, "%s", text);
    FILE *in = fmemopen(copy, strlen(copy), "r");
    ck_assert_ptr_nonnull(in);
    int rc = mass_about_read(about, in, "f.json", error);
    fclose(in);
    return rc;
}

static FILE *file_of(const uint64_t shape[3], const float *values)
{
    FILE *f = tmpfile();
    ck_assert_ptr_nonnull(f);
    write_npy(f, shape, values);
    rewind(f);
    return f;
}

/* Three queries over pages of 2 tokens: two in page 0, one in page 1. */
static const uint64_t three[3] = {3, 1, 2};
static const float good[] = {1, NAN, 1, NAN, 0.75F, 0.25F}, good_peaks[] = {1, NAN, 1, NAN, 0.5F, 1};

static int open_files(const float *masses, const float *peaks, const char *about_text, mass_trace **t,
                      trace_error *error)
{
    mass_about about;
    ck_assert_msg(read_about(about_text, &about, error) == 0, "%s", error->text);
    mass_files files = {"f.npy", "p.npy", file_of(three, masses), peaks ? file_of(three, peaks) : NULL};
    return mass_files_open(&files, &about, 0, t, error);
}

START_TEST(steps_are_read_in_order_and_again)
{
    mass_trace *t;
    mass_step step;
    trace_error error = {""};
    ck_assert_int_eq(open_files(good, good_peaks, ABOUT(""), &t, &error), 0);
    ck_assert_uint_eq(t->shape.pages, 2);
    ck_assert_uint_eq(t->shape.near_heads, 1);
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < 3; i++) {
            ck_assert_msg(mass_next(t, &step, &error) == 1, "%s", error.text);
            ck_assert_uint_eq(mass_position(t), i);
            ck_assert(step.mean[0] == good[2 * i] && step.peak[0] == good_peaks[2 * i]);
            ck_assert(step.near[0] == good_peaks[2 * i]); /* page 0 is the query's own, or the one before it */
        }
        ck_assert(step.mean[1] == 0.25F && step.near[1] == 1);
        ck_assert_int_eq(mass_next(t, &step, &error), 0);
        ck_assert_int_eq(mass_rewind(t, &error), 0);
    }
    mass_close(t);
}
END_TEST

/* A decode after a prompt of 3 tokens: its first query stands in page 1. */
START_TEST(the_first_query_may_stand_later)
{
    static const float masses[] = {0.5F, 0.5F, NAN, 0.25F, 0.25F, 0.5F};
    static const uint64_t shape[3] = {2, 1, 3};
    mass_about about;
    mass_trace *t;
    mass_step step;
    trace_error error = {""};
    ck_assert_int_eq(read_about(ABOUT(", \"first_query\": 3, \"peaks\": null"), &about, &error), 0);
    mass_files files = {"f.npy", NULL, file_of(shape, masses), NULL};
    ck_assert_msg(mass_files_open(&files, &about, 0, &t, &error) == 0, "%s", error.text);
    ck_assert_uint_eq(t->shape.pages, 3);
    ck_assert_int_eq(mass_next(t, &step, &error), 1);
    ck_assert_uint_eq(mass_position(t), 3);
    ck_assert_ptr_null(step.peak);
    ck_assert_ptr_null(step.near);
    ck_assert_int_eq(mass_next(t, &step, &error), 1);
    ck_assert_int_eq(mass_next(t, &step, &error), 0);
    mass_close(t);
}
END_TEST

/* Maxima over heads add up to more than 1, at most to the number of heads. */
START_TEST(maxima_may_add_up_to_the_heads)
{
    static const float much[] = {1, NAN, 1, NAN, 1, 1};
    mass_trace *t;
    mass_step step;
    trace_error error = {""};
    int rc;
    ck_assert_int_eq(open_files(much, NULL,
                                "{\"page_tokens\": 2, \"groups\": 1, \"heads\": 2, \"aggregation\": \"max\"}", &t,
                                &error),
                     0);
    while ((rc = mass_next(t, &step, &error)) == 1)
        ;
    ck_assert_msg(rc == 0, "%s", error.text);
    mass_close(t);
}
END_TEST

typedef struct bad_about {
    const char *text, *line;
} bad_about;

static const bad_about bad_abouts[] = {
    {"[]", "f.json: is no JSON object"},
    {"{", "f.json:1: not JSON at column 1: string or '}' expected near end of file"},
    {"{\"groups\": 1}", "f.json: field page_tokens: missing"},
    {"{\"page_tokens\": 0}", "f.json: field page_tokens: 0 is too small"},
    {"{\"page_tokens\": 65537}", "f.json: field page_tokens: 65537 is too large"},
    {"{\"page_tokens\": 16.5}", "f.json: field page_tokens: is not a whole number"},
    {"{\"page_tokens\": 16, \"groups\": -1}", "f.json: field groups: -1 is negative"},
    {"{\"page_tokens\": 16, \"groups\": 1025}", "f.json: field groups: 1025 is too large"},
    {"{\"page_tokens\": 16, \"groups\": 1, \"heads\": \"9\"}", "f.json: field heads: is not a whole number"},
    {"{\"page_tokens\": 16, \"groups\": 1, \"heads\": 9}",
     "f.json: field aggregation: is neither \"mean\" nor \"max\""},
    {ABOUT(", \"first_query\": 2147483647"), "f.json: field first_query: 2147483647 is too large"},
    {ABOUT(", \"peaks\": 3"), "f.json: field peaks: is not the name of a file beside it"},
    {ABOUT(", \"peaks\": \"\""), "f.json: field peaks: is not the name of a file beside it"},
    {ABOUT(", \"peaks\": \"../../etc/x.npy\""), "f.json: field peaks: is not the name of a file beside it"},
};

START_TEST(bad_json_is_named)
{
    mass_about about;
    trace_error error = {""};
    ck_assert_int_eq(read_about(bad_abouts[_i].text, &about, &error), TRACE_BAD_INPUT);
    ck_assert_str_eq(error.text, bad_abouts[_i].line);
}
END_TEST

typedef struct bad_shape {
    const char *dictionary, *line;
} bad_shape;

#define SHAPE(shape) "{'descr': '<f4', 'fortran_order': False, 'shape': " shape "}"

static const bad_shape bad_shapes[] = {
    {SHAPE("(2,)"), "f.npy: field shape: has 1 axes: [steps][groups][pages] is expected"},
    {SHAPE("(0, 1, 2)"), "f.npy: field shape: has no steps or no pages"},
    {SHAPE("(2, 1, 0)"), "f.npy: field shape: has no steps or no pages"},
    {SHAPE("(1, 2, 1)"), "f.npy: field shape: has 2 groups, the JSON file beside it says 1"},
    {SHAPE("(3, 1, 1)"), "f.npy: field shape: has 1 pages: 3 tokens have 2 of 2"},
};

START_TEST(a_bad_shape_is_named)
{
    char values[64] = "";
    mass_about about;
    mass_trace *t;
    trace_error error = {""};
    unsigned a, b, c;
    const char *shape = strstr(bad_shapes[_i].dictionary, ": (") + 2;
    size_t n = sscanf(shape, "(%u, %u, %u)", &a, &b, &c) == 3 ? (size_t)a * b * c : 2;
    ck_assert_int_eq(read_about(ABOUT(""), &about, &error), 0);
    mass_files files = {"f.npy", NULL, tmpfile(), NULL};
    ck_assert_ptr_nonnull(files.masses);
    write_npy_header(files.masses, bad_shapes[_i].dictionary);
    fwrite(values, 4, n, files.masses);
    rewind(files.masses);
    ck_assert_int_eq(mass_files_open(&files, &about, 0, &t, &error), TRACE_BAD_INPUT);
    ck_assert_str_eq(error.text, bad_shapes[_i].line);
    ck_assert_ptr_null(t);
}
END_TEST

typedef struct bad_values {
    float masses[6], peaks[6];
    const char *line;
} bad_values;

#define GOOD_PEAKS                                                                                                     \
    {                                                                                                                  \
        1, NAN, 1, NAN, 0.5F, 1                                                                                        \
    }

static const bad_values bad[] = {
    {{1, NAN, -0.5F, NAN, 1, 0}, GOOD_PEAKS, "f.npy: field [1][0][0]: is -0.5: a mass is from 0 to 1"},
    {{1, NAN, 1, NAN, 0, 1.5F}, GOOD_PEAKS, "f.npy: field [2][0][1]: is 1.5: a mass is from 0 to 1"},
    {{1, NAN, 1, NAN, 0, INFINITY}, GOOD_PEAKS, "f.npy: field [2][0][1]: is inf: a mass is from 0 to 1"},
    {{NAN, NAN, 1, NAN, 0, 1}, GOOD_PEAKS, "f.npy: field [0][0][0]: is nan: a mass is from 0 to 1"},
    {{1, 0, 1, NAN, 0, 1}, GOOD_PEAKS, "f.npy: field [0][0][1]: is 0: no page is there yet, so NaN is expected"},
    {{1, NAN, 1, NAN, 0.5F, 0.75F}, GOOD_PEAKS, "f.npy: field [2][0]: adds up to 1.25, more than 1"},
    {{1, NAN, 1, NAN, 0, 1}, {1, NAN, 1, NAN, 2, 1}, "p.npy: field [2][0][0]: is 2: a mass is from 0 to 1"},
    {{1, NAN, 1, NAN, 0, 1},
     {1, NAN, 1, 0.5F, 1, 1},
     "p.npy: field [1][0][1]: is 0.5: no page is there yet, so NaN is expected"},
};

START_TEST(a_bad_value_is_named)
{
    mass_trace *t;
    mass_step step;
    trace_error error = {""};
    int rc;
    ck_assert_int_eq(open_files(bad[_i].masses, bad[_i].peaks, ABOUT(""), &t, &error), 0);
    while ((rc = mass_next(t, &step, &error)) == 1)
        ;
    ck_assert_int_eq(rc, TRACE_BAD_INPUT);
    ck_assert_str_eq(error.text, bad[_i].line);
    mass_close(t);
}
END_TEST

START_TEST(peaks_of_another_shape_are_refused)
{
    static const uint64_t other[3] = {3, 1, 3};
    static const float nine[9] = {0};
    mass_about about;
    mass_trace *t;
    trace_error error = {""};
    ck_assert_int_eq(read_about(ABOUT(""), &about, &error), 0);
    mass_files files = {"f.npy", "p.npy", file_of(three, good), file_of(other, nine)};
    ck_assert_int_eq(mass_files_open(&files, &about, 0, &t, &error), TRACE_BAD_INPUT);
    ck_assert_str_eq(error.text, "p.npy: field shape: is not that of the masses");
}
END_TEST

START_TEST(a_step_beyond_the_memory_allowed_is_refused)
{
    mass_about about;
    mass_trace *t;
    trace_error error = {""};
    ck_assert_int_eq(read_about(ABOUT(""), &about, &error), 0);
    mass_files files = {"f.npy", NULL, file_of(three, good), NULL};
    ck_assert_int_eq(mass_files_open(&files, &about, 7, &t, &error), TRACE_FAILED);
    ck_assert_str_eq(error.text, "f.npy: field shape: a step of it is more than the memory allowed");
}
END_TEST

/* ---- By path ----------------------------------------------------------------------------------------------------- */

static void write_file(const char *name, const char *text, const float *values)
{
    FILE *f = fopen(name, "wb");
    ck_assert_ptr_nonnull(f);
    if (values)
        write_npy(f, three, values);
    else
        fputs(text, f);
    ck_assert_int_eq(fclose(f), 0);
}

static void refuses_path(const char *path, const char *line)
{
    mass_trace *t;
    trace_error error = {""};
    ck_assert_int_eq(mass_open(path, 0, &t, &error), TRACE_BAD_INPUT);
    ck_assert_str_eq(error.text, line);
}

START_TEST(files_lie_beside_each_other)
{
    char folder[] = "/tmp/kvkeep-mass-XXXXXX", path[64];
    mass_trace *t;
    mass_step step;
    trace_error error = {""};
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    refuses_path("m.txt", "m.txt: must be named FILE.npy, as FILE.json beside it says what it holds");
    refuses_path("-", "-: must be named FILE.npy, as FILE.json beside it says what it holds");
    refuses_path("m.npy", "m.json: cannot open: No such file or directory");
    write_file("m.json", ABOUT(", \"peaks\": \"p.npy\""), NULL);
    refuses_path("m.npy", "m.npy: cannot open: No such file or directory");
    write_file("m.npy", NULL, good);
    refuses_path("m.npy", "p.npy: cannot open: No such file or directory");
    write_file("p.npy", NULL, good_peaks);
    snprintf(path, sizeof path, "%s/m.npy", folder);
    ck_assert_msg(mass_open(path, 0, &t, &error) == 0, "%s", error.text);
    ck_assert_int_eq(mass_next(t, &step, &error), 1);
    ck_assert_ptr_nonnull(step.peak);
    mass_close(t);
    ck_assert_int_eq(unlink("m.json") | unlink("m.npy") | unlink("p.npy") | chdir("/") | rmdir(folder), 0);
}
END_TEST

#define COUNT(array) (int)(sizeof(array) / sizeof(array)[0])

int main(void)
{
    TCase *t = tcase_create("file");
    tcase_add_test(t, steps_are_read_in_order_and_again);
    tcase_add_test(t, the_first_query_may_stand_later);
    tcase_add_test(t, maxima_may_add_up_to_the_heads);
    tcase_add_loop_test(t, bad_json_is_named, 0, COUNT(bad_abouts));
    tcase_add_loop_test(t, a_bad_shape_is_named, 0, COUNT(bad_shapes));
    tcase_add_loop_test(t, a_bad_value_is_named, 0, COUNT(bad));
    tcase_add_test(t, peaks_of_another_shape_are_refused);
    tcase_add_test(t, a_step_beyond_the_memory_allowed_is_refused);
    tcase_add_test(t, files_lie_beside_each_other);
    return run_tests("trace_mass_file", t);
}
