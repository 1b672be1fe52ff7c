/* The table of ops, at the end; above it one function per op, each of which calls the library once. */
#include "base/checked.h"
#include "trace/oplog_run.h"

#include <string.h>

/* ---- Structs as result fields */

typedef struct field {
    const char *name;
    json_t *(*to_json)(const void *at);
    size_t offset;
} field;

static json_t *u32_to_json(const void *at)
{
    return json_integer(*(const uint32_t *)at);
}

static json_t *i32_to_json(const void *at)
{
    return json_integer(*(const int32_t *)at);
}

static json_t *u64_to_json(const void *at)
{
    return json_integer((json_int_t) * (const uint64_t *)at);
}

static json_t *double_to_json(const void *at)
{
    return json_real(*(const double *)at);
}

static json_t *state_to_json(const void *at)
{
    static const char *const words[] = {"free", "cached", "limbo", "used"};
    uint32_t state = *(const uint32_t *)at;
    return json_string(state <= KVK_PAGE_USED ? words[state] : "unknown");
}

#define FIELD(type, member)                                                                                            \
    {                                                                                                                  \
#member,                                                                                                       \
            _Generic(((type *)0)->member, uint32_t                                                                     \
                     : u32_to_json, int32_t                                                                            \
                     : i32_to_json, uint64_t                                                                           \
                     : u64_to_json, double                                                                             \
                     : double_to_json),                                                                                \
            offsetof(type, member)                                                                                     \
    }

static const field info_fields[] = {
    FIELD(kvk_seq_info, priority), FIELD(kvk_seq_info, n_tokens),    FIELD(kvk_seq_info, n_committed),
    FIELD(kvk_seq_info, n_pages),  FIELD(kvk_seq_info, n_in_flight), {NULL, NULL, 0},
};

static const field page_fields[] = {
    {"state", state_to_json, offsetof(kvk_page_info, state)},
    FIELD(kvk_page_info, refs),
    FIELD(kvk_page_info, generation),
    FIELD(kvk_page_info, n_tokens),
    FIELD(kvk_page_info, findable),
    {NULL, NULL, 0},
};

static const field stats_fields[] = {
    FIELD(kvk_stats, n_pages),
    FIELD(kvk_stats, page_tokens),
    FIELD(kvk_stats, pages_free),
    FIELD(kvk_stats, pages_cached),
    FIELD(kvk_stats, pages_limbo),
    FIELD(kvk_stats, pages_used),
    FIELD(kvk_stats, sequences),
    FIELD(kvk_stats, batches_in_flight),
    FIELD(kvk_stats, moves_waiting),
    FIELD(kvk_stats, peak_pages_used),
    FIELD(kvk_stats, peak_sequences),
    FIELD(kvk_stats, live_tokens),
    FIELD(kvk_stats, pages_taken),
    FIELD(kvk_stats, pages_reclaimed),
    FIELD(kvk_stats, cow_copies),
    FIELD(kvk_stats, prefix_queries),
    FIELD(kvk_stats, prefix_hits),
    FIELD(kvk_stats, prefix_page_queries),
    FIELD(kvk_stats, prefix_page_hits),
    FIELD(kvk_stats, memory_bytes),
    FIELD(kvk_stats, peak_memory_bytes),
    FIELD(kvk_stats, memory_allocations),
    FIELD(kvk_stats, usage_pages),
    FIELD(kvk_stats, usage_tokens),
    {NULL, NULL, 0},
};

static void detail_struct(oplog_run *run, const field *fields, const void *from)
{
    if (!run->detail || run->result < 0)
        return;
    for (; fields->name; fields++)
        oplog_detail(run, fields->name, fields->to_json((const char *)from + fields->offset));
}

/* ---- Sequences */

static kvk_seq seq_of(const oplog_run *run)
{
    return oplog_ids_handle(&run->seqs, run->args.seq);
}

static int call_open(oplog_run *run)
{
    kvk_seq seq;
    if (oplog_ids_prepare(&run->seqs) < 0)
        return oplog_no_memory(run);
    run->result = kvk_seq_open(run->cache, &run->args.params, &seq);
    if (run->result >= 0)
        oplog_ids_add(&run->seqs, run->args.seq, seq);
    return 0;
}

static int call_close(oplog_run *run)
{
    run->result = kvk_seq_close(run->cache, seq_of(run));
    if (run->result >= 0)
        oplog_ids_retire(&run->seqs, run->args.seq);
    return 0;
}

static int call_fork(oplog_run *run)
{
    kvk_seq child;
    if (oplog_ids_prepare(&run->seqs) < 0)
        return oplog_no_memory(run);
    run->result = kvk_seq_fork(run->cache, seq_of(run), &child);
    if (run->result >= 0)
        oplog_ids_add(&run->seqs, run->args.child, child);
    return 0;
}

