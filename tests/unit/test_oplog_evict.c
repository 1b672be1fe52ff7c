/* The op log's calls of eviction: bad logs, results, what is recorded. */
#include "api.h"
#include "oplog_text.h"

#include <kvkeep/eviction.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HEAD "{\"kvkeep_oplog\": 1, \"pages\": 8, \"page_tokens\": 1, \"content\": \"none\"}\n"
#define OPEN "{\"op\": \"open\", \"seq\": 1}\n"
#define RESERVE "{\"op\": \"reserve\", \"seq\": 1, \"n_tokens\": 2}\n"
#define PLAN "{\"op\": \"plan\", \"batch\": 1, \"entries\": [[1, 2]]}\n"
#define SET "{\"op\": \"set_eviction\", \"seq\": 1, \"policy\": "
#define END "{\"op\": \"end\", \"batch\": 1, "

/* ---- Bad logs */

START_TEST(near_peaks_of_groups_are_checked)
{
    static const refusal cases[] = {
        {"\"near\": 4}", "t:1: field near: expected a list of [layers, heads], got 4"},
        {"\"near\": []}", "t:1: field near: 0 items for 1 groups"},
        {"\"near\": [[1, 1], [1, 1]]}", "t:1: field near: 2 items for 1 groups"},
        {"\"near\": [[1, 1]], \"groups\": 2}", "t:1: field near: 1 items for 2 groups"},
        {"\"near\": [[1, 1]], \"windows\": [0, 0], \"groups\": 2}", "t:1: field near: 1 items for 2 groups"},
        {"\"near\": [[0, 1]]}", "t:1: cannot open the cache: argument out of range"},
        {"\"near\": [[1]]}", "t:1: field near[0]: expected [layers, heads], got [1]"},
        {"\"near\": [[1, 65536]]}", "t:1: field near[0]: expected [layers, heads], got [1,65536]"},
        {"\"near\": [[0, 0], [-1, 1]], \"groups\": 2}", "t:1: field near[1]: expected [layers, heads], got [-1,1]"},
    };
    CHECK_REFUSED("{\"kvkeep_oplog\": 1, \"pages\": 4, ", cases);
}
END_TEST

START_TEST(settings_are_checked)
{
    static const refusal cases[] = {
        {"{\"op\": \"set_eviction\", \"seq\": 1}", "t:2: field policy: missing"},
        {SET "7}", "t:2: field policy: expected a policy or null, got 7"},
        {SET "\"h2o\", \"budget\": -1}", "t:2: field budget: expected an integer 0 to 4294967295, got -1"},
        {SET "\"h2o\", \"slack\": 1.5}", "t:2: field slack: expected an integer 0 to 4294967295, got 1.5"},
        {SET "\"h2o\", \"floor\": null}", "t:2: field floor: expected an integer 0 to 4294967295, got null"},
        {SET "\"h2o\", \"yields\": 1}", "t:2: field yields: expected true or false, got 1"},
        {SET "\"h2o\", \"n_prompt\": 4294967296}",
         "t:2: field n_prompt: expected an integer 0 to 4294967295, got 4294967296"},
        {SET "\"h2o\", \"slope\": \"0.5\"}", "t:2: field slope: expected a number, got \"0.5\""},
        {SET "\"h2o\", \"target\": true}", "t:2: field target: expected a number, got true"},
        {SET "\"h2o\", \"budgets\": 4}", "t:2: field budgets: expected a list, got 4"},
        {SET "\"h2o\", \"budgets\": [-4]}", "t:2: field budgets[0]: expected a number of tokens, got -4"},
        {SET "\"h2o\", \"budgets\": [4, 4]}", "t:2: field budgets: 2 numbers for 1 groups"},
        {SET "\"h2o\", \"group\": 0}", "t:2: field group: unknown argument"},
        {"{\"op\": \"evict\", \"seq\": 1}", "t:2: field positions: missing"},
        {"{\"op\": \"evict\", \"seq\": 1, \"positions\": [0, 0.5]}",
         "t:2: field positions[1]: expected a position, got 0.5"},
        {"{\"op\": \"scores\"}", "t:2: field seq: missing"},
        {"{\"op\": \"positions\", \"seq\": 1, \"cap\": 1}", "t:2: field cap: unknown argument"},
        {"{\"op\": \"eviction\", \"seq\": 1, \"group\": 0}", "t:2: field group: unknown argument"},
    };
    CHECK_REFUSED(HEAD, cases);
}
END_TEST

