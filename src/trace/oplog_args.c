/* The arguments of an op log's lines: one table entry says an argument's name, type, range and place. */
#include "trace/oplog_read.h"

#include <string.h>

static const char *const contents[] = {"none", "tokens", "keys", NULL};
static const char *const efforts[] = {"free_only", "reclaim", "evict", NULL};
static const char *const forms[] = {"csr", "padded", NULL};
static const char *const reclaims[] = {"lru", "fifo", "lfu", "s3fifo", NULL};
static const char *const hows[] = {"recompute", "swap", NULL};
static const char *const windows[] = {"a list of windows"};
static const char *const sizes[] = {"a list of [layers, heads]"};
static const char *const tokens[] = {"a number of tokens"};
static const char *const positions[] = {"a position"};
static const char *const rows[] = {"a number of rows"};
static const char *const queries[] = {"a number of queries"};

#define WITH_NONE (1u << KVK_CONTENT_NONE)
#define WITH_TOKENS (1u << KVK_CONTENT_TOKENS)
#define WITH_KEYS (1u << KVK_CONTENT_KEYS)

#define NOT_GIVEN SIZE_MAX

#define IN_CONFIG(field) offsetof(kvk_config, field)
#define IN_CALL(field) offsetof(oplog_args, field)

/* name, reader, place, smallest and largest value, words, required, contents */
static const oplog_rule args[N_ARGS] = {
    [ARG_NOTE] = {"note", oplog_read_string, 0, 0, 0, NULL, false, 0},
    [ARG_OP] = {"op", oplog_read_string, 0, 0, 0, NULL, true, 0},
    [ARG_EXPECT] = {"expect", oplog_read_expect, IN_CALL(expect), 0, 0, NULL, false, 0},
    [ARG_VERSION] = {"kvkeep_oplog", oplog_read_version, 0, OPLOG_VERSION, OPLOG_VERSION, NULL, true, 0},
    [ARG_PAGES] = {"pages", oplog_read_u32, IN_CONFIG(n_pages), 1, KVK_MAX_PAGES, NULL, true, 0},
    [ARG_PAGE_TOKENS] = {"page_tokens", oplog_read_u32, IN_CONFIG(page_tokens), 1, KVK_MAX_PAGE_TOKENS, NULL, false, 0},
    [ARG_GROUPS] = {"groups", oplog_read_u32, IN_CONFIG(n_groups), 1, KVK_MAX_GROUPS, NULL, false, 0},
    [ARG_WATERMARK] = {"watermark", oplog_read_u32, IN_CONFIG(watermark), 0, KVK_MAX_PAGES, NULL, false, 0},
    [ARG_CONTENT] = {"content", oplog_read_word, IN_CONFIG(content), 0, 0, contents, false, 0},
    [ARG_ZERO_FILL] = {"zero_fill", oplog_read_bool, IN_CONFIG(zero_fill), 0, 0, NULL, false, 0},
    [ARG_WINDOWS] = {"windows", oplog_read_windows, IN_CONFIG(groups), 0, 0, windows, false, 0},
    [ARG_NEAR_SIZES] = {"near", oplog_read_near_sizes, IN_CONFIG(groups), 0, 0, sizes, false, 0},
    [ARG_HOST_PAGES] = {"host_pages", oplog_read_u32, IN_CONFIG(host_pages), 0, KVK_MAX_PAGES, NULL, false, 0},
    [ARG_RECLAIM] = {"reclaim", oplog_read_word, IN_CONFIG(reclaim), 0, 0, reclaims, false, 0},
    [ARG_PARTIAL_REUSE] = {"partial_reuse", oplog_read_bool, IN_CONFIG(partial_reuse), 0, 0, NULL, false, 0},
    [ARG_EXTRA_KEYS] = {"extra_keys", oplog_read_bool, IN_CONFIG(extra_keys), 0, 0, NULL, false, 0},
    [ARG_SEQ] = {"seq", oplog_read_id, IN_CALL(seq), 0, INT64_MAX, NULL, true, 0},
    [ARG_NEW_SEQ] = {"seq", oplog_read_new_seq, IN_CALL(seq), 1, INT64_MAX, NULL, true, 0},
    [ARG_CHILD] = {"child", oplog_read_new_seq, IN_CALL(child), 1, INT64_MAX, NULL, true, 0},
    [ARG_PRIORITY] = {"priority", oplog_read_i32, IN_CALL(params.priority), INT32_MIN, INT32_MAX, NULL, false, 0},
    [ARG_NEW_PRIORITY] = {"priority", oplog_read_i32, IN_CALL(params.priority), INT32_MIN, INT32_MAX, NULL, true, 0},
    [ARG_SALT] = {"salt", oplog_read_key, IN_CALL(params.salt), 0, 0, NULL, false, 0},
    [ARG_ADAPTER] = {"adapter", oplog_read_u64, IN_CALL(params.adapter), 0, INT64_MAX, NULL, false, 0},
    [ARG_GROUP] = {"group", oplog_read_u32, IN_CALL(group), 0, UINT32_MAX, NULL, false, 0},
    [ARG_PAGE] = {"page", oplog_read_u32, IN_CALL(page), 0, UINT32_MAX, NULL, true, 0},
    [ARG_N_TOKENS] = {"n_tokens", oplog_read_u32, IN_CALL(n_tokens), 0, UINT32_MAX, NULL, true, 0},
    [ARG_EFFORT] = {"effort", oplog_read_word, IN_CALL(effort), 0, 0, efforts, false, 0},
    [ARG_TEXT_TOKENS] = {"tokens", oplog_read_tokens, IN_CALL(text), 0, 0, NULL, true, WITH_TOKENS},
    [ARG_TEXT_N] = {"n_tokens", oplog_read_u32, IN_CALL(text.n_tokens), 0, UINT32_MAX, NULL, true,
                    WITH_KEYS | WITH_NONE},
    [ARG_TEXT_KEYS] = {"keys", oplog_read_keys, IN_CALL(text), 0, 0, NULL, true, WITH_KEYS},
    [ARG_TEXT_EXTRAS] = {"extras", oplog_read_extras, IN_CALL(text), 0, 0, NULL, false, WITH_TOKENS},
    [ARG_BATCH] = {"batch", oplog_read_id, IN_CALL(batch), 0, INT64_MAX, NULL, true, 0},
    [ARG_NEW_BATCH] = {"batch", oplog_read_new_batch, IN_CALL(batch), 1, INT64_MAX, NULL, true, 0},
    [ARG_ENTRIES] = {"entries", oplog_read_entries, IN_CALL(n_entries), 0, 0, NULL, true, 0},
    [ARG_FORM] = {"form", oplog_read_word, IN_CALL(form), 0, 0, forms, false, 0},
    [ARG_INDEX_BITS] = {"index_bits", oplog_read_u32, IN_CALL(index_bits), 0, UINT32_MAX, NULL, false, 0},
    [ARG_ROW_PAGES] = {"row_pages", oplog_read_u32, IN_CALL(row_pages), 0, UINT32_MAX, NULL, false, 0},
    [ARG_ACCEPTED] = {"accepted", oplog_read_numbers, IN_CALL(accepted), BUFFER_ACCEPTED, 0, tokens, false, 0},
    [ARG_MEAN] = {"mean", oplog_read_masses, IN_CALL(mean), 0, 0, NULL, false, 0},
    [ARG_PEAK] = {"peak", oplog_read_masses, IN_CALL(peak), 0, 0, NULL, false, 0},
    [ARG_NEAR] = {"near", oplog_read_masses, IN_CALL(near), 0, 0, NULL, false, 0},
    [ARG_ROWS] = {"rows", oplog_read_numbers, IN_CALL(rows), BUFFER_ROWS, 0, rows, false, 0},
    [ARG_N_SUMMED] = {"n_summed", oplog_read_numbers, IN_CALL(n_summed), BUFFER_SUMMED, 0, queries, false, 0},
    [ARG_CAP] = {"cap", oplog_read_u32, IN_CALL(cap), 1, UINT32_MAX, NULL, false, 0},
    [ARG_RANGES] = {"ranges", oplog_read_ranges, IN_CALL(n_ranges), 0, 0, NULL, true, 0},
    [ARG_NOW_MS] = {"now_ms", oplog_read_u64, IN_CALL(now_ms), 0, INT64_MAX, NULL, true, 0},
    [ARG_HOW] = {"how", oplog_read_word, IN_CALL(how), 0, 0, hows, true, 0},
    [ARG_NEW_PAGES] = {"pages", oplog_read_u32, IN_CALL(n_pages), 0, UINT32_MAX, NULL, true, 0},
    [ARG_MOVE] = {"move", oplog_read_bool, IN_CALL(move), 0, 0, NULL, false, 0},
    [ARG_POLICY] = {"policy", oplog_read_policy, 0, 0, 0, NULL, true, 0},
    [ARG_BUDGET] = {"budget", oplog_read_u32, IN_CALL(eviction.budget), 0, UINT32_MAX, NULL, false, 0},
    [ARG_BUDGETS] = {"budgets", oplog_read_numbers, IN_CALL(budgets), BUFFER_BUDGETS, 0, tokens, false, 0},
    [ARG_SLACK] = {"slack", oplog_read_u32, IN_CALL(eviction.slack), 0, UINT32_MAX, NULL, false, 0},
    [ARG_FLOOR] = {"floor", oplog_read_u32, IN_CALL(eviction.floor), 0, UINT32_MAX, NULL, false, 0},
    [ARG_YIELDS] = {"yields", oplog_read_bool, IN_CALL(eviction.yields), 0, 0, NULL, false, 0},
    [ARG_N_PROMPT] = {"n_prompt", oplog_read_u32, IN_CALL(eviction.n_prompt), 0, UINT32_MAX, NULL, false, 0},
    [ARG_SLOPE] = {"slope", oplog_read_float, IN_CALL(eviction.slope), 0, 0, NULL, false, 0},
    [ARG_TARGET] = {"target", oplog_read_float, IN_CALL(eviction.target), 0, 0, NULL, false, 0},
    [ARG_POSITIONS] = {"positions", oplog_read_numbers, IN_CALL(positions), BUFFER_POSITIONS, 0, positions, true, 0},
};

