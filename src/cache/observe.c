/* observe.c: what attention gave each page, into the scores of the sequences that have a policy. A batch's masses are
 * checked as a whole before any of them counts. */
#include "base/checked.h"
#include "cache/eviction.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- what a plan lists */

int observe_prepare_plan(kvk_cache *c, flight *b, const kvk_batch_entry *entries, uint32_t n)
{
    uint64_t listings = (uint64_t)n * c->config.n_groups, numbers = 0;
    for (uint32_t i = 0; i < n; i++) {
        sequence *s = &c->sequences[(uint32_t)entries[i].seq]; /* checked before */
        for (uint32_t g = 0; g < c->config.n_groups; g++)
            numbers += s->tables[g].lost ? s->tables[g].n : 0;
        if (near_prepare(c, s, ceil_div((uint64_t)s->n_tokens + entries[i].n_query, page_tokens(c))) < 0)
            return KVK_ENOMEM;
    }
    if (memory_grow(c->memory, &b->listings, &b->listings_cap, listings, sizeof *b->listings) < 0)
        return KVK_ENOMEM;
    return memory_grow(c->memory, &b->index, &b->index_cap, numbers, sizeof *b->index);
}

/* Listed pages from the one before that of the first query on: a batch can change the near peaks of these. */
static uint32_t count_near(const kvk_cache *c, const table *t, uint32_t start, uint32_t n)
{
    uint32_t page = start / page_tokens(c);
    return n - min_u32(n, table_below(t, page ? min_u32(page - 1, table_end(t)) : 0));
}

static listing list_table(const kvk_cache *c, flight *b, const table *t, const kvk_batch_entry *e, uint32_t at)
{
    uint32_t start = c->sequences[(uint32_t)e->seq].n_tokens;
    uint32_t n = table_entries(t, (uint32_t)ceil_div((uint64_t)start + e->n_query, page_tokens(c)));
    if (t->lost && n)
        memcpy(b->index + at, t->index, n * sizeof *b->index);
    return (listing){t->first, n, t->lost ? at : UINT32_MAX, count_near(c, t, start, n)};
}

void observe_plan(kvk_cache *c, flight *b, const kvk_batch_entry *entries, uint32_t n)
{
    listing *to = b->listings;
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        const sequence *s = &c->sequences[(uint32_t)entries[i].seq];
        for (uint32_t g = 0; g < c->config.n_groups; g++, to++) {
            *to = list_table(c, b, &s->tables[g], &entries[i], at);
            at += to->at == UINT32_MAX ? 0 : to->n;
        }
    }
}

static uint32_t listed_number(const flight *b, const listing *l, uint32_t k)
{
    return l->at == UINT32_MAX ? l->first + k : b->index[l->at + k];
}

/* ---- reading a batch's masses, entry after entry */

typedef struct mass_reader {
    kvk_cache *c;
    const flight *b;
    const kvk_masses *m;
    const uint32_t *accepted;
    uint32_t i;        /* the entry in hand */
    uint64_t *mean_at; /* [n_groups] where its values begin in each group */
    uint64_t *near_at;
} mass_reader;

static mass_reader read_masses(kvk_cache *c, const flight *b, const kvk_batch_result *result)
{
    mass_reader r = {c, b, result->masses, result->accepted, 0, c->evict.places, c->evict.places + c->config.n_groups};
    memset(c->evict.places, 0, 2 * (size_t)c->config.n_groups * sizeof *c->evict.places);
    return r;
}

static const flight_entry *entry_of(const mass_reader *r)
{
    return &r->b->entries[r->i];
}

static const listing *listing_of(const mass_reader *r, uint32_t group)
{
    return &r->b->listings[(size_t)r->i * r->c->config.n_groups + group];
}

static uint32_t rows_of(const mass_reader *r)
{
    return r->m->rows ? r->m->rows[r->i] : 1;
}

static uint32_t accepted_of(const mass_reader *r)
{
    return r->accepted ? r->accepted[r->i] : entry_of(r)->n_query;
}

static uint32_t start_of(const mass_reader *r)
{
    return entry_of(r)->end - entry_of(r)->n_query;
}

static void next_entry(mass_reader *r)
{
    for (uint32_t g = 0; g < r->c->config.n_groups; g++) {
        const listing *l = listing_of(r, g);
        r->mean_at[g] += (uint64_t)rows_of(r) * l->n;
        if (r->m->near)
            r->near_at[g] += (uint64_t)rows_of(r) * l->n_near * near_channels(r->c, g);
    }
    r->i++;
}

/* The sequence whose scores the entry in hand goes into, or NULL: it has no policy, or was closed or shortened. */
static sequence *observed_sequence(const mass_reader *r)
{
    sequence *s = sequence_find(r->c, entry_of(r)->seq);
    return s && eviction_of(s) && r->b->epoch > s->cut_epoch && r->m->mean ? s : NULL;
}

/* Rows that count, and the queries that each is a sum of. */
static uint32_t counted_rows(const mass_reader *r)
{
    if (rows_of(r) == entry_of(r)->n_query)
        return accepted_of(r);
    return accepted_of(r) > 0;
}

