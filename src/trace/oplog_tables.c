/* What a call did to the block tables of its sequence. */
#include "base/checked.h"
#include "trace/oplog_run.h"

static uint32_t length_of(const oplog_run *run, uint32_t group)
{
    int n = kvk_seq_table(run->cache, oplog_seq(run), group, NULL, 0);
    return n < 0 ? 0 : (uint32_t)n; /* not open, or swapped: none */
}

static json_t *u32_list(const uint32_t *values, uint32_t n)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++)
        json_array_append_new(list, json_integer(values[i]));
    return list;
}

int oplog_call_table(oplog_run *run)
{
    uint32_t n = length_of(run, run->args.group);
    uint32_t *pages = oplog_buffer(run, BUFFER_BEFORE, n);
    if (!pages)
        return TRACE_FAILED;
    run->result = kvk_seq_table(run->cache, oplog_seq(run), run->args.group, pages, n);
    if (!run->detail || run->result < 0)
        return 0;
    oplog_detail(run, "pages", u32_list(pages, n));
    oplog_detail(run, "first_token", json_integer(kvk_seq_first(run->cache, oplog_seq(run), run->args.group)));
    return 0;
}

int oplog_call_positions(oplog_run *run)
{
    uint32_t n = length_of(run, run->args.group);
    uint32_t *positions = oplog_buffer(run, BUFFER_BEFORE, n);
    if (!positions)
        return TRACE_FAILED;
    run->result = kvk_seq_positions(run->cache, oplog_seq(run), run->args.group, positions, n);
    if (run->detail && run->result >= 0)
        oplog_detail(run, "positions", u32_list(positions, n));
    return 0;
}

/* A copy of a table, by position. */
typedef struct table_copy {
    uint32_t n;
    const uint32_t *pages, *positions;
} table_copy;

/* All tables of a sequence, in a buffer: for each group `n`, and room for `longest` pages and positions. */
typedef struct tables {
    uint32_t *items;
    uint32_t longest;
} tables;

static uint32_t *items_of(const tables *t, uint32_t group)
{
    return t->items + (size_t)group * (2 * (size_t)t->longest + 1);
}

static table_copy table_of(const tables *t, uint32_t group)
{
    const uint32_t *items = items_of(t, group);
    return (table_copy){items[0], items + 1, items + 1 + t->longest};
}

static int copy_tables(oplog_run *run, int buffer, tables *out)
{
    *out = (tables){0};
    for (uint32_t g = 0; g < run->config.n_groups; g++)
        out->longest = max_u32(out->longest, length_of(run, g));
    out->items = oplog_buffer(run, buffer, (2 * (uint64_t)out->longest + 1) * run->config.n_groups);
    if (!out->items)
        return TRACE_FAILED;
    for (uint32_t g = 0; g < run->config.n_groups; g++) {
        uint32_t *items = items_of(out, g);
        items[0] = length_of(run, g);
        kvk_seq_table(run->cache, oplog_seq(run), g, items + 1, out->longest);
        kvk_seq_positions(run->cache, oplog_seq(run), g, items + 1 + out->longest, out->longest);
    }
    return 0;
}

static void add_changed(json_t *list, const table_copy *was, const table_copy *is)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < is->n; i++) {
        while (k < was->n && was->positions[k] < is->positions[i])
            k++;
        if (k == was->n || was->positions[k] != is->positions[i] || was->pages[k] != is->pages[i])
            json_array_append_new(list, json_integer(is->pages[i]));
    }
}

/* The entries that are new or not what they were, group after group. */
static json_t *changed_entries(const tables *before, const tables *after, uint32_t n_groups)
{
    json_t *list = json_array();
    for (uint32_t g = 0; g < n_groups; g++) {
        table_copy was = table_of(before, g), is = table_of(after, g);
        add_changed(list, &was, &is);
    }
    return list;
}

int oplog_call_and_compare(oplog_run *run, int (*call)(oplog_run *run))
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
