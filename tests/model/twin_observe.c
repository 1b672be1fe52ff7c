/* twin_observe.c: what the attention of a batch gave its pages, taken into the scores. */
#include "twin_view.h"

#include <math.h>

/* Where the values of one entry stand in the arrays of a batch, and what they are sums over. */
typedef struct {
    const kvk_masses *m;
    const twin_entry *e;
    twin_seq *s;
    uint32_t rows, n_queries;                            /* of each row */
    uint32_t used;                                       /* rows that count */
    uint32_t n_listed[TWIN_GROUPS], n_near[TWIN_GROUPS]; /* pages of a row */
    uint64_t at[TWIN_GROUPS], near_at[TWIN_GROUPS];
} shown;

static bool was_listed(const twin *t, const twin_entry *e, uint32_t group, uint32_t entry)
{
    return entry >= e->first[group] && entry < twin_pages_for(t, e->start + e->n_query) && !e->lost[group][entry];
}

/* The first page of the text that near peaks are told of. */
static uint32_t near_from(const twin *t, const twin_entry *e)
{
    uint32_t full = e->start / t->config.page_tokens;
    return full ? full - 1 : 0;
}

uint32_t twin_listed(const twin *t, const twin_entry *e, uint32_t group, bool near)
{
    uint32_t n = 0, end = twin_pages_for(t, e->start + e->n_query);
    for (uint32_t i = near ? near_from(t, e) : 0; i < end; i++)
        n += was_listed(t, e, group, i);
    return n;
}

/* The sequence that is told of an entry, if any. */
static twin_seq *listener(twin *t, const twin_entry *e)
{
    twin_seq *s = e->left_alone ? NULL : twin_find(t, e->seq);
    return s && s->eviction.policy ? s : NULL;
}

/* The places of entry i; `w` holds those of the entry before it. */
static void show(twin *t, const twin_batch *b, const kvk_batch_result *result, uint32_t i, shown *w)
{
    const twin_entry *e = &b->entries[i];
    for (uint32_t g = 0; g < t->config.n_groups; g++) {
        w->at[g] = i ? w->at[g] + (uint64_t)w->rows * w->n_listed[g] : 0;
        w->near_at[g] = i ? w->near_at[g] + (uint64_t)w->rows * w->n_near[g] * t->n_near[g] : 0;
        w->n_listed[g] = twin_listed(t, e, g, false);
        w->n_near[g] = twin_listed(t, e, g, true);
    }
    w->m = result->masses;
    w->e = e;
    w->s = listener(t, e);
    w->rows = w->m->rows ? w->m->rows[i] : 1;
    w->n_queries = w->rows > 1 ? 1 : w->m->n_summed ? w->m->n_summed[i] : e->n_query;
    w->used = result->accepted ? result->accepted[i] : e->n_query;
    if (w->rows == 1)
        w->used = w->used > 0;
}

/* ---- Checking ---- */

static bool are_within(const float *values, uint64_t n, double most)
{
    for (uint64_t i = 0; i < n; i++) {
        if (!isfinite(values[i]) || values[i] < 0 || (double)values[i] > most)
            return false;
    }
    return true;
}

static bool values_are_valid(const twin *t, const shown *w)
{
    uint32_t needs = twin_needs(t, w->s);
    for (uint32_t g = 0; g < t->config.n_groups; g++) {
        uint64_t n = (uint64_t)w->used * w->n_listed[g], at = g * w->m->stride + w->at[g];
        if (!are_within(w->m->mean + at, n, w->n_queries * 1.001))
            return false;
        if ((needs & KVK_NEED_PEAK) && w->m->peak && !are_within(w->m->peak + at, n, 1.001))
            return false;
        if ((needs & KVK_NEED_NEAR) && w->m->near &&
            !are_within(w->m->near + g * w->m->near_stride + w->near_at[g],
                        (uint64_t)w->used * w->n_near[g] * t->n_near[g], (double)INFINITY))
            return false;
    }
    return true;
}

/* Is what the entry says of its rows possible, and do the arrays reach as far? */
static bool rows_are_valid(const twin *t, const shown *w, uint32_t accepted)
{
    uint32_t n_query = w->e->n_query;
    for (uint32_t g = 0; g < t->config.n_groups; g++) {
        uint64_t n_near = (uint64_t)w->rows * w->n_near[g] * t->n_near[g];
        if (w->at[g] + (uint64_t)w->rows * w->n_listed[g] > w->m->stride)
            return false;
        if (w->m->near && w->near_at[g] + n_near > w->m->near_stride)
            return false;
    }
    if (w->rows != 1 && w->rows != n_query)
        return false;
    if (w->rows == 1 && w->n_queries > n_query)
        return false;
    return w->rows > 1 || accepted == n_query || accepted == 0 || !w->s;
}