static bool takes(const oplog_run *run, uint64_t set, unsigned i)
{
    return (set & ARG_BIT(i)) && (!args[i].contents || (args[i].contents & (1u << run->config.content)));
}

/* The argument of that name in the set, or N_ARGS. */
static unsigned find_arg(const oplog_run *run, uint64_t set, const char *name)
{
    unsigned i = 0;
    while (i < N_ARGS && !(takes(run, set, i) && !strcmp(args[i].name, name)))
        i++;
    return i;
}

static int check_missing(oplog_run *run, uint64_t set, uint64_t seen)
{
    for (unsigned i = 0; i < N_ARGS; i++)
        if (takes(run, set & ~seen, i) && args[i].required)
            return trace_bad_input(run->error, lines_place(&run->lines, args[i].name), "missing");
    return 0;
}

static int read_args(oplog_run *run, json_t *line, uint64_t set, void *into)
{
    const char *name;
    json_t *value;
    uint64_t seen = 0;
    json_object_foreach(line, name, value)
    {
        unsigned i = find_arg(run, set, name);
        if (i == N_ARGS)
            return trace_bad_input(run->error, lines_place(&run->lines, name), "unknown argument");
        int rc = args[i].read(run, &args[i], value, (char *)into + args[i].offset);
        if (rc < 0)
            return rc;
        seen |= ARG_BIT(i);
    }
    return check_missing(run, set, seen);
}

