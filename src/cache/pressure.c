/* pressure.c: a reservation that lacks pages takes them from the sequences that yield: of the lowest priority first,
 * and there the page with the smallest share of its table's score. Only pages whose memory comes back at once are
 * taken. */
#include "base/checked.h"
#include "cache/eviction.h"

#include <math.h>

static int yields(const sequence *s, const sequence *asker)
{
    return s->is_open && !s->swapped && eviction_of(s) && s->eviction->settings.yields &&
           eviction_policy(s->eviction)->rank && s->priority <= asker->priority;
}

/* Pages of a table that go already by the plan to trim its sequence can't be taken again. Returns how many. */
static uint32_t withhold_victims(const kvk_cache *c, const sequence *s, uint32_t group, const sequence *asker)
{
    const evict_scratch *e = &c->evict;
    const uint32_t *victims = e->victims;
    if (s != asker)
        return 0;
    for (uint32_t g = 0; g < group; g++)
        victims += e->counts[g];
    for (uint32_t k = 0; k < e->counts[group]; k++)
        e->eligible[victims[k]] = 0;
    return e->counts[group];
}

/* Leaves of the eligible pages of n those that come free when they are taken. Returns how many may go of the table. */
static uint32_t leave_free_ones(const kvk_cache *c, const sequence *s, uint32_t group, const sequence *asker,
                                uint32_t n)
{
    const evict_scratch *e = &c->evict;
    uint32_t held = n - withhold_victims(c, s, group, asker);
    uint32_t floor = pages_of_tokens(c, s->eviction->settings.floor), free = 0;
    for (uint32_t k = 0; k < n; k++) {
        e->eligible[k] = e->eligible[k] && eviction_frees(c, s, s->tables[group].pages[k]);
        free += e->eligible[k];
    }
    return held > floor ? min_u32(free, held - floor) : 0;
}

uint64_t pressure_count(const kvk_cache *c, const sequence *s, uint64_t missing)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < c->n_slots && n < missing; i++) {
        const sequence *from = &c->sequences[i];
        for (uint32_t g = 0; yields(from, s) && g < c->config.n_groups; g++)
            n += leave_free_ones(c, from, g, s, eviction_eligible(c, from, g, eviction_now(from)));
    }
    return n < missing ? n : missing;
}

/* ---- the cheapest pages of all, in a heap with the dearest on top */

static int is_dearer(const candidate *a, const candidate *b)
{
    if (a->seq->priority != b->seq->priority)
        return a->seq->priority > b->seq->priority;
    if (a->tier != b->tier)
        return a->tier > b->tier;
    if (a->price < b->price || a->price > b->price)
        return a->price > b->price;
    if (a->seq != b->seq)
        return a->seq->number < b->seq->number;
    if (a->group != b->group)
        return a->group > b->group;
    if (a->score < b->score || a->score > b->score) /* where prices mean nothing */
        return a->score > b->score;
    return a->number > b->number;
}

/* By table, and in it by page number. */
static int is_later(const candidate *a, const candidate *b)
{
    if (a->seq != b->seq)
        return a->seq->number > b->seq->number;
    return a->group != b->group ? a->group > b->group : a->number > b->number;
}

static void sift_down(candidate *pages, uint32_t n, uint32_t i, int (*above)(const candidate *, const candidate *))
{
    for (uint32_t child = 2 * i + 1; child < n; i = child, child = 2 * i + 1) {
        child += child + 1 < n && above(&pages[child + 1], &pages[child]);
        if (!above(&pages[child], &pages[i]))
            return;
        candidate moved = pages[i];
        pages[i] = pages[child];
        pages[child] = moved;
    }
}

static void heapify(candidate *pages, uint32_t n, int (*above)(const candidate *, const candidate *))
{
    for (uint32_t i = n / 2; i-- > 0;)
        sift_down(pages, n, i, above);
}

/* Returns 0 if it is dearer than `missing` others. */
static int offer(evict_scratch *e, uint32_t missing, const candidate *page)
{
    if (e->n_candidates < missing) {
        e->candidates[e->n_candidates++] = *page;
        if (e->n_candidates == missing)
            heapify(e->candidates, missing, is_dearer);
        return 1;
    }
    if (!is_dearer(&e->candidates[0], page))
        return 0;
    e->candidates[0] = *page;
    sift_down(e->candidates, missing, 0, is_dearer);
    return 1;
}

/* The share of a table's score that is lost with a page: in a table prices rise as scores do. */
static double price_of(float score, double total)
{
    return total > 0 && isfinite(total) ? (double)score / total : 0;
}

/* Offers a table's pages in the order in which they go: when one is too dear the rest is. */
static void offer_table(kvk_cache *c, const sequence *s, uint32_t group, const sequence *asker, uint32_t missing)
{
    evict_scratch *e = &c->evict;
    uint32_t held = eviction_rank(c, s, group); /* as ever, whatever can be taken */
    uint32_t quota = leave_free_ones(c, s, group, asker, held);
    double total = eviction_total(c, held);
    policy_queue q = eviction_queue(c, held);
    for (uint32_t n = 0; n < quota; n++) {
        uint32_t k = policy_queue_next(&q);
        candidate page = {.seq = s,
                          .price = price_of(e->score[k], total),
                          .score = e->score[k],
                          .tier = e->tier[k],
                          .group = group,
                          .number = table_number(&s->tables[group], k)};
        if (!offer(e, missing, &page))
            return;
    }
}

int pressure_plan(kvk_cache *c, const sequence *s, uint32_t missing)
{
    evict_scratch *e = &c->evict;
    if (memory_grow(c->memory, &e->candidates, &e->candidates_cap, missing, sizeof *e->candidates) < 0)
        return KVK_ENOMEM;
    e->n_candidates = 0;
    for (uint32_t i = 0; i < c->n_slots; i++)
        for (uint32_t g = 0; yields(&c->sequences[i], s) && g < c->config.n_groups; g++)
            offer_table(c, &c->sequences[i], g, s, missing);
    return e->n_candidates < missing ? KVK_ENOPAGE : 0;
}

/* ---- taking them */

static void sort(candidate *pages, uint32_t n)
{
    heapify(pages, n, is_later);
    while (n > 1) {
        candidate last = pages[--n];
        pages[n] = pages[0];
        pages[0] = last;
        sift_down(pages, n, 0, is_later);
    }
}

static int same_table(const candidate *a, const candidate *b)
{
    return a->seq == b->seq && a->group == b->group;
}

void pressure_apply(kvk_cache *c)
{
    const evict_scratch *e = &c->evict;
    sort(e->candidates, e->n_candidates);
    for (uint32_t i = 0, n; i < e->n_candidates; i += n) {
        const candidate *first = &e->candidates[i];
        sequence *s = &c->sequences[first->seq - c->sequences];
        for (n = 0; i + n < e->n_candidates && same_table(first + n, first); n++)
            e->victims[n] = table_find(&s->tables[first->group], first[n].number);
        evict_unweighed(c, s, first->group, e->victims, n);
    }
}