static int call_set_priority(oplog_run *run)
{
    run->result = kvk_seq_set_priority(run->cache, seq_of(run), run->args.params.priority);
    return 0;
}

static int call_info(oplog_run *run)
{
    kvk_seq_info info = {.size = sizeof info};
    run->result = kvk_seq_info_get(run->cache, seq_of(run), &info);
    detail_struct(run, info_fields, &info);
    return 0;
}

/* ---- Tables */

/* The length of each of a sequence's tables; 0 if it is not open. */
static uint32_t table_length(const oplog_run *run)
{
    int n = kvk_seq_table(run->cache, seq_of(run), 0, NULL, 0);
    return n < 0 ? 0 : (uint32_t)n;
}

static json_t *page_list(const uint32_t *pages, uint32_t n)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++)
        json_array_append_new(list, json_integer(pages[i]));
    return list;
}

static int call_table(oplog_run *run)
{
    uint32_t n = table_length(run);
    uint32_t *pages = oplog_buffer(run, BUFFER_BEFORE, n);
    if (!pages)
        return TRACE_FAILED;
    run->result = kvk_seq_table(run->cache, seq_of(run), run->args.group, pages, n);
    if (run->detail && run->result >= 0)
        oplog_detail(run, "pages", page_list(pages, n));
    return 0;
}

typedef struct tables {
    uint32_t *pages; /* [n_groups][length] */
    uint32_t length;
} tables;

/* Copies all tables of the call's sequence, if somebody will ask what became of them. */
static int copy_tables(oplog_run *run, int buffer, tables *out)
{
    uint32_t n = table_length(run);
    *out = (tables){oplog_buffer(run, buffer, (uint64_t)n * run->config.n_groups), n};
    if (!out->pages)
        return TRACE_FAILED;
    for (uint32_t g = 0; g < run->config.n_groups; g++)
        kvk_seq_table(run->cache, seq_of(run), g, out->pages + (size_t)g * n, n);
    return 0;
}

/* The entries that are new or not what they were, group after group. */
static json_t *changed_entries(const tables *before, const tables *after, uint32_t n_groups)
{
    json_t *list = json_array();
    for (uint32_t g = 0; g < n_groups; g++) {
        const uint32_t *was = before->pages + (size_t)g * before->length;
        const uint32_t *is = after->pages + (size_t)g * after->length;
        for (uint32_t i = 0; i < after->length; i++)
            if (i >= before->length || was[i] != is[i])
                json_array_append_new(list, json_integer(is[i]));
    }
    return list;
}

static int call_and_compare_tables(oplog_run *run, int (*call)(oplog_run *run))
{
    tables before, after;
    if (!run->detail) {
        run->result = call(run);
        return 0;
    }
    if (copy_tables(run, BUFFER_BEFORE, &before) < 0)
        return TRACE_FAILED;
    run->result = call(run);
    if (copy_tables(run, BUFFER_AFTER, &after) < 0)
        return TRACE_FAILED;
    oplog_detail(run, "pages", changed_entries(&before, &after, run->config.n_groups));
    return 0;
}

/* ---- Prefix cache */

static int attach(oplog_run *run)
{
    return kvk_prefix_attach(run->cache, seq_of(run), &run->args.text);
}

static int call_attach(oplog_run *run)
{
    return call_and_compare_tables(run, attach);
}

static int call_lookup(oplog_run *run)
{
    run->result = kvk_prefix_lookup(run->cache, &run->args.params, &run->args.text);
    return 0;
}

static int call_reset(oplog_run *run)
{
    uint32_t in_use = 0;
    run->result = kvk_prefix_reset(run->cache, &in_use);
    if (run->detail)
        oplog_detail(run, "in_use", json_integer(in_use));
    return 0;
}

/* ---- Room for tokens */

static int call_can_reserve(oplog_run *run)
{
    static const char *const words[] = {"OK", "LATER", "NEVER"};
    run->result = kvk_can_reserve(run->cache, seq_of(run), run->args.n_tokens, (kvk_effort)run->args.effort);
    if (run->detail && run->result >= KVK_OK && run->result <= KVK_NEVER)
        oplog_detail(run, "can", json_string(words[run->result]));
    return 0;
}

static int reserve(oplog_run *run)
{
    return kvk_reserve(run->cache, seq_of(run), run->args.n_tokens, (kvk_effort)run->args.effort);
}

static int call_reserve(oplog_run *run)
{
    return call_and_compare_tables(run, reserve);
}

static int call_commit(oplog_run *run)
{
    run->result = kvk_commit(run->cache, seq_of(run), &run->args.text);
    return 0;
}

static int call_truncate(oplog_run *run)
{
    run->result = kvk_truncate(run->cache, seq_of(run), run->args.n_tokens);
    return 0;
}

/* ---- Moves */

