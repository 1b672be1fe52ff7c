/* What several policies share. */
#include "policy/policies.h"

uint32_t policy_recent(double recent, uint32_t budget, uint32_t page_tokens)
{
    uint32_t n = (uint32_t)recent;
    uint32_t half = budget / 2 / page_tokens * page_tokens;
    return budget && n > half ? half : n;
}

uint32_t policy_needs_nothing(const double *knobs, int has_near)
{
    (void)knobs, (void)has_near;
    return 0;
}

uint32_t policy_needs_mean(const double *knobs, int has_near)
{
    (void)knobs, (void)has_near;
    return KVK_NEED_MEAN;
}

void policy_rank_by_age(const kvk_policy_view *view, float *score, uint8_t *tier)
{
    (void)tier;
    for (uint32_t i = 0; i < view->n; i++)
        score[i] = (float)view->index[i];
}