/* The words are kvk_policy_parse's own. */
START_TEST(an_unknown_policy_or_knob_is_an_error_of_the_log)
{
    static const char *const policies[] = {"", "h3o", "h2o:", "h2o:sinks", "h2o:sinks=-1", "h2o:wings=2", "\\n"};
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        char text[512], why[256];
        oplog_summary summary;
        trace_error error;
        kvk_policy_choice choice;
        snprintf(text, sizeof text, HEAD OPEN SET "\"%s\"}\n", policies[i]);
        ck_assert_int_eq(oplog_text_run(text, NULL, &summary, &error), TRACE_BAD_INPUT);
        ck_assert_msg(!strncmp(error.text, "t:3: field policy: ", 19), "%s", error.text);
        ck_assert_int_eq(kvk_policy_parse(policies[i], NULL, &choice, why, sizeof why), KVK_EINVAL);
        ck_assert_msg(i == 6 || !strcmp(error.text + 19, why), "%s", error.text);
        ck_assert_uint_eq(summary.ops, 1);
    }
}
END_TEST

START_TEST(masses_are_checked)
{
    static const refusal cases[] = {
        {END "\"mean\": 1}", "t:5: field mean: expected a list per group, got 1"},
        {END "\"mean\": []}", "t:5: field mean: 0 lists for 1 groups"},
        {END "\"peak\": [[1, 1], [1, 1]]}", "t:5: field peak: 2 lists for 1 groups"},
        {END "\"near\": [1]}", "t:5: field near[0]: expected a list of numbers, got 1"},
        {END "\"mean\": [[1, null]]}", "t:5: field mean[0][1]: expected a number, got null"},
        {END "\"mean\": [[1, 1]], \"peak\": [[\"1\"]]}", "t:5: field peak[0][0]: expected a number, got \"1\""},
        {END "\"mean\": [[\"-nan\"]]}", "t:5: field mean[0][0]: expected a number, got \"-nan\""},
        {END "\"rows\": 1}", "t:5: field rows: expected a list, got 1"},
        {END "\"rows\": [1, 1]}", "t:5: field rows: 2 items for 1 entries"},
        {END "\"rows\": []}", "t:5: field rows: 0 items for 1 entries"},
        {END "\"rows\": [-1]}", "t:5: field rows[0]: expected a number of rows, got -1"},
        {END "\"n_summed\": [1, 1]}", "t:5: field n_summed: 2 items for 1 entries"},
        {END "\"n_summed\": [true]}", "t:5: field n_summed[0]: expected a number of queries, got true"},
    };
    CHECK_REFUSED(HEAD OPEN RESERVE PLAN, cases);
}
END_TEST

START_TEST(masses_have_a_limit)
{
    enum { PLACES = 16385 }; /* times 1024 groups more than 2^24 */
    char *text = malloc(4096 * 4 + 2 * PLACES);
    char *at = text + sprintf(text, "{\"kvkeep_oplog\": 1, \"pages\": 4, \"groups\": 1024}\n"
                                    "{\"op\": \"end\", \"batch\": 1, \"mean\": [[0");
    for (int i = 1; i < PLACES; i++)
        at += sprintf(at, ",0");
    at += sprintf(at, "]");
    for (int i = 1; i < 1024; i++)
        at += sprintf(at, ",[]");
    strcpy(at, "]}");
    oplog_text_ends(text, TRACE_BAD_INPUT, "t:2: field mean: its lists take more than 16777216 places");
    free(text);
}
END_TEST

/* ---- What the library is asked */

