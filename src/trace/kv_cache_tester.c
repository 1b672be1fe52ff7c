/* kv-cache-tester's JSON: one document a file, the requests of one coding session and of the sub-agents it started.
 *
 * A request's time `t` counts from the start of its session or sub-agent. A sub-agent's own `t` is when it ended: the
 * session's next request always comes after it, and those started together begin together only if `duration_ms` is
 * taken off. Requests are given in the order of their times, so sub-agents run beside each other. `think_time` is the
 * time from the end of the request before to the start of this one. Block ids mean something within the file only. */
#include "trace/blocks.h"
#include "trace/format.h"

#include <kvkeep/kvkeep.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_TOKENS = 64,
    DEEPEST = 8, /* sub-agents of sub-agents */
    NO_TURN = -1
};

/* Which of its list each request is, from the outermost list to the innermost. */
typedef struct path {
    uint32_t depth, index[DEEPEST];
} path;

typedef struct turn {
    const json_t *object;
    path path;
    int64_t order, after; /* in the file; of the turn whose end it waits for */
    uint64_t arrival_us, think_us, service_us;
} turn;

typedef struct tester_state {
    json_t *document;
    turn *turns;     /* in the file's order, then in that of their times */
    int64_t *places; /* of turns in the order of time, by their order in the file */
    size_t n, cap, next;
    path at; /* what errors are about */
    block_ids ids;
    char field[32 * DEEPEST + 128];
} tester_state;

/* Where a list of requests is read: of the session or of a sub-agent. */
typedef struct list {
    uint64_t start_us, last_us; /* its start, and the arrival of its last request */
    int64_t last;               /* that request; a sub-agent's first comes after its parent's */
    uint64_t last_end_us;
    bool begun;
} list;

static bool detect(const char *head)
{
    return head[strspn(head, " \t\r\n")] == '{' && strstr(head, "\"hash_id_scope\"");
}

static const char *field_name(const trace_reader *r, const char *name)
{
    tester_state *s = r->state;
    size_t n = 0;
    for (uint32_t i = 0; i < s->at.depth; i++)
        n += (size_t)snprintf(s->field + n, sizeof s->field - n, "%srequests[%u]", i ? "." : "", s->at.index[i]);
    if (n == 0)
        return name;
    snprintf(s->field + n, sizeof s->field - n, "%s%.64s", name ? "." : "", name ? name : "");
    return s->field;
}

static trace_place place_of(const trace_reader *r, const char *name)
{
    return lines_place(&r->lines, field_name(r, name));
}

static int read_seconds(const trace_reader *r, const json_t *object, const char *name, uint64_t *us, trace_error *error)
{
    return json_seconds(json_object_get(object, name), place_of(r, name), us, error);
}

/* The same of a field that may be missing or null, which is 0. */
static int read_seconds_if(const trace_reader *r, const json_t *object, const char *name, uint64_t *us,
                           trace_error *error)
{
    *us = 0;
    const json_t *value = json_object_get(object, name);
    return !value || json_is_null(value) ? 0 : read_seconds(r, object, name, us, error);
}

static int add_turn(const trace_reader *r, const turn *t, trace_error *error)
{
    tester_state *s = r->state;
    if (s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 256;
        turn *grown = realloc(s->turns, cap * sizeof *grown);
        if (!grown)
            return trace_failed(error, place_of(r, NULL), "out of memory");
        s->turns = grown;
        s->cap = cap;
    }
    s->turns[s->n++] = *t;
    return 0;
}

/* The first request of a list has no think time of its own: what counts is how long after the parent's it came. */
static void follow(turn *t, list *in)
{
    t->after = in->last;
    if (!in->begun)
        t->think_us = t->arrival_us > in->last_end_us ? t->arrival_us - in->last_end_us : 0;
    in->begun = true;
    in->last = t->order;
    in->last_us = t->arrival_us;
    in->last_end_us = t->arrival_us + t->service_us;
}

static int read_turn(const trace_reader *r, const json_t *object, list *in, trace_error *error)
{
    tester_state *s = r->state;
    turn t = {.object = object, .path = s->at, .order = (int64_t)s->n};
    int rc = read_seconds(r, object, "t", &t.arrival_us, error);
    if (rc == 0)
        rc = read_seconds_if(r, object, "api_time", &t.service_us, error);
    if (rc == 0)
        rc = read_seconds_if(r, object, "think_time", &t.think_us, error);
    if (rc < 0)
        return rc;
    t.arrival_us += in->start_us;
    if (t.arrival_us < in->last_us)
        return trace_bad_input(error, place_of(r, "t"), "is earlier than the request before");
    follow(&t, in);
    return add_turn(r, &t, error);
}

static int read_list(const trace_reader *r, const json_t *requests, list in, trace_error *error);

static int read_agent(const trace_reader *r, const json_t *object, const list *parent, trace_error *error)
{
    uint64_t end = 0, ms = 0;
    const json_t *duration = json_object_get(object, "duration_ms");
    int rc = read_seconds(r, object, "t", &end, error);
    if (rc == 0 && duration && !json_is_null(duration))
        rc = json_whole(duration, place_of(r, "duration_ms"), (uint64_t)9e12, &ms, error);
    if (rc < 0)
        return rc;
    list in = *parent;
    in.begun = false;
    end += parent->start_us;
    in.start_us = end > 1000 * ms ? end - 1000 * ms : 0;
    if (in.start_us < parent->last_us)
        in.start_us = parent->last_us;
    in.last_us = in.start_us;
    return read_list(r, json_object_get(object, "requests"), in, error);
}

