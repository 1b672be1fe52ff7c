/* The table of ops, at the end; above it one function per op, each of which calls the library once. */
#include "base/checked.h"
#include "trace/oplog_run.h"

#include <string.h>

/* ---- Sequences */

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
    run->result = kvk_seq_close(run->cache, oplog_seq(run));
    if (run->result >= 0)
        oplog_ids_retire(&run->seqs, run->args.seq);
    return 0;
}

static int call_fork(oplog_run *run)
{
    kvk_seq child;
    if (oplog_ids_prepare(&run->seqs) < 0)
        return oplog_no_memory(run);
    run->result = kvk_seq_fork(run->cache, oplog_seq(run), &child);
    if (run->result >= 0)
        oplog_ids_add(&run->seqs, run->args.child, child);
    return 0;
}

static int call_set_priority(oplog_run *run)
{
    run->result = kvk_seq_set_priority(run->cache, oplog_seq(run), run->args.params.priority);
    return 0;
}

/* ---- Prefix cache */

static int attach(oplog_run *run)
{
    return kvk_prefix_attach(run->cache, oplog_seq(run), &run->args.text);
}

static int call_attach(oplog_run *run)
{
    return oplog_call_and_compare(run, attach);
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
    run->result = kvk_can_reserve(run->cache, oplog_seq(run), run->args.n_tokens, (kvk_effort)run->args.effort);
    if (run->detail && run->result >= KVK_OK && run->result <= KVK_NEVER)
        oplog_detail(run, "can", json_string(words[run->result]));
    return 0;
}

static int reserve(oplog_run *run)
{
    return kvk_reserve(run->cache, oplog_seq(run), run->args.n_tokens, (kvk_effort)run->args.effort);
}

static int reserve_and_compare(oplog_run *run)
{
    return oplog_call_and_compare(run, reserve);
}

static int call_reserve(oplog_run *run)
{
    return oplog_call_and_watch(run, reserve_and_compare);
}

static int call_commit(oplog_run *run)
{
    run->result = kvk_commit(run->cache, oplog_seq(run), &run->args.text);
    return 0;
}

static int call_truncate(oplog_run *run)
{
    run->result = kvk_truncate(run->cache, oplog_seq(run), run->args.n_tokens);
    return 0;
}

/* ---- Batches */

static int call_end(oplog_run *run)
{
    return oplog_call_and_watch(run, oplog_call_end);
}

/* ---- Moves */

