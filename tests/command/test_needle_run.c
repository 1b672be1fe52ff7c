/* Prompts through a small model: what is said and held, alone and in company. */
#include "engine/tiny_model.h"
#include "kvkeep/eval/needle_run.h"
#include "run_tests.h"

#include <string.h>

enum { PROMPTS = 5, TEXT = 60, QUESTION = 7, ANSWER = 4, ALL = TEXT + QUESTION + ANSWER, PAGE = 8, BUDGET = 24 };

static tiny_model tiny;
static uint32_t tokens[PROMPTS][ALL];
static needle_prompt prompts[PROMPTS];

static uint32_t likeliest(const double *logits)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < TINY_VOCABULARY; i++)
        best = logits[i] > logits[best] ? i : best;
    return best;
}

/* The right answers are what the model says without pages, but for as many tokens as the prompt's number. */
static void set_up(void)
{
    static double logits[ALL][TINY_VOCABULARY];
    tiny = tiny_open(&(tiny_options){.architecture = "llama", .type = GGUF_F32});
    for (uint32_t i = 0; i < PROMPTS; i++) {
        tiny_text(i + 1, tokens[i], ALL);
        for (uint32_t k = 0; k < ANSWER; k++) {
            tiny_logits(&tiny, tokens[i], TEXT + QUESTION + k, logits[0]);
            tokens[i][TEXT + QUESTION + k] = likeliest(logits[TEXT + QUESTION + k - 1]);
        }
        for (uint32_t k = 0; k < i && k < ANSWER; k++)
            tokens[i][TEXT + QUESTION + k] = (tokens[i][TEXT + QUESTION + k] + 1) % TINY_VOCABULARY;
        prompts[i] = (needle_prompt){
            .tokens = tokens[i], .n_text = TEXT, .n_question = QUESTION, .n_answer = ANSWER, .n_needle = 1};
    }
}

static void tear_down(void)
{
    tiny_close(&tiny);
}

static void run(needle_job *jobs, uint32_t batch, uint64_t kv_tokens)
{
    trace_error error;
    runner_config config = RUNNER_CONFIG(tiny.m);
    config.page_tokens = PAGE;
    config.n_groups = RUNNER_PER_LAYER;
    config.kv_tokens = kv_tokens;
    needle_options o = {.vocabulary = TINY_VOCABULARY, .page_tokens = PAGE, .chunk = PAGE, .each = 1, .batch = batch};
    o.kv_tokens = kv_tokens;
    ck_assert_msg(runner_open(&config, &o.runner, &error) == 0, "%s", error.text);
    ck_assert_msg(needle_run(&o, jobs, PROMPTS, &error) == 0, "%s", error.text);
    ck_assert_int_eq(kvk_audit(runner_cache(o.runner), NULL, NULL), 0);
    runner_close(o.runner);
}

static void make_jobs(needle_job *jobs, const kvk_eviction *eviction, needle_question question)
{
    for (uint32_t i = 0; i < PROMPTS; i++)
        jobs[i] = (needle_job){.prompt = &prompts[i], .eviction = eviction, .question = question};
}

START_TEST(what_the_model_says_is_counted_token_by_token)
{
    needle_job jobs[PROMPTS];
    for (int question = NEEDLE_HIDDEN; question <= NEEDLE_DURING; question++)
        for (uint32_t batch = 1; batch <= PROMPTS; batch += 2) {
            make_jobs(jobs, NULL, (needle_question)question);
            run(jobs, batch, (uint64_t)batch * 80);
            for (uint32_t i = 0; i < PROMPTS; i++)
                ck_assert_uint_eq(jobs[i].right, ANSWER - (i < ANSWER ? i : ANSWER));
        }
}
END_TEST

static kvk_eviction evicting(const char *policy)
{
    kvk_eviction e;
    trace_error error;
    ck_assert_msg(runner_policy(policy, BUDGET, &e, &error) == 0, "%s", error.text);
    return e;
}

/* All tables of 2 layers: the budget and nothing more where the text goes through it, the whole prompt where it is seen
 * whole. */
START_TEST(a_budget_holds_from_the_beginning_or_after_the_prompt)
{
    needle_job jobs[PROMPTS];
    kvk_eviction e = evicting("keep");
    const uint32_t whole = (TEXT + QUESTION + PAGE - 1) / PAGE;
    for (int question = NEEDLE_HIDDEN; question <= NEEDLE_DURING; question++) {
        make_jobs(jobs, &e, (needle_question)question);
        run(jobs, 3, 3 * 80);
        for (uint32_t i = 0; i < PROMPTS; i++)
            ck_assert_uint_eq(jobs[i].pages_peak,
                              (question == NEEDLE_VISIBLE ? whole : (uint64_t)BUDGET / PAGE) * TINY_LAYERS);
    }
}
END_TEST

START_TEST(company_changes_nothing)
{
    needle_job alone[PROMPTS], all[PROMPTS];
    kvk_eviction e = evicting("snapkv:window=8");
    make_jobs(alone, &e, NEEDLE_VISIBLE);
    make_jobs(all, &e, NEEDLE_VISIBLE);
    run(alone, 1, 80);
    run(all, PROMPTS, PROMPTS * 80);
    for (uint32_t i = 0; i < PROMPTS; i++) {
        ck_assert_uint_eq(alone[i].right, all[i].right);
        ck_assert_uint_eq(alone[i].pages_peak, all[i].pages_peak);
    }
}
END_TEST

START_TEST(what_cannot_run_says_so)
{
    needle_job jobs[PROMPTS];
    trace_error error = {""};
    runner_config config = RUNNER_CONFIG(tiny.m);
    kvk_eviction e = evicting("streaming");
    needle_options o = {.vocabulary = TINY_VOCABULARY, .page_tokens = 16, .chunk = 16, .batch = 2, .kv_tokens = 160};
    e.budget = 8; /* less than a page */
    config.kv_tokens = 160;
    ck_assert_int_eq(runner_open(&config, &o.runner, &error), 0);
    make_jobs(jobs, &e, NEEDLE_HIDDEN);
    ck_assert_int_eq(needle_run(&o, jobs, PROMPTS, &error), TRACE_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(error.text, "a budget of 8 tokens"));
    runner_close(o.runner);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("needle run");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, what_the_model_says_is_counted_token_by_token);
    tcase_add_test(t, a_budget_holds_from_the_beginning_or_after_the_prompt);
    tcase_add_test(t, company_changes_nothing);
    tcase_add_test(t, what_cannot_run_says_so);
    return run_tests("needle run", t);
}