START_TEST(the_library_judges_values)
{
    static const char *const lines[] = {
        SET "null}\n",
        SET "null, \"budget\": 1, \"target\": 7}\n",
        SET "\"h2o\", \"slope\": \"nan\", \"expect\": {\"error\": \"KVK_EINVAL\"}}\n",
        SET "\"h2o\", \"slope\": 1.5, \"expect\": {\"error\": \"KVK_EINVAL\"}}\n",
        SET "\"h2o\", \"target\": \"-inf\", \"expect\": {\"error\": \"KVK_EINVAL\"}}\n",
        SET "\"h2o\", \"budget\": 4294967295, \"expect\": {\"error\": \"KVK_EINVAL\"}}\n",
        "{\"op\": \"set_eviction\", \"seq\": 2, \"policy\": \"h2o\", \"expect\": {\"error\": \"KVK_ESTALE\"}}\n",
        "{\"op\": \"evict\", \"seq\": 1, \"group\": 1, \"positions\": [], \"expect\": {\"error\": \"KVK_EINVAL\"}}\n",
        "{\"op\": \"evict\", \"seq\": 2, \"positions\": [0], \"expect\": {\"error\": \"KVK_ESTALE\"}}\n",
        "{\"op\": \"scores\", \"seq\": 1, \"group\": 1, \"expect\": {\"error\": \"KVK_EINVAL\"}}\n",
        "{\"op\": \"scores\", \"seq\": 2, \"expect\": {\"error\": \"KVK_ESTALE\"}}\n",
        "{\"op\": \"scores\", \"seq\": 1, \"expect\": {\"result\": 0, \"pages\": [], \"scores\": []}}\n",
        "{\"op\": \"positions\", \"seq\": 2, \"expect\": {\"error\": \"KVK_ESTALE\"}}\n",
        "{\"op\": \"positions\", \"seq\": 1, \"expect\": {\"result\": 0, \"positions\": []}}\n",
        "{\"op\": \"eviction\", \"seq\": 2, \"expect\": {\"error\": \"KVK_ESTALE\"}}\n",
        END "\"rows\": [1, 1], \"mean\": [[]], \"expect\": {\"error\": \"KVK_ESTALE\"}}\n",
        RESERVE PLAN END "\"accepted\": [2, 2], \"mean\": [[]], \"expect\": {\"error\": \"KVK_EINVAL\"}}\n",
        RESERVE PLAN END "\"mean\": [[]], \"rows\": [9]}\n", /* nobody has a policy */
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char text[2048];
        snprintf(text, sizeof text, HEAD OPEN "%s", lines[i]);
        oplog_text_ends(text, 0, "");
    }
}
END_TEST

#define PREFILL                                                                                                        \
    HEAD OPEN SET "\"h2o:sinks=0:recent=1\", \"budget\": 4}\n"                                                         \
                  "{\"op\": \"reserve\", \"seq\": 1, \"n_tokens\": 4}\n"                                               \
                  "{\"op\": \"plan\", \"batch\": 1, \"entries\": [[1, 4]]}\n"

START_TEST(a_list_that_is_too_short_is_refused)
{
    oplog_text_ends(PREFILL END "\"mean\": [[1, 1, 1, 1]]}\n", 0, "");
    oplog_text_ends(PREFILL END "\"mean\": [[1, 1, 1, 1, 9]]}\n", 0, "");
    oplog_text_ends(PREFILL END "\"mean\": [[1, 1, 1]], \"expect\": {\"error\": \"KVK_EINVAL\"}}\n", 0, "");
    oplog_text_ends(PREFILL END "\"mean\": [[]], \"expect\": {\"error\": \"KVK_EINVAL\"}}\n", 0, "");
    oplog_text_ends(PREFILL END "\"mean\": [[]], \"peak\": [[1, 1, 1, 1]], \"expect\": {\"error\": \"KVK_EINVAL\"}}\n",
                    0, "");
    oplog_text_ends(PREFILL END "\"mean\": [[1, 1, 1, 1]], \"rows\": [4], \"expect\": {\"error\": \"KVK_EINVAL\"}}\n",
                    0, "");
    oplog_text_ends(PREFILL END "\"peak\": [[]]}\n", 0, ""); /* without means nothing is observed */
}
END_TEST

