#include "cache/record.h"

#include "base/checked.h"

#include <string.h>

#define BUFFER_BYTES 65536u
#define ITEM_BYTES 96u /* no single piece of a line is longer */

struct recorder {
    kvk_write_fn write;
    void *ctx;
    int failed;
    uint32_t n; /* bytes waiting */
    char bytes[BUFFER_BYTES];
};

/* ---- pieces of a line */

static void flush(recorder *r)
{
    if (r->n && !r->failed && r->write(r->ctx, r->bytes, r->n) != 0)
        r->failed = 1;
    r->n = 0;
}

static void put_text(recorder *r, const char *text)
{
    size_t n = strlen(text);
    if (r->n + n + ITEM_BYTES > BUFFER_BYTES)
        flush(r);
    memcpy(r->bytes + r->n, text, n);
    r->n += (uint32_t)n;
}

/* printf would cost more than the call that is recorded. */
static void put_number(recorder *r, uint64_t value, unsigned base)
{
    char digits[64];
    unsigned n = 0;
    do
        digits[n++] = "0123456789abcdef"[value % base];
    while ((value /= base) > 0);
    if (r->n + n + ITEM_BYTES > BUFFER_BYTES)
        flush(r);
    while (n > 0)
        r->bytes[r->n++] = digits[--n];
}

static void put_signed(recorder *r, int64_t value)
{
    if (value < 0)
        put_text(r, "-");
    put_number(r, value < 0 ? -(uint64_t)value : (uint64_t)value, 10);
}

static void put_key(recorder *r, kvk_key key)
{
    put_text(r, "\"");
    if (key.hi)
        put_number(r, key.hi, 16);
    for (unsigned bits = 64; key.hi && bits > 4 && key.lo >> (bits - 4) == 0; bits -= 4)
        put_text(r, "0"); /* the low half keeps its leading zeros */
    put_number(r, key.lo, 16);
    put_text(r, "\"");
}

/* `, "name": value` */
static void put_field(recorder *r, const char *name, uint64_t value)
{
    put_text(r, ",\"");
    put_text(r, name);
    put_text(r, "\":");
    put_number(r, value, 10);
}

/* A handle or batch; one that was never given out may not fit JSON's integers, and stands as 0. */
static uint64_t known_id(uint64_t id)
{
    return id <= INT64_MAX ? id : 0;
}

static void put_adapter(recorder *r, uint64_t adapter)
{
    if (adapter <= INT64_MAX) {
        put_field(r, "adapter", adapter);
        return;
    }
    put_text(r, ",\"adapter\":");
    put_key(r, (kvk_key){.lo = adapter});
}

static void put_list(recorder *r, const uint32_t *values, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        put_text(r, i ? "," : "");
        put_number(r, values[i], 10);
    }
}

/* Consecutive tokens are written as runs: [first,count]. */
static void put_tokens(recorder *r, const uint32_t *tokens, uint32_t n)
{
    for (uint32_t i = 0, run; i < n; i += run) {
        for (run = 1; i + run < n && tokens[i + run] == tokens[i] + run && tokens[i] + run != 0; run++)
            ;
        if (run < 3)
            run = 1;
        put_text(r, i ? "," : "");
        put_text(r, run > 1 ? "[" : "");
        put_number(r, tokens[i], 10);
        if (run == 1)
            continue;
        put_text(r, ",");
        put_number(r, run, 10);
        put_text(r, "]");
    }
}

static void put_content(kvk_cache *c, const kvk_text *text)
{
    recorder *r = c->recorder;
    if (c->config.content == KVK_CONTENT_TOKENS) {
        put_text(r, ",\"tokens\":[");
        put_tokens(r, text->tokens, text->n_tokens);
        put_text(r, "]");
        return;
    }
    put_field(r, "n_tokens", text->n_tokens);
    if (c->config.content != KVK_CONTENT_KEYS)
        return;
    put_text(r, ",\"keys\":[");
    for (uint32_t i = 0; i < text->n_keys; i++) {
        put_text(r, i ? "," : "");
        put_key(r, text->keys[i]);
    }
    put_text(r, "]");
}

/* ---- lines */

/* Begins the line of a call; 0 if the call leaves none. */
static int begin(kvk_cache *c, const char *op, int rc)
{
    if (rc == KVK_EINVAL || rc == KVK_ENOMEM || c->recorder->failed)
        return 0;
    put_text(c->recorder, "{\"op\":\"");
    put_text(c->recorder, op);
    put_text(c->recorder, "\"");
    return 1;
}

/* The result up to its closing brackets, so that more fields can follow. */
static void put_result(kvk_cache *c, int rc)
{
    put_text(c->recorder, ",\"expect\":{\"result\":");
    put_signed(c->recorder, rc);
}

static void end(kvk_cache *c)
{
    put_text(c->recorder, "}}\n");
}

static void finish(kvk_cache *c, int rc)
{
    put_result(c, rc);
    end(c);
}

void record_open(kvk_cache *c, kvk_seq seq, const kvk_seq_params *params)
{
    recorder *r = c->recorder;
    if (!begin(c, "open", 0))
        return;
    put_field(r, "seq", known_id(seq));
    if (params->priority) {
        put_text(r, ",\"priority\":");
        put_signed(r, params->priority);
    }
    if (params->salt.lo || params->salt.hi) {
        put_text(r, ",\"salt\":");
        put_key(r, params->salt);
    }
    if (params->adapter)
        put_adapter(r, params->adapter);
    finish(c, 0);
}

void record_close(kvk_cache *c, kvk_seq seq, int rc)
{
    if (!begin(c, "close", rc))
        return;
    put_field(c->recorder, "seq", known_id(seq));
    finish(c, rc);
}

