/* Mooncake's JSON Lines (FAST '25 traces): timestamp in ms, lengths in tokens, one id per 512 prompt tokens begun. */
#include "trace/format.h"
#include "trace/json.h"

#include <kvkeep/kvkeep.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_TOKENS = 512 };

typedef struct mooncake_state {
    uint64_t *ids;
    size_t cap;
} mooncake_state;

static bool detect(const char *line, size_t length)
{
    size_t blanks = strspn(line, " \t");
    return blanks < length && line[blanks] == '{';
}

static int keep_ids(trace_reader *r, size_t n, trace_error *error)
{
    mooncake_state *s = r->state;
    if (n <= s->cap)
        return 0;
    size_t cap = n < 256 ? 256 : 2 * n;
    uint64_t *grown = realloc(s->ids, cap * sizeof *grown);
    if (!grown)
        return trace_failed(error, lines_place(&r->lines, NULL), "out of memory");
    s->ids = grown;
    s->cap = cap;
    return 0;
}

static int read_ids(trace_reader *r, const json_t *list, trace_request *out, trace_error *error)
{
    trace_place place = lines_place(&r->lines, "hash_ids");
    size_t want = ((size_t)out->n_input + BLOCK_TOKENS - 1) / BLOCK_TOKENS;
    if (!json_is_array(list))
        return trace_bad_input(error, place, list ? "is not a list" : "missing");
    size_t n = json_array_size(list);
    if (n != want)
        return trace_bad_input(error, place, "has %zu ids where input_length %u needs %zu", n, out->n_input, want);
    int rc = keep_ids(r, n, error);
    uint64_t *ids = ((mooncake_state *)r->state)->ids;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = json_whole(json_array_get(list, i), place, INT64_MAX, &ids[i], error);
    out->block_tokens = BLOCK_TOKENS;
    out->n_blocks = (uint32_t)n;
    out->blocks = ids;
    return rc;
}

static int read_whole(trace_reader *r, const json_t *object, const char *name, uint64_t max, uint64_t *out,
                      trace_error *error)
{
    return json_whole(json_object_get(object, name), lines_place(&r->lines, name), max, out, error);
}

static int read_object(trace_reader *r, json_t *object, trace_request *out, trace_error *error)
{
    uint64_t ms, input, output;
    int rc = read_whole(r, object, "timestamp", INT64_MAX / 1000, &ms, error);
    if (rc == 0)
        rc = read_whole(r, object, "input_length", KVK_MAX_TOKENS, &input, error);
    if (rc == 0)
        rc = read_whole(r, object, "output_length", KVK_MAX_TOKENS, &output, error);
    if (rc < 0)
        return rc;
    *out = (trace_request){.arrival_us = ms * 1000, .n_input = (uint32_t)input, .n_output = (uint32_t)output};
    return read_ids(r, json_object_get(object, "hash_ids"), out, error);
}

static int next_mooncake(trace_reader *r, trace_request *out, trace_error *error)
{
    int rc;
    do
        rc = lines_next(&r->lines, error);
    while (rc == 1 && r->lines.length == 0);
    if (rc != 1)
        return rc;
    json_t *object = json_line(&r->lines, error);
    if (!object)
        return TRACE_BAD_INPUT;
    rc = read_object(r, object, out, error);
    json_decref(object);
    return rc < 0 ? rc : 1;
}

static void close_mooncake(trace_reader *r)
{
    free(((mooncake_state *)r->state)->ids);
}

const trace_format trace_mooncake = {
    .name = "mooncake",
    .content = TRACE_BLOCKS,
    .block_tokens = BLOCK_TOKENS,
    .arrival_field = "timestamp",
    .input_field = "input_length",
    .output_field = "output_length",
    .state_bytes = sizeof(mooncake_state),
    .detect = detect,
    .next = next_mooncake,
    .close = close_mooncake,
};
