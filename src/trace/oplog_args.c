/* The arguments of an op log's lines: one table entry says an argument's name, type, range and place. */
#include "trace/oplog_run.h"

#include <string.h>

typedef struct rule {
    const char *name;
    int (*read)(oplog_run *run, const struct rule *arg, json_t *value, void *out);
    size_t offset; /* of the place that gets it, in kvk_config or oplog_args */
    int64_t min, max;
    const char *const *words; /* of an enum, by value, then NULL */
    bool required;
    unsigned contents; /* a bit per kvk_content under which it exists; 0: always */
} rule;

static int wrong(oplog_run *run, const char *field, const json_t *value, const char *wanted)
{
    char shown[80];
    return trace_bad_input(run->error, lines_place(&run->lines, field), "expected %s, got %s", wanted,
                           oplog_show(value, shown, sizeof shown));
}

static int wrong_item(oplog_run *run, const rule *arg, const json_t *list, size_t i, const char *wanted)
{
    char field[64];
    snprintf(field, sizeof field, "%s[%zu]", arg->name, i);
    return wrong(run, field, json_array_get(list, i), wanted);
}

static bool is_integer(const json_t *value, int64_t min, int64_t max)
{
    return json_is_integer(value) && json_integer_value(value) >= min && json_integer_value(value) <= max;
}

static int check_integer(oplog_run *run, const rule *arg, const json_t *value)
{
    char wanted[80];
    if (is_integer(value, arg->min, arg->max))
        return 0;
    snprintf(wanted, sizeof wanted, "an integer %lld to %lld", (long long)arg->min, (long long)arg->max);
    return wrong(run, arg->name, value, wanted);
}

static int read_u32(oplog_run *run, const rule *arg, json_t *value, void *out)
{
    int rc = check_integer(run, arg, value);
    if (rc == 0)
        *(uint32_t *)out = (uint32_t)json_integer_value(value);
    return rc;
}

static int read_i32(oplog_run *run, const rule *arg, json_t *value, void *out)
{
    int rc = check_integer(run, arg, value);
    if (rc == 0)
        *(int32_t *)out = (int32_t)json_integer_value(value);
    return rc;
}

static int read_id(oplog_run *run, const rule *arg, json_t *value, void *out)
{
    int rc = check_integer(run, arg, value);
    if (rc == 0)
        *(uint64_t *)out = (uint64_t)json_integer_value(value);
    return rc;
}

static int read_new_id(oplog_run *run, const rule *arg, json_t *value, uint64_t *out, const oplog_ids *ids)
{
    int rc = read_id(run, arg, value, out);
    if (rc == 0 && oplog_ids_is_open(ids, *out))
        return trace_bad_input(run->error, lines_place(&run->lines, arg->name), "%llu is open already",
                               (unsigned long long)*out);
    return rc;
}

static int read_new_seq(oplog_run *run, const rule *arg, json_t *value, void *out)
{
    return read_new_id(run, arg, value, out, &run->seqs);
}

static int read_new_batch(oplog_run *run, const rule *arg, json_t *value, void *out)
{
    return read_new_id(run, arg, value, out, &run->batches);
}

/* Nothing but its type or range matters. */
static int read_string(oplog_run *run, const rule *arg, json_t *value, void *out)
{
    (void)out;
    return json_is_string(value) ? 0 : wrong(run, arg->name, value, "a string");
}

static int read_version(oplog_run *run, const rule *arg, json_t *value, void *out)
{
    (void)out;
    return check_integer(run, arg, value);
}

static int read_expect(oplog_run *run, const rule *arg, json_t *value, void *out)
{
    *(json_t **)out = value;
    return json_is_object(value) ? 0 : wrong(run, arg->name, value, "an object");
}

static int read_bool(oplog_run *run, const rule *arg, json_t *value, void *out)
{
    if (!json_is_boolean(value))
        return wrong(run, arg->name, value, "true or false");
    *(uint32_t *)out = json_is_true(value);
    return 0;
}

