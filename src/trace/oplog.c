#include "trace/oplog_run.h"

#include <string.h>

static const size_t item_sizes[N_BUFFERS] = {
    [BUFFER_TOKENS] = sizeof(uint32_t),
    [BUFFER_KEYS] = sizeof(kvk_key),
    [BUFFER_ENTRIES] = sizeof(kvk_batch_entry),
    [BUFFER_ACCEPTED] = sizeof(uint32_t),
    [BUFFER_MOVES] = sizeof(kvk_move),
    [BUFFER_BEFORE] = sizeof(uint32_t),
    [BUFFER_AFTER] = sizeof(uint32_t),
    [BUFFER_PLAN] = sizeof(int64_t),
    [BUFFER_GROUPS] = sizeof(kvk_group),
    [BUFFER_RANGES] = sizeof(kvk_retention),
    [BUFFER_EXTRAS] = sizeof(kvk_extra),
    [BUFFER_ROWS] = sizeof(uint32_t),
    [BUFFER_SUMMED] = sizeof(uint32_t),
    [BUFFER_BUDGETS] = sizeof(uint32_t),
    [BUFFER_POSITIONS] = sizeof(uint32_t),
    [BUFFER_MEAN] = sizeof(float),
    [BUFFER_PEAK] = sizeof(float),
    [BUFFER_NEAR] = sizeof(float),
    [BUFFER_SCORES] = sizeof(kvk_page_score),
};

int oplog_no_memory(oplog_run *run)
{
    return trace_failed(run->error, lines_place(&run->lines, NULL), "out of memory");
}

void *oplog_buffer(oplog_run *run, int buffer, uint64_t n)
{
    oplog_array *a = &run->buffers[buffer];
    if (memory_grow(&run->memory, &a->items, &a->cap, n ? n : 1, item_sizes[buffer]) < 0) {
        oplog_no_memory(run);
        return NULL;
    }
    return a->items;
}

static bool is_blank(const line_reader *lines)
{
    return strspn(lines->text, " \t") == lines->length;
}

static int parse_line(oplog_run *run, json_t **out)
{
    json_error_t at;
    trace_place place = lines_place(&run->lines, NULL);
    json_t *line = json_loadb(run->lines.text, run->lines.length, JSON_REJECT_DUPLICATES, &at);
    if (!line && json_error_code(&at) == json_error_out_of_memory)
        return oplog_no_memory(run);
    if (!line)
        return trace_bad_input(run->error, place, "bad JSON at byte %d: %s", at.position, at.text);
    if (!json_is_object(line)) {
        json_decref(line);
        return trace_bad_input(run->error, place, "not a JSON object");
    }
    *out = line;
    return 1;
}

/* The next line that is not blank. Returns 1, 0 at the end, or a negative code. */
static int next_line(oplog_run *run, json_t **out)
{
    int rc;
    do
        rc = lines_next(&run->lines, run->error);
    while (rc == 1 && is_blank(&run->lines));
    return rc == 1 ? parse_line(run, out) : rc;
}

typedef struct first_violation {
    char text[256];
} first_violation;

static void keep_first(void *ctx, const char *invariant, const char *text)
{
    first_violation *first = ctx;
    if (!first->text[0])
        snprintf(first->text, sizeof first->text, "%s: %s", invariant, text);
}

static int audit(oplog_run *run)
{
    first_violation first = {""};
    int n = kvk_audit(run->cache, keep_first, &first);
    trace_place place = lines_place(&run->lines, "audit");
    if (n < 0)
        return trace_failed(run->error, place, "%s", kvk_strerror(n));
    return n == 0 ? 0 : trace_failed(run->error, place, "expected 0 violations, got %d: %s", n, first.text);
}

static int call_op(oplog_run *run, const oplog_op *op)
{
    run->detail = oplog_wants_detail(run) ? json_object() : NULL;
    if (!run->detail && oplog_wants_detail(run))
        return oplog_no_memory(run);
    int rc = op->call(run);
    if (rc == 0) {
        run->summary->ops++;
        run->summary->failed_ops += run->result < 0;
        rc = oplog_check_result(run, op);
    }
    json_decref(run->detail);
    run->detail = NULL;
    return rc == 0 && run->options->audit ? audit(run) : rc;
}

