/* commit.c: naming tokens, which makes full pages findable; and taking tokens back. */
#include "base/checked.h"
#include "cache/eviction.h"
#include "cache/record.h"

#include <string.h>

/* True if page number `i` may be found: it was computed before any loss, and is held. */
static int may_publish(const kvk_cache *c, const sequence *s, uint32_t i)
{
    if (s->first_taint == UINT32_MAX)
        return 1;
    for (uint32_t g = 0; g < c->config.n_groups; g++)
        if (!table_holds(&s->tables[g], i))
            return 0;
    return ((uint64_t)i + 1) * page_tokens(c) <= s->first_taint;
}

/* True if some group's page is found by another content than `node`: a fork named the shared page differently. */
static int is_contradicted(const kvk_cache *c, const sequence *s, uint32_t i, uint32_t node)
{
    for (uint32_t g = 0; g < c->config.n_groups; g++) {
        uint32_t has = c->store.pool.pages[*table_at(&s->tables[g], i)].content;
        if (has != CONTENT_NONE && has != node)
            return 1;
    }
    return 0;
}

/* Page `i` of the sequence is full and holds `row`: it can be found from now on. Where a fork named it first it is. */
static void publish(kvk_cache *c, sequence *s, uint32_t i, const void *row)
{
    content known = {s->chain, &s->scope, row};
    uint32_t node = prefix_find(&c->store.prefix, &known);
    if (!may_publish(c, s, i) || is_contradicted(c, s, i, node)) {
        sequence_follow(c, s, CHAIN_BROKEN);
        return;
    }
    if (node == NODE_NONE)
        node = prefix_add(&c->store.prefix, &known);
    for (uint32_t g = 0; g < c->config.n_groups; g++) {
        uint32_t page = *table_at(&s->tables[g], i);
        if (c->store.pool.pages[page].content != CONTENT_NONE)
            continue;
        store_publish(&c->store, page, g, node);
        if (c->near_stride)
            near_publish(c, s, g, i, page);
    }
    sequence_follow(c, s, node);
}

/* Names tokens of the text from `at` up to the next page border or the end of the text. Returns how many. */
static uint32_t name_tokens(kvk_cache *c, sequence *s, const kvk_text *text, uint32_t at)
{
    uint32_t filled = s->n_committed % page_tokens(c), step = min_u32(text->n_tokens - at, page_tokens(c) - filled);
    const uint32_t *row = text->tokens + at;
    if (step < page_tokens(c) || c->config.extra_keys) { /* else a whole page is read where it stands */
        if (filled == 0 && c->config.extra_keys)
            memset(s->tail + page_tokens(c), 0, sizeof(kvk_key));
        memcpy(s->tail + filled, row, step * sizeof *row);
        content_add_extras(c, s->tail, text, at, step, filled);
        row = s->tail;
    }
    if (filled + step == page_tokens(c) && s->chain != CHAIN_BROKEN)
        publish(c, s, s->n_committed / page_tokens(c), row);
    s->n_committed += step;
    return step;
}

static void name_keys(kvk_cache *c, sequence *s, const kvk_key *keys, uint32_t n_tokens)
{
    uint32_t first = s->n_committed / page_tokens(c);
    s->n_committed += n_tokens;
    uint32_t end = s->n_committed / page_tokens(c);
    for (uint32_t i = first; i < end && s->chain != CHAIN_BROKEN; i++)
        publish(c, s, i, &keys[i - first]);
}

static void name_text(kvk_cache *c, sequence *s, const kvk_text *text)
{
    switch ((kvk_content)c->config.content) {
    case KVK_CONTENT_TOKENS:
        for (uint32_t done = 0; done < text->n_tokens;)
            done += name_tokens(c, s, text, done);
        break;
    case KVK_CONTENT_KEYS:
        name_keys(c, s, text->keys, text->n_tokens);
        break;
    case KVK_CONTENT_NONE:
        s->n_committed += text->n_tokens;
        break;
    }
}

static int commit(kvk_cache *c, kvk_seq seq, const kvk_text *text)
{
    if (content_check(c, text) < 0)
        return KVK_EINVAL;
    sequence *s;
    int rc = sequence_use(c, seq, &s);
    if (rc < 0)
        return rc;
    uint64_t end = (uint64_t)s->n_committed + text->n_tokens;
    uint32_t full = (uint32_t)(end / page_tokens(c) - s->n_committed / page_tokens(c));
    if (end > sequence_room(c, s) || (end > s->n_tokens && !sequence_is_writable(c, s)))
        return KVK_ESTATE;
    if (c->config.content == KVK_CONTENT_KEYS && text->n_keys != full)
        return KVK_EINVAL;
    if (c->config.content != KVK_CONTENT_NONE && prefix_prepare(&c->store.prefix, full, c->store.pool.cap) < 0)
        return KVK_ENOMEM;
    if (end > s->n_tokens)
        sequence_set_length(c, s, (uint32_t)end);
    name_text(c, s, text);
    sequence_slide(c, s);
    return (int)full;
}

