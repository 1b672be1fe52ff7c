/* twin_batch.c: batches in flight, moves and statistics. */
#include <string.h>

#include "twin.h"

twin_batch *twin_find_batch(twin *t, kvk_batch handle)
{
    for (uint32_t i = 0; handle && i < TWIN_BATCHES; i++) {
        if (t->batches[i].handle == handle)
            return &t->batches[i];
    }
    return NULL;
}

static bool listed_before(const kvk_batch_entry *entries, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++) {
        if (entries[k].seq == entries[i].seq)
            return true;
    }
    return false;
}

static int check_entry(twin *t, const kvk_batch_entry *entry)
{
    const twin_seq *s = twin_find(t, entry->seq);
    uint64_t room = (uint64_t)s->end * t->config.page_tokens;
    if (s->n_tokens + (uint64_t)entry->n_query > room || (entry->n_query && !twin_may_write(t, s)))
        return KVK_ESTATE;
    return 0;
}

/* What the longest of the tables lists. */
static uint64_t most_listed(const twin *t, const twin_seq *s, uint32_t n_tokens)
{
    uint32_t most = 0;
    for (uint32_t g = 0; g < t->config.n_groups; g++) {
        uint32_t n = twin_count_held(s, g, twin_pages_for(t, n_tokens));
        most = n > most ? n : most;
    }
    return most;
}

static void measure(twin *t, const kvk_batch_entry *entries, uint32_t n, kvk_plan *plan)
{
    plan->n_pages = plan->n_slots = plan->needs = 0;
    for (uint32_t i = 0; i < n; i++) {
        const twin_seq *s = twin_find(t, entries[i].seq);
        uint64_t pages = most_listed(t, s, s->n_tokens + entries[i].n_query);
        if (plan->form == KVK_PLAN_CSR)
            plan->n_pages += pages;
        else if (pages > plan->n_pages)
            plan->n_pages = pages;
        plan->n_slots += entries[i].n_query;
        plan->needs |= twin_needs(t, s) & (KVK_NEED_MEAN | KVK_NEED_PEAK | KVK_NEED_NEAR);
    }
}

/* Arrays left out hold anything. */
static bool fits(const kvk_plan *plan, uint32_t n)
{
    bool lists = plan->pages || plan->positions;
    bool any = lists || plan->indptr || plan->last_page_len || plan->seq_lens || plan->query_indptr;
    return !(any && n > plan->entries_cap) && !(lists && plan->n_pages > plan->pages_cap) &&
           !(plan->slots && plan->n_slots > plan->slots_cap);
}

int twin_plan_check(twin *t, const kvk_batch_entry *entries, uint32_t n, kvk_plan *plan)
{
    for (uint32_t i = 0; i < n; i++) {
        twin_seq *s;
        int rc = twin_use(t, entries[i].seq, &s);
        if (rc == 0)
            rc = listed_before(entries, i) ? KVK_EINVAL : check_entry(t, &entries[i]);
        if (rc < 0)
            return rc;
    }
    measure(t, entries, n, plan);
    return fits(plan, n) ? 0 : KVK_ESPACE;
}

static void list_pages(const twin *t, twin_batch *b, const twin_seq *s)
{
    for (uint32_t g = 0; g < t->config.n_groups; g++) {
        for (uint32_t i = s->first[g]; i < twin_pages_for(t, s->n_tokens); i++) {
            if (twin_holds(s, g, i))
                b->lists[s->table[g][i]] = t->pages[s->table[g][i]].generation;
        }
    }
}

void twin_plan(twin *t, const kvk_batch_entry *entries, uint32_t n, kvk_batch handle)
{
    uint32_t place = 0;
    while (t->batches[place].handle)
        place++;
    twin_batch *b = &t->batches[place];
    *b = (twin_batch){.handle = handle, .number = ++t->n_planned, .n = n};
    for (uint32_t i = 0; i < n; i++) {
        twin_seq *s = twin_find(t, entries[i].seq);
        b->entries[i] = (twin_entry){.seq = s->handle, .start = s->n_tokens, .n_query = entries[i].n_query};
        memcpy(b->entries[i].first, s->first, sizeof s->first);
        memcpy(b->entries[i].table, s->table, sizeof s->table);
        memcpy(b->entries[i].lost, s->lost, sizeof s->lost);
        twin_set_length(t, s, s->n_tokens + entries[i].n_query);
        s->n_in_flight++;
        b->is_observed |= s->eviction.policy != NULL;
        s->last_batch = b->number;
        list_pages(t, b, s);
    }
}

/* Does the entry read token place `offset` of a page? */
static bool reads(const twin *t, const twin_entry *e, uint32_t group, uint32_t page, uint32_t offset)
{
    uint32_t end = e->start + e->n_query, page_tokens = t->config.page_tokens;
    for (uint32_t i = e->first[group]; i * page_tokens + offset < end; i++) {
        if (e->table[group][i] == page && !e->lost[group][i])
            return true;
    }
    return false;
}

static bool read_for_another(const twin *t, const twin_entry *writer, uint32_t group, uint32_t token)
{
    uint32_t page = writer->table[group][token / t->config.page_tokens], offset = token % t->config.page_tokens;
    for (uint32_t i = 0; i < TWIN_BATCHES; i++) {
        const twin_batch *b = &t->batches[i];
        for (uint32_t k = 0; b->handle && k < b->n; k++) {
            if (b->entries[k].seq != writer->seq && reads(t, &b->entries[k], group, page, offset))
                return true;
        }
    }
    return false;
}

