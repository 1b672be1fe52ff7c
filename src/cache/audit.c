/* audit.c: checks the invariants of docs/invariants.md over the whole state, and reports every violation. */
#include "base/checked.h"
#include "cache/eviction.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct audit {
    const kvk_cache *c;
    kvk_audit_fn report;
    void *ctx;
    int violations;
    uint32_t *seen; /* [unseen] table entries that name each page */
} audit;

__attribute__((format(printf, 3, 4))) static void violated(audit *a, const char *invariant, const char *format, ...)
{
    char text[160];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    a->violations++;
    if (a->report)
        a->report(a->ctx, invariant, text);
}

#define EXPECT(a, invariant, condition, ...)                                                                           \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            violated(a, invariant, __VA_ARGS__);                                                                       \
    } while (0)

/* ---- P: pages */

static void count_states(audit *a)
{
    const pool *p = &a->c->store.pool;
    uint32_t n[4] = {p->limit > p->unseen ? p->limit - p->unseen : 0, 0, 0, 0}, draining = 0;
    uint32_t pinned = 0;
    uint64_t live = 0;
    for (uint32_t id = 0; id < p->unseen; id++) {
        int state = pool_state(p, id);
        if (state == KVK_PAGE_FREE && id >= p->limit)
            continue; /* gone */
        n[state]++;
        draining += id >= p->limit;
        pinned += state == KVK_PAGE_CACHED && pool_is_pinned(p, id);
        live += state == KVK_PAGE_USED ? p->pages[id].filled : 0;
        EXPECT(a, "P6", p->pages[id].filled <= page_tokens(a->c), "page %u: %u places filled", id, p->pages[id].filled);
    }
    EXPECT(a, "P1", n[KVK_PAGE_FREE] == pool_free(p) && n[KVK_PAGE_USED] == pool_used(p),
           "free %u and used %u, counted %u and %u", pool_free(p), pool_used(p), n[KVK_PAGE_FREE], n[KVK_PAGE_USED]);
    EXPECT(a, "P4", n[KVK_PAGE_CACHED] == p->n_cached && pinned == p->n_pinned, "cached %u, pinned %u, counted %u, %u",
           p->n_cached, p->n_pinned, n[KVK_PAGE_CACHED], pinned);
    EXPECT(a, "P5", n[KVK_PAGE_LIMBO] == p->limbo.count, "limbo %u, counted %u", p->limbo.count, n[KVK_PAGE_LIMBO]);
    EXPECT(a, "P8", draining == p->draining, "%u pages drain, says %u", draining, p->draining);
    EXPECT(a, "P6", live == p->live_tokens, "live tokens %llu, counted %llu", (unsigned long long)p->live_tokens,
           (unsigned long long)live);
}

/* Every page of the limbo list is in limbo, and the list is as long as it says. */
static void check_limbo(audit *a)
{
    const pool *p = &a->c->store.pool;
    const list *l = &p->limbo;
    uint32_t n = 0, before = LIST_NONE;
    for (uint32_t id = l->head; id != LIST_NONE && n <= l->count; id = p->pages[id].link.next, n++) {
        EXPECT(a, "P5", pool_state(p, id) == KVK_PAGE_LIMBO, "page %u on the limbo list is not in limbo", id);
        EXPECT(a, "P5", p->pages[id].link.prev == before, "page %u: broken link", id);
        before = id;
    }
    EXPECT(a, "P5", n == l->count && l->tail == before, "%u pages in limbo, says %u", n, l->count);
}

/* Each page on the free stack is free, and stands there once: as many as there are free pages that were taken before.
 * */
static void check_free_stack(audit *a)
{
    const pool *p = &a->c->store.pool;
    for (uint32_t i = 0; i < p->n_stacked; i++) {
        uint32_t id = p->stack[i];
        EXPECT(a, "P3", id < p->unseen && pool_state(p, id) == KVK_PAGE_FREE && a->seen[id] == 0,
               "page %u on the free stack is not free, or there twice", id);
        a->seen[id] = 1;
    }
    memset(a->seen, 0, p->unseen * sizeof *a->seen);
}

/* ---- T: tables */

