#include "cache/record.h"

#include "cache/record_line.h"

/* Consecutive tokens are written as runs: [first,count]. */
static void put_tokens(recorder *r, const uint32_t *tokens, uint32_t n)
{
    for (uint32_t i = 0, run; i < n; i += run) {
        for (run = 1; i + run < n && tokens[i + run] == tokens[i] + run && tokens[i] + run != 0; run++)
            ;
        if (run < 3)
            run = 1;
        line_text(r, i ? "," : "");
        line_text(r, run > 1 ? "[" : "");
        line_number(r, tokens[i], 10);
        if (run == 1)
            continue;
        line_text(r, ",");
        line_number(r, run, 10);
        line_text(r, "]");
    }
}

static void put_extras(recorder *r, const kvk_text *text)
{
    line_text(r, ",\"extras\":[");
    for (uint32_t i = 0; i < text->n_extras; i++) {
        line_text(r, i ? ",[" : "[");
        line_number(r, text->extras[i].position, 10);
        line_text(r, ",");
        line_key(r, text->extras[i].key);
        line_text(r, "]");
    }
    line_text(r, "]");
}

static void put_content(kvk_cache *c, const kvk_text *text)
{
    recorder *r = c->recorder;
    if (c->config.content == KVK_CONTENT_TOKENS) {
        line_text(r, ",\"tokens\":[");
        put_tokens(r, text->tokens, text->n_tokens);
        line_text(r, "]");
        if (text->n_extras)
            put_extras(r, text);
        return;
    }
    line_field(r, "n_tokens", text->n_tokens);
    if (c->config.content != KVK_CONTENT_KEYS)
        return;
    line_text(r, ",\"keys\":[");
    for (uint32_t i = 0; i < text->n_keys; i++) {
        line_text(r, i ? "," : "");
        line_key(r, text->keys[i]);
    }
    line_text(r, "]");
}

void record_open(kvk_cache *c, kvk_seq seq, const kvk_seq_params *params)
{
    recorder *r = c->recorder;
    if (!line_begin(c, "open", 0))
        return;
    line_field(r, "seq", known_id(seq));
    if (params->priority) {
        line_text(r, ",\"priority\":");
        line_signed(r, params->priority);
    }
    if (params->salt.lo || params->salt.hi) {
        line_text(r, ",\"salt\":");
        line_key(r, params->salt);
    }
    if (params->adapter)
        line_wide(r, "adapter", params->adapter);
    line_finish(c, 0);
}

void record_close(kvk_cache *c, kvk_seq seq, int rc)
{
    if (!line_begin(c, "close", rc))
        return;
    line_field(c->recorder, "seq", known_id(seq));
    line_finish(c, rc);
}

void record_fork(kvk_cache *c, kvk_seq parent, kvk_seq child, int rc)
{
    if (rc < 0 || !line_begin(c, "fork", rc)) /* a fork that failed has no child to name */
        return;
    line_field(c->recorder, "seq", parent);
    line_field(c->recorder, "child", child);
    line_finish(c, rc);
}

void record_priority(kvk_cache *c, kvk_seq seq, int32_t priority, int rc)
{
    if (!line_begin(c, "set_priority", rc))
        return;
    line_field(c->recorder, "seq", known_id(seq));
    line_text(c->recorder, ",\"priority\":");
    line_signed(c->recorder, priority);
    line_finish(c, rc);
}

/* All entries of a sequence's tables, group after group. NULL has none. */
static void put_tables(kvk_cache *c, const sequence *s)
{
    const char *comma = "";
    line_text(c->recorder, ",\"pages\":[");
    for (uint32_t g = 0; s && g < c->config.n_groups; g++) {
        if (s->tables[g].n == 0)
            continue;
        line_text(c->recorder, comma);
        line_list(c->recorder, s->tables[g].pages, s->tables[g].n);
        comma = ",";
    }
    line_text(c->recorder, "]");
}

void record_attach(kvk_cache *c, kvk_seq seq, const kvk_text *prompt, int rc)
{
    recorder *r = c->recorder;
    if (!line_begin(c, "attach", rc))
        return;
    line_field(r, "seq", known_id(seq));
    put_content(c, prompt);
    line_result(c, rc);
    put_tables(c, rc < 0 ? NULL : sequence_find(c, seq));
    line_end(c);
}

