/* Readers of arguments that are lists. */
#include "trace/oplog_read.h"

#include <string.h>

/* Checks an item of `tokens` and gives the run that it stands for. */
static bool parse_run(const json_t *item, uint64_t *first, uint64_t *count)
{
    bool is_run = json_is_array(item) && json_array_size(item) == 2;
    const json_t *token = is_run ? json_array_get(item, 0) : item;
    const json_t *length = is_run ? json_array_get(item, 1) : NULL;
    if (!oplog_is_integer(token, 0, UINT32_MAX) || (is_run && !oplog_is_integer(length, 1, (int64_t)UINT32_MAX + 1)))
        return false;
    *first = (uint64_t)json_integer_value(token);
    *count = is_run ? (uint64_t)json_integer_value(length) : 1;
    return *first + *count <= (uint64_t)UINT32_MAX + 1;
}

/* Adds up before anything is allocated: a short line can name billions of tokens. */
static int count_tokens(oplog_run *run, const oplog_rule *arg, const json_t *list, uint64_t *total)
{
    *total = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        uint64_t first, count;
        if (!parse_run(json_array_get(list, i), &first, &count))
            return oplog_wrong_item(run, arg, list, i, "a token or a run [first, count] below 2^32");
        *total += count;
        if (*total > OPLOG_MAX_TEXT)
            return trace_bad_input(run->error, lines_place(&run->lines, arg->name), "more than %llu tokens",
                                   (unsigned long long)OPLOG_MAX_TEXT);
    }
    return 0;
}

int oplog_read_tokens(oplog_run *run, const oplog_rule *arg, json_t *value, void *out)
{
    kvk_text *text = out;
    uint64_t total, first, count, at = 0;
    if (!json_is_array(value))
        return oplog_wrong(run, arg->name, value, "a list of tokens");
    int rc = count_tokens(run, arg, value, &total);
    uint32_t *tokens = rc == 0 ? oplog_buffer(run, BUFFER_TOKENS, total) : NULL;
    if (!tokens)
        return rc < 0 ? rc : TRACE_FAILED;
    for (size_t i = 0; i < json_array_size(value); i++) {
        parse_run(json_array_get(value, i), &first, &count);
        for (uint64_t k = 0; k < count; k++)
            tokens[at++] = (uint32_t)(first + k);
    }
    text->tokens = tokens;
    text->n_tokens = (uint32_t)total;
    return 0;
}

int oplog_read_keys(oplog_run *run, const oplog_rule *arg, json_t *value, void *out)
{
    kvk_text *text = out;
    size_t n = json_array_size(value);
    if (!json_is_array(value))
        return oplog_wrong(run, arg->name, value, "a list of keys");
    kvk_key *keys = oplog_buffer(run, BUFFER_KEYS, n);
    if (!keys)
        return TRACE_FAILED;
    for (size_t i = 0; i < n; i++)
        if (!oplog_parse_key(json_array_get(value, i), 32, &keys[i]))
            return oplog_wrong_item(run, arg, value, i, "1 to 32 hexadecimal digits");
    text->keys = keys;
    text->n_keys = (uint32_t)n;
    return 0;
}

static int check_list(oplog_run *run, const oplog_rule *arg, const json_t *value, const char *wanted, uint32_t most)
{
    if (!json_is_array(value))
        return oplog_wrong(run, arg->name, value, wanted);
    if (json_array_size(value) > most)
        return trace_bad_input(run->error, lines_place(&run->lines, arg->name), "more than %u items", most);
    return 0;
}

/* What the first line says of its groups, in the order in which it does: *groups has room for all that there may be,
 * and *out names them from now on. */
static int take_groups(oplog_run *run, const oplog_rule *arg, const json_t *value, const kvk_group **out,
                       kvk_group **groups)
{
    int rc = check_list(run, arg, value, arg->words[0], KVK_MAX_GROUPS);
    if (rc < 0)
        return rc;
    *groups = oplog_buffer(run, BUFFER_GROUPS, KVK_MAX_GROUPS);
    if (!*groups)
        return TRACE_FAILED;
    if (!*out)
        memset(*groups, 0, KVK_MAX_GROUPS * sizeof **groups);
    *out = *groups;
    return 0;
}

int oplog_read_windows(oplog_run *run, const oplog_rule *arg, json_t *value, void *out)
{
    size_t n = json_array_size(value);
    kvk_group *groups;
    int rc = take_groups(run, arg, value, out, &groups);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(value, i);
        if (!oplog_is_integer(item, 0, UINT32_MAX))
            return oplog_wrong_item(run, arg, value, i, "a number of tokens");
        groups[i].window = (uint32_t)json_integer_value(item);
    }
    run->n_windows = n;
    return 0;
}