static void check_entry(audit *a, const sequence *s, uint32_t g, uint32_t k)
{
    const pool *p = &a->c->store.pool;
    uint32_t id = s->tables[g].pages[k];
    uint64_t before = (uint64_t)table_number(&s->tables[g], k) * page_tokens(a->c);
    if (id >= p->unseen) {
        violated(a, "T1", "group %u entry %u names page %u, never taken", g, k, id);
        return;
    }
    a->seen[id]++;
    EXPECT(a, "E2", before < s->first_taint || p->pages[id].content == CONTENT_NONE,
           "page %u was computed after a loss and is findable", id);
    if (before >= s->n_tokens)
        EXPECT(a, "T3", pool_is_private(p, id), "page %u reserved ahead is shared or findable", id);
    else
        EXPECT(a, "T4", p->pages[id].filled >= min_u32(page_tokens(a->c), (uint32_t)(s->n_tokens - before)),
               "page %u holds fewer tokens than its sequence", id);
}

/* A sequence's chain is as long as its full named pages, which in every group are found by its nodes, unless a resize
 * took that from pages in use. */
static void check_chain(audit *a, const sequence *s)
{
    const kvk_cache *c = a->c;
    uint32_t node = s->chain, i = s->n_committed / page_tokens(c);
    if (c->config.content == KVK_CONTENT_NONE || s->chain == CHAIN_BROKEN)
        return;
    for (; i > 0 && node != NODE_NONE; node = c->store.prefix.nodes[node].parent) {
        i--;
        for (uint32_t g = 0; g < c->config.n_groups; g++)
            if (!s->swapped && !c->drained && table_holds(&s->tables[g], i))
                EXPECT(a, "C4", c->store.pool.pages[*table_at(&s->tables[g], i)].content == node,
                       "group %u entry %u is not found by its chain", g, i);
    }
    EXPECT(a, "C4", i == 0 && node == CHAIN_ROOT, "a sequence's chain has another length than its full pages");
}

/* ---- E: eviction */

/* Ascending numbers between the table's ends, and those of pages not yet full, or with tokens in flight, all there. */
static void check_index(audit *a, const sequence *s, uint32_t g)
{
    const table *t = &s->tables[g];
    uint32_t full = eviction_now(s).settled / page_tokens(a->c), end = table_end(t);
    for (uint32_t k = 0; t->indexed && k < t->n; k++)
        EXPECT(a, "E1", t->index[k] >= (k ? t->index[k - 1] + 1 : t->first) && t->index[k] < end,
               "group %u entry %u stands for page number %u", g, k, t->index[k]);
    EXPECT(a, "E1", t->lost == 0 || (t->indexed && s->eviction), "group %u lacks %u pages and keeps no numbers", g,
           t->lost);
    if (t->lost && t->indexed && end > full)
        EXPECT(a, "E1", end - full <= t->n && t->index[t->n - (end - full)] == full,
               "group %u lacks a page from number %u on", g, full);
}

/* What was computed after a loss, as all of it is where pages are missing, belongs to no chain. */
static void check_taint(audit *a, const sequence *s)
{
    const kvk_cache *c = a->c;
    uint64_t named = (uint64_t)(s->n_committed / page_tokens(c)) * page_tokens(c);
    if (s->first_taint == UINT32_MAX) {
        EXPECT(a, "E2", !sequence_has_lost(c, s), "a sequence lacks pages and is untainted");
        return;
    }
    EXPECT(a, "E2", s->first_taint <= s->n_tokens, "a sequence of %u tokens is tainted from %u on", s->n_tokens,
           s->first_taint);
    EXPECT(a, "E2", c->config.content == KVK_CONTENT_NONE || s->chain == CHAIN_BROKEN || named <= s->first_taint,
           "tokens %u of a sequence tainted from %u on can be found", s->n_committed, s->first_taint);
}