/* The entries that a reservation replaced or added, group after group. */
static void put_new_pages(kvk_cache *c, const sequence *s, uint32_t had)
{
    recorder *r = c->recorder;
    const char *comma = "";
    for (uint32_t g = 0; g < c->config.n_groups; g++) {
        const table *t = &s->tables[g];
        if (c->replaced[g] != PAGE_NONE) {
            line_text(r, comma);
            line_number(r, *table_at(t, s->n_tokens / page_tokens(c)), 10);
            comma = ",";
        }
        if (table_end(t) > had) {
            line_text(r, comma);
            line_list(r, table_at(t, had), table_end(t) - had);
            comma = ",";
        }
    }
}

static const char *const efforts[] = {"free_only", "reclaim", "evict"};

void record_reserve(kvk_cache *c, const reservation *asked, int rc)
{
    recorder *r = c->recorder;
    if (!line_begin(c, "reserve", rc))
        return;
    line_field(r, "seq", known_id(asked->seq));
    line_field(r, "n_tokens", asked->n_tokens);
    line_word(r, "effort", efforts[asked->effort]);
    line_result(c, rc);
    line_text(r, ",\"pages\":[");
    if (rc > 0)
        put_new_pages(c, sequence_find(c, asked->seq), asked->had);
    line_text(r, "]");
    line_end(c);
}

void record_commit(kvk_cache *c, kvk_seq seq, const kvk_text *text, int rc)
{
    if (!line_begin(c, "commit", rc))
        return;
    line_field(c->recorder, "seq", known_id(seq));
    put_content(c, text);
    line_finish(c, rc);
}

/* A call whose arguments are a sequence and a number of tokens. */
static void record_tokens(kvk_cache *c, const char *op, kvk_seq seq, uint32_t n_tokens, int rc)
{
    if (!line_begin(c, op, rc))
        return;
    line_field(c->recorder, "seq", known_id(seq));
    line_field(c->recorder, "n_tokens", n_tokens);
    line_finish(c, rc);
}

void record_truncate(kvk_cache *c, kvk_seq seq, uint32_t n_tokens, int rc)
{
    record_tokens(c, "truncate", seq, n_tokens, rc);
}

void record_pin(kvk_cache *c, kvk_seq seq, uint32_t n_tokens, int rc)
{
    record_tokens(c, "pin", seq, n_tokens, rc);
}

void record_unpin(kvk_cache *c, kvk_seq seq, uint32_t n_tokens, int rc)
{
    record_tokens(c, "unpin", seq, n_tokens, rc);
}

static void put_ranges(recorder *r, const kvk_retention *ranges, uint32_t n)
{
    line_text(r, ",\"ranges\":[");
    for (uint32_t i = 0; i < n; i++) {
        line_text(r, i ? ",{\"begin\":" : "{\"begin\":");
        line_number(r, ranges[i].begin, 10);
        line_field(r, "end", ranges[i].end);
        line_field(r, "priority", ranges[i].priority);
        if (ranges[i].duration_ms)
            line_wide(r, "duration_ms", ranges[i].duration_ms);
        line_text(r, "}");
    }
    line_text(r, "]");
}

void record_retain(kvk_cache *c, kvk_seq seq, const kvk_retention *ranges, uint32_t n, int rc)
{
    if (!line_begin(c, "retain", rc))
        return;
    line_field(c->recorder, "seq", known_id(seq));
    put_ranges(c->recorder, ranges, n);
    line_finish(c, rc);
}

void record_time(kvk_cache *c, uint64_t now_ms, int rc)
{
    if (!line_begin(c, "set_time", rc))
        return;
    line_wide(c->recorder, "now_ms", now_ms);
    line_finish(c, rc);
}

void record_preempt(kvk_cache *c, kvk_seq seq, kvk_preempt_how how, int rc)
{
    if (!line_begin(c, "preempt", rc))
        return;
    line_field(c->recorder, "seq", known_id(seq));
    line_word(c->recorder, "how", how == KVK_PREEMPT_SWAP ? "swap" : "recompute");
    line_finish(c, rc);
}

void record_swap_in(kvk_cache *c, kvk_seq seq, kvk_effort effort, int rc)
{
    if (!line_begin(c, "swap_in", rc))
        return;
    line_field(c->recorder, "seq", known_id(seq));
    line_word(c->recorder, "effort", efforts[effort]);
    line_result(c, rc);
    put_tables(c, rc < 0 ? NULL : sequence_find(c, seq));
    line_end(c);
}

void record_resize(kvk_cache *c, uint32_t n_pages, int move, int rc)
{
    if (!line_begin(c, "resize", rc))
        return;
    line_field(c->recorder, "pages", n_pages);
    if (move)
        line_text(c->recorder, ",\"move\":true");
    line_finish(c, rc);
}

