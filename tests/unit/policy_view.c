#include "policy_view.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

void small_open(small_table *t, const char *policy, uint32_t page_tokens, uint32_t n)
{
    char why[200] = "";
    memset(t, 0, sizeof *t);
    ck_assert_msg(kvk_policy_parse(policy, NULL, &t->choice, why, sizeof why) == 0, "%s", why);
    for (uint32_t s = 0; s < KVK_MAX_SCORES; s++)
        t->columns[s] = t->scores[s];
    t->view = (kvk_policy_view){.knobs = t->choice.knobs,
                                .n_groups = 1,
                                .page_tokens = page_tokens,
                                .index = t->index,
                                .eligible = t->eligible,
                                .scores = t->columns,
                                .shared = t->shared};
    for (uint32_t i = 0; i < n; i++)
        small_add(t, i);
}

void small_add(small_table *t, uint32_t index)
{
    uint32_t i = t->view.n++;
    ck_assert_uint_lt(i, SMALL);
    t->index[i] = index;
    t->eligible[i] = 1;
    for (uint32_t s = 0; s < KVK_MAX_SCORES; s++)
        t->scores[s][i] = 0;
    t->view.n_tokens = (index + 1) * t->view.page_tokens;
}

void small_remove(small_table *t, uint32_t i)
{
    size_t after = --t->view.n - i;
    memmove(&t->index[i], &t->index[i + 1], after * sizeof t->index[0]);
    memmove(&t->eligible[i], &t->eligible[i + 1], after);
    for (uint32_t s = 0; s < KVK_MAX_SCORES; s++)
        memmove(&t->scores[s][i], &t->scores[s][i + 1], after * sizeof(float));
}

void small_observe(small_table *t, uint32_t first, uint32_t queries, const float *mean, const float *peak)
{
    kvk_observation seen = {first, queries, mean, peak};
    kvk_policy_view view = t->view;
    view.eligible = NULL;
    t->choice.policy->observe(&view, &seen);
}

void small_choose(small_table *t, uint32_t want)
{
    float score[SMALL];
    uint8_t tier[SMALL];
    uint32_t order[SMALL];
    policy_scratch scratch = {score, tier, order};
    t->n_victims = policy_choose(t->choice.policy, &t->view, want, &scratch, t->victims);
}

void small_expect(small_table *t, uint32_t want, const char *numbers)
{
    char found[SMALL * 12] = "";
    size_t length = 0;
    small_choose(t, want);
    for (uint32_t i = 0; i < t->n_victims; i++)
        length += (size_t)snprintf(found + length, sizeof found - length, i ? " %u" : "%u", t->index[t->victims[i]]);
    ck_assert_str_eq(found, numbers);
}

float small_score(const small_table *t, uint32_t i)
{
    float score[SMALL];
    uint8_t tier[SMALL];
    policy_rank(t->choice.policy, &t->view, score, tier);
    return score[i];
}

uint8_t small_tier(const small_table *t, uint32_t i)
{
    float score[SMALL];
    uint8_t tier[SMALL];
    policy_rank(t->choice.policy, &t->view, score, tier);
    return tier[i];
}
