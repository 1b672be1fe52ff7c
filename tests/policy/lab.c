#include "lab.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void lab_open(lab *l, const lab_setup *setup)
{
    kvk_group groups[TWIN_GROUPS] = {{0}};
    kvk_config config;
    kvk_config_init(&config);
    *l = (lab){.setup = *setup,
               .page_tokens = setup->page_tokens,
               .n_groups = setup->n_groups,
               .near_layers = setup->near ? 2 : 0,
               .near_heads = setup->near};
    for (uint32_t g = 0; g < l->n_groups; g++) {
        groups[g].near_layers = (uint16_t)l->near_layers;
        groups[g].near_heads = (uint16_t)l->near_heads;
    }
    config.page_tokens = l->page_tokens;
    config.n_groups = l->n_groups;
    config.n_pages = setup->n_pages ? setup->n_pages : 1u << 14;
    config.content = setup->has_text ? KVK_CONTENT_TOKENS : KVK_CONTENT_NONE;
    config.groups = groups;
    LAB_HOLDS(kvk_cache_open(&config, &l->cache) == 0);
}

static void complain(void *ctx, const char *invariant, const char *text)
{
    (void)ctx;
    fprintf(stderr, "%s: %s\n", invariant, text);
}

void lab_audit(const lab *l)
{
    LAB_HOLDS(kvk_audit(l->cache, complain, NULL) == 0);
}

void lab_close(lab *l)
{
    lab_audit(l);
    kvk_cache_close(l->cache);
    l->cache = NULL;
}

/* ---- Sequences ----------------------------------------------------------------------------------------------- */

subject lab_driven(lab *l, twin_setup setup, masses m)
{
    subject s = {.masses = m};
    char why[200] = "";
    kvk_eviction e;
    kvk_eviction_init(&e);
    LAB_CHECK(kvk_policy_parse(setup.policy, NULL, &e.choice, why, sizeof why) == 0, "%s: %s", setup.policy, why);
    e.budget = setup.budget;
    e.slack = setup.slack;
    e.n_prompt = setup.n_prompt;
    e.slope = (float)setup.slope;
    e.budgets = setup.budgets;
    e.floor = setup.floor;
    e.target = (float)setup.target;
    LAB_HOLDS(kvk_seq_open(l->cache, NULL, &s.seq) == 0);
    LAB_CHECK(kvk_seq_set_eviction(l->cache, s.seq, &e) == 0, "%s is refused", setup.policy);
    s.masses.page_tokens = l->page_tokens;
    return s;
}

subject lab_subject(lab *l, twin_setup setup, masses m)
{
    subject s = lab_driven(l, setup, m);
    setup.page_tokens = l->page_tokens;
    setup.n_groups = l->n_groups;
    setup.near_layers = l->near_layers;
    setup.near_heads = l->near_heads;
    s.twin = twin_open(&setup);
    return s;
}

subject lab_fork(lab *l, const subject *parent, masses m)
{
    subject s = {.masses = m, .twin = parent->twin ? twin_copy(parent->twin) : NULL};
    s.masses.page_tokens = l->page_tokens;
    LAB_HOLDS(kvk_seq_fork(l->cache, parent->seq, &s.seq) >= 0);
    return s;
}

void lab_end_subject(lab *l, subject *s)
{
    LAB_HOLDS(kvk_seq_close(l->cache, s->seq) >= 0);
    if (s->twin)
        twin_close(s->twin);
    s->twin = NULL;
}

uint32_t lab_table(const lab *l, const subject *s, uint32_t group, uint32_t *numbers)
{
    int n = kvk_seq_positions(l->cache, s->seq, group, numbers, TWIN_PAGES);
    LAB_HOLDS(n >= 0);
    for (int i = 0; i < n; i++) {
        LAB_HOLDS(numbers[i] % l->page_tokens == 0);
        numbers[i] /= l->page_tokens;
    }
    return (uint32_t)n;
}