void record_plan(kvk_cache *c, const kvk_batch_entry *entries, uint32_t n, int rc)
{
    recorder *r = c->recorder;
    if (rc == KVK_ESPACE || !line_begin(c, "plan", rc)) /* the arrays are the engine's own affair */
        return;
    line_field(r, "batch", rc < 0 ? c->next_epoch : c->next_epoch - 1);
    line_text(r, ",\"entries\":[");
    for (uint32_t i = 0; i < n; i++) {
        line_text(r, i ? ",[" : "[");
        line_number(r, known_id(entries[i].seq), 10);
        line_text(r, ",");
        line_number(r, entries[i].n_query, 10);
        line_text(r, "]");
    }
    line_text(r, "]");
    line_finish(c, rc);
}

void record_moves(kvk_cache *c, uint32_t cap, int rc)
{
    if (!line_begin(c, "moves", rc))
        return;
    line_field(c->recorder, "cap", cap);
    line_finish(c, rc);
}

void record_reset(kvk_cache *c, int rc)
{
    if (line_begin(c, "reset", rc))
        line_finish(c, rc);
}

/* ---- the recorder itself */

static int has_windows(const kvk_cache *c)
{
    for (uint32_t g = 0; g < c->config.n_groups; g++)
        if (c->windows[g])
            return 1;
    return 0;
}

static void put_near_sizes(kvk_cache *c)
{
    recorder *r = c->recorder;
    line_text(r, ",\"near\":[");
    for (uint32_t g = 0; g < c->config.n_groups; g++) {
        line_text(r, g ? ",[" : "[");
        line_number(r, c->groups[g].near_layers, 10);
        line_text(r, ",");
        line_number(r, c->groups[g].near_heads, 10);
        line_text(r, "]");
    }
    line_text(r, "]");
}

/* Fields that a version before them did not know are left out where they have their default. */
static void put_header(kvk_cache *c)
{
    static const char *const kinds[] = {"none", "tokens", "keys"};
    static const char *const orders[] = {"lru", "fifo", "lfu", "s3fifo"};
    recorder *r = c->recorder;
    line_text(r, "{\"kvkeep_oplog\":1");
    line_field(r, "page_tokens", c->config.page_tokens);
    line_field(r, "pages", c->config.n_pages);
    line_field(r, "groups", c->config.n_groups);
    line_field(r, "watermark", c->config.watermark);
    line_word(r, "content", kinds[c->config.content]);
    line_text(r, c->config.zero_fill ? ",\"zero_fill\":true" : ",\"zero_fill\":false");
    if (has_windows(c)) {
        line_text(r, ",\"windows\":[");
        line_list(r, c->windows, c->config.n_groups);
        line_text(r, "]");
    }
    if (c->near_stride)
        put_near_sizes(c);
    if (c->config.host_pages)
        line_field(r, "host_pages", c->config.host_pages);
    if (c->config.reclaim)
        line_word(r, "reclaim", orders[c->config.reclaim]);
    if (c->config.partial_reuse)
        line_text(r, ",\"partial_reuse\":true");
    if (c->config.extra_keys)
        line_text(r, ",\"extra_keys\":true");
    line_text(r, "}\n");
    if (c->now_ms) /* told before the recording began */
        record_time(c, c->now_ms, 0);
}

/* True while a replay that starts from an empty cache can still repeat everything. */
static int is_untouched(const kvk_cache *c)
{
    return c->counters.peak_sequences == 0 && c->next_epoch == 1;
}

int kvk_record_start(kvk_cache *cache, kvk_write_fn write, void *ctx)
{
    if (!cache_is_ready(cache) || !write)
        return cache_refuses(cache);
    if (cache->recorder || !is_untouched(cache))
        return KVK_ESTATE;
    recorder *r = memory_take(cache->memory, sizeof *r);
    if (!r)
        return KVK_ENOMEM;
    r->cache = cache;
    r->write = write;
    r->ctx = ctx;
    r->failed = 0;
    r->n = 0;
    cache->recorder = r;
    put_header(cache);
    return 0;
}

int kvk_record_stop(kvk_cache *cache)
{
    if (!cache_is_ready(cache))
        return cache_refuses(cache);
    recorder *r = cache->recorder;
    if (!r)
        return KVK_ESTATE;
    line_flush(r);
    int failed = r->failed;
    memory_give(cache->memory, r, sizeof *r);
    cache->recorder = NULL;
    return failed ? KVK_EIO : 0;
}
