/* sequence.c: handles, and the life of a sequence: open, fork, close. */
#include "base/checked.h"
#include "cache/eviction.h"
#include "cache/record.h"

#include <string.h>

#define MAX_GENERATION 0x7FFFFFFFu /* keeps handles below 2^63 */

kvk_seq sequence_handle(const kvk_cache *c, const sequence *s)
{
    return (uint64_t)s->generation << 32 | (uint64_t)(s - c->sequences);
}

uint64_t sequence_room(const kvk_cache *c, const sequence *s)
{
    uint64_t room = (uint64_t)table_end(&s->tables[0]) * page_tokens(c);
    return room < KVK_MAX_TOKENS ? room : KVK_MAX_TOKENS;
}

static uint32_t node_of(uint32_t chain)
{
    return chain == CHAIN_BROKEN ? NODE_NONE : chain;
}

void sequence_follow(kvk_cache *c, sequence *s, uint32_t chain)
{
    prefix_pin(&c->store.prefix, node_of(chain));
    prefix_unpin(&c->store.prefix, node_of(s->chain));
    s->chain = chain;
}

int sequence_is_writable(const kvk_cache *c, const sequence *s)
{
    for (uint32_t g = 0; g < c->config.n_groups; g++)
        if (sequence_tail_need(c, s, g) != TAIL_NOTHING)
            return 0;
    return 1;
}

int sequence_let_go(kvk_cache *c, const sequence *s, uint32_t i, uint32_t page)
{
    if (s->n_retentions)
        retain_page(c, s, i, page);
    return pool_unref(pool_of(c), page, s->last_epoch);
}

/* Takes number i, the last one, off a table, whether it is held or missing. Returns 1 if nobody refers to its page any
 * more. */
static int release_last(kvk_cache *c, sequence *s, uint32_t group, uint32_t i)
{
    table *t = &s->tables[group];
    if (i < t->first)
        return 0;
    if (t->lost && (t->n == 0 || t->index[t->n - 1] < i)) {
        t->lost--;
        return 0;
    }
    return sequence_let_go(c, s, i, t->pages[--t->n]);
}

int sequence_release(kvk_cache *c, sequence *s, uint32_t keep)
{
    int gone = 0;
    for (uint32_t i = table_end(&s->tables[0]); i-- > keep;)
        for (uint32_t g = 0; g < c->config.n_groups; g++)
            gone += release_last(c, s, g, i);
    for (uint32_t g = 0; g < c->config.n_groups; g++)
        if (s->tables[g].first > keep)
            table_clear(&s->tables[g], keep);
    return gone;
}

int sequence_prepare_tables(kvk_cache *c, sequence *s, uint64_t n)
{
    for (uint32_t g = 0; g < c->config.n_groups; g++)
        if (table_prepare(c->memory, &s->tables[g], n) < 0)
            return KVK_ENOMEM;
    if (s->eviction && (eviction_prepare(c, s, n) < 0 || near_prepare(c, s, n) < 0))
        return KVK_ENOMEM;
    return 0;
}

int sequence_has_lost(const kvk_cache *c, const sequence *s)
{
    for (uint32_t g = 0; g < c->config.n_groups; g++)
        if (s->tables[g].lost)
            return 1;
    return 0;
}

void sequence_drop_host(kvk_cache *c, sequence *s)
{
    for (uint32_t g = 0; g < c->config.n_groups; g++) {
        table *t = &s->tables[g];
        for (uint32_t i = t->n; i-- > 0;)
            host_pool_give(&c->host, t->pages[i]);
        table_clear(t, 0);
    }
    s->swapped = 0;
}

uint32_t sequence_needs_from(const kvk_cache *c, uint32_t group, uint32_t n_tokens)
{
    uint32_t window = c->windows[group];
    return window == 0 || n_tokens < window ? 0 : (n_tokens - window + 1) / page_tokens(c);
}