START_TEST(results_show_eviction)
{
    sink printed = {0};
    oplog_options options = {.print = sink_print, .print_ctx = &printed};
    oplog_summary summary;
    trace_error error;
    const char *text = PREFILL END "\"mean\": [[2, 0.25, 1.5, 0.25]]}\n"
                                   "{\"op\": \"reserve\", \"seq\": 1, \"n_tokens\": 1}\n"
                                   "{\"op\": \"scores\", \"seq\": 1}\n"
                                   "{\"op\": \"positions\", \"seq\": 1}\n"
                                   "{\"op\": \"evict\", \"seq\": 1, \"positions\": [0]}\n"
                                   "{\"op\": \"evict\", \"seq\": 1, \"positions\": [9]}\n";
    int rc = oplog_text_run(text, &options, &summary, &error);
    ck_assert_int_eq(rc, TRACE_FAILED); /* position 9 is not held */
    char *tail = strstr(printed.bytes, "{\"line\":6,");
    ck_assert_ptr_nonnull(tail);
    ck_assert_str_eq(tail, "{\"line\":6,\"op\":\"end\",\"result\":0,\"evicted\":[]}\n"
                           "{\"line\":7,\"op\":\"reserve\",\"result\":1,\"pages\":[1],\"evicted\":[[1,0,1]]}\n"
                           "{\"line\":8,\"op\":\"scores\",\"result\":3,\"pages\":[0,2,3],\"positions\":[0,2,3],"
                           "\"scores\":[2.0,1.5,0.25],\"tiers\":[0,0,0],\"eligible\":[1,1,0]}\n"
                           "{\"line\":9,\"op\":\"positions\",\"result\":4,\"positions\":[0,2,3,4]}\n"
                           "{\"line\":10,\"op\":\"evict\",\"result\":1}\n"
                           "{\"line\":11,\"op\":\"evict\",\"result\":-1,\"error\":\"KVK_EINVAL\"}\n");
    sink_free(&printed);
}
END_TEST

/* What a call evicted is told whether or not the log collects events, and does not get in their way. */
START_TEST(evicted_does_not_disturb_events)
{
    oplog_text_ends(PREFILL
                    "{\"op\": \"events\"}\n{\"op\": \"end\", \"batch\": 1}\n"
                    "{\"op\": \"reserve\", \"seq\": 1, \"n_tokens\": 1, \"expect\": {\"evicted\": [[1, 0, 0]]}}\n"
                    "{\"op\": \"evict\", \"seq\": 1, \"positions\": [2]}\n"
                    "{\"op\": \"events\", \"expect\": {\"result\": 2, \"events\": ["
                    "{\"kind\": \"evicted\", \"group\": 0, \"page\": 0, \"seq\": 1, \"position\": 0}, "
                    "{\"kind\": \"evicted\", \"group\": 0, \"page\": 2, \"seq\": 1, \"position\": 2}]}}\n"
                    "{\"op\": \"events\", \"expect\": {\"result\": 0}}\n",
                    0, "");
}
END_TEST

/* ---- Recordings */

static sink recorded;

static void start(void (*change)(kvk_config *config))
{
    recorded = (sink){0};
    api_open(32, change);
    ck_assert_int_eq(kvk_record_start(cache, sink_write, &recorded), 0);
}

static void must_say(const char *wanted)
{
    ck_assert_msg(strstr(recorded.bytes, wanted) != NULL, "no %s in\n%s", wanted, recorded.bytes);
}

static void stop_and_check(void)
{
    ck_assert_int_eq(kvk_record_stop(cache), 0);
    api_close();
    sink again = oplog_text_record(recorded.bytes);
    ck_assert_str_eq(recorded.bytes, again.bytes);
    sink_free(&again);
}

static int set(kvk_seq seq, const char *policy, uint32_t budget)
{
    kvk_eviction e;
    char why[128];
    kvk_eviction_init(&e);
    ck_assert_msg(kvk_policy_parse(policy, NULL, &e.choice, why, sizeof why) == 0, "%s", why);
    e.budget = budget;
    return kvk_seq_set_eviction(cache, seq, &e);
}

/* Ends a batch of one entry. */
static int end(kvk_batch batch, const kvk_masses *masses)
{
    const kvk_batch_result result = {sizeof result, 1, NULL, masses};
    return kvk_batch_end(cache, batch, &result);
}

static void near_of_two_heads(kvk_config *config)
{
    static const kvk_group groups[] = {{.near_layers = 1, .near_heads = 2}};
    config->groups = groups;
    config->content = KVK_CONTENT_NONE;
}

