/* fuzz_api.c: bytes become calls with arbitrary arguments. After each, every invariant holds and, if the call failed,
 * nothing that can be seen changed. In the end the recording of it all is replayed and must give the same results. */
#include "api_evict.h"
#include "api_run.h"
#include "trace/oplog.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What a text consists of. */
typedef struct {
    uint32_t tokens[TOKENS];
    kvk_key keys[TOKENS];
    kvk_extra extras[2];
} letters;

static void add_extras(run *r, kvk_text *t, kvk_extra *extras)
{
    t->n_extras = byte(r) % 3;
    t->extras = extras;
    for (uint32_t i = 0; i < t->n_extras; i++)
        extras[i] = (kvk_extra){.position = byte(r) % TOKENS, .key = {byte(r) % 2, 0}};
}

static kvk_text text(run *r, letters *l)
{
    uint32_t n = byte(r) % TOKENS, flags = byte(r);
    for (uint32_t i = 0; i < n; i++) {
        l->tokens[i] = flags & 1 ? byte(r) % 2 : i;
        l->keys[i] = (kvk_key){flags & 1 ? byte(r) % 2 : i, 0};
    }
    kvk_text t = {.n_tokens = n, .tokens = flags & 128 ? NULL : l->tokens};
    if (r->config.content == KVK_CONTENT_KEYS) {
        t.n_keys = flags & 64 ? byte(r) % TOKENS : n / r->config.page_tokens;
        t.keys = flags & 128 ? NULL : l->keys;
    }
    if (flags & 32)
        add_extras(r, &t, l->extras);
    return t;
}

static kvk_seq_params params(run *r)
{
    kvk_seq_params p = {.size = sizeof p, .priority = (int32_t)number(r)};
    p.salt.lo = byte(r) % 2;
    p.adapter = byte(r) % 2;
    if (byte(r) == 255)
        p.size = byte(r);
    return p;
}

/* ---- Calls: each returns what the library did ---- */

static int call_open(run *r)
{
    kvk_seq *seq = pick_seq(r), fresh = 0;
    kvk_seq_params p = params(r);
    int rc = kvk_seq_open(r->cache, byte(r) % 4 ? &p : NULL, &fresh);
    if (rc == 0)
        *seq = fresh; /* the old one stays open, out of reach */
    return rc;
}

static int call_close(run *r)
{
    return kvk_seq_close(r->cache, *pick_seq(r));
}

static int call_fork(run *r)
{
    kvk_seq child = 0, *parent = pick_seq(r), *to = pick_seq(r);
    int rc = kvk_seq_fork(r->cache, *parent, &child);
    if (rc == 0)
        *to = child;
    return rc;
}

static int call_set_priority(run *r)
{
    kvk_seq *seq = pick_seq(r);
    return kvk_seq_set_priority(r->cache, *seq, (int32_t)number(r));
}

static int call_attach(run *r)
{
    letters l;
    kvk_seq *seq = pick_seq(r);
    kvk_text prompt = text(r, &l);
    return kvk_prefix_attach(r->cache, *seq, &prompt);
}

static int call_lookup(run *r)
{
    letters l;
    kvk_seq_params p = params(r);
    kvk_text prompt = text(r, &l);
    return kvk_prefix_lookup(r->cache, &p, &prompt);
}

static int call_commit(run *r)
{
    letters l;
    kvk_seq *seq = pick_seq(r);
    kvk_text t = text(r, &l);
    return kvk_commit(r->cache, *seq, &t);
}

/* What can_reserve says, reserve does. */
static int call_reserve(run *r)
{
    kvk_seq *seq = pick_seq(r);
    uint32_t n = number(r);
    kvk_effort effort = (kvk_effort)(byte(r) % 4);
    int can = kvk_can_reserve(r->cache, *seq, n, effort), rc = kvk_reserve(r->cache, *seq, n, effort);
    must(can >= 0 ? (can == KVK_OK) == (rc >= 0) : rc == can);
    must((can == KVK_LATER) == (rc == KVK_ENOPAGE) && (can == KVK_NEVER) == (rc == KVK_ENEVER));
    return rc;
}

static int call_truncate(run *r)
{
    kvk_seq *seq = pick_seq(r);
    return kvk_truncate(r->cache, *seq, number(r));
}

static int call_reset(run *r)
{
    uint32_t in_use;
    return kvk_prefix_reset(r->cache, byte(r) % 2 ? &in_use : NULL);
}