/* The first entries of a table go, those below number `from`. */
static void slide_table(kvk_cache *c, sequence *s, uint32_t group, uint32_t from)
{
    table *t = &s->tables[group];
    uint32_t gone = table_find(t, from), passed = from - t->first;
    for (uint32_t k = 0; k < gone; k++)
        sequence_let_go(c, s, table_number(t, k), t->pages[k]);
    t->lost -= passed - gone;
    t->first = from;
    t->n -= gone;
    memmove(t->pages, t->pages + gone, t->n * sizeof *t->pages);
    if (t->indexed)
        memmove(t->index, t->index + gone, t->n * sizeof *t->index);
    if (s->eviction)
        eviction_slide(c, s, group, gone);
    s->shape++;
}

void sequence_slide(kvk_cache *c, sequence *s)
{
    for (uint32_t g = 0; g < c->config.n_groups; g++) {
        uint32_t from = sequence_needs_from(c, g, s->n_committed);
        if (from > s->tables[g].first)
            slide_table(c, s, g, from);
    }
}

uint32_t sequence_tokens_in(const kvk_cache *c, uint32_t n_tokens, uint32_t i)
{
    uint64_t before = (uint64_t)i * page_tokens(c);
    return n_tokens <= before ? 0 : min_u32(page_tokens(c), (uint32_t)(n_tokens - before));
}

/* What is known of the text from there on is forgotten; pages that stay reserved begin anew. */
static void begin_anew(const kvk_cache *c, sequence *s, uint32_t n_tokens)
{
    uint32_t end = pages_of_tokens(c, n_tokens);
    if (s->eviction->asked_at > n_tokens)
        s->eviction->asked_at = 0;
    for (uint32_t g = 0; g < c->config.n_groups; g++)
        eviction_begin_entries(c, s, g, table_entries(&s->tables[g], end));
}

/* What was computed after a loss may be gone, and what was lost too. */
static void shorten(const kvk_cache *c, sequence *s, uint32_t n_tokens)
{
    if (n_tokens <= s->first_taint && !sequence_has_lost(c, s))
        s->first_taint = UINT32_MAX;
    else if (s->first_taint != UINT32_MAX)
        s->first_taint = min_u32(s->first_taint, n_tokens);
    if (s->eviction)
        begin_anew(c, s, n_tokens);
}

void sequence_set_length(kvk_cache *c, sequence *s, uint32_t n_tokens)
{
    uint32_t first = min_u32(s->n_tokens, n_tokens) / page_tokens(c);
    uint32_t end = pages_of_tokens(c, max_u32(s->n_tokens, n_tokens));
    if (n_tokens < s->n_tokens)
        shorten(c, s, n_tokens);
    s->n_tokens = n_tokens;
    for (uint32_t g = 0; g < c->config.n_groups; g++) {
        const table *t = &s->tables[g];
        uint32_t from = max_u32(first, t->first), entry = from < table_end(t) ? table_find(t, from) : t->n;
        for (; entry < t->n && table_number(t, entry) < end; entry++)
            if (pool_is_private(pool_of(c), t->pages[entry]))
                pool_set_filled(pool_of(c), t->pages[entry], sequence_tokens_in(c, n_tokens, table_number(t, entry)));
    }
}

int sequence_furnish(kvk_cache *c, sequence *s)
{
    if (!s->tables) {
        s->tables = memory_take(c->memory, c->config.n_groups * sizeof *s->tables);
        if (!s->tables)
            return KVK_ENOMEM;
        memset(s->tables, 0, c->config.n_groups * sizeof *s->tables);
    }
    if (c->config.content == KVK_CONTENT_TOKENS && !s->tail) {
        s->tail = memory_take(c->memory, content_row_bytes(&c->config));
        if (!s->tail)
            return KVK_ENOMEM;
    }
    return 0;
}

int sequence_add_slot(kvk_cache *c)
{
    if (memory_grow(c->memory, &c->sequences, &c->slots_cap, (uint64_t)c->n_slots + 1, sizeof *c->sequences) < 0)
        return KVK_ENOMEM;
    c->sequences[c->n_slots++] =
        (sequence){.next_closed = LIST_NONE, .chain = CHAIN_ROOT, .unsettled = UINT32_MAX, .first_taint = UINT32_MAX};
    return 0;
}