kvk_eviction_info lab_info(const lab *l, const subject *s)
{
    kvk_eviction_info info = {.size = sizeof info};
    LAB_HOLDS(kvk_eviction_info_get(l->cache, s->seq, &info) == 0);
    return info;
}

uint32_t lab_scores(const lab *l, const subject *s, uint32_t group, kvk_page_score *scores)
{
    int n = kvk_seq_scores(l->cache, s->seq, group, scores, TWIN_PAGES);
    LAB_HOLDS(n >= 0);
    return (uint32_t)n;
}

/* ---- Comparing ----------------------------------------------------------------------------------------------- */

/* How far rounding may take a score: not at all where sums are exact. */
static double tolerance(const twin *t)
{
    return twin_is(t, "keep") || twin_is(t, "tova") ? 1e-4 : 0;
}

static int is_near(double a, double b, double relative)
{
    return fabs(a - b) <= relative * fmax(fabs(a), fabs(b)) + 1e-12;
}

/* The library's tier is taken over where only rounding decides who is reserved: as many pages, of importances from near
 * peaks that are nearly alike. Plain peaks are compared as they are, and equal ones by position. */
static void compare_tiers(const twin *t, ranking *r, const kvk_page_score *got)
{
    double least = HUGE_VAL, most = -HUGE_VAL; /* of those that only the twin reserves, that only the library does */
    int more = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        more += got[i].tier - r->tier[i];
        if (r->tier[i] > got[i].tier)
            least = fmin(least, r->importance[i]);
        if (r->tier[i] < got[i].tier)
            most = fmax(most, r->importance[i]);
    }
    LAB_CHECK(more == 0, "%s: %d pages more are reserved", t->setup.policy, more);
    LAB_CHECK(isinf(least) || (twin_knob(t, "importance", 0) < 2 && t->setup.near_heads && is_near(least, most, 1e-4)),
              "%s: reserves importance %.9g instead of %.9g", t->setup.policy, most, least);
    for (uint32_t i = 0; i < r->n; i++)
        r->tier[i] = got[i].tier;
}

static void compare_scores(const lab *l, const subject *s, uint32_t group, ranking *r)
{
    static kvk_page_score got[TWIN_PAGES];
    const twin *t = s->twin;
    LAB_HOLDS(lab_scores(l, s, group, got) == r->n);
    for (uint32_t i = 0; i < r->n; i++) {
        LAB_HOLDS(got[i].position == r->number[i] * l->page_tokens);
        LAB_CHECK(got[i].eligible == r->eligible[i], "%s, %u tokens: page %u may go: %d, not %d", t->setup.policy,
                  t->n_tokens, r->number[i], got[i].eligible, r->eligible[i]);
        if (twin_is(t, "random")) /* any order will do */
            r->score[i] = (double)got[i].score;
        else if (!twin_is(t, "window") && !twin_is(t, "streaming") && !twin_is(t, "full"))
            LAB_CHECK(is_near((double)got[i].score, r->score[i], tolerance(t)),
                      "%s, %u tokens: page %u scores %.9g, not %.9g", t->setup.policy, t->n_tokens, r->number[i],
                      (double)got[i].score, r->score[i]);
    }
    if (twin_is(t, "keep"))
        compare_tiers(t, r, got);
}

/* Pages that a table of the library lost, of those that the twin ranked. */
static void find_lost(const lab *l, const subject *s, uint32_t group, const ranking *r, uint8_t *lost)
{
    uint32_t numbers[TWIN_PAGES], n = lab_table(l, s, group, numbers), at = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        lost[i] = at == n || numbers[at] != r->number[i];
        at += !lost[i];
    }
}

/* Where scores differ by no more than rounding, the twin goes on with the library's choice. Equal ones must go by
 * position. */
