/* The ops that only look. */
#include "trace/oplog_run.h"

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

static json_t *text_to_json(const void *at)
{
    return json_string(*(const char *const *)at);
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
                     : double_to_json, const char *                                                                    \
                     : text_to_json),                                                                                  \
            offsetof(type, member)       \
    }

static const field info_fields[] = {
    FIELD(kvk_seq_info, priority),    FIELD(kvk_seq_info, n_tokens),
    FIELD(kvk_seq_info, n_committed), FIELD(kvk_seq_info, n_pages),
    FIELD(kvk_seq_info, n_in_flight), FIELD(kvk_seq_info, swapped),
    FIELD(kvk_seq_info, tainted),     {NULL, NULL, 0},
};

static const field eviction_fields[] = {
    FIELD(kvk_eviction_info, tainted),       FIELD(kvk_eviction_info, first_taint),
    FIELD(kvk_eviction_info, policy_needs),  FIELD(kvk_eviction_info, policy),
    FIELD(kvk_eviction_info, pages_kept),    FIELD(kvk_eviction_info, tokens_kept),
    FIELD(kvk_eviction_info, pages_evicted), FIELD(kvk_eviction_info, tokens_evicted),
    FIELD(kvk_eviction_info, queries),       FIELD(kvk_eviction_info, retained_last),
    FIELD(kvk_eviction_info, retained_mean), FIELD(kvk_eviction_info, evicted_mass),
    FIELD(kvk_eviction_info, churn_per_1k),  {NULL, NULL, 0},
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
    FIELD(kvk_stats, n_pages),           FIELD(kvk_stats, page_tokens),
    FIELD(kvk_stats, pages_free),        FIELD(kvk_stats, pages_cached),
    FIELD(kvk_stats, pages_limbo),       FIELD(kvk_stats, pages_used),
    FIELD(kvk_stats, sequences),         FIELD(kvk_stats, batches_in_flight),
    FIELD(kvk_stats, moves_waiting),     FIELD(kvk_stats, peak_pages_used),
    FIELD(kvk_stats, peak_sequences),    FIELD(kvk_stats, live_tokens),
    FIELD(kvk_stats, pages_taken),       FIELD(kvk_stats, pages_reclaimed),
    FIELD(kvk_stats, cow_copies),        FIELD(kvk_stats, prefix_queries),
    FIELD(kvk_stats, prefix_hits),       FIELD(kvk_stats, prefix_page_queries),
    FIELD(kvk_stats, prefix_page_hits),  FIELD(kvk_stats, memory_bytes),
    FIELD(kvk_stats, peak_memory_bytes), FIELD(kvk_stats, memory_allocations),
    FIELD(kvk_stats, pages_pinned),      FIELD(kvk_stats, pages_draining),
    FIELD(kvk_stats, host_pages_used),   FIELD(kvk_stats, preemptions),
    FIELD(kvk_stats, swapped_out_pages), FIELD(kvk_stats, swapped_in_pages),
    FIELD(kvk_stats, partial_hits),      FIELD(kvk_stats, usage_pages),
    FIELD(kvk_stats, usage_tokens),      FIELD(kvk_stats, pages_evicted),
    FIELD(kvk_stats, tokens_evicted),    {NULL, NULL, 0},
};

static void detail_struct(oplog_run *run, const field *fields, const void *from)
{
    if (!run->detail || run->result < 0)
        return;
    for (; fields->name; fields++)
        oplog_detail(run, fields->name, fields->to_json((const char *)from + fields->offset));
}

/* ---- Seeing what goes on */

int oplog_call_info(oplog_run *run)
{
    kvk_seq_info info = {.size = sizeof info};
    run->result = kvk_seq_info_get(run->cache, oplog_seq(run), &info);
    detail_struct(run, info_fields, &info);
    return 0;
}

int oplog_call_eviction(oplog_run *run)
{
    kvk_eviction_info info = {.size = sizeof info};
    run->result = kvk_eviction_info_get(run->cache, oplog_seq(run), &info);
    detail_struct(run, eviction_fields, &info);
    return 0;
}

int oplog_call_page(oplog_run *run)
{
    kvk_page_info info = {.size = sizeof info};
    run->result = kvk_page_info_get(run->cache, run->args.page, &info);
    detail_struct(run, page_fields, &info);
    return 0;
}

int oplog_call_stats(oplog_run *run)
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

int oplog_call_audit(oplog_run *run)
{
    json_t *violations = run->detail ? json_array() : NULL;
    run->result = kvk_audit(run->cache, violations ? add_violation : NULL, violations);
    if (run->detail)
        oplog_detail(run, "violations", violations);
    return 0;
}

int oplog_call_victim(oplog_run *run)
{
    kvk_seq seq = 0;
    run->result = kvk_victim(run->cache, &seq);
    if (run->detail && run->result > 0)
        oplog_detail(run, "seq", json_integer((json_int_t)oplog_ids_of(&run->seqs, seq)));
    return 0;
}