int oplog_read_near_sizes(oplog_run *run, const oplog_rule *arg, json_t *value, void *out)
{
    size_t n = json_array_size(value);
    kvk_group *groups;
    int rc = take_groups(run, arg, value, out, &groups);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(value, i);
        const json_t *layers = json_array_get(item, 0), *heads = json_array_get(item, 1);
        if (json_array_size(item) != 2 || !oplog_is_integer(layers, 0, UINT16_MAX) ||
            !oplog_is_integer(heads, 0, UINT16_MAX))
            return oplog_wrong_item(run, arg, value, i, "[layers, heads]");
        groups[i].near_layers = (uint16_t)json_integer_value(layers);
        groups[i].near_heads = (uint16_t)json_integer_value(heads);
    }
    run->n_near = n;
    return 0;
}

static int check_entries(oplog_run *run, const oplog_rule *arg, const json_t *value)
{
    return check_list(run, arg, value, "a list", OPLOG_MAX_ENTRIES);
}

int oplog_read_entries(oplog_run *run, const oplog_rule *arg, json_t *value, void *out)
{
    size_t n = json_array_size(value);
    int rc = check_entries(run, arg, value);
    kvk_batch_entry *entries = rc == 0 ? oplog_buffer(run, BUFFER_ENTRIES, n) : NULL;
    if (!entries)
        return rc < 0 ? rc : TRACE_FAILED;
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(value, i);
        const json_t *seq = json_array_get(item, 0), *n_query = json_array_get(item, 1);
        if (json_array_size(item) != 2 || !oplog_is_integer(seq, 0, INT64_MAX) ||
            !oplog_is_integer(n_query, 0, UINT32_MAX))
            return oplog_wrong_item(run, arg, value, i, "[seq, n_query]");
        entries[i] = (kvk_batch_entry){.seq = oplog_ids_handle(&run->seqs, (uint64_t)json_integer_value(seq)),
                                       .n_query = (uint32_t)json_integer_value(n_query)};
    }
    *(uint32_t *)out = (uint32_t)n;
    return 0;
}

int oplog_read_numbers(oplog_run *run, const oplog_rule *arg, json_t *value, void *out)
{
    size_t n = json_array_size(value);
    int rc = check_entries(run, arg, value);
    uint32_t *numbers = rc == 0 ? oplog_buffer(run, (int)arg->min, n) : NULL;
    if (!numbers)
        return rc < 0 ? rc : TRACE_FAILED;
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(value, i);
        if (!oplog_is_integer(item, 0, UINT32_MAX))
            return oplog_wrong_item(run, arg, value, i, arg->words[0]);
        numbers[i] = (uint32_t)json_integer_value(item);
    }
    *(oplog_numbers *)out = (oplog_numbers){numbers, (uint32_t)n};
    return 0;
}

int oplog_read_extras(oplog_run *run, const oplog_rule *arg, json_t *value, void *out)
{
    kvk_text *text = out;
    size_t n = json_array_size(value);
    int rc = check_entries(run, arg, value);
    kvk_extra *extras = rc == 0 ? oplog_buffer(run, BUFFER_EXTRAS, n) : NULL;
    if (!extras)
        return rc < 0 ? rc : TRACE_FAILED;
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(value, i);
        const json_t *position = json_array_get(item, 0), *key = json_array_get(item, 1);
        extras[i] = (kvk_extra){0};
        if (json_array_size(item) != 2 || !oplog_is_integer(position, 0, UINT32_MAX) ||
            !oplog_parse_key(key, 32, &extras[i].key))
            return oplog_wrong_item(run, arg, value, i, "[position, 1 to 32 hexadecimal digits]");
        extras[i].position = (uint32_t)json_integer_value(position);
    }
    text->extras = extras;
    text->n_extras = (uint32_t)n;
    return 0;
}

static bool parse_range(const json_t *item, kvk_retention *out)
{
    const json_t *begin = json_object_get(item, "begin"), *end = json_object_get(item, "end");
    const json_t *priority = json_object_get(item, "priority"), *duration = json_object_get(item, "duration_ms");
    uint64_t duration_ms = 0;
    if (!oplog_is_integer(begin, 0, UINT32_MAX) || !oplog_is_integer(end, 0, UINT32_MAX) ||
        !oplog_is_integer(priority, 0, UINT32_MAX) || (duration && !oplog_parse_u64(duration, &duration_ms)) ||
        json_object_size(item) != (duration ? 4 : 3))
        return false;
    *out = (kvk_retention){.begin = (uint32_t)json_integer_value(begin),
                           .end = (uint32_t)json_integer_value(end),
                           .priority = (uint32_t)json_integer_value(priority),
                           .duration_ms = duration_ms};
    return true;
}

int oplog_read_ranges(oplog_run *run, const oplog_rule *arg, json_t *value, void *out)
{
    size_t n = json_array_size(value);
    int rc = check_entries(run, arg, value);
    kvk_retention *ranges = rc == 0 ? oplog_buffer(run, BUFFER_RANGES, n) : NULL;
    if (!ranges)
        return rc < 0 ? rc : TRACE_FAILED;
    for (size_t i = 0; i < n; i++)
        if (!parse_range(json_array_get(value, i), &ranges[i]))
            return oplog_wrong_item(run, arg, value, i, "{begin, end, priority, duration_ms}");
    *(uint32_t *)out = (uint32_t)n;
    return 0;
}
