/* attach.c: finding pages by content, and giving them to sequences. */
#include "base/checked.h"
#include "cache/eviction.h"
#include "cache/record.h"

#include <string.h>

/* A prompt being looked up, page by page. */
typedef struct lookup {
    const kvk_text *prompt;
    const scope *scope;
    uint32_t pages, limit; /* found so far, and at most */
    uint32_t node;         /* the last one found */
} lookup;

static int all_full_groups_hold(const kvk_cache *c, uint32_t node)
{
    for (uint32_t g = 0; g < c->config.n_groups; g++)
        if (c->windows[g] == 0 && prefix_page(&c->store.prefix, node, g) == LIST_NONE)
            return 0;
    return 1;
}

/* Finds the next page of the prompt in the groups without a window: 1, or 0 when there is none. */
static int lookup_next(const kvk_cache *c, lookup *l)
{
    if (l->pages == l->limit)
        return 0;
    content wanted = {l->node, l->scope, content_row(c, l->prompt, l->pages)};
    uint32_t node = prefix_find(&c->store.prefix, &wanted);
    if (node == NODE_NONE || !all_full_groups_hold(c, node))
        return 0;
    l->node = node;
    l->pages++;
    return 1;
}

static void lookup_back(const kvk_cache *c, lookup *l, uint32_t pages)
{
    for (; l->pages > pages; l->pages--)
        l->node = c->store.prefix.nodes[l->node].parent;
}

/* The pages of a hit up to the last that a group with a window lacks within the window; the whole hit if it lacks
 * none. */
static uint32_t served(const kvk_cache *c, const lookup *l, uint32_t group)
{
    uint32_t node = l->node, from = sequence_needs_from(c, group, l->pages * page_tokens(c));
    for (uint32_t i = l->pages; i > from; i--) {
        if (prefix_page(&c->store.prefix, node, group) == LIST_NONE)
            return i - 1;
        node = c->store.prefix.nodes[node].parent;
    }
    return l->pages;
}

/* The longest hit that all groups can serve: where a window is not whole the hit ends before its gap, and so on. */
static lookup look_up(const kvk_cache *c, const kvk_text *prompt, const scope *in)
{
    lookup l = {.prompt = prompt, .scope = in, .limit = content_pages(c, prompt), .node = CHAIN_ROOT};
    while (lookup_next(c, &l))
        ;
    for (uint32_t g = 0; g < c->config.n_groups; g++) {
        uint32_t pages = c->windows[g] ? served(c, &l, g) : l.pages;
        if (pages < l.pages) {
            lookup_back(c, &l, pages);
            g = UINT32_MAX; /* all groups again */
        }
    }
    return l;
}

/* A caller may bring as many keys as the prompt has full pages, the last one's even if the lookup may not use it. */
static int check_prompt(const kvk_cache *c, const kvk_text *prompt)
{
    int rc = content_check(c, prompt);
    if (rc == 0 && c->config.content == KVK_CONTENT_KEYS && prompt->n_keys > prompt->n_tokens / page_tokens(c))
        return KVK_EINVAL;
    return rc;
}

int kvk_prefix_lookup(const kvk_cache *cache, const kvk_seq_params *params, const kvk_text *prompt)
{
    kvk_seq_params used;
    if (!cache_is_ready(cache) || sequence_params(params, &used) < 0 || check_prompt(cache, prompt) < 0)
        return cache_refuses(cache);
    scope in = {used.salt, used.adapter};
    lookup l = look_up(cache, prompt, &in);
    return (int)(l.pages * page_tokens(cache));
}

static void count_lookup(kvk_cache *c, const lookup *l, uint32_t head)
{
    counters *n = &c->counters;
    n->prefix_queries += l->prompt->n_tokens;
    n->prefix_hits += (uint64_t)l->pages * page_tokens(c) + head;
    n->partial_hits += head;
    n->prefix_page_queries += l->limit;
    n->prefix_page_hits += l->pages;
}

/* Fills one table from its end, since nodes know their parents. */
static void attach_group(kvk_cache *c, sequence *s, uint32_t group, const lookup *l)
{
    table *t = &s->tables[group];
    uint32_t node = l->node;
    t->first = sequence_needs_from(c, group, l->pages * page_tokens(c));
    t->n = l->pages - t->first;
    for (uint32_t i = t->n; i-- > 0; node = c->store.prefix.nodes[node].parent) {
        t->pages[i] = prefix_page(&c->store.prefix, node, group);
        if (t->indexed)
            t->index[i] = t->first + i;
        store_attach(&c->store, t->pages[i]);
        if (c->near_stride)
            near_attach(c, s, group, t->first + i, t->pages[i]);
    }
    if (s->eviction)
        eviction_begin_entries(c, s, group, 0);
}

/* ---- the head of one more page */

#define CANDIDATES 32u /* contents looked at, the oldest first: a long list of them must not make attach slow */

typedef struct partial {
    uint32_t node, n_tokens;
} partial;

/* How far the rest of the prompt agrees with a content, its last token left out. */
static uint32_t common_head(const kvk_cache *c, const lookup *l, uint32_t node)
{
    const uint32_t *row = prefix_row(&c->store.prefix, node), *tokens = l->prompt->tokens + l->pages * page_tokens(c);
    uint32_t most = min_u32(page_tokens(c), l->prompt->n_tokens - l->pages * page_tokens(c) - 1), n = 0;
    while (n < most && row[n] == tokens[n])
        n++;
    return n;
}