/* A slot to open next, still closed; NULL without memory. */
static sequence *closed_slot(kvk_cache *c)
{
    if (c->closed == LIST_NONE) {
        if (sequence_add_slot(c) < 0)
            return NULL;
        c->closed = c->n_slots - 1;
    }
    sequence *s = &c->sequences[c->closed];
    return sequence_furnish(c, s) < 0 ? NULL : s;
}

/* Opens the slot that closed_slot gave; everything but the slot's memory starts anew. */
static void open_slot(kvk_cache *c, sequence *s)
{
    c->closed = s->next_closed;
    *s = (sequence){.number = c->opened++,
                    .generation = s->generation + 1,
                    .is_open = 1,
                    .chain = CHAIN_ROOT,
                    .tail = s->tail,
                    .tables = s->tables,
                    .unsettled = UINT32_MAX,
                    .first_taint = UINT32_MAX,
                    .eviction = s->eviction,
                    .retentions = s->retentions};
    if (s->eviction)
        eviction_forget(c, s);
    c->counters.peak_sequences = max_u32(c->counters.peak_sequences, ++c->counters.sequences);
}

int sequence_params(const kvk_seq_params *from, kvk_seq_params *to)
{
    *to = (kvk_seq_params){.size = sizeof *to};
    if (!from)
        return 0;
    if (from->size < sizeof from->size || from->size > sizeof *from)
        return KVK_EINVAL;
    memcpy(to, from, from->size);
    return 0;
}

static int seq_open(kvk_cache *c, const kvk_seq_params *used, kvk_seq *out)
{
    sequence *s = closed_slot(c);
    if (!s)
        return KVK_ENOMEM;
    open_slot(c, s);
    s->priority = used->priority;
    s->scope = (scope){used->salt, used->adapter};
    *out = sequence_handle(c, s);
    return 0;
}

int kvk_seq_open(kvk_cache *cache, const kvk_seq_params *params, kvk_seq *out)
{
    kvk_seq_params used;
    if (!cache_is_ready(cache) || !out || sequence_params(params, &used) < 0)
        return cache_refuses(cache);
    int rc = seq_open(cache, &used, out);
    if (cache->recorder && rc >= 0)
        record_open(cache, *out, &used);
    return rc;
}

static int seq_close(kvk_cache *c, kvk_seq seq)
{
    sequence *s = sequence_find(c, seq);
    if (!s)
        return KVK_ESTALE;
    int gone = s->swapped ? 0 : sequence_release(c, s, 0);
    if (s->swapped)
        sequence_drop_host(c, s);
    sequence_follow(c, s, CHAIN_ROOT);
    s->is_open = 0;
    c->counters.sequences--;
    if (s->generation < MAX_GENERATION) { /* else the slot retires: no handle may come back */
        s->next_closed = c->closed;
        c->closed = (uint32_t)(s - c->sequences);
    }
    return gone;
}

int kvk_seq_close(kvk_cache *cache, kvk_seq seq)
{
    if (!cache_is_ready(cache))
        return cache_refuses(cache);
    int rc = seq_close(cache, seq);
    if (cache->recorder)
        record_close(cache, seq, rc);
    return rc;
}

/* Shares the parent's pages that hold tokens; the tables have room. */
static void share_pages(kvk_cache *c, sequence *child, const sequence *parent)
{
    uint32_t end = pages_of_tokens(c, parent->n_tokens);
    for (uint32_t g = 0; g < c->config.n_groups; g++) {
        const table *from = &parent->tables[g];
        table *t = &child->tables[g];
        table_clear(t, from->first);
        for (uint32_t n = table_entries(from, end); t->n < n; t->n++) {
            t->pages[t->n] = from->pages[t->n];
            pool_ref(pool_of(c), t->pages[t->n]);
        }
        t->lost = from->lost;
        if (from->indexed && t->n)
            memcpy(t->index, from->index, t->n * sizeof *t->index);
    }
}

static int prepare_fork(kvk_cache *c, sequence *child, const sequence *parent)
{
    for (uint32_t g = 0; g < c->config.n_groups; g++)
        if (table_prepare(c->memory, &child->tables[g], parent->tables[g].n) < 0)
            return KVK_ENOMEM;
    return parent->eviction ? eviction_prepare_fork(c, child, parent) : 0;
}

