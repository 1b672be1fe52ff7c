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

static int has_page_in_all_groups(const kvk_cache *c, uint32_t node)
{
    for (uint32_t g = 0; g < c->config.n_groups; g++)
        if (prefix_page(&c->store.prefix, node, g) == LIST_NONE)
            return 0;
    return 1;
}

/* A prompt being looked up, page by page. */
typedef struct lookup {
    const kvk_text *prompt;
    const scope *scope;
    uint32_t pages, limit; /* found so far, and at most */
    uint32_t node;         /* the last one found */
} lookup;

/* Finds the next page of the prompt: 1, or 0 when there is none. */
static int lookup_next(const kvk_cache *c, lookup *l)
{
    if (l->pages == l->limit)
        return 0;
    content wanted = {l->node, l->scope, content_row(c, l->prompt, l->pages)};
    uint32_t node = prefix_find(&c->store.prefix, &wanted);
    if (node == NODE_NONE || !has_page_in_all_groups(c, node))
        return 0;
    l->node = node;
    l->pages++;
    return 1;
}

static lookup lookup_begin(const kvk_cache *c, const kvk_text *prompt, const scope *in)
{
    return (lookup){.prompt = prompt, .scope = in, .limit = content_pages(c, prompt), .node = CHAIN_ROOT};
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
    if (!cache || sequence_params(params, &used) < 0 || check_prompt(cache, prompt) < 0)
        return KVK_EINVAL;
    scope in = {used.salt, used.adapter};
    lookup l = lookup_begin(cache, prompt, &in);
    while (lookup_next(cache, &l))
        ;
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
        if (memory_grow(&c->memory, &s->tables[g].pages, &s->tables[g].cap, pages, sizeof(uint32_t)) < 0)
            return KVK_ENOMEM;
    return 0;
}

static void attach_node(kvk_cache *c, sequence *s, uint32_t node)
{
    for (uint32_t g = 0; g < c->config.n_groups; g++) {
        uint32_t page = prefix_page(&c->store.prefix, node, g);
        store_attach(&c->store, page);
        s->tables[g].pages[s->tables[g].n++] = page;
    }
}

static int attach(kvk_cache *c, kvk_seq seq, const kvk_text *prompt)
{
    if (check_prompt(c, prompt) < 0)
        return KVK_EINVAL;
    sequence *s = sequence_find(c, seq);
    if (!s)
        return KVK_ESTALE;
    if (s->tables[0].n > 0)
        return KVK_ESTATE;
    lookup l = lookup_begin(c, prompt, &s->scope);
    uint32_t most = min_u32(l.limit, c->config.n_pages); /* a prompt may be longer than the pool */
    if (prepare_attach(c, s, most) < 0)
        return KVK_ENOMEM;
    while (lookup_next(c, &l))
        attach_node(c, s, l.node);
    pool_note_peak(pool_of(c));
    count_lookup(c, &l);
    sequence_follow(c, s, l.node);
    s->n_tokens = s->n_committed = l.pages * page_tokens(c);
    return (int)s->n_tokens;
}

int kvk_prefix_attach(kvk_cache *cache, kvk_seq seq, const kvk_text *prompt)
{
    if (!cache)
        return KVK_EINVAL;
    int rc = attach(cache, seq, prompt);
    if (cache->recorder)
        record_attach(cache, seq, prompt, rc);
    return rc;
}

static int reset(kvk_cache *c, uint32_t *in_use)
{
    *in_use = pool_used(&c->store.pool) + c->store.pool.limbo.count + c->store.pool.n_pinned;
    return *in_use ? KVK_EBUSY : (int)store_forget_cached(&c->store);
}

int kvk_prefix_reset(kvk_cache *cache, uint32_t *in_use)
{
    uint32_t held;
    if (!cache)
        return KVK_EINVAL;
    int rc = reset(cache, &held);
    if (in_use)
        *in_use = held;
    if (cache->recorder)
        record_reset(cache, rc);
    return rc;
}
