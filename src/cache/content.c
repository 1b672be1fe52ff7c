/* content.c: what identifies a page's content, as the engine gives it; and finding pages by it. */
#include "base/checked.h"
#include "cache/cache.h"
#include "cache/record.h"

uint32_t content_row_bytes(const kvk_config *config)
{
    switch ((kvk_content)config->content) {
    case KVK_CONTENT_TOKENS:
        return config->page_tokens * (uint32_t)sizeof(uint32_t);
    case KVK_CONTENT_KEYS:
        return sizeof(kvk_key);
    case KVK_CONTENT_NONE:
        break;
    }
    return 0;
}

int content_check(const kvk_cache *c, const kvk_text *text)
{
    if (!text || text->n_tokens > KVK_MAX_TOKENS)
        return KVK_EINVAL;
    if (c->config.content == KVK_CONTENT_TOKENS && text->n_tokens && !text->tokens)
        return KVK_EINVAL;
    if (c->config.content == KVK_CONTENT_KEYS && text->n_keys && !text->keys)
        return KVK_EINVAL;
    return 0;
}

uint32_t content_pages(const kvk_cache *c, const kvk_text *prompt)
{
    if (c->config.content == KVK_CONTENT_NONE || prompt->n_tokens == 0)
        return 0;
    uint32_t pages = (prompt->n_tokens - 1) / page_tokens(c);
    return c->config.content == KVK_CONTENT_KEYS ? min_u32(pages, prompt->n_keys) : pages;
}

const void *content_row(const kvk_cache *c, const kvk_text *text, uint32_t i)
{
    if (c->config.content == KVK_CONTENT_KEYS)
        return &text->keys[i];
    return text->tokens + (size_t)i * page_tokens(c);
}

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

static void count_lookup(kvk_cache *c, const lookup *l)
{
    counters *n = &c->counters;
    n->prefix_queries += l->prompt->n_tokens;
    n->prefix_hits += (uint64_t)l->pages * page_tokens(c);
    n->prefix_page_queries += l->limit;
    n->prefix_page_hits += l->pages;
}

static int prepare_attach(kvk_cache *c, sequence *s, uint32_t pages)
{
    for (uint32_t g = 0; g < c->config.n_groups; g++)
        if (memory_grow(c->memory, &s->tables[g].pages, &s->tables[g].cap, pages, sizeof(uint32_t)) < 0)
            return KVK_ENOMEM;
    return 0;
}

/* Fills one table from its end, since nodes know their parents. */
static void attach_group(kvk_cache *c, table *t, uint32_t group, const lookup *l)
{
    uint32_t node = l->node;
    t->first = sequence_needs_from(c, group, l->pages * page_tokens(c));
    t->n = l->pages - t->first;
    for (uint32_t i = t->n; i-- > 0; node = c->store.prefix.nodes[node].parent) {
        t->pages[i] = prefix_page(&c->store.prefix, node, group);
        store_attach(&c->store, t->pages[i]);
    }
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
    if (prepare_attach(c, s, l.pages) < 0)
        return KVK_ENOMEM;
    for (uint32_t g = 0; g < c->config.n_groups; g++)
        attach_group(c, &s->tables[g], g, &l);
    pool_note_peak(pool_of(c));
    count_lookup(c, &l);
    sequence_follow(c, s, l.node);
    s->n_tokens = s->n_committed = l.pages * page_tokens(c);
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
    *in_use = pool_used(&c->store.pool) + c->store.pool.limbo.count + c->store.pool.n_pinned;
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
