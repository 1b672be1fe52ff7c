/* world_evict.c: what can be seen of eviction, and what must hold of it whatever the twin says. */
#include "world.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Sums in another order may differ in their last bits. */
static void expect_close(world *w, const char *name, double want, double got)
{
    bool close = fabs(want - got) <= 1e-9 * (1 + fabs(want));
    if (!close)
        printf("model: %s: %.17g is not %.17g\n", name, got, want);
    world_expect(w, name, true, close);
}

static void compare_info(world *w, const twin_seq *s)
{
    kvk_eviction_info want, got = {.size = sizeof got};
    twin_info(&w->twin, s, &want);
    world_expect(w, "kvk_eviction_info_get", 0, kvk_eviction_info_get(w->cache, s->handle, &got));
    world_expect(w, "eviction.tainted", want.tainted, got.tainted);
    world_expect(w, "eviction.first_taint", want.first_taint, got.first_taint);
    world_expect(w, "eviction.policy_needs", want.policy_needs, got.policy_needs);
    world_expect(w, "eviction.policy", 0, strcmp(want.policy, got.policy));
    world_expect(w, "eviction.pages_kept", (int64_t)want.pages_kept, (int64_t)got.pages_kept);
    world_expect(w, "eviction.tokens_kept", (int64_t)want.tokens_kept, (int64_t)got.tokens_kept);
    world_expect(w, "eviction.pages_evicted", (int64_t)want.pages_evicted, (int64_t)got.pages_evicted);
    world_expect(w, "eviction.tokens_evicted", (int64_t)want.tokens_evicted, (int64_t)got.tokens_evicted);
    world_expect(w, "eviction.queries", (int64_t)want.queries, (int64_t)got.queries);
    expect_close(w, "eviction.retained_last", want.retained_last, got.retained_last);
    expect_close(w, "eviction.retained_mean", want.retained_mean, got.retained_mean);
    expect_close(w, "eviction.evicted_mass", want.evicted_mass, got.evicted_mass);
    expect_close(w, "eviction.churn_per_1k", want.churn_per_1k, got.churn_per_1k);
}

static bool same_float(float a, float b)
{
    return !(a < b) && !(b < a);
}

static void compare_scores(world *w, const twin_seq *s, uint32_t group)
{
    kvk_page_score want[TWIN_ENTRIES], got[TWIN_ENTRIES];
    uint32_t n = twin_scores(&w->twin, s, group, want);
    world_expect(w, "kvk_seq_scores", n, kvk_seq_scores(w->cache, s->handle, group, got, TWIN_ENTRIES));
    for (uint32_t i = 0; i < n; i++) {
        world_expect(w, "score.page", want[i].page, got[i].page);
        world_expect(w, "score.position", want[i].position, got[i].position);
        world_expect(w, "score.tier", want[i].tier, got[i].tier);
        world_expect(w, "score.eligible", want[i].eligible, got[i].eligible);
        if (!same_float(want[i].score, got[i].score))
            printf("model: page %u of %u: score %.9g is not %.9g\n", i, n, (double)got[i].score, (double)want[i].score);
        world_expect(w, "score.score", true, same_float(want[i].score, got[i].score));
    }
}

static void compare_positions(world *w, const twin_seq *s, uint32_t group)
{
    uint32_t got[TWIN_ENTRIES], n = 0;
    world_expect(w, "kvk_seq_positions", twin_count_held(s, group, s->end),
                 kvk_seq_positions(w->cache, s->handle, group, got, TWIN_ENTRIES));
    for (uint32_t i = 0; i < s->end; i++) {
        if (twin_holds(s, group, i))
            world_expect(w, "position", i * w->twin.config.page_tokens, got[n++]);
    }
}

void world_compare_eviction(world *w, const twin_seq *s)
{
    compare_info(w, s);
    world_check_bound(w, s);
    if (s->swapped) {
        world_expect(w, "scores of a swapped sequence", KVK_ESTATE, kvk_seq_scores(w->cache, s->handle, 0, NULL, 0));
        world_expect(w, "positions of it", KVK_ESTATE, kvk_seq_positions(w->cache, s->handle, 0, NULL, 0));
        return;
    }
    for (uint32_t g = 0; g < w->twin.config.n_groups; g++) {
        compare_positions(w, s, g);
        compare_scores(w, s, g);
    }
}