static json_t *move_list(const kvk_move *moves, uint32_t n)
{
    static const char *const kinds[] = {"copy", "zero"};
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++) {
        const kvk_move *m = &moves[i];
        json_array_append_new(list, json_pack("{s:s, s:I, s:I, s:I, s:I}", "kind",
                                              m->kind <= KVK_MOVE_ZERO ? kinds[m->kind] : "unknown", "group",
                                              (json_int_t)m->group, "src", (json_int_t)m->src, "dst",
                                              (json_int_t)m->dst, "n_tokens", (json_int_t)m->n_tokens));
    }
    return list;
}

/* Without a cap it takes all that wait, and at least asks for one, since a cap of 0 takes none and only counts. The
 * cap goes through as it is, so that a recording says what the log said; the room is for what can come. */
static int call_moves(oplog_run *run)
{
    int waiting = kvk_moves_take(run->cache, NULL, 0);
    uint32_t all = waiting < 1 ? 1 : (uint32_t)waiting;
    uint32_t cap = run->args.cap ? run->args.cap : all;
    kvk_move *moves = oplog_buffer(run, BUFFER_MOVES, min_u32(cap, all));
    if (!moves)
        return TRACE_FAILED;
    run->result = kvk_moves_take(run->cache, moves, cap);
    if (run->detail && run->result >= 0)
        oplog_detail(run, "moves", move_list(moves, (uint32_t)run->result));
    return 0;
}

/* ---- Seeing what goes on */

static int call_page(oplog_run *run)
{
    kvk_page_info info = {.size = sizeof info};
    run->result = kvk_page_info_get(run->cache, run->args.page, &info);
    detail_struct(run, page_fields, &info);
    return 0;
}

static int call_stats(oplog_run *run)
{
    kvk_stats stats = {.size = sizeof stats};
    run->result = kvk_stats_get(run->cache, &stats);
    detail_struct(run, stats_fields, &stats);
    return 0;
}

static void add_violation(void *ctx, const char *invariant, const char *text)
{
    json_array_append_new(ctx, json_sprintf("%s: %s", invariant, text));
}

static int call_audit(oplog_run *run)
{
    json_t *violations = run->detail ? json_array() : NULL;
    run->result = kvk_audit(run->cache, violations ? add_violation : NULL, violations);
    if (run->detail)
        oplog_detail(run, "violations", violations);
    return 0;
}

static const oplog_op ops[] = {
    {"open", call_open, ARG_BIT(ARG_NEW_SEQ) | ARG_BIT(ARG_PRIORITY) | ARG_BIT(ARG_SALT) | ARG_BIT(ARG_ADAPTER), NULL},
    {"close", call_close, ARG_BIT(ARG_SEQ), NULL},
    {"fork", call_fork, ARG_BIT(ARG_SEQ) | ARG_BIT(ARG_CHILD), NULL},
    {"set_priority", call_set_priority, ARG_BIT(ARG_SEQ) | ARG_BIT(ARG_NEW_PRIORITY), NULL},
    {"info", call_info, ARG_BIT(ARG_SEQ), NULL},
    {"table", call_table, ARG_BIT(ARG_SEQ) | ARG_BIT(ARG_GROUP), NULL},
    {"attach", call_attach, ARG_BIT(ARG_SEQ) | ARGS_TEXT, NULL},
    {"lookup", call_lookup, ARGS_TEXT | ARG_BIT(ARG_SALT) | ARG_BIT(ARG_ADAPTER), NULL},
    {"can_reserve", call_can_reserve, ARG_BIT(ARG_SEQ) | ARG_BIT(ARG_N_TOKENS) | ARG_BIT(ARG_EFFORT), NULL},
    {"reserve", call_reserve, ARG_BIT(ARG_SEQ) | ARG_BIT(ARG_N_TOKENS) | ARG_BIT(ARG_EFFORT), NULL},
    {"commit", call_commit, ARG_BIT(ARG_SEQ) | ARGS_TEXT, NULL},
    {"truncate", call_truncate, ARG_BIT(ARG_SEQ) | ARG_BIT(ARG_N_TOKENS), NULL},
    {"plan", oplog_call_plan,
     ARG_BIT(ARG_NEW_BATCH) | ARG_BIT(ARG_ENTRIES) | ARG_BIT(ARG_FORM) | ARG_BIT(ARG_INDEX_BITS) |
         ARG_BIT(ARG_ROW_PAGES),
     NULL},
    {"end", oplog_call_end, ARG_BIT(ARG_BATCH) | ARG_BIT(ARG_ACCEPTED), NULL},
    {"moves", call_moves, ARG_BIT(ARG_CAP), NULL},
    {"reset", call_reset, 0, NULL},
    {"page", call_page, ARG_BIT(ARG_PAGE), NULL},
    {"stats", call_stats, 0, NULL},
    {"audit", call_audit, 0, "violations"},
};

const oplog_op *oplog_find_op(const char *name)
{
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (!strcmp(ops[i].name, name))
            return &ops[i];
    return NULL;
}
