/* batch.c: batches in flight. A plan is checked and measured first, then written and opened by steps that cannot
 * fail. */
#include "base/checked.h"
#include "cache/eviction.h"
#include "cache/plan.h"
#include "cache/record.h"

#include <string.h>

void kvk_plan_init(kvk_plan *plan)
{
    if (plan)
        *plan = (kvk_plan){.size = sizeof *plan, .form = KVK_PLAN_CSR, .index_bits = 32};
}

/* The pages before `end` of the longest of its tables: no group lists more. */
static uint32_t most_entries(const kvk_cache *c, const sequence *s, uint32_t end)
{
    uint32_t most = table_entries(&s->tables[0], end);
    for (uint32_t g = 1; g < c->config.n_groups; g++)
        most = max_u32(most, table_entries(&s->tables[g], end));
    return most;
}

/* What one entry asks for; adds it to the plan's needs. */
static int measure_entry(kvk_cache *c, const kvk_batch_entry *e, kvk_plan *plan)
{
    sequence *s;
    int rc = sequence_use(c, e->seq, &s);
    if (rc < 0)
        return rc;
    if (s->plan_mark == c->plans)
        return KVK_EINVAL;
    s->plan_mark = c->plans;
    uint64_t end = (uint64_t)s->n_tokens + e->n_query;
    if (end > sequence_room(c, s) || (e->n_query && !sequence_is_writable(c, s)))
        return KVK_ESTATE;
    uint32_t pages = most_entries(c, s, (uint32_t)ceil_div(end, page_tokens(c)));
    if (eviction_of(s)) {
        c->plan_observed = 1;
        plan->needs |= s->eviction->needs & (KVK_NEED_MEAN | KVK_NEED_PEAK | KVK_NEED_NEAR);
    }
    plan->n_slots += e->n_query;
    plan->n_pages = plan->form == KVK_PLAN_CSR ? plan->n_pages + pages : pages > plan->n_pages ? pages : plan->n_pages;
    return 0;
}

static int plan_is_valid(const kvk_plan *plan)
{
    return plan && plan->size == sizeof *plan && plan->form <= KVK_PLAN_PADDED &&
           (plan->index_bits == 32 || plan->index_bits == 64);
}

/* True if the caller's arrays hold the plan; arrays left out hold anything. */
static int plan_fits(const kvk_plan *plan, uint32_t n)
{
    int lists = plan->pages || plan->positions;
    int rows = lists || plan->indptr || plan->last_page_len || plan->seq_lens || plan->query_indptr;
    return (!rows || n <= plan->entries_cap) && (!lists || plan->n_pages <= plan->pages_cap) &&
           (!plan->slots || plan->n_slots <= plan->slots_cap);
}

static int measure_plan(kvk_cache *c, const kvk_batch_entry *entries, uint32_t n, kvk_plan *plan)
{
    plan->n_pages = plan->n_slots = 0;
    plan->needs = 0;
    c->plan_observed = 0;
    c->plans++;
    for (uint32_t i = 0; i < n; i++) {
        int rc = measure_entry(c, &entries[i], plan);
        if (rc < 0)
            return rc;
    }
    if (plan->index_bits == 32 && (plan->n_pages > INT32_MAX || plan->n_slots > INT32_MAX))
        return KVK_EINVAL;
    return plan_fits(plan, n) ? 0 : KVK_ESPACE;
}

/* Room for one more batch with n entries, kept for later ones. */
static flight *prepare_batch(kvk_cache *c, uint32_t n)
{
    if (memory_grow(c->memory, &c->batches, &c->batches_cap, (uint64_t)c->n_batches + 1, sizeof *c->batches) < 0)
        return NULL;
    if (c->n_batches == c->batches_made)
        c->batches[c->batches_made++] = (flight){0};
    flight *b = &c->batches[c->n_batches];
    return memory_grow(c->memory, &b->entries, &b->cap, n, sizeof *b->entries) < 0 ? NULL : b;
}

static void open_batch(kvk_cache *c, flight *b, const kvk_batch_entry *entries, uint32_t n)
{
    b->epoch = c->next_epoch++;
    b->n = n;
    for (uint32_t i = 0; i < n; i++) {
        sequence *s = &c->sequences[(uint32_t)entries[i].seq]; /* measure_entry found it */
        s->unsettled = min_u32(s->unsettled, s->n_tokens);
        sequence_set_length(c, s, s->n_tokens + entries[i].n_query);
        s->last_epoch = b->epoch;
        s->n_in_flight++;
        b->entries[i] = (flight_entry){entries[i].seq, entries[i].n_query, s->n_tokens, s->shape};
    }
    c->n_batches++;
    pool_of(c)->oldest_open = oldest_open(c);
}

static int batch_plan(kvk_cache *c, const kvk_batch_entry *entries, uint32_t n, kvk_plan *plan)
{
    int rc = measure_plan(c, entries, n, plan);
    if (rc < 0)
        return rc;
    flight *b = prepare_batch(c, n);
    if (!b)
        return KVK_ENOMEM;
    b->observed = c->plan_observed;
    if (b->observed && observe_prepare_plan(c, b, entries, n) < 0)
        return KVK_ENOMEM;
    plan_write(c, entries, n, plan);
    if (b->observed)
        observe_plan(c, b, entries, n);
    open_batch(c, b, entries, n);
    return 0;
}