static void compare_victims(lab *l, const subject *s, ranking *r, const uint8_t *lost)
{
    double kept = HUGE_VAL, dropped = -HUGE_VAL; /* lowest of those kept wrongly, highest of those dropped so */
    int more = 0, tiers = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        l->evictions += lost[i];
        more += lost[i] - r->gone[i];
        tiers += r->tier[i] * (lost[i] - r->gone[i]);
        if (lost[i] < r->gone[i])
            kept = fmin(kept, r->score[i]);
        if (lost[i] > r->gone[i])
            dropped = fmax(dropped, r->score[i]);
    }
    LAB_CHECK(more == 0 && tiers == 0, "%s, %u tokens: %d pages more were evicted", s->twin->setup.policy,
              s->twin->n_tokens, more);
    if (isinf(kept))
        return;
    l->near_ties++;
    LAB_CHECK(kept < dropped && is_near(kept, dropped, tolerance(s->twin)),
              "%s, %u tokens: evicts score %.9g instead of %.9g", s->twin->setup.policy, s->twin->n_tokens, dropped,
              kept);
    memcpy(r->gone, lost, r->n);
}

static void compare_tables(const lab *l, const subject *s)
{
    const twin *t = s->twin;
    for (uint32_t g = 0; g < l->n_groups; g++) {
        uint32_t numbers[TWIN_PAGES], n = lab_table(l, s, g, numbers), at = 0, p = 0;
        for (; p * l->page_tokens < t->n_tokens; p++) {
            int held = at < n && numbers[at] == p;
            LAB_CHECK(held == t->held[g][p], "%s, %u tokens, group %u: page %u is held: %d", t->setup.policy,
                      t->n_tokens, g, p, held);
            at += (uint32_t)held;
        }
        for (; at < n; at++, p++) /* reserved ahead */
            LAB_HOLDS(numbers[at] == p);
    }
    LAB_HOLDS(lab_info(l, s).pages_evicted == t->evicted);
}

void lab_same(const lab *l, const subject *s, const lab *other, const subject *o)
{
    static kvk_page_score a[TWIN_PAGES], b[TWIN_PAGES];
    for (uint32_t g = 0; g < l->n_groups; g++) {
        uint32_t n = lab_scores(l, s, g, a);
        LAB_HOLDS(lab_scores(other, o, g, b) == n);
        for (uint32_t i = 0; i < n; i++) {
            LAB_HOLDS(a[i].position == b[i].position);
            ck_assert_mem_eq(&a[i].score, &b[i].score, sizeof a[i].score);
            LAB_HOLDS(a[i].tier == b[i].tier);
            LAB_HOLDS(a[i].eligible == b[i].eligible);
        }
    }
}

void lab_compare(const lab *l, const subject *s)
{
    if (s->twin)
        compare_tables(l, s);
}

/* Makes room and compares all that is known of what goes. */
static void reserve_compared(lab *l, subject *s, uint32_t n_tokens)
{
    static ranking r[TWIN_GROUPS];
    uint8_t lost[TWIN_PAGES];
    uint32_t now = s->twin->n_tokens;
    for (uint32_t g = 0; g < l->n_groups; g++) {
        twin_rank(s->twin, g, now, &r[g]);
        compare_scores(l, s, g, &r[g]);
    }
    LAB_HOLDS(kvk_can_reserve(l->cache, s->seq, n_tokens, KVK_RECLAIM) == KVK_OK);
    LAB_HOLDS(kvk_reserve(l->cache, s->seq, n_tokens, KVK_RECLAIM) >= 0);
    for (uint32_t g = 0; g < l->n_groups; g++) {
        twin_choose(s->twin, g, now, &r[g]);
        find_lost(l, s, g, &r[g], lost);
        compare_victims(l, s, &r[g], lost);
        twin_apply(s->twin, g, &r[g]);
    }
    s->twin->asked = now;
}

void lab_reserve(lab *l, subject *s, uint32_t n_tokens)
{
    if (s->twin && twin_is_due(s->twin))
        reserve_compared(l, s, n_tokens);
    else
        LAB_HOLDS(kvk_reserve(l->cache, s->seq, n_tokens, KVK_RECLAIM) >= 0);
    lab_compare(l, s);
}