static int call_plan(run *r)
{
    int64_t indptr[GROUPS * (ENTRIES + 1)], pages[GROUPS * ENTRIES * PLAN_PAGES], last[GROUPS * ENTRIES];
    int64_t slots[GROUPS * TOKENS];
    kvk_batch_entry entries[ENTRIES] = {{0}};
    uint32_t at = byte(r) % BATCHES, n = byte(r) % (ENTRIES + 1), flags = byte(r);
    kvk_plan plan;
    for (uint32_t i = 0; i < n; i++) {
        entries[i].seq = *pick_seq(r);
        entries[i].n_query = number(r);
    }
    kvk_plan_init(&plan);
    plan.form = flags >> 6;
    plan.index_bits = flags & 1 ? 64 : 32;
    plan.entries_cap = ENTRIES;
    plan.pages_cap = flags & 32 ? byte(r) % PLAN_PAGES : PLAN_PAGES;
    plan.slots_cap = flags & 32 ? byte(r) % TOKENS : TOKENS;
    plan.indptr = flags & 2 ? indptr : NULL;
    plan.pages = flags & 4 ? pages : NULL;
    plan.last_page_len = flags & 8 ? last : NULL;
    plan.slots = flags & 16 ? slots : NULL;
    int rc = kvk_batch_plan(r->cache, entries, n, &plan, &r->batches[at]);
    for (uint32_t i = 0; rc == 0 && i < ENTRIES; i++)
        r->queries[at][i] = entries[i].n_query;
    return rc;
}

static int call_end(run *r)
{
    uint32_t accepted[ENTRIES], at = byte(r) % BATCHES;
    any_masses masses;
    for (int i = 0; i < ENTRIES; i++)
        accepted[i] = number(r);
    kvk_batch_result result = {sizeof result, byte(r) % (ENTRIES + 1), accepted, NULL};
    int has_result = byte(r) % 2;
    if (!r->evicts)
        return kvk_batch_end(r->cache, r->batches[at], has_result ? &result : NULL);
    make_masses(r, r->queries[at], &masses);
    result.masses = &masses.masses;
    if (byte(r) % 4)
        result.accepted = byte(r) % 4 ? NULL : r->queries[at];
    int rc = kvk_batch_end(r->cache, r->batches[at], has_result ? &result : NULL);
    free_masses(&masses);
    return rc;
}

static int call_moves(run *r)
{
    kvk_move moves[16];
    uint32_t cap = byte(r) % 17;
    int n = kvk_moves_take(r->cache, moves, cap);
    for (int i = 0; i < n && cap; i++) {
        must(moves[i].src < (moves[i].kind == KVK_MOVE_SWAP_IN ? r->config.host_pages : MOST_PAGES));
        must(moves[i].dst < (moves[i].kind == KVK_MOVE_SWAP_OUT ? r->config.host_pages : MOST_PAGES));
        must(moves[i].n_tokens >= 1 && moves[i].n_tokens <= r->config.page_tokens);
    }
    return n;
}

static int call_see(run *r)
{
    uint32_t pages[PLAN_PAGES];
    kvk_seq seq = *pick_seq(r);
    kvk_seq_info info = {.size = byte(r) % (sizeof info + 1)};
    kvk_page_info page = {.size = byte(r) % (sizeof page + 1)};
    kvk_seq_info_get(r->cache, seq, &info);
    kvk_page_info_get(r->cache, number(r), &page);
    kvk_seq_first(r->cache, seq, byte(r) % (GROUPS + 1));
    return kvk_seq_table(r->cache, seq, number(r), pages, byte(r) % PLAN_PAGES);
}

static int call_preempt(run *r)
{
    kvk_seq *seq = pick_seq(r);
    return kvk_preempt(r->cache, *seq, (kvk_preempt_how)(byte(r) % 3));
}

static int call_swap_in(run *r)
{
    kvk_seq *seq = pick_seq(r);
    return kvk_swap_in(r->cache, *seq, (kvk_effort)(byte(r) % 4));
}

/* Whoever is named can be preempted. */
static int call_victim(run *r)
{
    kvk_seq seq = 0;
    int rc = kvk_victim(r->cache, &seq);
    must(rc == 0 || (rc == 1 && kvk_preempt(r->cache, seq, KVK_PREEMPT_RECOMPUTE) >= 0));
    return rc;
}

static int call_pin(run *r)
{
    kvk_seq *seq = pick_seq(r);
    return kvk_pin(r->cache, *seq, number(r));
}

static int call_unpin(run *r)
{
    kvk_seq *seq = pick_seq(r);
    return kvk_unpin(r->cache, *seq, number(r));
}

static int call_retain(run *r)
{
    kvk_retention ranges[3];
    kvk_seq *seq = pick_seq(r);
    uint32_t n = byte(r) % 4;
    for (uint32_t i = 0; i < n; i++) {
        ranges[i] = (kvk_retention){.begin = number(r), .end = number(r), .priority = byte(r) % 103};
        ranges[i].duration_ms = number(r);
    }
    return kvk_retain(r->cache, *seq, ranges, n);
}

static int call_set_time(run *r)
{
    uint64_t now = r->now + number(r) - byte(r) % 4;
    int rc = kvk_set_time(r->cache, now);
    must(rc == (now < r->now ? KVK_EINVAL : 0));
    r->now = rc == 0 ? now : r->now;
    return rc;
}