static int read_word(oplog_run *run, const rule *arg, json_t *value, void *out)
{
    const char *word = json_string_value(value);
    for (uint32_t i = 0; word && arg->words[i]; i++) {
        *(uint32_t *)out = i;
        if (!strcmp(word, arg->words[i]))
            return 0;
    }
    char wanted[80];
    size_t n = (size_t)snprintf(wanted, sizeof wanted, "one of");
    for (uint32_t i = 0; arg->words[i]; i++)
        n += (size_t)snprintf(wanted + n, sizeof wanted - n, " %s", arg->words[i]);
    return wrong(run, arg->name, value, wanted);
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    const char *at = c ? strchr(digits, c) : NULL;
    int value = at ? (int)(at - digits) : -1;
    return value < 16 ? value : value - 6;
}

/* Parses 1 to max_digits hexadecimal digits. */
static bool parse_key(const json_t *value, size_t max_digits, kvk_key *out)
{
    const char *text = json_string_value(value);
    size_t n = json_string_length(value);
    if (!text || n == 0 || n > max_digits)
        return false;
    *out = (kvk_key){0};
    for (size_t i = 0; i < n; i++) {
        int digit = hex_digit(text[i]);
        if (digit < 0)
            return false;
        out->hi = out->hi << 4 | out->lo >> 60;
        out->lo = out->lo << 4 | (uint64_t)digit;
    }
    return true;
}

static int read_key(oplog_run *run, const rule *arg, json_t *value, void *out)
{
    return parse_key(value, 32, out) ? 0 : wrong(run, arg->name, value, "1 to 32 hexadecimal digits");
}

/* A 64-bit number that JSON's integers may be too small for. */
static bool parse_u64(const json_t *value, uint64_t *out)
{
    kvk_key key;
    if (json_is_string(value) ? !parse_key(value, 16, &key) : !is_integer(value, 0, INT64_MAX))
        return false;
    *out = json_is_string(value) ? key.lo : (uint64_t)json_integer_value(value);
    return true;
}

static int read_u64(oplog_run *run, const rule *arg, json_t *value, void *out)
{
    if (!json_is_string(value))
        return read_id(run, arg, value, out);
    return parse_u64(value, out) ? 0 : wrong(run, arg->name, value, "an integer or 1 to 16 hexadecimal digits");
}

/* Checks an item of `tokens` and gives the run that it stands for. */
static bool parse_run(const json_t *item, uint64_t *first, uint64_t *count)
{
    bool is_run = json_is_array(item) && json_array_size(item) == 2;
    const json_t *token = is_run ? json_array_get(item, 0) : item;
    const json_t *length = is_run ? json_array_get(item, 1) : NULL;
    if (!is_integer(token, 0, UINT32_MAX) || (is_run && !is_integer(length, 1, (int64_t)UINT32_MAX + 1)))
        return false;
    *first = (uint64_t)json_integer_value(token);
    *count = is_run ? (uint64_t)json_integer_value(length) : 1;
    return *first + *count <= (uint64_t)UINT32_MAX + 1;
}

/* Adds up before anything is allocated: a short line can name billions of tokens. */
static int count_tokens(oplog_run *run, const rule *arg, const json_t *list, uint64_t *total)
{
    *total = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        uint64_t first, count;
        if (!parse_run(json_array_get(list, i), &first, &count))
            return wrong_item(run, arg, list, i, "a token or a run [first, count] below 2^32");
        *total += count;
        if (*total > OPLOG_MAX_TEXT)
            return trace_bad_input(run->error, lines_place(&run->lines, arg->name), "more than %llu tokens",
                                   (unsigned long long)OPLOG_MAX_TEXT);
    }
    return 0;
}

static int read_tokens(oplog_run *run, const rule *arg, json_t *value, void *out)
{
    kvk_text *text = out;
    uint64_t total, first, count, at = 0;
    if (!json_is_array(value))
        return wrong(run, arg->name, value, "a list of tokens");
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

static int read_keys(oplog_run *run, const rule *arg, json_t *value, void *out)
{
    kvk_text *text = out;
    size_t n = json_array_size(value);
    if (!json_is_array(value))
        return wrong(run, arg->name, value, "a list of keys");
    kvk_key *keys = oplog_buffer(run, BUFFER_KEYS, n);
    if (!keys)
        return TRACE_FAILED;
    for (size_t i = 0; i < n; i++)
        if (!parse_key(json_array_get(value, i), 32, &keys[i]))
            return wrong_item(run, arg, value, i, "1 to 32 hexadecimal digits");
    text->keys = keys;
    text->n_keys = (uint32_t)n;
    return 0;
}

static int read_windows(oplog_run *run, const rule *arg, json_t *value, void *out)
{
    size_t n = json_array_size(value);
    if (!json_is_array(value))
        return wrong(run, arg->name, value, "a list of windows");
    kvk_group *groups = oplog_buffer(run, BUFFER_GROUPS, n);
    if (!groups)
        return TRACE_FAILED;
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(value, i);
        if (!is_integer(item, 0, UINT32_MAX))
            return wrong_item(run, arg, value, i, "a number of tokens");
        groups[i] = (kvk_group){.window = (uint32_t)json_integer_value(item)};
    }
    run->n_windows = n;
    *(const kvk_group **)out = groups;
    return 0;
}