static int read_entry(const trace_reader *r, const json_t *object, list *in, trace_error *error)
{
    if (!json_is_object(object))
        return trace_bad_input(error, place_of(r, NULL), "is no JSON object");
    const json_t *type = json_object_get(object, "type");
    const char *name = json_string_value(type);
    if (!name)
        return trace_bad_input(error, place_of(r, "type"), type ? "is not a string" : "missing");
    if (strcmp(name, "subagent") == 0)
        return read_agent(r, object, in, error);
    if (strcmp(name, "n") != 0 && strcmp(name, "s") != 0)
        return trace_bad_input(error, place_of(r, "type"), "'%.32s' is none of n, s, subagent", name);
    return read_turn(r, object, in, error);
}

static int read_list(const trace_reader *r, const json_t *requests, list in, trace_error *error)
{
    tester_state *s = r->state;
    if (!json_is_array(requests))
        return trace_bad_input(error, place_of(r, "requests"), requests ? "is not a list" : "missing");
    if (s->at.depth == DEEPEST)
        return trace_bad_input(error, place_of(r, "requests"), "more than %d sub-agents one within another",
                               DEEPEST - 1);
    int rc = 0;
    uint32_t depth = s->at.depth++;
    for (size_t i = 0; i < json_array_size(requests) && rc == 0; i++) {
        s->at.index[depth] = (uint32_t)i;
        rc = read_entry(r, json_array_get(requests, i), &in, error);
    }
    s->at.depth = depth;
    return rc;
}

static int by_time(const void *left, const void *right)
{
    const turn *a = left, *b = right;
    if (a->arrival_us != b->arrival_us)
        return a->arrival_us < b->arrival_us ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

/* A turn stays behind the one that it waits for: it is later in time, or as late and later in the file. */
static int sort_turns(const trace_reader *r, trace_error *error)
{
    tester_state *s = r->state;
    s->places = calloc(s->n + 1, sizeof *s->places);
    if (!s->places)
        return trace_failed(error, place_of(r, NULL), "out of memory");
    if (s->n > 0)
        qsort(s->turns, s->n, sizeof *s->turns, by_time);
    for (size_t i = 0; i < s->n; i++)
        s->places[s->turns[i].order] = (int64_t)i;
    return 0;
}

static int check_document(const trace_reader *r, trace_error *error)
{
    const tester_state *s = r->state;
    const json_t *scope = json_object_get(s->document, "hash_id_scope");
    uint64_t block;
    int rc =
        json_whole(json_object_get(s->document, "block_size"), place_of(r, "block_size"), UINT32_MAX, &block, error);
    if (rc < 0)
        return rc;
    if (block != BLOCK_TOKENS)
        return trace_bad_input(error, place_of(r, "block_size"), "%u is not %d", (unsigned)block, BLOCK_TOKENS);
    if (!json_is_string(scope) || strcmp(json_string_value(scope), "local") != 0)
        return trace_bad_input(error, place_of(r, "hash_id_scope"), scope ? "is not \"local\"" : "missing");
    return 0;
}

static int open_tester(trace_reader *r, trace_error *error)
{
    tester_state *s = r->state;
    int rc;
    s->document = json_document(&r->lines, &rc, error);
    if (rc == 0)
        rc = check_document(r, error);
    if (rc == 0)
        rc = read_list(r, json_object_get(s->document, "requests"), (list){.last = NO_TURN}, error);
    return rc < 0 ? rc : sort_turns(r, error);
}

static int read_lengths(const trace_reader *r, const json_t *object, trace_request *out, trace_error *error)
{
    uint64_t input, output;
    int rc = json_whole(json_object_get(object, "in"), place_of(r, "in"), KVK_MAX_TOKENS, &input, error);
    if (rc == 0)
        rc = json_whole(json_object_get(object, "out"), place_of(r, "out"), KVK_MAX_TOKENS, &output, error);
    if (rc < 0)
        return rc;
    out->n_input = (uint32_t)input;
    out->n_output = (uint32_t)output;
    return 0;
}

static int next_turn(trace_reader *r, trace_request *out, trace_error *error)
{
    tester_state *s = r->state;
    if (s->next == s->n)
        return 0;
    const turn *t = &s->turns[s->next];
    uint32_t after = t->after == NO_TURN ? 0 : (uint32_t)((int64_t)s->next - s->places[t->after]);
    s->next++;
    s->at = t->path;
    *out = (trace_request){.arrival_us = t->arrival_us,
                           .block_tokens = BLOCK_TOKENS,
                           .full_blocks = true,
                           .scope = r->file + 1,
                           .turn = {r->file, after, t->think_us, t->service_us}};
    int rc = read_lengths(r, t->object, out, error);
    if (rc == 0)
        rc = blocks_read(&s->ids, json_object_get(t->object, "hash_ids"), place_of(r, "hash_ids"), "in", out, error);
    return rc < 0 ? rc : 1;
}

static void close_tester(trace_reader *r)
{
    tester_state *s = r->state;
    json_decref(s->document);
    free(s->turns);
    free(s->places);
    blocks_close(&s->ids);
}

const trace_format trace_kv_cache_tester = {
    .name = "kv_cache_tester",
    .content = TRACE_BLOCKS,
    .block_tokens = BLOCK_TOKENS,
    .arrival_field = "t",
    .input_field = "in",
    .output_field = "out",
    .has_turns = true,
    .state_bytes = sizeof(tester_state),
    .open = open_tester,
    .detect_head = detect,
    .next = next_turn,
    .field = field_name,
    .close = close_tester,
};