static int check_one_each(oplog_run *run, const char *field, size_t n)
{
    if (n == NOT_GIVEN || n == run->config.n_groups)
        return 0;
    return trace_bad_input(run->error, lines_place(&run->lines, field), "%zu items for %u groups", n,
                           run->config.n_groups);
}

/* What one field says about another, whichever comes first. */
static int check_header(oplog_run *run)
{
    const kvk_config *g = &run->config;
    if (g->watermark > g->n_pages)
        return trace_bad_input(run->error, lines_place(&run->lines, "watermark"), "more than the %u pages", g->n_pages);
    if (check_one_each(run, "windows", run->n_windows) < 0 || check_one_each(run, "near", run->n_near) < 0)
        return TRACE_BAD_INPUT;
    if (g->content != KVK_CONTENT_TOKENS && (g->partial_reuse || g->extra_keys))
        return trace_bad_input(run->error, lines_place(&run->lines, g->partial_reuse ? "partial_reuse" : "extra_keys"),
                               "only where the content is tokens");
    return 0;
}

int oplog_read_header(oplog_run *run, json_t *line)
{
    kvk_config_init(&run->config);
    run->n_windows = run->n_near = NOT_GIVEN;
    int rc = read_args(run, line, ARGS_HEADER, &run->config);
    return rc < 0 ? rc : check_header(run);
}

int oplog_read_call(oplog_run *run, json_t *line, uint64_t set)
{
    run->args = (oplog_args){.effort = KVK_RECLAIM, .index_bits = 32};
    run->args.params.size = sizeof run->args.params;
    if (set & ARG_BIT(ARG_POLICY))
        kvk_eviction_init(&run->args.eviction);
    return read_args(run, line, set | ARGS_CALL, &run->args);
}