static int run_line(oplog_run *run, json_t *line)
{
    const json_t *name = json_object_get(line, "op");
    const oplog_op *op = json_is_string(name) ? oplog_find_op(json_string_value(name)) : NULL;
    char shown[80];
    if (!name)
        return trace_bad_input(run->error, lines_place(&run->lines, "op"), "missing");
    if (!op)
        return trace_bad_input(run->error, lines_place(&run->lines, "op"), "unknown op %s",
                               oplog_show(name, shown, sizeof shown));
    int rc = oplog_read_call(run, line, op->args);
    return rc < 0 ? rc : call_op(run, op);
}

static int run_lines(oplog_run *run)
{
    uint64_t max = run->options->max_ops ? run->options->max_ops : UINT64_MAX;
    json_t *line;
    int rc = 0;
    while (rc == 0 && run->summary->ops < max) {
        rc = next_line(run, &line);
        if (rc <= 0)
            return rc;
        rc = run_line(run, line);
        json_decref(line);
    }
    return rc;
}

/* A code of the library that no line of the log is to blame for. */
static int library_failed(oplog_run *run, const char *what, int rc)
{
    return rc < 0 ? trace_failed(run->error, (trace_place){run->lines.name, 0, NULL}, "%s: %s", what, kvk_strerror(rc))
                  : 0;
}

static int read_first_line(oplog_run *run)
{
    json_t *line;
    int rc = next_line(run, &line);
    if (rc == 0)
        return trace_bad_input(run->error, (trace_place){run->lines.name, 0, NULL}, "empty: no first line");
    if (rc < 0)
        return rc;
    rc = oplog_read_header(run, line);
    json_decref(line);
    return rc;
}

static int open_cache(oplog_run *run)
{
    run->config.allocator = run->options->allocator;
    run->config.memory_limit = run->options->memory_limit;
    int rc = kvk_cache_open(&run->config, &run->cache);
    if (rc == KVK_EINVAL)
        return trace_bad_input(run->error, lines_place(&run->lines, NULL), "cannot open the cache: %s",
                               kvk_strerror(rc));
    if (rc == 0 && run->options->record)
        rc = kvk_record_start(run->cache, run->options->record, run->options->record_ctx);
    run->summary->config.size = sizeof run->summary->config;
    if (rc == 0)
        rc = kvk_cache_config(run->cache, &run->summary->config);
    return library_failed(run, "cannot open the cache", rc);
}

/* Ends the recording, takes the statistics. An earlier failure is the one to tell. */
static int finish(oplog_run *run, int rc)
{
    if (!run->cache)
        return rc;
    run->summary->stats.size = sizeof run->summary->stats;
    kvk_stats_get(run->cache, &run->summary->stats);
    int stopped = run->options->record ? kvk_record_stop(run->cache) : 0;
    return rc < 0 ? rc : library_failed(run, "cannot record", stopped);
}

static int replay(oplog_run *run)
{
    int rc = read_first_line(run);
    if (rc == 0)
        rc = open_cache(run);
    if (rc == 0)
        rc = run_lines(run);
    return finish(run, rc);
}

static void release(oplog_run *run)
{
    kvk_cache_close(run->cache);
    json_decref(run->events.list);
    for (int i = 0; i < N_BUFFERS; i++)
        memory_give(&run->memory, run->buffers[i].items, run->buffers[i].cap * item_sizes[i]);
    oplog_ids_close(&run->seqs);
    oplog_ids_close(&run->batches);
    map_close(&run->n_entries);
    lines_close(&run->lines);
    memory_close(&run->memory);
}

int oplog_replay(FILE *in, const char *name, const oplog_options *options, oplog_summary *summary, trace_error *error)
{
    static const oplog_options none = {0};
    oplog_run run = {.options = options ? options : &none, .summary = summary, .error = error};
    *summary = (oplog_summary){0};
    lines_open(&run.lines, in, name);
    if (memory_open(&run.memory, run.options->allocator) < 0)
        return oplog_no_memory(&run);
    oplog_ids_open(&run.seqs, &run.memory);
    oplog_ids_open(&run.batches, &run.memory);
    map_open(&run.n_entries, &run.memory);
    int rc = replay(&run);
    release(&run);
    return rc;
}