static int check_entries(oplog_run *run, const rule *arg, const json_t *value)
{
    if (!json_is_array(value))
        return wrong(run, arg->name, value, "a list");
    if (json_array_size(value) > OPLOG_MAX_ENTRIES)
        return trace_bad_input(run->error, lines_place(&run->lines, arg->name), "more than %u items",
                               OPLOG_MAX_ENTRIES);
    return 0;
}

static int read_entries(oplog_run *run, const rule *arg, json_t *value, void *out)
{
    size_t n = json_array_size(value);
    int rc = check_entries(run, arg, value);
    kvk_batch_entry *entries = rc == 0 ? oplog_buffer(run, BUFFER_ENTRIES, n) : NULL;
    if (!entries)
        return rc < 0 ? rc : TRACE_FAILED;
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(value, i);
        const json_t *seq = json_array_get(item, 0), *n_query = json_array_get(item, 1);
        if (json_array_size(item) != 2 || !is_integer(seq, 0, INT64_MAX) || !is_integer(n_query, 0, UINT32_MAX))
            return wrong_item(run, arg, value, i, "[seq, n_query]");
        entries[i] = (kvk_batch_entry){.seq = oplog_ids_handle(&run->seqs, (uint64_t)json_integer_value(seq)),
                                       .n_query = (uint32_t)json_integer_value(n_query)};
    }
    *(uint32_t *)out = (uint32_t)n;
    return 0;
}

static int read_accepted(oplog_run *run, const rule *arg, json_t *value, void *out)
{
    size_t n = json_array_size(value);
    int rc = check_entries(run, arg, value);
    uint32_t *accepted = rc == 0 ? oplog_buffer(run, BUFFER_ACCEPTED, n) : NULL;
    if (!accepted)
        return rc < 0 ? rc : TRACE_FAILED;
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(value, i);
        if (!is_integer(item, 0, UINT32_MAX))
            return wrong_item(run, arg, value, i, "a number of tokens");
        accepted[i] = (uint32_t)json_integer_value(item);
    }
    run->args.has_accepted = 1;
    *(uint32_t *)out = (uint32_t)n;
    return 0;
}

static int read_extras(oplog_run *run, const rule *arg, json_t *value, void *out)
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
        if (json_array_size(item) != 2 || !is_integer(position, 0, UINT32_MAX) || !parse_key(key, 32, &extras[i].key))
            return wrong_item(run, arg, value, i, "[position, 1 to 32 hexadecimal digits]");
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
    if (!is_integer(begin, 0, UINT32_MAX) || !is_integer(end, 0, UINT32_MAX) || !is_integer(priority, 0, UINT32_MAX) ||
        (duration && !parse_u64(duration, &duration_ms)) || json_object_size(item) != (duration ? 4 : 3))
        return false;
    *out = (kvk_retention){.begin = (uint32_t)json_integer_value(begin),
                           .end = (uint32_t)json_integer_value(end),
                           .priority = (uint32_t)json_integer_value(priority),
                           .duration_ms = duration_ms};
    return true;
}

static int read_ranges(oplog_run *run, const rule *arg, json_t *value, void *out)
{
    size_t n = json_array_size(value);
    int rc = check_entries(run, arg, value);
    kvk_retention *ranges = rc == 0 ? oplog_buffer(run, BUFFER_RANGES, n) : NULL;
    if (!ranges)
        return rc < 0 ? rc : TRACE_FAILED;
    for (size_t i = 0; i < n; i++)
        if (!parse_range(json_array_get(value, i), &ranges[i]))
            return wrong_item(run, arg, value, i, "{begin, end, priority, duration_ms}");
    *(uint32_t *)out = (uint32_t)n;
    return 0;
}