int kvk_batch_plan(kvk_cache *cache, const kvk_batch_entry *entries, uint32_t n, kvk_plan *plan, kvk_batch *out)
{
    if (!cache_is_ready(cache) || (n && !entries) || n > INT32_MAX || !plan_is_valid(plan) || !out)
        return cache_refuses(cache);
    int rc = batch_plan(cache, entries, n, plan);
    if (rc >= 0)
        *out = cache->batches[cache->n_batches - 1].epoch;
    if (cache->recorder)
        record_plan(cache, entries, n, rc);
    return rc;
}

static flight *find_batch(kvk_cache *c, kvk_batch id)
{
    for (uint32_t i = 0; i < c->n_batches; i++)
        if (c->batches[i].epoch == id)
            return &c->batches[i];
    return NULL;
}

/* Tokens that an entry keeps of its sequence. */
static uint32_t end_of(const flight *b, uint32_t i, const uint32_t *accepted)
{
    return accepted ? b->entries[i].end - b->entries[i].n_query + accepted[i] : b->entries[i].end;
}

/* The sequence that an entry's rejected tokens are to be taken off, or NULL: none are, or it was closed or shortened
 * since. */
static sequence *cut_sequence(const kvk_cache *c, const flight *b, uint32_t i, const uint32_t *accepted)
{
    sequence *s = sequence_find(c, b->entries[i].seq);
    uint32_t end = end_of(b, i, accepted);
    return s && b->epoch > s->cut_epoch && end < b->entries[i].end && end < s->n_tokens ? s : NULL;
}

/* Marks the sequences of the batches in flight that were planned after `b`: they build on its tokens. */
static void mark_later(kvk_cache *c, const flight *b)
{
    c->plans++;
    for (const flight *later = b + 1; later < c->batches + c->n_batches; later++)
        for (uint32_t i = 0; i < later->n; i++) {
            sequence *s = sequence_find(c, later->entries[i].seq);
            if (s)
                s->plan_mark = c->plans;
        }
}

static int check_result(kvk_cache *c, const flight *b, const uint32_t *accepted)
{
    for (uint32_t i = 0; accepted && i < b->n; i++)
        if (accepted[i] > b->entries[i].n_query)
            return KVK_EINVAL;
    if (accepted)
        mark_later(c, b);
    for (uint32_t i = 0; accepted && i < b->n; i++) {
        const sequence *s = cut_sequence(c, b, i, accepted);
        if (s && s->plan_mark == c->plans)
            return KVK_EBUSY;
        if (s && s->n_committed > end_of(b, i, accepted))
            return KVK_EINVAL;
    }
    return 0;
}

/* Rejected tokens were not observed, but those of a later batch that ended first were, and go with them. */
static void take_off(kvk_cache *c, sequence *s, const flight_entry *e, uint32_t n_tokens)
{
    if (s->eviction && s->n_tokens > e->end)
        near_cut(c, s, n_tokens / page_tokens(c));
    sequence_set_length(c, s, n_tokens);
}

/* Takes a batch out of those in flight; its memory goes behind them for the next one. */
static void close_batch(kvk_cache *c, flight *b)
{
    flight ended = *b;
    uint32_t i = (uint32_t)(b - c->batches);
    memmove(b, b + 1, (c->n_batches - i - 1) * sizeof *b);
    c->batches[--c->n_batches] = ended;
}

/* The batch reads and writes no more: its sequences are settled up to their other batches. */
static void settle(kvk_cache *c, const flight *ended)
{
    sequence *s;
    for (uint32_t i = 0; i < ended->n; i++)
        if ((s = sequence_find(c, ended->entries[i].seq)))
            s->unsettled = UINT32_MAX;
    for (const flight *b = c->batches; b < c->batches + c->n_batches; b++)
        for (uint32_t i = 0; b != ended && i < b->n; i++)
            if ((s = sequence_find(c, b->entries[i].seq)))
                s->unsettled = min_u32(s->unsettled, b->entries[i].end - b->entries[i].n_query);
}

/* `observed` gets whether masses were taken in. */
static int batch_end(kvk_cache *c, kvk_batch id, const kvk_batch_result *result, int *observed)
{
    flight *b = find_batch(c, id);
    if (!b)
        return KVK_ESTALE;
    if (result && result->n != b->n)
        return KVK_EINVAL;
    const uint32_t *accepted = result ? result->accepted : NULL;
    int rc = check_result(c, b, accepted);
    *observed = b->observed && result && result->masses && result->masses->mean;
    if (rc == 0 && *observed)
        rc = observe_check(c, b, result);
    if (rc < 0)
        return rc;
    if (*observed || c->n_batches > 1) /* else its sequences are settled as they are left */
        settle(c, b);
    if (*observed)
        observe(c, b, result);
    for (uint32_t i = 0; i < b->n; i++) {
        sequence *cut = cut_sequence(c, b, i, accepted), *s = sequence_find(c, b->entries[i].seq);
        if (cut)
            take_off(c, cut, &b->entries[i], end_of(b, i, accepted));
        if (s && --s->n_in_flight == 0)
            s->unsettled = UINT32_MAX;
    }
    close_batch(c, b);
    return (int)pool_drain(pool_of(c), oldest_open(c));
}

int kvk_batch_end(kvk_cache *cache, kvk_batch batch, const kvk_batch_result *result)
{
    if (!cache_is_ready(cache) || (result && result->size != sizeof *result))
        return cache_refuses(cache);
    int observed = 0, rc = batch_end(cache, batch, result, &observed);
    if (cache->recorder)
        record_end(cache, batch, result, rc >= 0 && observed ? cache->evict.places : NULL, rc);
    return rc;
}