int kvk_commit(kvk_cache *cache, kvk_seq seq, const kvk_text *text)
{
    if (!cache_is_ready(cache))
        return cache_refuses(cache);
    int rc = commit(cache, seq, text);
    if (cache->recorder)
        record_commit(cache, seq, text, rc);
    return rc;
}

static uint32_t content_of(const kvk_cache *c, const sequence *s, uint32_t i)
{
    const table *t = &s->tables[0];
    return table_holds(t, i) ? c->store.pool.pages[*table_at(t, i)].content : CONTENT_NONE;
}

/* The nodes that stand before and on full page `full`, of a sequence that has named more. */
typedef struct link {
    uint32_t before, on;
} link;

static link find_link(const kvk_cache *c, const sequence *s, uint32_t full)
{
    link at = {s->chain, NODE_NONE};
    if (s->chain == CHAIN_BROKEN) { /* what the pages themselves can be found by */
        at.before = full == 0 ? CHAIN_ROOT : content_of(c, s, full - 1);
        at.on = content_of(c, s, full);
        return full > 0 && at.before == CONTENT_NONE ? (link){CHAIN_BROKEN, NODE_NONE} : at;
    }
    for (uint32_t i = s->n_committed / page_tokens(c); i > full; i--)
        at = (link){c->store.prefix.nodes[at.before].parent, at.before};
    return at;
}

/* Takes names back down to n_committed tokens: the chain and the named head of the partial page stand as they were
 * then. */
static void unname(kvk_cache *c, sequence *s, uint32_t n_committed)
{
    uint32_t full = n_committed / page_tokens(c), rest = n_committed % page_tokens(c);
    const void *row = s->tail; /* the page that the names now end in */
    if (c->config.content != KVK_CONTENT_NONE && full < s->n_committed / page_tokens(c)) {
        link at = find_link(c, s, full);
        sequence_follow(c, s, at.before);
        row = at.on == NODE_NONE ? NULL : prefix_row(&c->store.prefix, at.on);
    }
    s->n_committed = n_committed;
    if (rest == 0 || c->config.content != KVK_CONTENT_TOKENS || s->chain == CHAIN_BROKEN)
        return;
    if (!row || content_has_extras(c, row)) /* which extra keys stand before a position the row does not tell */
        sequence_follow(c, s, CHAIN_BROKEN);
    else if (row != s->tail)
        memcpy(s->tail, row, content_row_bytes(&c->config));
}

/* True if the page that the text would end in was evicted. */
static int lacks_tail(const kvk_cache *c, const sequence *s, uint32_t group, uint32_t n_tokens)
{
    return n_tokens % page_tokens(c) && !table_holds(&s->tables[group], n_tokens / page_tokens(c));
}

static int truncate_to(kvk_cache *c, kvk_seq seq, uint32_t n_tokens)
{
    sequence *s;
    int rc = sequence_use(c, seq, &s);
    if (rc < 0)
        return rc;
    if (n_tokens > s->n_tokens)
        return KVK_EINVAL;
    for (uint32_t g = 0; g < c->config.n_groups && n_tokens > 0; g++)
        if (sequence_needs_from(c, g, n_tokens) < s->tables[g].first || lacks_tail(c, s, g, n_tokens))
            return KVK_ESTATE;
    if (n_tokens < s->n_tokens)
        s->cut_epoch = s->last_epoch;
    if (n_tokens < s->n_tokens && s->eviction) /* queries that are no more looked at the page of the cut */
        near_cut(c, s, n_tokens / page_tokens(c));
    if (n_tokens < s->n_committed)
        unname(c, s, n_tokens);
    int gone = sequence_release(c, s, pages_of_tokens(c, n_tokens));
    sequence_set_length(c, s, n_tokens);
    return gone;
}

int kvk_truncate(kvk_cache *cache, kvk_seq seq, uint32_t n_tokens)
{
    if (!cache_is_ready(cache))
        return cache_refuses(cache);
    int rc = truncate_to(cache, seq, n_tokens);
    if (cache->recorder)
        record_truncate(cache, seq, n_tokens, rc);
    return rc;
}