static uint32_t queries_of(const mass_reader *r)
{
    if (rows_of(r) > 1)
        return 1;
    return r->m->n_summed ? r->m->n_summed[r->i] : entry_of(r)->n_query;
}

static const float *row_at(const mass_reader *r, const float *values, uint32_t group, uint32_t row)
{
    return values + group * r->m->stride + r->mean_at[group] + (uint64_t)row * listing_of(r, group)->n;
}

static const float *near_row_at(const mass_reader *r, uint32_t group, uint32_t row)
{
    uint64_t n = (uint64_t)listing_of(r, group)->n_near * near_channels(r->c, group);
    return r->m->near + group * r->m->near_stride + r->near_at[group] + row * n;
}

/* ---- checking */

#define ROUNDING 1.001f /* a mass may be this much above what it can be at most */

/* Where the next entry's values begin depends on it, so it must be right for entries too whose values are not read. */
static int check_shape(const mass_reader *r)
{
    uint32_t rows = rows_of(r), n_query = entry_of(r)->n_query;
    if (rows != 1 && rows != n_query)
        return KVK_EINVAL;
    return r->m->n_summed && rows == 1 && r->m->n_summed[r->i] > n_query ? KVK_EINVAL : 0;
}

/* A row that is a sum counts as a whole. */
static int is_cut(const mass_reader *r)
{
    return rows_of(r) == 1 && accepted_of(r) > 0 && accepted_of(r) < entry_of(r)->n_query;
}

/* True if the caller's arrays reach as far as the entry in hand. */
static int has_places(const mass_reader *r, uint32_t group)
{
    const listing *l = listing_of(r, group);
    uint64_t near = r->m->near ? (uint64_t)rows_of(r) * l->n_near * near_channels(r->c, group) : 0;
    return r->mean_at[group] + (uint64_t)rows_of(r) * l->n <= r->m->stride &&
           r->near_at[group] + near <= r->m->near_stride;
}

static int check_group(const mass_reader *r, const eviction *e, uint32_t group)
{
    uint32_t rows = counted_rows(r), needs = e->needs;
    const listing *l = listing_of(r, group);
    uint64_t n = (uint64_t)rows * l->n, near = (uint64_t)rows * l->n_near * near_channels(r->c, group);
    if (!floats_are_within(row_at(r, r->m->mean, group, 0), n, (float)queries_of(r) * ROUNDING))
        return KVK_EINVAL;
    if ((needs & KVK_NEED_PEAK) && r->m->peak && !floats_are_within(row_at(r, r->m->peak, group, 0), n, ROUNDING))
        return KVK_EINVAL;
    if ((needs & KVK_NEED_NEAR) && r->m->near && !floats_are_within(near_row_at(r, group, 0), near, FLT_MAX))
        return KVK_EINVAL;
    return 0;
}

/* The groups of an entry lie far apart: one's values are fetched while those of the one before are read. */
static void fetch_masses(const mass_reader *r, uint32_t group)
{
    if (group == r->c->config.n_groups)
        return;
    const float *mean = row_at(r, r->m->mean, group, 0);
    for (uint32_t k = 0; k < listing_of(r, group)->n; k += 16)
        __builtin_prefetch(mean + k);
}

static int check_entry(const mass_reader *r)
{
    const sequence *s = observed_sequence(r);
    for (uint32_t g = 0; g < r->c->config.n_groups; g++)
        if (!has_places(r, g))
            return KVK_EINVAL;
    int rc = s && is_cut(r) ? KVK_EINVAL : check_shape(r);
    for (uint32_t g = 0; s && rc == 0 && counted_rows(r) > 0 && g < r->c->config.n_groups; g++) {
        fetch_masses(r, g + 1);
        rc = check_group(r, s->eviction, g);
    }
    return rc;
}

int observe_check(kvk_cache *c, const flight *b, const kvk_batch_result *result)
{
    if (result->masses->size != sizeof *result->masses)
        return KVK_EINVAL;
    mass_reader r = read_masses(c, b, result);
    for (; r.i < b->n; next_entry(&r))
        if (check_entry(&r) < 0)
            return KVK_EINVAL;
    return 0;
}

/* ---- taking in */

#define BLOCK 512u /* few enough additions in a row for float */

typedef float lanes __attribute__((vector_size(16)));

static double sum_block(const float *values, uint32_t n)
{
    lanes sums[4] = {{0}}, next[4];
    double sum = 0;
    uint32_t k = 0;
    for (; k + 16 <= n; k += 16) {
        memcpy(next, values + k, sizeof next);
        for (uint32_t j = 0; j < 4; j++)
            sums[j] += next[j];
    }
    sums[0] += sums[1] + (sums[2] + sums[3]);
    for (uint32_t j = 0; j < 4; j++)
        sum += (double)sums[0][j];
    for (; k < n; k++)
        sum += (double)values[k];
    return sum;
}

static double sum_of(const float *values, uint32_t n)
{
    double sum = 0;
    for (uint32_t k = 0; k < n; k += BLOCK)
        sum += sum_block(values + k, min_u32(BLOCK, n - k));
    return sum;
}