static json_t *move_list(const kvk_move *moves, uint32_t n)
{
    static const char *const kinds[] = {"copy", "zero", "swap_out", "swap_in"};
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++) {
        const kvk_move *m = &moves[i];
        json_array_append_new(list, json_pack("{s:s, s:I, s:I, s:I, s:I}", "kind",
                                              m->kind <= KVK_MOVE_SWAP_IN ? kinds[m->kind] : "unknown", "group",
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

/* ---- Under pressure */

static int call_preempt(oplog_run *run)
{
    run->result = kvk_preempt(run->cache, oplog_seq(run), (kvk_preempt_how)run->args.how);
    return 0;
}

static int swap_in(oplog_run *run)
{
    return kvk_swap_in(run->cache, oplog_seq(run), (kvk_effort)run->args.effort);
}

static int swap_in_and_compare(oplog_run *run)
{
    return oplog_call_and_compare(run, swap_in);
}

static int call_swap_in(oplog_run *run)
{
    return oplog_call_and_watch(run, swap_in_and_compare);
}

static int call_pin(oplog_run *run)
{
    run->result = kvk_pin(run->cache, oplog_seq(run), run->args.n_tokens);
    return 0;
}

static int call_unpin(oplog_run *run)
{
    run->result = kvk_unpin(run->cache, oplog_seq(run), run->args.n_tokens);
    return 0;
}

static int call_retain(oplog_run *run)
{
    run->result = kvk_retain(run->cache, oplog_seq(run), run->buffers[BUFFER_RANGES].items, run->args.n_ranges);
    return 0;
}

static int call_set_time(oplog_run *run)
{
    run->result = kvk_set_time(run->cache, run->args.now_ms);
    return 0;
}

static int call_resize(oplog_run *run)
{
    run->result = kvk_resize(run->cache, run->args.n_pages, (int)run->args.move);
    return 0;
}

static const oplog_op ops[] = {
    {"open", call_open, ARG_BIT(ARG_NEW_SEQ) | ARG_BIT(ARG_PRIORITY) | ARG_BIT(ARG_SALT) | ARG_BIT(ARG_ADAPTER), NULL},
    {"close", call_close, ARG_BIT(ARG_SEQ), NULL},
    {"fork", call_fork, ARG_BIT(ARG_SEQ) | ARG_BIT(ARG_CHILD), NULL},
    {"set_priority", call_set_priority, ARG_BIT(ARG_SEQ) | ARG_BIT(ARG_NEW_PRIORITY), NULL},
    {"info", oplog_call_info, ARG_BIT(ARG_SEQ), NULL},
    {"table", oplog_call_table, ARG_BIT(ARG_SEQ) | ARG_BIT(ARG_GROUP), NULL},
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
    {"end", call_end,
     ARG_BIT(ARG_BATCH) | ARG_BIT(ARG_ACCEPTED) | ARG_BIT(ARG_MEAN) | ARG_BIT(ARG_PEAK) | ARG_BIT(ARG_NEAR) |
         ARG_BIT(ARG_ROWS) | ARG_BIT(ARG_N_SUMMED),
     NULL},
    {"set_eviction", oplog_call_set_eviction,
     ARG_BIT(ARG_SEQ) | ARG_BIT(ARG_POLICY) | ARG_BIT(ARG_BUDGET) | ARG_BIT(ARG_BUDGETS) | ARG_BIT(ARG_SLACK) |
         ARG_BIT(ARG_FLOOR) | ARG_BIT(ARG_YIELDS) | ARG_BIT(ARG_N_PROMPT) | ARG_BIT(ARG_SLOPE) | ARG_BIT(ARG_TARGET),
     NULL},
    {"evict", oplog_call_evict, ARG_BIT(ARG_SEQ) | ARG_BIT(ARG_GROUP) | ARG_BIT(ARG_POSITIONS), NULL},
    {"eviction", oplog_call_eviction, ARG_BIT(ARG_SEQ), NULL},
    {"scores", oplog_call_scores, ARG_BIT(ARG_SEQ) | ARG_BIT(ARG_GROUP), NULL},
    {"positions", oplog_call_positions, ARG_BIT(ARG_SEQ) | ARG_BIT(ARG_GROUP), NULL},
    {"preempt", call_preempt, ARG_BIT(ARG_SEQ) | ARG_BIT(ARG_HOW), NULL},
    {"swap_in", call_swap_in, ARG_BIT(ARG_SEQ) | ARG_BIT(ARG_EFFORT), NULL},
    {"victim", oplog_call_victim, 0, NULL},
    {"pin", call_pin, ARG_BIT(ARG_SEQ) | ARG_BIT(ARG_N_TOKENS), NULL},
    {"unpin", call_unpin, ARG_BIT(ARG_SEQ) | ARG_BIT(ARG_N_TOKENS), NULL},
    {"retain", call_retain, ARG_BIT(ARG_SEQ) | ARG_BIT(ARG_RANGES), NULL},
    {"set_time", call_set_time, ARG_BIT(ARG_NOW_MS), NULL},
    {"resize", call_resize, ARG_BIT(ARG_NEW_PAGES) | ARG_BIT(ARG_MOVE), NULL},
    {"moves", call_moves, ARG_BIT(ARG_CAP), NULL},
    {"reset", call_reset, 0, NULL},
    {"page", oplog_call_page, ARG_BIT(ARG_PAGE), NULL},
    {"stats", oplog_call_stats, 0, NULL},
    {"events", oplog_call_events, 0, NULL},
    {"audit", oplog_call_audit, 0, "violations"},
};

const oplog_op *oplog_find_op(const char *name)
{
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (!strcmp(ops[i].name, name))
            return &ops[i];
    return NULL;
}
