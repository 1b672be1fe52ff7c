/* world_events.c: the events that come, and whether they are those that the twin expects. */
#include <string.h>

#include "world.h"

/* Any call from inside the callback is refused, and nothing is lost by it. */
static void call_back(world *w)
{
    kvk_cache *cache = w->loading ? w->loading : w->cache;
    kvk_stats stats = {.size = sizeof stats};
    const kvk_text text = {.n_tokens = 1};
    kvk_seq seq = world_pick_seq(w);
    int rc = KVK_EREENTRY;
    switch (world_random(w, 10)) {
    case 0:
        rc = kvk_seq_open(cache, NULL, &seq);
        break;
    case 1:
        rc = kvk_seq_close(cache, seq);
        break;
    case 2:
        rc = kvk_reserve(cache, seq, 1, KVK_RECLAIM);
        break;
    case 3:
        rc = kvk_commit(cache, seq, &text);
        break;
    case 4:
        rc = kvk_preempt(cache, seq, KVK_PREEMPT_RECOMPUTE);
        break;
    case 5:
        rc = kvk_resize(cache, 1, 1);
        break;
    case 6:
        rc = kvk_stats_get(cache, &stats);
        break;
    case 7:
        rc = kvk_audit(cache, NULL, NULL);
        break;
    case 8:
        rc = kvk_set_events(cache, NULL, NULL);
        break;
    default:
        kvk_cache_close(cache); /* does nothing */
    }
    world_expect(w, "a call from inside a callback", KVK_EREENTRY, rc);
}

static void take_event(void *ctx, const kvk_event *event)
{
    world *w = ctx;
    world_event *e = &w->events[w->n_events++];
    bool keys = w->twin.config.content == KVK_CONTENT_KEYS;
    const void *row = keys ? (const void *)event->page_key : (const void *)event->tokens;
    world_expect(w, "event.size", sizeof *event, event->size);
    world_expect(w, "event.page_tokens", w->twin.config.page_tokens, event->page_tokens);
    world_expect(w, "the other kind of content", true, keys ? !event->tokens : !event->page_key);
    world_expect(w, "event.medium", 0, event->medium);
    *e = (world_event){.event = *event};
    if (row)
        memcpy(e->row, row, twin_unit(&w->twin));
    if (event->kind == KVK_EVENT_EVICTED)
        world_check_evicted(w, event);
    if (world_one_in(w, 8))
        call_back(w);
}

void world_listen(world *w, kvk_cache *cache, bool on)
{
    world_expect(w, "kvk_set_events", 0, kvk_set_events(cache, on ? take_event : NULL, w));
    w->twin.listening = on;
}

static bool same(const twin_text *a, const twin_text *b)
{
    return a->n_bytes == b->n_bytes && twin_starts_with(a, b);
}

/* A content is always told with the same key. */
static void compare_key(world *w, const char *name, const twin_text *content, kvk_key key)
{
    enum { N = sizeof w->keys / sizeof w->keys[0] };
    for (uint32_t i = 0; i < N && i < w->n_keys; i++) {
        if (!same(&w->keys[i].content, content))
            continue;
        world_expect(w, name, (int64_t)w->keys[i].key.lo, (int64_t)key.lo);
        world_expect(w, name, (int64_t)w->keys[i].key.hi, (int64_t)key.hi);
        return;
    }
    w->keys[w->n_keys++ % N] = (world_key){*content, key};
}

static void compare_content(world *w, const twin_text *content, const world_event *got)
{
    uint32_t unit = twin_unit(&w->twin), before = content->n_bytes - unit;
    twin_text parent = *content;
    parent.n_bytes = before;
    world_expect(w, "event.salt.lo", (int64_t)content->salt.lo, (int64_t)got->event.salt.lo);
    world_expect(w, "event.salt.hi", (int64_t)content->salt.hi, (int64_t)got->event.salt.hi);
    world_expect(w, "event.adapter", (int64_t)content->adapter, (int64_t)got->event.adapter);
    world_expect(w, "event's tokens or key", 0, memcmp(content->bytes + before, got->row, unit));
    compare_key(w, "event.key", content, got->event.key);
    if (before)
        compare_key(w, "event.parent", &parent, got->event.parent);
    else
        world_expect(w, "event.parent of a first page", 0, (int64_t)(got->event.parent.lo | got->event.parent.hi));
}

static void compare_event(world *w, const twin_event *want, const world_event *got)
{
    world_expect(w, "event.kind", want->kind, got->event.kind);
    if (want->kind == KVK_EVENT_CLEARED)
        return;
    world_expect(w, "event.group", want->group, got->event.group);
    if (want->kind == KVK_EVENT_EVICTED) {
        world_expect(w, "event.page", want->page, got->event.page);
        world_expect(w, "event.seq", (int64_t)want->seq, (int64_t)got->event.seq);
        world_expect(w, "event.position", want->position, got->event.position);
        return;
    }
    if (want->kind == KVK_EVENT_STORED)
        world_expect(w, "event.page", want->page, got->event.page);
    compare_content(w, &want->content, got);
}

void world_compare_events(world *w)
{
    world_expect(w, "number of events", w->twin.n_events, w->n_events);
    for (uint32_t i = 0; i < w->n_events; i++)
        compare_event(w, &w->twin.events[i], &w->events[i]);
    w->twin.n_events = w->n_events = 0;
}