static int call_resize(run *r)
{
    uint32_t n = byte(r) % (MOST_PAGES + 1);
    return kvk_resize(r->cache, n, byte(r) % 2);
}

static void meet_event(void *ctx, const kvk_event *event)
{
    const run *r = ctx;
    must(event->size == sizeof *event && event->kind <= KVK_EVENT_EVICTED);
    must(kvk_prefix_reset(r->cache, NULL) == KVK_EREENTRY);
}

static int call_listen(run *r)
{
    return kvk_set_events(r->cache, byte(r) % 2 ? meet_event : NULL, r);
}

static int (*const calls[])(run *r) = {
    call_open,   call_close,   call_fork,    call_set_priority, call_attach,   call_lookup,  call_commit,
    call_commit, call_reserve, call_reserve, call_truncate,     call_reset,    call_plan,    call_plan,
    call_end,    call_end,     call_moves,   call_see,          call_preempt,  call_preempt, call_swap_in,
    call_victim, call_pin,     call_unpin,   call_retain,       call_set_time, call_resize,  call_listen,
};

static int (*const eviction_calls[])(run *r) = {
    call_set_eviction, call_set_eviction, call_evict, call_look_at_eviction,
    call_reserve,      call_plan,         call_end,   call_end,
};

static int call_any(run *r)
{
    uint8_t which = byte(r);
    if (r->evicts && which >= 128)
        return eviction_calls[which % (sizeof eviction_calls / sizeof eviction_calls[0])](r);
    return calls[which % (sizeof calls / sizeof calls[0])](r);
}

/* ---- Running and replaying ---- */

static int keep(void *ctx, const char *bytes, size_t n)
{
    run *r = ctx;
    char *longer = realloc(r->log, r->log_size + n);
    must(longer != NULL);
    memcpy(longer + r->log_size, bytes, n);
    r->log = longer;
    r->log_size += n;
    return 0;
}

static kvk_stats look(const run *r)
{
    kvk_stats s = {.size = sizeof s};
    must(kvk_stats_get(r->cache, &s) == 0);
    must(s.pages_free + s.pages_cached + s.pages_limbo + s.pages_used == s.n_pages);
    s.memory_bytes = s.peak_memory_bytes = s.memory_allocations = 0;
    return s;
}

static void step(run *r)
{
    kvk_stats before = look(r);
    int rc = call_any(r);
    kvk_stats after = look(r);
    must(rc >= 0 || memcmp(&before, &after, sizeof after) == 0);
    must(kvk_audit(r->cache, NULL, NULL) == 0);
}

static kvk_config config(run *r)
{
    kvk_config c;
    kvk_config_init(&c);
    c.page_tokens = 1 + byte(r) % 6;
    c.n_pages = 1 + byte(r) % PLAN_PAGES;
    c.n_groups = 1 + byte(r) % GROUPS;
    c.watermark = byte(r) % 8;
    c.content = byte(r) % 4;
    c.zero_fill = byte(r) % 3;
    uint32_t flags = byte(r);
    c.reclaim = flags % 4;
    c.partial_reuse = flags >> 2 & 1;
    c.extra_keys = flags >> 3 & 1;
    c.groups = flags & 16 ? r->groups : NULL;
    for (int g = 0; c.groups && g < GROUPS; g++)
        r->groups[g].window = byte(r) % 20;
    r->evicts = flags >> 5 & 1;
    for (int g = 0; c.groups && flags & 64 && g < GROUPS; g++)
        r->groups[g].near_layers = r->groups[g].near_heads = byte(r) % 3;
    c.host_pages = byte(r) % MOST_PAGES;
    return c;
}

static void replay(const run *r)
{
    const oplog_options options = {.audit = 1};
    oplog_summary summary;
    trace_error error = {""};
    FILE *in = fmemopen(r->log, r->log_size, "r");
    must(in != NULL);
    if (oplog_replay(in, "recording", &options, &summary, &error) != 0) {
        fprintf(stderr, "%s\n%.*s\n", error.text, (int)r->log_size, r->log);
        abort();
    }
    fclose(in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    run r = {.data = data, .size = size};
    r.config = config(&r);
    int valid = r.config.watermark <= r.config.n_pages && r.config.content <= 2 && r.config.zero_fill <= 1;
    valid = valid && (r.config.content == KVK_CONTENT_TOKENS || !(r.config.partial_reuse || r.config.extra_keys));
    int rc = kvk_cache_open(&r.config, &r.cache);
    must(rc == (valid ? 0 : KVK_EINVAL));
    if (rc < 0)
        return 0;
    must(kvk_record_start(r.cache, keep, &r) == 0);
    for (int i = 0; i < CALLS && r.size > 0; i++)
        step(&r);
    kvk_cache_close(r.cache);
    replay(&r);
    free(r.log);
    return 0;
}