static void check_policy(audit *a, const sequence *s, uint32_t g)
{
    const eviction *e = s->eviction;
    const group_eviction *group = &e->groups[g];
    uint32_t budget = group->budget, pages = pages_of_tokens(a->c, s->n_tokens);
    EXPECT(a, "E3", e->lane_cap >= s->tables[g].n || eviction_policy(e)->n_scores == 0,
           "group %u has scores for %u pages of %u", g, e->lane_cap, s->tables[g].n);
    EXPECT(a, "E4", !(e->needs & KVK_NEED_NEAR) || e->n_peaks <= pages, "near peaks of %u pages, the text has %u",
           e->n_peaks, pages);
    EXPECT(a, "E5", group->limit == (budget ? budget / page_tokens(a->c) : UINT32_MAX),
           "group %u has a budget of %u tokens and a limit of %u pages", g, budget, group->limit);
}

static void check_evicted(audit *a, const sequence *s)
{
    check_taint(a, s);
    for (uint32_t g = 0; g < a->c->config.n_groups; g++) {
        check_index(a, s, g);
        if (s->eviction)
            EXPECT(a, "E5", s->eviction->groups[g].pages_evicted >= s->tables[g].lost,
                   "group %u lacks %u pages, more than were evicted", g, s->tables[g].lost);
        if (eviction_of(s))
            check_policy(a, s, g);
    }
}

/* The shape of a sequence's tables, wherever its pages are. */
static void check_shape(audit *a, const sequence *s)
{
    const kvk_cache *c = a->c;
    for (uint32_t g = 0; g < c->config.n_groups; g++) {
        const table *t = &s->tables[g];
        EXPECT(a, "T1", table_end(t) == table_end(&s->tables[0]) && t->n <= t->cap,
               "group %u ends at entry %u, group 0 at %u", g, table_end(t), table_end(&s->tables[0]));
        EXPECT(a, "T5", t->first <= sequence_needs_from(c, g, s->n_committed), "group %u begins at entry %u", g,
               t->first);
    }
    check_evicted(a, s);
    EXPECT(a, "T2", s->n_committed <= s->n_tokens && s->n_tokens <= sequence_room(c, s),
           "committed %u, tokens %u, room %llu", s->n_committed, s->n_tokens, (unsigned long long)sequence_room(c, s));
    EXPECT(a, "H2", !s->swapped || table_end(&s->tables[0]) == ceil_div(s->n_tokens, page_tokens(c)),
           "a swapped sequence of %u tokens has %u entries", s->n_tokens, table_end(&s->tables[0]));
}

static void check_sequence(audit *a, const sequence *s)
{
    int before = a->violations;
    check_shape(a, s);
    if (a->violations > before)
        return;
    check_chain(a, s);
    for (uint32_t g = 0; g < a->c->config.n_groups && !s->swapped; g++)
        for (uint32_t k = 0; k < s->tables[g].n; k++)
            check_entry(a, s, g, k);
}

static void check_refs(audit *a)
{
    const pool *p = &a->c->store.pool;
    for (uint32_t id = 0; id < p->unseen; id++)
        EXPECT(a, "P2", p->pages[id].refs == a->seen[id], "page %u: %u refs, %u table entries", id, p->pages[id].refs,
               a->seen[id]);
}

/* Every host page is on the stack of free ones or in one table of a swapped sequence, or was never taken. */
static void check_host_pages(audit *a)
{
    const kvk_cache *c = a->c;
    memset(a->seen, 0, c->host.unseen * sizeof *a->seen);
    for (uint32_t i = 0; i < c->host.n_stacked; i++)
        a->seen[c->host.stack[i]]++;
    for (uint32_t i = 0; i < c->n_slots; i++)
        for (uint32_t g = 0; c->sequences[i].is_open && c->sequences[i].swapped && g < c->config.n_groups; g++)
            for (uint32_t e = 0; e < c->sequences[i].tables[g].n; e++)
                a->seen[c->sequences[i].tables[g].pages[e]]++;
    for (uint32_t page = 0; page < c->host.unseen; page++)
        EXPECT(a, "H1", a->seen[page] == 1, "host page %u is named %u times", page, a->seen[page]);
}

/* ---- S: slots and counters */

