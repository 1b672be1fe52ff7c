/* The op `events`: what the cache told since the last one, in words that can be written by hand. And what a call
 * evicted. */
#include "trace/oplog_run.h"

#include <inttypes.h>

static json_t *key_to_json(const kvk_key *key)
{
    return key->hi ? json_sprintf("%" PRIx64 "%016" PRIx64, key->hi, key->lo) : json_sprintf("%" PRIx64, key->lo);
}

/* As an argument may say it. */
static json_t *adapter_to_json(uint64_t adapter)
{
    return adapter <= INT64_MAX ? json_integer((json_int_t)adapter) : key_to_json(&(kvk_key){.lo = adapter});
}

static json_t *tokens_to_json(const kvk_event *event)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < event->page_tokens; i++)
        json_array_append_new(list, json_integer(event->tokens[i]));
    return list;
}

static void add_content(json_t *object, const kvk_event *event)
{
    if (event->tokens)
        json_object_set_new(object, "tokens", tokens_to_json(event));
    if (event->page_key)
        json_object_set_new(object, "page_key", key_to_json(event->page_key));
    json_object_set_new(object, "first", json_boolean(!event->parent.lo && !event->parent.hi));
    if (event->salt.lo || event->salt.hi)
        json_object_set_new(object, "salt", key_to_json(&event->salt));
    if (event->adapter)
        json_object_set_new(object, "adapter", adapter_to_json(event->adapter));
}

static json_int_t seq_of(const oplog_run *run, const kvk_event *event)
{
    return (json_int_t)oplog_ids_of(&run->seqs, event->seq);
}

static void add_loss(const oplog_run *run, json_t *object, const kvk_event *event)
{
    json_object_set_new(object, "page", json_integer(event->page));
    json_object_set_new(object, "seq", json_integer(seq_of(run, event)));
    json_object_set_new(object, "position", json_integer(event->position));
}

static json_t *event_to_json(const oplog_run *run, const kvk_event *event)
{
    static const char *const kinds[] = {"stored", "removed", "cleared", "evicted"};
    json_t *object = json_object();
    json_object_set_new(object, "kind", json_string(event->kind <= KVK_EVENT_EVICTED ? kinds[event->kind] : "unknown"));
    if (event->kind == KVK_EVENT_CLEARED)
        return object;
    json_object_set_new(object, "group", json_integer(event->group));
    if (event->kind == KVK_EVENT_STORED)
        json_object_set_new(object, "page", json_integer(event->page));
    if (event->kind == KVK_EVENT_EVICTED)
        add_loss(run, object, event);
    else
        add_content(object, event);
    return object;
}

/* Once one finds no room none is listed any more, so that the list has no gaps. */
static void collect(const oplog_run *run, oplog_events *events, const kvk_event *event)
{
    uint32_t tokens = event->tokens ? event->page_tokens : 0;
    events->full |= events->n >= OPLOG_MAX_EVENTS || tokens > OPLOG_MAX_EVENT_TOKENS - events->tokens;
    events->n += events->n < INT32_MAX;
    if (events->full)
        return;
    events->tokens += tokens;
    json_array_append_new(events->list, event_to_json(run, event));
}

static void meet_event(void *ctx, const kvk_event *event)
{
    oplog_run *run = ctx;
    if (run->events.evicted && event->kind == KVK_EVENT_EVICTED)
        json_array_append_new(run->events.evicted, json_pack("[I, I, I]", seq_of(run, event), (json_int_t)event->group,
                                                             (json_int_t)event->position));
    if (run->events.list)
        collect(run, &run->events, event);
}

int oplog_call_events(oplog_run *run)
{
    json_t *fresh = json_array(), *had = run->events.list;
    if (!fresh)
        return oplog_no_memory(run);
    run->result = had ? (int)run->events.n : kvk_set_events(run->cache, meet_event, run);
    run->events = (oplog_events){.list = fresh};
    if (run->detail)
        oplog_detail(run, "events", had ? json_incref(had) : json_array());
    json_decref(had);
    return 0;
}

int oplog_call_and_watch(oplog_run *run, int (*call)(oplog_run *run))
{
    if (!run->detail)
        return call(run);
    run->events.evicted = json_array();
    kvk_set_events(run->cache, meet_event, run);
    int rc = call(run);
    if (!run->events.list)
        kvk_set_events(run->cache, NULL, NULL);
    if (rc == 0 && run->result >= 0)
        oplog_detail(run, "evicted", json_incref(run->events.evicted));
    json_decref(run->events.evicted);
    run->events.evicted = NULL;
    return rc;
}