bool twin_overwrites(const twin *t, kvk_batch handle)
{
    const twin_batch *b = t->batches;
    while (b->handle != handle)
        b++;
    for (uint32_t i = 0; i < b->n; i++) {
        const twin_entry *e = &b->entries[i];
        for (uint32_t token = e->start; token < e->start + e->n_query; token++) {
            for (uint32_t g = 0; g < t->config.n_groups; g++) {
                if (read_for_another(t, e, g, token))
                    return true;
            }
        }
    }
    return false;
}

static bool later_holds(const twin *t, const twin_batch *b, kvk_seq handle)
{
    for (uint32_t i = 0; i < TWIN_BATCHES; i++) {
        const twin_batch *other = &t->batches[i];
        for (uint32_t k = 0; other->handle && other->number > b->number && k < other->n; k++) {
            if (other->entries[k].seq == handle)
                return true;
        }
    }
    return false;
}

/* May the tokens of entry `i` from `accepted` on be taken off its sequence? */
static int check_rejected(twin *t, const twin_batch *b, uint32_t i, uint32_t accepted)
{
    const twin_entry *e = &b->entries[i];
    if (accepted == e->n_query || e->left_alone)
        return 0;
    if (later_holds(t, b, e->seq))
        return KVK_EBUSY;
    return e->start + accepted < twin_find(t, e->seq)->n_committed ? KVK_EINVAL : 0;
}

static int check_result(twin *t, const twin_batch *b, const kvk_batch_result *result)
{
    int rc = 0;
    if (result->n != b->n)
        return KVK_EINVAL;
    for (uint32_t i = 0; result->accepted && i < b->n; i++) {
        if (result->accepted[i] > b->entries[i].n_query)
            return KVK_EINVAL;
    }
    for (uint32_t i = 0; result->accepted && i < b->n && rc == 0; i++)
        rc = check_rejected(t, b, i, result->accepted[i]);
    return rc;
}

static void end_entry(twin *t, const twin_entry *e, uint32_t accepted)
{
    twin_seq *s = twin_find(t, e->seq);
    if (!s)
        return;
    s->n_in_flight--;
    if (accepted == e->n_query || e->left_alone)
        return;
    if (s->n_tokens > e->start + e->n_query) /* of a later batch that ended first, and was observed */
        twin_near_cut(t, s, (e->start + accepted) / t->config.page_tokens);
    twin_shorten(t, s, e->start + accepted);
}

int twin_end(twin *t, kvk_batch handle, const kvk_batch_result *result)
{
    twin_batch *b = twin_find_batch(t, handle);
    if (!b)
        return KVK_ESTALE;
    const uint32_t *accepted = result ? result->accepted : NULL;
    int rc = result ? check_result(t, b, result) : 0;
    bool is_observed = b->is_observed && result && result->masses && result->masses->mean;
    if (rc == 0 && is_observed)
        rc = twin_check_masses(t, b, result);
    if (rc < 0)
        return rc;
    if (is_observed)
        twin_observe(t, b, result);
    for (uint32_t i = 0; i < b->n; i++)
        end_entry(t, &b->entries[i], accepted ? accepted[i] : b->entries[i].n_query);
    b->handle = 0;
    return twin_leave_limbo(t);
}

void twin_queue_move(twin *t, kvk_move move)
{
    t->moves[t->n_moves++] = move;
}

static uint32_t count_in_flight(const twin *t)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < TWIN_BATCHES; i++)
        n += t->batches[i].handle != 0;
    return n;
}

bool twin_is_quiet(const twin *t)
{
    return count_in_flight(t) == 0 && t->n_moves == 0 && twin_draining(t) == 0;
}

uint32_t twin_host_used(const twin *t)
{
    return t->n_host_touched - t->host_given.n;
}

/* Those of the pool that are in a state, and how many tokens they hold; those that are pinned alone if so asked. */
static uint32_t count_pages(const twin *t, enum kvk_page_state state, bool pinned, uint64_t *n_tokens)
{
    uint32_t n = 0;
    *n_tokens = 0;
    for (uint32_t i = 0; i < t->n_touched; i++) {
        if (t->pages[i].state != state || (pinned && !t->pages[i].pins))
            continue;
        n++;
        *n_tokens += t->pages[i].n_tokens;
    }
    return n;
}

void twin_stats(const twin *t, kvk_stats *out)
{
    uint64_t any;
    *out = t->totals;
    out->pages_draining = twin_draining(t);
    out->n_pages = t->config.n_pages + out->pages_draining;
    out->page_tokens = t->config.page_tokens;
    out->pages_cached = t->cached.n;
    out->pages_limbo = t->limbo.n;
    out->pages_pinned = count_pages(t, KVK_PAGE_CACHED, true, &any);
    out->pages_used = count_pages(t, KVK_PAGE_USED, false, &out->live_tokens);
    out->pages_free = out->n_pages - out->pages_used - out->pages_cached - out->pages_limbo;
    out->host_pages_used = twin_host_used(t);
    out->batches_in_flight = count_in_flight(t);
    out->moves_waiting = t->n_moves;
    out->usage_pages = (double)out->pages_used / out->n_pages;
    out->usage_tokens = (double)out->live_tokens / ((double)out->n_pages * out->page_tokens);
}