int twin_check_masses(twin *t, const twin_batch *b, const kvk_batch_result *result)
{
    shown w = {0};
    for (uint32_t i = 0; i < b->n; i++) {
        show(t, b, result, i, &w);
        if (!rows_are_valid(t, &w, result->accepted ? result->accepted[i] : w.e->n_query))
            return KVK_EINVAL;
        if (w.s && !values_are_valid(t, &w))
            return KVK_EINVAL;
    }
    return 0;
}

/* ---- Observing ---- */

/* A row's value for a page of a table, 0 for one that the plan did not list. */
static float value_of(const twin *t, const float *row, const shown *w, uint32_t group, uint32_t entry)
{
    if (!was_listed(t, w->e, group, entry))
        return 0;
    uint32_t before = 0;
    for (uint32_t i = 0; i < entry; i++)
        before += was_listed(t, w->e, group, i);
    return row[before];
}

static void note_masses(twin_seq *s, uint32_t group, const kvk_observation *seen, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += (double)seen->mean[i];
    s->figures.queries += seen->n_queries;
    s->figures.mass[group] += sum;
    s->figures.last[group] = sum / seen->n_queries;
    s->eviction.lost[group] *= exp2(-(double)seen->n_queries / 128);
}

static void observe_row(const twin *t, const shown *w, uint32_t group, uint32_t r, twin_moment at)
{
    float mean[TWIN_ENTRIES], peak[TWIN_ENTRIES];
    const kvk_masses *m = w->m;
    twin_eviction *e = &w->s->eviction;
    uint64_t row = group * m->stride + w->at[group] + (uint64_t)r * w->n_listed[group];
    uint32_t needs = twin_needs(t, w->s);
    twin_view v;
    twin_look(t, w->s, group, at, &v);
    v.view.eligible = NULL;
    for (uint32_t i = 0; i < v.view.n; i++) {
        mean[i] = value_of(t, m->mean + row, w, group, v.index[i]);
        peak[i] = m->peak ? value_of(t, m->peak + row, w, group, v.index[i]) : 0;
    }
    kvk_observation seen = {.first_query = at.n_tokens - w->n_queries, /* a sum is over the last ones */
                            .n_queries = w->n_queries,
                            .mean = mean,
                            .peak = m->peak && (needs & KVK_NEED_PEAK) ? peak : NULL};
    if (e->policy->observe && v.view.n && (needs & KVK_NEED_MEAN))
        e->policy->observe(&v.view, &seen);
    twin_keep_numbers(w->s, &v);
    note_masses(w->s, group, &seen, v.view.n);
}

/* Of pages that were lost since nothing is taken. */
static void observe_near(twin *t, const shown *w, uint32_t group, uint32_t r, uint32_t n_tokens)
{
    uint32_t n = t->n_near[group];
    const float *values = w->m->near + group * w->m->near_stride + w->near_at[group];
    values += (uint64_t)r * w->n_near[group] * n;
    for (uint32_t i = near_from(t, w->e); i < TWIN_ENTRIES; i++) {
        if (!was_listed(t, w->e, group, i))
            continue;
        if (i * t->config.page_tokens < n_tokens && twin_holds(w->s, group, i)) {
            twin_near_take(t, w->s, group, i, values);
            twin_near_settle(t, w->s, group, i, n_tokens);
        }
        values += n;
    }
}

/* What other batches in flight compute is not settled. */
static void trim_before(twin *t, const shown *w, uint32_t q)
{
    twin_seq copy = *w->s;
    twin_moment at = {q, q};
    for (uint32_t i = 0; i < TWIN_BATCHES; i++) {
        const twin_batch *b = &t->batches[i];
        for (uint32_t k = 0; b->handle && k < b->n; k++) {
            if (b->entries[k].seq == w->s->handle && &b->entries[k] != w->e && b->entries[k].start < at.settled)
                at.settled = b->entries[k].start;
        }
    }
    twin_trim(t, &copy, at);
    twin_apply_trim(t, w->s, &copy, at);
}

/* Each row of a query is a step of its own, which trims at a page border as a reservation would. */
static void observe_entry(twin *t, const shown *w)
{
    uint32_t P = t->config.page_tokens;
    bool near = w->m->near && (twin_needs(t, w->s) & KVK_NEED_NEAR);
    for (uint32_t r = 0; r < w->used && w->n_queries; r++) {
        uint32_t q = w->e->start + r, end = w->rows > 1 ? q + 1 : w->e->start + w->e->n_query;
        if (r && q % P == 0)
            trim_before(t, w, q);
        for (uint32_t g = 0; g < t->config.n_groups; g++) {
            if (near)
                observe_near(t, w, g, r, end);
            observe_row(t, w, g, r, (twin_moment){end, 0});
        }
    }
}

void twin_observe(twin *t, const twin_batch *b, const kvk_batch_result *result)
{
    shown w = {0};
    for (uint32_t i = 0; i < b->n; i++) {
        show(t, b, result, i, &w);
        if (w.s)
            observe_entry(t, &w);
    }
}
