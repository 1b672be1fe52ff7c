/* SnapKV (Li et al. 2024): what the last queries of the prompt attended to, and its neighbours. The paper selects once,
 * after the prompt; here the votes of that moment go on ranking what is evicted later. */
#include "policy/policies.h"

enum { WINDOW, KERNEL, SINKS };
enum { VOTES, N_SCORES };

static const kvk_knob knobs[] = {
    [WINDOW] =
        {"window", 1, TOKENS_MAX, 32, 1,
         "the last queries of the prompt that vote; the pages with the last so many tokens stay; at most half the "
         "budget"},
    [KERNEL] = {"kernel", 1, 1023, 7, 1, "tokens over which the highest vote is taken"},
    [SINKS] = KNOB_SINKS(0),
};

static kvk_protection protect(const double *k, uint32_t tokens, uint32_t page_tokens)
{
    return (kvk_protection){.sinks = (uint32_t)k[SINKS], .recent = policy_recent(k[WINDOW], tokens, page_tokens)};
}

/* Where the prompt's length is not known every query votes. */
static int is_vote(const kvk_policy_view *view, const kvk_observation *seen)
{
    uint64_t end = (uint64_t)seen->first_query + seen->n_queries + (uint32_t)view->knobs[WINDOW];
    return view->n_prompt == 0 || (seen->first_query < view->n_prompt && end > view->n_prompt);
}

static void observe(const kvk_policy_view *view, const kvk_observation *seen)
{
    float *restrict votes = view->scores[VOTES];
    const float *restrict mean = seen->mean;
    if (!is_vote(view, seen))
        return;
    for (uint32_t i = 0; i < view->n; i++)
        votes[i] += mean[i];
}

static void rank(const kvk_policy_view *view, float *score, uint8_t *tier)
{
    (void)tier;
    const float *votes = view->scores[VOTES];
    uint32_t reach = (uint32_t)view->knobs[KERNEL] / 2 / view->page_tokens;
    for (uint32_t i = 0, first = 0; i < view->n; i++) {
        while (view->index[i] - view->index[first] > reach)
            first++;
        score[i] = votes[i];
        for (uint32_t j = first; j < view->n && view->index[j] <= view->index[i] + reach; j++)
            score[i] = votes[j] > score[i] ? votes[j] : score[i];
    }
}

const kvk_policy policy_snapkv = {
    .size = sizeof(kvk_policy),
    .n_knobs = N_KNOBS(knobs),
    .name = "snapkv",
    .text = "keeps what the last queries of the prompt attended to, and its neighbours (SnapKV, Li et al. 2024)",
    .knobs = knobs,
    .n_scores = N_SCORES,
    .needs = policy_needs_mean,
    .protect = protect,
    .observe = observe,
    .rank = rank,
};
