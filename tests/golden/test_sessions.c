/* Every number that an independent program counted in kv-cache-tester's sessions. */
#include "golden/golden.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

static uint32_t longest_input(const char *path)
{
    const char *paths[] = {path};
    trace *t;
    trace_error error;
    trace_request r;
    uint32_t longest = 0;
    ck_assert_msg(trace_open_files(paths, 1, &TRACE_OPTIONS_DEFAULT, &t, &error) == 0, "%s", error.text);
    while (trace_next(t, &r, &error) == 1)
        longest = r.n_input > longest ? r.n_input : longest;
    trace_close(t);
    return longest;
}

START_TEST(each_session_alone)
{
    json_t *all = golden_expected(), *row;
    const char *name;
    json_t *files = json_object_get(json_object_get(all, SESSIONS), "files");
    ck_assert_uint_gt(json_object_size(files), 0);
    json_object_foreach(files, name, row)
    {
        char file[256], path[4096];
        snprintf(file, sizeof file, SESSIONS "/%s", name);
        golden_path(file, path, sizeof path);
        replay_options options = REPLAY_OPTIONS_DEFAULT;
        replay_result r = golden_replay(file, &options);
        ck_assert_uint_eq(r.page_tokens, 64);
        ck_assert_uint_eq(r.requests, golden_count(row, "requests"));
        ck_assert_uint_eq(r.page_refs, golden_count(row, "block_refs"));
        ck_assert_uint_eq(r.unique_pages, golden_count(row, "unique"));
        ck_assert_uint_eq(r.page_hits, golden_count(row, "infinite_prefix_hits"));
        ck_assert_uint_eq(longest_input(path), golden_count(row, "max_input"));
    }
    json_decref(all);
}
END_TEST

/* Ids of different files are different blocks, so the sums stay the same. */
START_TEST(all_sessions_as_one_stream)
{
    json_t *all = golden_expected(), *row;
    const json_t *expected = json_object_get(all, SESSIONS);
    const char *name, *files[64];
    size_t n = 0;
    json_object_foreach(json_object_get(expected, "files"), name, row) files[n++] = name;
    replay_result r = golden_replay_all(SESSIONS, files, n, &REPLAY_OPTIONS_DEFAULT);
    ck_assert_uint_eq(r.requests, golden_count(expected, "total_requests"));
    ck_assert_uint_eq(r.page_refs, golden_count(expected, "total_refs"));
    ck_assert_uint_eq(r.page_hits, golden_count(expected, "total_hits"));
    ck_assert_uint_eq(r.unique_pages, r.page_refs - r.page_hits);
    json_decref(all);
}
END_TEST

/* An independent program was not asked about this one: what must hold is that an unlimited cache misses each content once. */
START_TEST(the_offline_sample)
{
    replay_result r = golden_replay("servegen/offline_trace_a.first93.jsonl", &REPLAY_OPTIONS_DEFAULT);
    ck_assert_uint_eq(r.requests, 93);
    ck_assert_uint_eq(r.page_tokens, 16);
    ck_assert_uint_eq(r.page_refs - r.page_hits, r.unique_pages);
}
END_TEST

int main(void)
{
    if (!golden_is_here())
        return 77;
    TCase *t = tcase_create("sessions");
    tcase_set_timeout(t, 300);
    tcase_add_test(t, each_session_alone);
    tcase_add_test(t, all_sessions_as_one_stream);
    tcase_add_test(t, the_offline_sample);
    Suite *s = suite_create("sessions");
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