static const char *const contents[] = {"none", "tokens", "keys", NULL};
static const char *const efforts[] = {"free_only", "reclaim", "evict", NULL};
static const char *const forms[] = {"csr", "padded", NULL};
static const char *const reclaims[] = {"lru", "fifo", "lfu", "s3fifo", NULL};
static const char *const hows[] = {"recompute", "swap", NULL};

#define WITH_NONE (1u << KVK_CONTENT_NONE)
#define WITH_TOKENS (1u << KVK_CONTENT_TOKENS)
#define WITH_KEYS (1u << KVK_CONTENT_KEYS)

#define IN_CONFIG(field) offsetof(kvk_config, field)
#define IN_CALL(field) offsetof(oplog_args, field)

/* name, reader, place, smallest and largest value, words, required, contents */
static const rule args[N_ARGS] = {
    [ARG_NOTE] = {"note", read_string, 0, 0, 0, NULL, false, 0},
    [ARG_OP] = {"op", read_string, 0, 0, 0, NULL, true, 0},
    [ARG_EXPECT] = {"expect", read_expect, IN_CALL(expect), 0, 0, NULL, false, 0},
    [ARG_VERSION] = {"kvkeep_oplog", read_version, 0, OPLOG_VERSION, OPLOG_VERSION, NULL, true, 0},
    [ARG_PAGES] = {"pages", read_u32, IN_CONFIG(n_pages), 1, KVK_MAX_PAGES, NULL, true, 0},
    [ARG_PAGE_TOKENS] = {"page_tokens", read_u32, IN_CONFIG(page_tokens), 1, KVK_MAX_PAGE_TOKENS, NULL, false, 0},
    [ARG_GROUPS] = {"groups", read_u32, IN_CONFIG(n_groups), 1, KVK_MAX_GROUPS, NULL, false, 0},
    [ARG_WATERMARK] = {"watermark", read_u32, IN_CONFIG(watermark), 0, KVK_MAX_PAGES, NULL, false, 0},
    [ARG_CONTENT] = {"content", read_word, IN_CONFIG(content), 0, 0, contents, false, 0},
    [ARG_ZERO_FILL] = {"zero_fill", read_bool, IN_CONFIG(zero_fill), 0, 0, NULL, false, 0},
    [ARG_WINDOWS] = {"windows", read_windows, IN_CONFIG(groups), 0, 0, NULL, false, 0},
    [ARG_HOST_PAGES] = {"host_pages", read_u32, IN_CONFIG(host_pages), 0, KVK_MAX_PAGES, NULL, false, 0},
    [ARG_RECLAIM] = {"reclaim", read_word, IN_CONFIG(reclaim), 0, 0, reclaims, false, 0},
    [ARG_PARTIAL_REUSE] = {"partial_reuse", read_bool, IN_CONFIG(partial_reuse), 0, 0, NULL, false, 0},
    [ARG_EXTRA_KEYS] = {"extra_keys", read_bool, IN_CONFIG(extra_keys), 0, 0, NULL, false, 0},
    [ARG_SEQ] = {"seq", read_id, IN_CALL(seq), 0, INT64_MAX, NULL, true, 0},
    [ARG_NEW_SEQ] = {"seq", read_new_seq, IN_CALL(seq), 1, INT64_MAX, NULL, true, 0},
    [ARG_CHILD] = {"child", read_new_seq, IN_CALL(child), 1, INT64_MAX, NULL, true, 0},
    [ARG_PRIORITY] = {"priority", read_i32, IN_CALL(params.priority), INT32_MIN, INT32_MAX, NULL, false, 0},
    [ARG_NEW_PRIORITY] = {"priority", read_i32, IN_CALL(params.priority), INT32_MIN, INT32_MAX, NULL, true, 0},
    [ARG_SALT] = {"salt", read_key, IN_CALL(params.salt), 0, 0, NULL, false, 0},
    [ARG_ADAPTER] = {"adapter", read_u64, IN_CALL(params.adapter), 0, INT64_MAX, NULL, false, 0},
    [ARG_GROUP] = {"group", read_u32, IN_CALL(group), 0, UINT32_MAX, NULL, false, 0},
    [ARG_PAGE] = {"page", read_u32, IN_CALL(page), 0, UINT32_MAX, NULL, true, 0},
    [ARG_N_TOKENS] = {"n_tokens", read_u32, IN_CALL(n_tokens), 0, UINT32_MAX, NULL, true, 0},
    [ARG_EFFORT] = {"effort", read_word, IN_CALL(effort), 0, 0, efforts, false, 0},
    [ARG_TEXT_TOKENS] = {"tokens", read_tokens, IN_CALL(text), 0, 0, NULL, true, WITH_TOKENS},
    [ARG_TEXT_N] = {"n_tokens", read_u32, IN_CALL(text.n_tokens), 0, UINT32_MAX, NULL, true, WITH_KEYS | WITH_NONE},
    [ARG_TEXT_KEYS] = {"keys", read_keys, IN_CALL(text), 0, 0, NULL, true, WITH_KEYS},
    [ARG_TEXT_EXTRAS] = {"extras", read_extras, IN_CALL(text), 0, 0, NULL, false, WITH_TOKENS},
    [ARG_BATCH] = {"batch", read_id, IN_CALL(batch), 0, INT64_MAX, NULL, true, 0},
    [ARG_NEW_BATCH] = {"batch", read_new_batch, IN_CALL(batch), 1, INT64_MAX, NULL, true, 0},
    [ARG_ENTRIES] = {"entries", read_entries, IN_CALL(n_entries), 0, 0, NULL, true, 0},
    [ARG_FORM] = {"form", read_word, IN_CALL(form), 0, 0, forms, false, 0},
    [ARG_INDEX_BITS] = {"index_bits", read_u32, IN_CALL(index_bits), 0, UINT32_MAX, NULL, false, 0},
    [ARG_ROW_PAGES] = {"row_pages", read_u32, IN_CALL(row_pages), 0, UINT32_MAX, NULL, false, 0},
    [ARG_ACCEPTED] = {"accepted", read_accepted, IN_CALL(n_accepted), 0, 0, NULL, false, 0},
    [ARG_CAP] = {"cap", read_u32, IN_CALL(cap), 1, UINT32_MAX, NULL, false, 0},
    [ARG_RANGES] = {"ranges", read_ranges, IN_CALL(n_ranges), 0, 0, NULL, true, 0},
    [ARG_NOW_MS] = {"now_ms", read_u64, IN_CALL(now_ms), 0, INT64_MAX, NULL, true, 0},
    [ARG_HOW] = {"how", read_word, IN_CALL(how), 0, 0, hows, true, 0},
    [ARG_NEW_PAGES] = {"pages", read_u32, IN_CALL(n_pages), 0, UINT32_MAX, NULL, true, 0},
    [ARG_MOVE] = {"move", read_bool, IN_CALL(move), 0, 0, NULL, false, 0},
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

/* What one field says about another, whichever comes first. */
static int check_header(oplog_run *run)
{
    const kvk_config *g = &run->config;
    if (g->watermark > g->n_pages)
        return trace_bad_input(run->error, lines_place(&run->lines, "watermark"), "more than the %u pages", g->n_pages);
    if (g->groups && run->n_windows != g->n_groups)
        return trace_bad_input(run->error, lines_place(&run->lines, "windows"), "%zu numbers for %u groups",
                               run->n_windows, g->n_groups);
    if (g->content != KVK_CONTENT_TOKENS && (g->partial_reuse || g->extra_keys))
        return trace_bad_input(run->error, lines_place(&run->lines, g->partial_reuse ? "partial_reuse" : "extra_keys"),
                               "only where the content is tokens");
    return 0;
}

int oplog_read_header(oplog_run *run, json_t *line)
{
    kvk_config_init(&run->config);
    int rc = read_args(run, line, ARGS_HEADER, &run->config);
    return rc < 0 ? rc : check_header(run);
}

int oplog_read_call(oplog_run *run, json_t *line, uint64_t set)
{
    run->args = (oplog_args){.effort = KVK_RECLAIM, .index_bits = 32};
    run->args.params.size = sizeof run->args.params;
    return read_args(run, line, set | ARGS_CALL, &run->args);
}