static int may_copy_from(const kvk_cache *c, const lookup *l, uint32_t node)
{
    const prefix *x = &c->store.prefix;
    if (content_has_extras(c, prefix_row(x, node)))
        return 0;
    if (l->node == CHAIN_ROOT && !prefix_same_scope(&x->scopes[node], l->scope))
        return 0;
    for (uint32_t g = 0; g < c->config.n_groups; g++)
        if (prefix_page(x, node, g) == LIST_NONE)
            return 0;
    return 1;
}

/* The content after the hit that agrees furthest with the prompt. Extra keys stand at single positions, so a prompt
 * that has any takes whole pages only. */
static partial best_partial(kvk_cache *c, const lookup *l)
{
    prefix *x = &c->store.prefix;
    partial best = {NODE_NONE, 0};
    if (!c->config.partial_reuse || l->prompt->n_tokens == 0 || l->prompt->n_extras > 0)
        return best;
    uint32_t node = prefix_children(x, l->node)->head;
    for (uint32_t i = 0; i < CANDIDATES && node != NODE_NONE; i++, node = x->nodes[node].sibling.next) {
        uint32_t n = may_copy_from(c, l, node) ? common_head(c, l, node) : 0;
        if (n > best.n_tokens)
            best = (partial){node, n};
    }
    return best;
}

/* Copies the head in all groups. Its pages are held meanwhile, so that none is reclaimed to be its own copy's place. */
static void copy_head(kvk_cache *c, sequence *s, partial head)
{
    for (uint32_t g = 0; g < c->config.n_groups; g++) {
        uint32_t from = c->replaced[g], page = store_take(&c->store);
        if (c->config.zero_fill)
            moves_push(c, (kvk_move){KVK_MOVE_ZERO, g, page, page, page_tokens(c)});
        moves_push(c, (kvk_move){KVK_MOVE_COPY, g, from, page, head.n_tokens});
        pool_set_filled(pool_of(c), page, head.n_tokens);
        table_push(&s->tables[g], page);
        if (s->eviction)
            eviction_begin_entries(c, s, g, s->tables[g].n - 1);
    }
    memcpy(s->tail, prefix_row(&c->store.prefix, head.node), head.n_tokens * sizeof *s->tail);
    if (c->config.extra_keys)
        memset(s->tail + page_tokens(c), 0, sizeof(kvk_key));
    c->counters.pages_taken += c->config.n_groups;
}

/* Returns the tokens copied: 0 where no page can be spared. */
static uint32_t attach_head(kvk_cache *c, sequence *s, partial head)
{
    if (head.n_tokens == 0)
        return 0;
    for (uint32_t g = 0; g < c->config.n_groups; g++) {
        c->replaced[g] = prefix_page(&c->store.prefix, head.node, g);
        pool_ref(pool_of(c), c->replaced[g]);
    }
    if (pool_available(pool_of(c)) >= c->config.n_groups)
        copy_head(c, s, head);
    else
        head.n_tokens = 0;
    for (uint32_t g = 0; g < c->config.n_groups; g++)
        pool_unref(pool_of(c), c->replaced[g], 0);
    return head.n_tokens;
}

static int prepare_head(kvk_cache *c)
{
    if (!c->config.partial_reuse)
        return 0;
    if (cache_prepare_pages(c, c->config.n_groups) < 0)
        return KVK_ENOMEM;
    return moves_prepare(c, 2 * c->config.n_groups);
}

static int attach(kvk_cache *c, kvk_seq seq, const kvk_text *prompt)
{
    if (check_prompt(c, prompt) < 0)
        return KVK_EINVAL;
    sequence *s;
    int rc = sequence_use(c, seq, &s);
    if (rc < 0)
        return rc;
    if (s->n_tokens > 0 || table_end(&s->tables[0]) > 0)
        return KVK_ESTATE;
    lookup l = look_up(c, prompt, &s->scope);
    if (sequence_prepare_tables(c, s, l.pages + c->config.partial_reuse) < 0 || prepare_head(c) < 0 ||
        near_prepare(c, s, l.pages) < 0)
        return KVK_ENOMEM;
    partial head = best_partial(c, &l);
    for (uint32_t g = 0; g < c->config.n_groups; g++)
        attach_group(c, s, g, &l);
    uint32_t copied = attach_head(c, s, head);
    pool_note_peak(pool_of(c));
    count_lookup(c, &l, copied);
    sequence_follow(c, s, l.node);
    s->n_tokens = s->n_committed = l.pages * page_tokens(c) + copied;
    return (int)s->n_tokens;
}

int kvk_prefix_attach(kvk_cache *cache, kvk_seq seq, const kvk_text *prompt)
{
    if (!cache_is_ready(cache))
        return cache_refuses(cache);
    int rc = attach(cache, seq, prompt);
    if (cache->recorder)
        record_attach(cache, seq, prompt, rc);
    return rc;
}

static int reset(kvk_cache *c, uint32_t *in_use)
{
    const pool *p = &c->store.pool;
    *in_use = pool_used(p) + p->limbo.count + p->n_pinned + c->config.host_pages - host_pool_free(&c->host);
    if (*in_use)
        return KVK_EBUSY;
    events_listen(c, 0);
    int n = (int)store_forget_cached(&c->store);
    events_listen(c, 1);
    events_cleared(c);
    return n;
}

int kvk_prefix_reset(kvk_cache *cache, uint32_t *in_use)
{
    uint32_t held;
    if (!cache_is_ready(cache))
        return cache_refuses(cache);
    int rc = reset(cache, &held);
    if (in_use)
        *in_use = held;
    if (cache->recorder)
        record_reset(cache, rc);
    return rc;
}
