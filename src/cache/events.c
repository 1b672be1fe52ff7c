/* events.c: tells a caller what became findable and what is no more. */
#include "cache/cache.h"

static void tell(kvk_cache *c, const kvk_event *event)
{
    c->in_callback = 1;
    c->on_event(c->event_ctx, event);
    c->in_callback = 0;
}

static kvk_key key_of(const prefix *x, uint32_t node)
{
    return node == NODE_NONE ? (kvk_key){0, 0} : (kvk_key){x->nodes[node].lo, x->nodes[node].hi};
}

static void content_changed(void *ctx, uint32_t node, uint32_t group, uint32_t page, int came)
{
    kvk_cache *c = ctx;
    const prefix *x = &c->store.prefix;
    kvk_event event = {.size = sizeof event,
                       .kind = came ? KVK_EVENT_STORED : KVK_EVENT_REMOVED,
                       .key = key_of(x, node),
                       .parent = key_of(x, x->nodes[node].parent),
                       .salt = x->scopes[node].salt,
                       .adapter = x->scopes[node].adapter,
                       .page_tokens = page_tokens(c),
                       .group = group,
                       .page = page};
    if (c->config.content == KVK_CONTENT_TOKENS)
        event.tokens = prefix_row(x, node);
    else
        event.page_key = prefix_row(x, node);
    tell(c, &event);
}

void events_evicted(kvk_cache *c, const sequence *s, uint32_t group, uint32_t number, uint32_t page)
{
    kvk_event event = {.size = sizeof event,
                       .kind = KVK_EVENT_EVICTED,
                       .salt = s->scope.salt,
                       .adapter = s->scope.adapter,
                       .page_tokens = page_tokens(c),
                       .group = group,
                       .page = page,
                       .position = number * page_tokens(c),
                       .seq = sequence_handle(c, s)};
    if (c->on_event)
        tell(c, &event);
}

void events_cleared(kvk_cache *c)
{
    kvk_event event = {.size = sizeof event, .kind = KVK_EVENT_CLEARED, .page_tokens = page_tokens(c)};
    if (c->on_event)
        tell(c, &event);
}

void events_reloaded(kvk_cache *c)
{
    const prefix *x = &c->store.prefix;
    events_listen(c, 1);
    events_cleared(c);
    for (uint32_t id = 0; c->on_event && id < x->n_nodes; id++)
        for (uint32_t g = 0; g < x->n_groups; g++)
            if (prefix_page(x, id, g) != LIST_NONE)
                content_changed(c, id, g, prefix_page(x, id, g), 1);
}

void events_listen(kvk_cache *c, int on)
{
    c->store.prefix.watch = on && c->on_event ? content_changed : NULL;
    c->store.prefix.watch_ctx = c;
}

int kvk_set_events(kvk_cache *cache, kvk_event_fn fn, void *ctx)
{
    if (!cache_is_ready(cache))
        return cache_refuses(cache);
    cache->on_event = fn;
    cache->event_ctx = ctx;
    events_listen(cache, 1);
    return 0;
}