static void check_slots(audit *a)
{
    const kvk_cache *c = a->c;
    uint32_t open = 0, closed = 0;
    for (uint32_t i = 0; i < c->n_slots; i++)
        open += c->sequences[i].is_open;
    for (uint32_t i = c->closed; i != LIST_NONE && closed <= c->n_slots; i = c->sequences[i].next_closed, closed++)
        EXPECT(a, "S1", !c->sequences[i].is_open, "slot %u is open and on the stack of closed ones", i);
    EXPECT(a, "S1", open == c->counters.sequences && open + closed <= c->n_slots,
           "%u open, %u closed of %u, says %u open", open, closed, c->n_slots, c->counters.sequences);
    EXPECT(a, "S2", c->counters.peak_sequences >= open && c->store.pool.peak_used >= pool_used(&c->store.pool),
           "a high-water mark is below what it marks");
}

/* ---- C: content */

static void check_holders(audit *a)
{
    const pool *p = &a->c->store.pool;
    const prefix *x = &a->c->store.prefix;
    for (uint32_t id = 0; id < p->unseen; id++) {
        uint32_t node = p->pages[id].content;
        if (node == CONTENT_NONE)
            continue;
        EXPECT(a, "C1", node < x->n_nodes && x->nodes[node].holders > 0, "page %u names node %u, which is dead", id,
               node);
        EXPECT(a, "C1", p->pages[id].filled == page_tokens(a->c), "page %u is findable and not full", id);
    }
}

static void check_node(audit *a, uint32_t id)
{
    const prefix *x = &a->c->store.prefix;
    uint32_t holders = 0;
    for (uint32_t g = 0; g < x->n_groups; g++) {
        const list *l = &x->copies[(size_t)id * x->n_groups + g];
        uint32_t n = 0;
        for (uint32_t page = l->head; page != LIST_NONE && n <= l->count; page = x->holders[page].link.next, n++)
            EXPECT(a, "C2", a->c->store.pool.pages[page].content == id && x->holders[page].group == g,
                   "page %u is listed under node %u group %u", page, id, g);
        EXPECT(a, "C2", n == l->count, "node %u group %u: %u pages listed, says %u", id, g, n, l->count);
        holders += l->count;
    }
    EXPECT(a, "C2", holders == x->nodes[id].holders, "node %u: %u holders, says %u", id, holders, x->nodes[id].holders);
    content known = {x->nodes[id].parent, &x->scopes[id], prefix_row(x, id)};
    EXPECT(a, "C3", prefix_find(x, &known) == id, "node %u is not found by its content", id);
}

/* Every node's children name it as parent; there are as many links as nodes with a parent. */
static uint32_t check_children(audit *a, uint32_t id)
{
    const prefix *x = &a->c->store.prefix;
    const list *l = &x->nodes[id].children;
    uint32_t n = 0;
    for (uint32_t child = l->head; child != NODE_NONE && n <= l->count; child = x->nodes[child].sibling.next, n++)
        EXPECT(a, "C2", x->nodes[child].parent == id, "node %u is listed as a child of node %u", child, id);
    EXPECT(a, "C2", n == l->count, "node %u: %u children, says %u", id, n, l->count);
    return n;
}

static void count_pins(audit *a)
{
    const kvk_cache *c = a->c;
    memset(a->seen, 0, c->store.prefix.n_nodes * sizeof *a->seen);
    for (uint32_t i = 0; i < c->n_slots; i++)
        if (c->sequences[i].is_open && c->sequences[i].chain < c->store.prefix.n_nodes)
            a->seen[c->sequences[i].chain]++;
}

static void check_nodes(audit *a)
{
    const prefix *x = &a->c->store.prefix;
    uint32_t live = 0, children = 0, not_roots = 0;
    count_pins(a);
    for (uint32_t id = 0; id < x->n_nodes; id++) {
        EXPECT(a, "C2", x->nodes[id].pins == a->seen[id], "node %u: %u sequences go on from it, says %u", id,
               a->seen[id], x->nodes[id].pins);
        if (!prefix_is_live(x, id))
            continue;
        check_node(a, id);
        live++;
        children += check_children(a, id);
        not_roots += x->nodes[id].parent != NODE_NONE;
    }
    EXPECT(a, "C2", live == x->n_live && children == not_roots, "%u live nodes and %u children, says %u and %u", live,
           children, x->n_live, not_roots);
}