/* A row in the order of the table as it is now: pages lost since the plan are left out, pages that came since get 0. */
static void fit_row(const mass_reader *r, const table *t, const listing *l, const float *row, float *to)
{
    for (uint32_t k = 0, at = 0; k < t->n; k++) {
        while (at < l->n && listed_number(r->b, l, at) < table_number(t, k))
            at++;
        to[k] = at < l->n && listed_number(r->b, l, at) == table_number(t, k) ? row[at] : 0;
    }
}

/* The row itself, or one made to fit in the scratch (part 0 or 1). */
static const float *fitted(const mass_reader *r, const sequence *s, uint32_t group, const float *row, uint32_t part)
{
    const table *t = &s->tables[group];
    if (s->shape == entry_of(r)->shape)
        return row;
    float *to = r->c->evict.row + (size_t)part * (r->c->evict.row_cap / 2);
    fit_row(r, t, listing_of(r, group), row, to);
    return to;
}

static void count_mass(group_eviction *g, double mass, uint32_t n_queries)
{
    g->queries += n_queries;
    g->mass += mass;
    g->last = mass / n_queries;
}

/* `end`: tokens of the text once the row's queries are in it. */
static void observe_group(const mass_reader *r, sequence *s, uint32_t group, uint32_t row, uint32_t end)
{
    const eviction *e = s->eviction;
    const kvk_policy *policy = eviction_policy(e);
    float *scores[KVK_MAX_SCORES];
    kvk_policy_view view = eviction_view(r->c, s, group, end, scores);
    kvk_observation seen = {end - queries_of(r), queries_of(r), NULL, NULL}; /* a sum is over the last ones */
    seen.mean = fitted(r, s, group, row_at(r, r->m->mean, group, row), 0);
    if ((e->needs & KVK_NEED_PEAK) && r->m->peak)
        seen.peak = fitted(r, s, group, row_at(r, r->m->peak, group, row), 1);
    count_mass(&s->eviction->groups[group], sum_of(seen.mean, view.n), seen.n_queries);
    if (e->settings.target > 0)
        s->eviction->groups[group].lost *= exp2(-(double)seen.n_queries / 128);
    if (policy->observe && view.n && (e->needs & KVK_NEED_MEAN))
        policy->observe(&view, &seen);
}

static void observe_near(const mass_reader *r, sequence *s, uint32_t group, uint32_t row, uint32_t end)
{
    const listing *l = listing_of(r, group);
    uint32_t n = l->n_near, channels = near_channels(r->c, group);
    const float *values = near_row_at(r, group, row);
    for (uint32_t k = l->n - n; k < l->n; k++, values += channels) {
        uint32_t number = listed_number(r->b, l, k);
        if ((uint64_t)number * page_tokens(r->c) >= end || !table_holds(&s->tables[group], number))
            continue;
        near_take(r->c, s, group, number, values);
        near_settle(r->c, s, group, number, end);
    }
}

/* Where plain decoding would have trimmed before it came to this query, so does a batch of drafts. */
static void trim_before(const mass_reader *r, sequence *s, uint32_t n_tokens)
{
    if (n_tokens % page_tokens(r->c))
        return;
    moment at = eviction_moment(s, n_tokens);
    trim t = trim_plan(r->c, s, at);
    if (t.victims || t.asked)
        trim_apply(r->c, s, &t, at);
}

static int tells_near(const mass_reader *r, const sequence *s, uint32_t group)
{
    return near_is_kept(s->eviction) && r->m->near && near_channels(r->c, group) > 0;
}

/* The scores of a group, as fetch_masses. */
static void fetch_scores(const mass_reader *r, const sequence *s, uint32_t group)
{
    if (group == r->c->config.n_groups)
        return;
    const float *lane = eviction_lane(r->c, s->eviction, group, 0);
    for (uint32_t k = 0; lane && k < s->tables[group].n; k += 16)
        __builtin_prefetch(lane + k, 1);
}

static void observe_row(const mass_reader *r, sequence *s, uint32_t row, uint32_t end)
{
    if (row > 0)
        trim_before(r, s, end - 1);
    for (uint32_t g = 0; g < r->c->config.n_groups; g++) {
        fetch_masses(r, g + 1);
        fetch_scores(r, s, g + 1);
        if (tells_near(r, s, g))
            observe_near(r, s, g, row, end);
        observe_group(r, s, g, row, end);
    }
}

static void observe_entry(const mass_reader *r)
{
    sequence *s = observed_sequence(r);
    if (!s || queries_of(r) == 0)
        return;
    for (uint32_t row = 0; row < counted_rows(r); row++)
        observe_row(r, s, row, rows_of(r) == entry_of(r)->n_query ? start_of(r) + row + 1 : entry_of(r)->end);
}

void observe(kvk_cache *c, const flight *b, const kvk_batch_result *result)
{
    mass_reader r = read_masses(c, b, result);
    for (; r.i < b->n; next_entry(&r))
        observe_entry(&r);
}