START_TEST(masses_are_recorded_so_that_they_read_back)
{
    const float mean[3] = {0.1f, 1.0f / 3, 1e-7f}, peak[3] = {1, 0, 0x1p-149f}, near[6] = {0, 16777216, 0.3f, 2.5e-10f};
    const kvk_masses masses = {
        .size = sizeof masses, .stride = 3, .near_stride = 6, .mean = mean, .peak = peak, .near = near};
    start(near_of_two_heads);
    kvk_seq seq = api_seq();
    ck_assert_int_eq(set(seq, "keep:sinks=4", 16), 0);
    ck_assert_int_eq(kvk_reserve(cache, seq, 12, KVK_RECLAIM), 3);
    ck_assert_int_eq(end(api_plan(seq, 12), &masses), 0);
    stop_and_check();
    must_say("\"near\":[[1,2]]");
    must_say("\"policy\":\"keep\",\"budget\":16,\"expect\"");
    must_say("\"mean\":[[0.1,0.33333334,0.0000001]],\"peak\":[[1,0,140129846e-53]],"
             "\"near\":[[0,16777216,0.3,25e-11,0,0]],\"expect\":{\"result\":0}}");
    sink_free(&recorded);
}
END_TEST

START_TEST(rows_and_what_is_not_looked_at_are_recorded)
{
    const uint32_t accepted[1] = {1}, rows[1] = {2};
    const float mean[2] = {0.5f, NAN};
    const kvk_masses masses = {.size = sizeof masses, .stride = 2, .mean = mean, .rows = rows};
    const kvk_batch_result result = {sizeof result, 1, accepted, &masses};
    start(NULL);
    kvk_seq seq = api_seq();
    ck_assert_int_eq(set(seq, "h2o:sinks=4:recent=4", 16), 0);
    ck_assert_int_eq(kvk_reserve(cache, seq, 2, KVK_RECLAIM), 1);
    ck_assert_int_eq(kvk_batch_end(cache, api_plan(seq, 2), &result), 0);
    stop_and_check();
    must_say("\"accepted\":[1],\"rows\":[2],\"mean\":[[0.5,\"nan\"]],\"expect\":{\"result\":0}}");
    sink_free(&recorded);
}
END_TEST

START_TEST(masses_that_nobody_took_in_leave_no_list)
{
    const float bad[1] = {-1}, good[1] = {1};
    const kvk_masses refused = {.size = sizeof refused, .stride = 1, .mean = bad};
    const kvk_masses taken = {.size = sizeof taken, .stride = 1, .mean = good};
    start(NULL);
    kvk_seq seq = api_seq();
    ck_assert_int_eq(kvk_reserve(cache, seq, 2, KVK_RECLAIM), 1);
    ck_assert_int_eq(end(api_plan(seq, 1), &refused), 0); /* it has no policy */
    ck_assert_int_eq(set(seq, "h2o:sinks=4:recent=4", 16), 0);
    kvk_batch batch = api_plan(seq, 1);
    ck_assert_int_eq(end(batch, &refused), KVK_EINVAL);
    ck_assert_int_eq(end(batch + 1, &taken), KVK_ESTALE);
    ck_assert_int_eq(end(batch, NULL), 0);
    ck_assert_int_eq(kvk_record_stop(cache), 0);
    ck_assert_ptr_null(strstr(recorded.bytes, "mean"));
    api_close();
    sink_free(&recorded);
}
END_TEST

static void two_groups(kvk_config *config)
{
    config->n_groups = 2;
}

START_TEST(settings_and_evictions_are_recorded)
{
    const uint32_t budgets[2] = {0, 16}, positions[2] = {4, 8};
    kvk_eviction e;
    start(two_groups);
    kvk_seq seq = api_text(1, 16);
    kvk_eviction_init(&e);
    ck_assert_int_eq(kvk_seq_set_eviction(cache, seq, &e), 0);
    kvk_policy_defaults(kvk_policy_at(4), &e.choice);
    e.choice.knobs[0] = 4;
    e.choice.knobs[2] = 4;
    e.budgets = budgets;
    e.slack = 1;
    e.floor = 8;
    e.yields = 0;
    e.n_prompt = 12;
    e.slope = 0.25f;
    e.target = 0.9f;
    ck_assert_int_eq(kvk_seq_set_eviction(cache, seq, &e), 0);
    ck_assert_int_eq(kvk_evict(cache, seq, 1, positions, 2), 2);
    ck_assert_int_eq(kvk_evict(cache, seq, 1, positions, 2), KVK_EINVAL);
    ck_assert_int_eq(kvk_evict(cache, 0, 1, positions, 2), KVK_ESTALE);
    ck_assert_int_eq(kvk_seq_set_eviction(cache, seq, NULL), 0);
    ck_assert_int_eq(kvk_seq_set_eviction(cache, seq + 1, &e), KVK_ESTALE);
    ck_assert_int_eq(kvk_record_stop(cache), 0);
    api_close();
    must_say("\"policy\":\"full\",\"expect\":{\"result\":0}}");
    must_say(
        "\"budgets\":[0,16],\"slack\":1,\"floor\":8,\"yields\":false,\"n_prompt\":12,\"slope\":0.25,\"target\":0.9,"
        "\"expect\":{\"result\":0}}");
    must_say("\"group\":1,\"positions\":[4,8],\"expect\":{\"result\":2}}");
    must_say("\"seq\":0,\"group\":1,\"positions\":[4,8],\"expect\":{\"result\":-5}}");
    must_say("\"policy\":null,\"expect\":{\"result\":0}}");
    oplog_text_ends(recorded.bytes, 0, "");
    sink_free(&recorded);
}
END_TEST