void record_fork(kvk_cache *c, kvk_seq parent, kvk_seq child, int rc)
{
    if (rc < 0 || !begin(c, "fork", rc)) /* a fork that failed has no child to name */
        return;
    put_field(c->recorder, "seq", parent);
    put_field(c->recorder, "child", child);
    finish(c, rc);
}

void record_priority(kvk_cache *c, kvk_seq seq, int32_t priority, int rc)
{
    if (!begin(c, "set_priority", rc))
        return;
    put_field(c->recorder, "seq", known_id(seq));
    put_text(c->recorder, ",\"priority\":");
    put_signed(c->recorder, priority);
    finish(c, rc);
}

void record_attach(kvk_cache *c, kvk_seq seq, const kvk_text *prompt, int rc)
{
    recorder *r = c->recorder;
    if (!begin(c, "attach", rc))
        return;
    put_field(r, "seq", known_id(seq));
    put_content(c, prompt);
    put_result(c, rc);
    const sequence *s = rc < 0 ? NULL : sequence_find(c, seq);
    put_text(r, ",\"pages\":[");
    for (uint32_t g = 0; s && g < c->config.n_groups; g++) {
        put_text(r, g && s->tables[g].n ? "," : "");
        put_list(r, s->tables[g].pages, s->tables[g].n);
    }
    put_text(r, "]");
    end(c);
}

/* The entries that a reservation replaced or added, group after group. */
static void put_new_pages(kvk_cache *c, const sequence *s, uint32_t had)
{
    recorder *r = c->recorder;
    const char *comma = "";
    for (uint32_t g = 0; g < c->config.n_groups; g++) {
        const table *t = &s->tables[g];
        if (c->replaced[g] != PAGE_NONE) {
            put_text(r, comma);
            put_number(r, *table_at(t, s->n_tokens / page_tokens(c)), 10);
            comma = ",";
        }
        if (table_end(t) > had) {
            put_text(r, comma);
            put_list(r, table_at(t, had), table_end(t) - had);
            comma = ",";
        }
    }
}

void record_reserve(kvk_cache *c, const reservation *asked, int rc)
{
    static const char *const effort[] = {"free_only", "reclaim", "evict"};
    recorder *r = c->recorder;
    if (!begin(c, "reserve", rc))
        return;
    put_field(r, "seq", known_id(asked->seq));
    put_field(r, "n_tokens", asked->n_tokens);
    put_text(r, ",\"effort\":\"");
    put_text(r, effort[asked->effort]);
    put_text(r, "\"");
    put_result(c, rc);
    put_text(r, ",\"pages\":[");
    if (rc > 0)
        put_new_pages(c, sequence_find(c, asked->seq), asked->had);
    put_text(r, "]");
    end(c);
}

void record_commit(kvk_cache *c, kvk_seq seq, const kvk_text *text, int rc)
{
    if (!begin(c, "commit", rc))
        return;
    put_field(c->recorder, "seq", known_id(seq));
    put_content(c, text);
    finish(c, rc);
}

void record_truncate(kvk_cache *c, kvk_seq seq, uint32_t n_tokens, int rc)
{
    if (!begin(c, "truncate", rc))
        return;
    put_field(c->recorder, "seq", known_id(seq));
    put_field(c->recorder, "n_tokens", n_tokens);
    finish(c, rc);
}

void record_plan(kvk_cache *c, const kvk_batch_entry *entries, uint32_t n, int rc)
{
    recorder *r = c->recorder;
    if (rc == KVK_ESPACE || !begin(c, "plan", rc)) /* the arrays are the engine's own affair */
        return;
    put_field(r, "batch", rc < 0 ? c->next_epoch : c->next_epoch - 1);
    put_text(r, ",\"entries\":[");
    for (uint32_t i = 0; i < n; i++) {
        put_text(r, i ? ",[" : "[");
        put_number(r, known_id(entries[i].seq), 10);
        put_text(r, ",");
        put_number(r, entries[i].n_query, 10);
        put_text(r, "]");
    }
    put_text(r, "]");
    finish(c, rc);
}

void record_end(kvk_cache *c, kvk_batch batch, const kvk_batch_result *result, int rc)
{
    recorder *r = c->recorder;
    if (!begin(c, "end", rc))
        return;
    put_field(r, "batch", known_id(batch));
    if (result && result->accepted) {
        put_text(r, ",\"accepted\":[");
        put_list(r, result->accepted, result->n);
        put_text(r, "]");
    }
    finish(c, rc);
}

void record_moves(kvk_cache *c, uint32_t cap, int rc)
{
    if (!begin(c, "moves", rc))
        return;
    put_field(c->recorder, "cap", cap);
    finish(c, rc);
}

void record_reset(kvk_cache *c, int rc)
{
    if (begin(c, "reset", rc))
        finish(c, rc);
}

/* ---- the recorder itself */

static void put_header(kvk_cache *c)
{
    static const char *const kinds[] = {"none", "tokens", "keys"};
    recorder *r = c->recorder;
    put_text(r, "{\"kvkeep_oplog\":1");
    put_field(r, "page_tokens", c->config.page_tokens);
    put_field(r, "pages", c->config.n_pages);
    put_field(r, "groups", c->config.n_groups);
    put_field(r, "watermark", c->config.watermark);
    put_text(r, ",\"content\":\"");
    put_text(r, kinds[c->config.content]);
    put_text(r, c->config.zero_fill ? "\",\"zero_fill\":true}\n" : "\",\"zero_fill\":false}\n");
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
    flush(r);
    int failed = r->failed;
    memory_give(cache->memory, r, sizeof *r);
    cache->recorder = NULL;
    return failed ? KVK_EIO : 0;
}
