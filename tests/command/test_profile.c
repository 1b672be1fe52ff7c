/* A model's profile: there and back, and files that are none. */
#include "kvkeep/profile.h"
#include "run_tests.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char path[] = "/tmp/kvkeep_profile_XXXXXX";

static void make_file(void)
{
    snprintf(path, sizeof path, "/tmp/kvkeep_profile_XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

static void remove_file(void)
{
    unlink(path);
}

static void write_file(const char *text, size_t n)
{
    FILE *f = fopen(path, "wb");
    ck_assert(f && fwrite(text, 1, n, f) == n && fclose(f) == 0);
}

static int read_text(const char *text, profile *p, trace_error *error)
{
    error->text[0] = '\0';
    write_file(text, strlen(text));
    return profile_read(path, p, error);
}

/* ---- There and back --------------------------------------------------------------------------------------------- */

static profile sample(void)
{
    char why[256];
    profile p = {.model = "a \"model\"\n", .layers = 30, .heads = 9, .near = {KVK_NEAR_ERROR, 2, {{29, 0}, {4, 8}}}};
    ck_assert_int_eq(kvk_policy_parse("keep:reserve=0.3:half_life=77.7", NULL, &p.choice, why, sizeof why), 0);
    return p;
}

START_TEST(what_is_written_reads_back)
{
    profile p = sample(), q;
    trace_error error;
    json_t *notes = json_pack("{s:s, s:i}", "note", "found by hand", "layers", 99);
    json_t *fields = profile_json(&p, notes);
    ck_assert_int_eq(json_dump_file(fields, path, 0), 0);
    ck_assert_msg(profile_read(path, &q, &error) == 0, "%s", error.text);
    ck_assert_str_eq(q.model, p.model);
    ck_assert_uint_eq(q.layers, 30); /* what a note says does not count */
    ck_assert_uint_eq(q.heads, 9);
    ck_assert_uint_eq(q.near.n, 2);
    ck_assert_mem_eq(q.near.chosen, p.near.chosen, 2 * sizeof(near_head));
    ck_assert_uint_eq(q.near.kind, KVK_NEAR_ERROR);
    ck_assert_mem_eq(q.choice.knobs, p.choice.knobs, p.choice.policy->n_knobs * sizeof(double));
    json_decref(fields);
    json_decref(notes);
}
END_TEST

START_TEST(the_profile_that_is_shipped_is_one)
{
    profile p;
    trace_error error;
    ck_assert_msg(profile_read(KVK_TESTS_DIR "/../tools/kvkeep/profiles/smollm2-135m-instruct.json", &p, &error) == 0,
                  "%s", error.text);
    ck_assert_uint_eq(p.layers, 30);
    ck_assert_uint_eq(p.heads, 9);
}
END_TEST

START_TEST(only_keep_without_knobs_is_the_profiles)
{
    char why[256];
    profile p = sample();
    kvk_policy_choice choice, changed;
    static const char *const others[] = {"keep:reserve=0.125", "keep-ema", "h2o"};
    ck_assert_int_eq(kvk_policy_parse("keep", NULL, &choice, why, sizeof why), 0);
    changed = profile_choice(&p, &choice);
    ck_assert_double_eq(changed.knobs[2], 77.7);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        ck_assert_int_eq(kvk_policy_parse(others[i], NULL, &choice, why, sizeof why), 0);
        changed = profile_choice(&p, &choice);
        ck_assert_ptr_eq(changed.policy, choice.policy);
        ck_assert_mem_eq(changed.knobs, choice.knobs, choice.policy->n_knobs * sizeof(double));
    }
}
END_TEST

START_TEST(a_model_of_another_shape_is_refused)
{
    trace_error error;
    profile p = sample();
    model_shape shape = {.n_layers = 30, .n_heads = 9};
    ck_assert_int_eq(profile_fits(&p, "p.json", &shape, &error), 0);
    shape.n_layers = 32;
    ck_assert_int_eq(profile_fits(&p, "p.json", &shape, &error), TRACE_BAD_INPUT);
    ck_assert_str_eq(error.text, "p.json: is of a model of 30 layers and 9 heads, not of 32 and 9");
}
END_TEST

/* ---- What is none ----------------------------------------------------------------------------------------------- */

#define GOOD                                                                                                           \
    "\"format\": \"kvkeep-profile\", \"version\": 1, \"model\": \"m\", \"layers\": 30, \"heads\": 9, "                 \
    "\"near_heads\": [[4, 6]], \"near_kind\": \"error\", \"policy\": \"keep\""

typedef struct hostile {
    const char *text, *says; /* behind the file's name */
} hostile;

#define HEADS(list)                                                                                                    \
    "{\"format\": \"kvkeep-profile\", \"version\": 1, \"model\": \"m\", \"layers\": 30, \"heads\": 9, "                \
    "\"near_kind\": \"mass\", \"near_heads\": " list "}"

static const hostile hostiles[] = {
    {"", ":1: is no JSON"},
    {"{", ":1: is no JSON"},
    {"\n\n{\"format\": \xff}", ":3: is no JSON"},
    {"[]", ": is no JSON object"},
    {"{}", ": field format: is missing"},
    {"{\"format\": 1}", ": field format: is no text"},
    {"{\"format\": \"x\"}", ": field format: 'x' is not 'kvkeep-profile'"},
    {"{\"format\": \"x\", \"format\": \"y\"}", ":1: is no JSON"},
    {"{\"format\": \"kvkeep-profile\", \"version\": 2}", ": field version: 2 is not known, only 1"},
    {"{\"format\": \"kvkeep-profile\", \"version\": 1.0}", ": field version: is no whole number"},
    {"{\"format\": \"kvkeep-profile\", \"version\": 1}", ": field model: is missing"},
    {"{\"format\": \"kvkeep-profile\", \"version\": 1, \"model\": \"m\", \"layers\": -1}",
     ": field layers: -1 is not within 0 to 1024"},
    {"{\"format\": \"kvkeep-profile\", \"version\": 1, \"model\": \"m\", \"layers\": 9223372036854775807}",
     ": field layers: 9223372036854775807 is not within 0 to 1024"},
    {"{\"format\": \"kvkeep-profile\", \"version\": 1, \"model\": \"m\", \"layers\": 30, \"heads\": 9, "
     "\"near_kind\": \"x\"}",
     ": field near_kind: 'x' is neither mass nor error"},
    {"{\"format\": \"kvkeep-profile\", \"version\": 1, \"model\": \"m\", \"layers\": 30, \"heads\": 9, "
     "\"near_kind\": \"mass\", \"near_heads\": 4}",
     ": field near_heads: is no list of 1 to 64 heads"},
    {HEADS("[]"), ": field near_heads: is no list of 1 to 64 heads"},
    {HEADS("[4]"), ": field near_heads: is no list of pairs of whole numbers"},
    {HEADS("[[4, 6, 1]]"), ": field near_heads: is no list of pairs of whole numbers"},
    {HEADS("[[4, 6.0]]"), ": field near_heads: is no list of pairs of whole numbers"},
    {HEADS("[[4, 8], [30, 0]]"), ": field near_heads: [30, 0] is not in a model of 30 layers and 9 heads"},
    {HEADS("[[4, 9]]"), ": field near_heads: [4, 9] is not in a model of 30 layers and 9 heads"},
    {HEADS("[[-1, 0]]"), ": field near_heads: [-1, 0] is not in a model of 30 layers and 9 heads"},
    {HEADS("[[4, 6], [4, 7], [4, 6]]"), ": field near_heads: [4, 6] is there twice"},
    {"{\"format\": \"kvkeep-profile\", \"version\": 1, \"model\": \"m\", \"layers\": 30, \"heads\": 9, "
     "\"near_kind\": \"mass\", \"near_heads\": [[0, 0]], \"policy\": \"h2o\"}",
     ": field policy: is h2o, not keep"},
};

START_TEST(what_is_no_profile_is_refused_in_one_line)
{
    const hostile *h = &hostiles[_i];
    profile p = {.layers = 7};
    trace_error error;
    ck_assert_int_eq(read_text(h->text, &p, &error), TRACE_BAD_INPUT);
    ck_assert(strncmp(error.text, path, strlen(path)) == 0);
    ck_assert_str_eq(error.text + strlen(path), h->says);
    ck_assert_uint_eq(p.layers, 7); /* left alone */
}
END_TEST

/* Every beginning of a profile is none, and every changed byte gives one or a refusal. */
START_TEST(cut_and_changed_files)
{
    static const char good[] = "{" GOOD "}";
    char text[sizeof good];
    profile p;
    trace_error error;
    ck_assert_msg(read_text(good, &p, &error) == 0, "%s", error.text);
    for (size_t n = 0; n + 1 < sizeof good; n++) {
        write_file(good, n);
        ck_assert_int_eq(profile_read(path, &p, &error), TRACE_BAD_INPUT);
    }
    for (size_t i = 0; i + 1 < sizeof good; i++) {
        memcpy(text, good, sizeof good);
        text[i] = (char)(text[i] ^ (1 << i % 8));
        write_file(text, sizeof good - 1);
        error.text[0] = '\0';
        if (profile_read(path, &p, &error) < 0)
            ck_assert(error.text[0] && !strchr(error.text, '\n'));
        else
            ck_assert_str_eq(p.choice.policy->name, "keep");
    }
}
END_TEST

START_TEST(files_that_cannot_be_read)
{
    profile p;
    trace_error error;
    ck_assert_int_eq(profile_read("/nowhere/p.json", &p, &error), TRACE_BAD_INPUT);
    ck_assert(strncmp(error.text, "/nowhere/p.json: ", 17) == 0);
    ck_assert_int_lt(profile_read("/", &p, &error), 0);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("profile");
    tcase_add_checked_fixture(t, make_file, remove_file);
    tcase_add_test(t, what_is_written_reads_back);
    tcase_add_test(t, the_profile_that_is_shipped_is_one);
    tcase_add_test(t, only_keep_without_knobs_is_the_profiles);
    tcase_add_test(t, a_model_of_another_shape_is_refused);
    tcase_add_loop_test(t, what_is_no_profile_is_refused_in_one_line, 0, sizeof hostiles / sizeof hostiles[0]);
    tcase_add_test(t, cut_and_changed_files);
    tcase_add_test(t, files_that_cannot_be_read);
    return run_tests("profile", t);
}