static void rank_alike(const kvk_policy_view *view, float *score, uint8_t *tier)
{
    (void)tier;
    for (uint32_t i = 0; i < view->n; i++)
        score[i] = 0;
}

static uint32_t needs_nothing(const double *knobs, int has_near)
{
    (void)knobs;
    (void)has_near;
    return 0;
}

START_TEST(a_policy_of_ones_own_is_refused_while_recording)
{
    static const kvk_policy own = {
        .size = sizeof own, .name = "mine", .text = "all alike", .needs = needs_nothing, .rank = rank_alike};
    kvk_eviction e;
    start(NULL);
    kvk_seq seq = api_seq();
    kvk_eviction_init(&e);
    kvk_policy_defaults(&own, &e.choice);
    e.budget = 8;
    ck_assert_int_eq(kvk_seq_set_eviction(cache, seq, &e), KVK_ESTATE);
    ck_assert_int_eq(kvk_seq_set_eviction(cache, 0, &e), KVK_ESTALE);
    ck_assert_ptr_null(strstr(recorded.bytes ? recorded.bytes : "", "mine"));
    stop_and_check();
    ck_assert_ptr_null(strstr(recorded.bytes, "mine"));
    sink_free(&recorded);
}
END_TEST

/* A decode of one sequence within a budget, with masses from a fixed rule, recorded and replayed. */
START_TEST(a_decode_within_a_budget_is_recorded)
{
    float mean[8];
    start(two_groups);
    kvk_seq seq = api_seq();
    ck_assert_int_eq(set(seq, "h2o:sinks=4:recent=8", 24), 0);
    for (uint32_t n = 0; n < 60; n++) {
        int taken = kvk_reserve(cache, seq, 1, KVK_RECLAIM);
        ck_assert_int_ge(taken, 0);
        kvk_batch batch = api_plan(seq, 1);
        uint32_t pages = (uint32_t)kvk_seq_table(cache, seq, 0, NULL, 0);
        ck_assert_uint_eq(pages, n < 24 ? n / 4 + 1 : 6);
        float masses[2 * 8];
        for (uint32_t i = 0; i < pages; i++)
            mean[i] = (float)(1 + (n * 7 + i * 5) % 11) / (float)(11 * pages);
        memcpy(masses, mean, sizeof mean);
        memcpy(masses + 8, mean, sizeof mean);
        const kvk_masses m = {.size = sizeof m, .stride = 8, .mean = masses};
        ck_assert_int_ge(end(batch, &m), 0);
        ck_assert_int_ge(api_commit(seq, n, 1), 0);
    }
    ck_assert_uint_eq(api_info(seq).tainted, 1);
    ck_assert_uint_eq(api_stats().pages_evicted, 2 * (15 - 6));
    stop_and_check();
    sink_free(&recorded);
}
END_TEST

int main(void)
{
    return RUN_TESTS("oplog_evict", near_peaks_of_groups_are_checked, settings_are_checked,
                     an_unknown_policy_or_knob_is_an_error_of_the_log, masses_are_checked, masses_have_a_limit,
                     the_library_judges_values, a_list_that_is_too_short_is_refused, results_show_eviction,
                     evicted_does_not_disturb_events, masses_are_recorded_so_that_they_read_back,
                     rows_and_what_is_not_looked_at_are_recorded, masses_that_nobody_took_in_leave_no_list,
                     settings_and_evictions_are_recorded, a_policy_of_ones_own_is_refused_while_recording,
                     a_decode_within_a_budget_is_recorded);
}