static int seq_fork(kvk_cache *c, kvk_seq seq, kvk_seq *out)
{
    sequence *parent;
    int rc = sequence_use(c, seq, &parent);
    if (rc < 0)
        return rc;
    if (parent->n_in_flight)
        return KVK_EBUSY;
    sequence *child = closed_slot(c);
    if (!child)
        return KVK_ENOMEM;
    parent = &c->sequences[(uint32_t)seq]; /* slots may have moved */
    if (prepare_fork(c, child, parent) < 0)
        return KVK_ENOMEM;
    open_slot(c, child);
    child->priority = parent->priority;
    child->scope = parent->scope;
    child->n_tokens = parent->n_tokens;
    child->n_committed = parent->n_committed;
    child->first_taint = parent->first_taint;
    sequence_follow(c, child, parent->chain);
    if (child->tail)
        memcpy(child->tail, parent->tail, content_row_bytes(&c->config));
    if (parent->eviction)
        eviction_fork(c, child, parent);
    share_pages(c, child, parent);
    *out = sequence_handle(c, child);
    return 0;
}

int kvk_seq_fork(kvk_cache *cache, kvk_seq parent, kvk_seq *out)
{
    if (!cache_is_ready(cache) || !out)
        return cache_refuses(cache);
    kvk_seq child = 0;
    int rc = seq_fork(cache, parent, &child);
    if (rc >= 0)
        *out = child;
    if (cache->recorder)
        record_fork(cache, parent, child, rc);
    return rc;
}

int kvk_seq_set_priority(kvk_cache *cache, kvk_seq seq, int32_t priority)
{
    if (!cache_is_ready(cache))
        return cache_refuses(cache);
    sequence *s = sequence_find(cache, seq);
    if (s)
        s->priority = priority;
    if (cache->recorder)
        record_priority(cache, seq, priority, s ? 0 : KVK_ESTALE);
    return s ? 0 : KVK_ESTALE;
}

uint32_t sequence_longest(const kvk_cache *c, const sequence *s)
{
    uint32_t longest = 0;
    for (uint32_t g = 0; g < c->config.n_groups; g++)
        longest = max_u32(longest, s->tables[g].n);
    return longest;
}

int kvk_seq_info_get(const kvk_cache *cache, kvk_seq seq, kvk_seq_info *out)
{
    if (!cache_is_ready(cache) || !out)
        return cache_refuses(cache);
    const sequence *s = sequence_find(cache, seq);
    if (!s)
        return KVK_ESTALE;
    kvk_seq_info info = {.priority = s->priority,
                         .n_tokens = s->n_tokens,
                         .n_committed = s->n_committed,
                         .n_pages = sequence_longest(cache, s),
                         .n_in_flight = s->n_in_flight,
                         .swapped = s->swapped,
                         .tainted = s->first_taint != UINT32_MAX};
    return copy_sized(out, &info, sizeof info);
}

int sequence_query(const kvk_cache *c, kvk_seq seq, uint32_t group, const void *out, uint32_t cap, sequence **s)
{
    if (!cache_is_ready(c) || group >= c->config.n_groups || (cap && !out))
        return cache_refuses(c);
    return sequence_use(c, seq, s);
}

int kvk_seq_table(const kvk_cache *cache, kvk_seq seq, uint32_t group, uint32_t *pages, uint32_t cap)
{
    sequence *s;
    int rc = sequence_query(cache, seq, group, pages, cap, &s);
    if (rc < 0)
        return rc;
    const table *t = &s->tables[group];
    if (!pages)
        return (int)t->n;
    if (cap < t->n)
        return KVK_ESPACE;
    if (t->n)
        memcpy(pages, t->pages, t->n * sizeof *pages);
    return (int)t->n;
}

int kvk_seq_first(const kvk_cache *cache, kvk_seq seq, uint32_t group)
{
    sequence *s;
    int rc = sequence_query(cache, seq, group, NULL, 0, &s);
    if (rc < 0)
        return rc;
    const table *t = &s->tables[group];
    return (int)((t->n ? table_number(t, 0) : t->first) * page_tokens(cache));
}