static void check_content(audit *a)
{
    if (a->c->config.content == KVK_CONTENT_NONE)
        return;
    check_holders(a);
    check_nodes(a);
}

/* ---- B: batches, M: moves */

static void check_batches(audit *a)
{
    const kvk_cache *c = a->c;
    memset(a->seen, 0, c->n_slots * sizeof *a->seen);
    for (uint32_t i = 0; i < c->n_batches; i++) {
        const flight *b = &c->batches[i];
        EXPECT(a, "B1", b->epoch < c->next_epoch && (i == 0 || b->epoch > c->batches[i - 1].epoch),
               "batch %u out of order", i);
        for (uint32_t e = 0; e < b->n; e++)
            if (sequence_find(c, b->entries[e].seq))
                a->seen[(uint32_t)b->entries[e].seq]++;
    }
    for (uint32_t i = 0; i < c->n_slots; i++)
        EXPECT(a, "B2", !c->sequences[i].is_open || c->sequences[i].n_in_flight == a->seen[i],
               "slot %u: in %u batches, says %u", i, a->seen[i], c->sequences[i].n_in_flight);
    EXPECT(a, "B3", c->store.pool.oldest_open == oldest_open(c), "the pool waits for another batch than the oldest");
}

static void check_unsettled(audit *a)
{
    const kvk_cache *c = a->c;
    memset(a->seen, 0xFF, c->n_slots * sizeof *a->seen);
    for (uint32_t k = 0; k < c->n_batches; k++)
        for (uint32_t i = 0; i < c->batches[k].n; i++) {
            const flight_entry *e = &c->batches[k].entries[i];
            if (sequence_find(c, e->seq))
                a->seen[(uint32_t)e->seq] = min_u32(a->seen[(uint32_t)e->seq], e->end - e->n_query);
        }
    for (uint32_t i = 0; i < c->n_slots; i++)
        EXPECT(a, "B4", !c->sequences[i].is_open || c->sequences[i].unsettled == a->seen[i],
               "slot %u: batches in flight begin at token %u, says %u", i, a->seen[i], c->sequences[i].unsettled);
}

/* Pages of the pool that one side of a move names. */
static uint32_t pages_of(const kvk_cache *c, const kvk_move *m, uint32_t host_kind)
{
    return m->kind == host_kind ? c->config.host_pages : max_u32(c->store.pool.limit, c->store.pool.unseen);
}

static void check_moves(audit *a)
{
    const kvk_cache *c = a->c;
    for (uint32_t i = c->moves.first; i < c->moves.end; i++) {
        const kvk_move *m = &c->moves.moves[i];
        EXPECT(a, "M1",
               m->src < pages_of(c, m, KVK_MOVE_SWAP_IN) && m->dst < pages_of(c, m, KVK_MOVE_SWAP_OUT) &&
                   m->group < c->config.n_groups,
               "move %u names page or group out of range", i - c->moves.first);
    }
}

int kvk_audit(kvk_cache *cache, kvk_audit_fn report, void *ctx)
{
    if (!cache_is_ready(cache))
        return cache_refuses(cache);
    uint32_t need = max_u32(max_u32(max_u32(cache->store.pool.cap, cache->host.unseen), cache->store.prefix.node_cap),
                            cache->slots_cap);
    if (memory_grow(cache->memory, &cache->seen, &cache->seen_cap, max_u32(need, 1), sizeof *cache->seen) < 0)
        return KVK_ENOMEM;
    audit a = {.c = cache, .report = report, .ctx = ctx, .seen = cache->seen};
    memset(a.seen, 0, cache->store.pool.unseen * sizeof *a.seen);
    cache->in_callback = 1; /* while the report may be called */
    count_states(&a);
    check_limbo(&a);
    check_free_stack(&a);
    for (uint32_t i = 0; i < cache->n_slots; i++)
        if (cache->sequences[i].is_open)
            check_sequence(&a, &cache->sequences[i]);
    check_refs(&a);
    check_host_pages(&a);
    check_slots(&a);
    check_content(&a);
    check_batches(&a);
    check_unsettled(&a);
    check_moves(&a);
    cache->in_callback = 0;
    return a.violations;
}
