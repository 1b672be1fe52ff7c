/* world.c: parameters, randomness, failing memory, and the comparison of all that can be seen. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

static uint64_t next_random(uint64_t *state) /* splitmix64 */
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint32_t world_random(world *w, uint32_t n)
{
    return (uint32_t)(next_random(&w->random) >> 32) % n;
}

bool world_one_in(world *w, uint32_t n)
{
    return world_random(w, n) == 0;
}

void world_say(world *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(w->what, sizeof w->what, format, args);
    va_end(args);
}

/* A planted fault was found, as it was to be. */
static _Noreturn void report_found(const world *w, const char *difference)
{
    printf("model: fault '%s', planted at op %llu, was found at op %llu\n", w->fault, (unsigned long long)w->planted_at,
           (unsigned long long)w->n_ops);
    printf("  by the audit: %s\n  by the twin: %s\n", w->violated[0] ? w->violated : "no", difference);
    exit(0);
}

static _Noreturn void give_up(const world *w)
{
    const kvk_config *c = &w->twin.config;
    printf("  at op %llu, seed %llu: %s\n", (unsigned long long)w->n_ops, (unsigned long long)w->seed, w->what);
    printf("  page_tokens %u, pages %u, groups %u, watermark %u, content %u, zero_fill %u, reclaim %u, letters %u\n",
           c->page_tokens, c->n_pages, c->n_groups, c->watermark, c->content, c->zero_fill, c->reclaim, w->n_letters);
    printf("  windows %u %u %u, host pages %u, partial reuse %u, extra keys %u\n", w->twin.windows[0],
           w->twin.windows[1], w->twin.windows[2], c->host_pages, c->partial_reuse, c->extra_keys);
    exit(1);
}

void world_expect(world *w, const char *name, int64_t want, int64_t got)
{
    if (want == got)
        return;
    if (w->planted_at)
        report_found(w, name);
    printf("model: %s: expected %lld, got %lld\n", name, (long long)want, (long long)got);
    give_up(w);
}

/* ---- Memory ---- */

static void *take_memory(void *ctx, size_t bytes)
{
    world_memory *m = ctx;
    if (m->armed && next_random(&m->random) % 4 == 0)
        return NULL;
    void *memory = malloc(bytes);
    if (memory) /* what nobody has written yet is not 0 */
        memset(memory, 0xA5, bytes);
    if (memory)
        m->n_held += bytes;
    return memory;
}

static void free_memory(void *ctx, void *memory, size_t bytes)
{
    world_memory *m = ctx;
    m->n_held -= bytes;
    free(memory);
}

void world_arm(world *w)
{
    w->memory.armed = w->fail_allocations && !w->memory.retrying;
}

bool world_struck(world *w, int rc)
{
    bool struck = w->memory.armed && rc == KVK_ENOMEM;
    w->memory.armed = false;
    w->memory.retrying = struck;
    if (struck && w->cache) {
        world_compare(w);
        world_audit(w);
    }
    return struck;
}

/* ---- Opening and closing ---- */

/* Most caches have a group with a window, some nothing else; many keep near peaks of some groups. */
static void draw_groups(world *w, kvk_group groups[TWIN_GROUPS])
{
    uint32_t share = 1 + world_random(w, 3), near = world_one_in(w, 2);
    for (uint32_t g = 0; g < TWIN_GROUPS; g++) {
        groups[g] = (kvk_group){.window = world_one_in(w, share) ? 1 + world_random(w, 14) : 0};
        if (near && !world_one_in(w, 3)) {
            groups[g].near_layers = (uint16_t)(1 + world_random(w, 2));
            groups[g].near_heads = (uint16_t)(1 + world_random(w, 2));
        }
    }
}

static kvk_config random_config(world *w, const kvk_group *groups)
{
    kvk_config c;
    kvk_config_init(&c);
    c.page_tokens = 1 + world_random(w, TWIN_PAGE_TOKENS);
    c.n_pages = 4 + world_random(w, TWIN_PAGES - 11);
    c.n_groups = 1 + world_random(w, TWIN_GROUPS);
    c.watermark = world_random(w, 4);
    c.content = world_one_in(w, 8) ? KVK_CONTENT_NONE : KVK_CONTENT_TOKENS + world_random(w, 2);
    c.zero_fill = world_one_in(w, 3);
    c.reclaim = world_one_in(w, 2) ? KVK_RECLAIM_LRU : world_random(w, 4);
    c.partial_reuse = c.content == KVK_CONTENT_TOKENS && world_one_in(w, 3);
    c.extra_keys = c.content == KVK_CONTENT_TOKENS && world_one_in(w, 3);
    c.host_pages = world_one_in(w, 4) ? 0 : world_random(w, TWIN_HOST_PAGES + 1);
    c.groups = world_one_in(w, 3) ? NULL : groups;
    c.hash_seed = next_random(&w->random);
    c.allocator = w->fail_allocations || !world_one_in(w, 4) ? &w->allocator : NULL;
    return c;
}

static int ignore_bytes(void *ctx, const char *bytes, size_t n)
{
    (void)ctx, (void)bytes, (void)n;
    return 0;
}

static void start_recording(world *w)
{
    int rc;
    world_say(w, "record_start");
    do {
        world_arm(w);
        rc = kvk_record_start(w->cache, ignore_bytes, NULL);
    } while (world_struck(w, rc));
    world_expect(w, "kvk_record_start", 0, rc);
}

void world_open(world *w)
{
    int rc;
    w->allocator = (kvk_allocator){take_memory, free_memory, &w->memory};
    w->memory.random = next_random(&w->random);
    w->evicts = !world_one_in(w, 3);
    w->own_policies = !world_one_in(w, 3);
    w->n_letters = 2 + world_random(w, 2);
    memset(w->stale_seqs, 0, sizeof w->stale_seqs);
    memset(w->bounds, 0, sizeof w->bounds);
    memset(w->stale_batches, 0, sizeof w->stale_batches);
    world_say(w, "cache_open");
    draw_groups(w, w->groups);
    kvk_config config = w->config = random_config(w, w->groups);
    twin_init(&w->twin, &config);
    w->n_pages = config.n_pages;
    w->n_events = w->n_keys = 0;
    do {
        world_arm(w);
        rc = kvk_cache_open(&config, &w->cache);
    } while (world_struck(w, rc));
    world_expect(w, "kvk_cache_open", 0, rc);
    if (config.reclaim != KVK_RECLAIM_S3FIFO && world_one_in(w, 3)) /* that one tells contents by their key alone */
        world_collide(w->cache, world_random(w, 4));
    world_listen(w, w->cache, world_one_in(w, 2));
    w->recorded = world_one_in(w, 8);
    if (w->recorded)
        start_recording(w);
}

void world_close(world *w)
{
    world_say(w, "cache_close");
    if (world_one_in(w, 2)) /* else closing does it */
        world_expect(w, "kvk_record_stop", w->recorded ? 0 : KVK_ESTATE, kvk_record_stop(w->cache));
    kvk_cache_close(w->cache);
    w->cache = NULL;
    world_expect(w, "bytes held after close", 0, (int64_t)w->memory.n_held);
}

/* ---- Comparing ---- */

static void compare_table(world *w, const twin_seq *s, uint32_t group)
{
    uint32_t pages[TWIN_ENTRIES], n = twin_count_held(s, group, s->end), first = s->first[group], k = 0;
    while (n && !twin_holds(s, group, first))
        first++;
    world_expect(w, "kvk_seq_first", first * w->twin.config.page_tokens, kvk_seq_first(w->cache, s->handle, group));
    world_expect(w, "kvk_seq_table", n, kvk_seq_table(w->cache, s->handle, group, pages, TWIN_ENTRIES));
    for (uint32_t i = first; i < s->end; i++) {
        if (twin_holds(s, group, i))
            world_expect(w, "table entry", s->table[group][i], pages[k++]);
    }
}

static uint32_t longest_table(const world *w, const twin_seq *s)
{
    uint32_t n = 0;
    for (uint32_t g = 0; g < w->twin.config.n_groups; g++) {
        uint32_t held = twin_count_held(s, g, s->end);
        n = held > n ? held : n;
    }
    return n;
}

static void compare_sequence(world *w, const twin_seq *s)
{
    kvk_seq_info info = {.size = sizeof info};
    world_expect(w, "kvk_seq_info_get", 0, kvk_seq_info_get(w->cache, s->handle, &info));
    world_expect(w, "info.priority", s->priority, info.priority);
    world_expect(w, "info.n_tokens", s->n_tokens, info.n_tokens);
    world_expect(w, "info.n_committed", s->n_committed, info.n_committed);
    world_expect(w, "info.n_pages", longest_table(w, s), info.n_pages);
    world_expect(w, "info.n_in_flight", s->n_in_flight, info.n_in_flight);
    world_expect(w, "info.swapped", s->swapped, info.swapped);
    world_expect(w, "info.tainted", s->first_taint != UINT32_MAX, info.tainted);
    world_compare_eviction(w, s);
    if (s->swapped) {
        world_expect(w, "first of a swapped sequence", KVK_ESTATE, kvk_seq_first(w->cache, s->handle, 0));
        world_expect(w, "table of a swapped sequence", KVK_ESTATE, kvk_seq_table(w->cache, s->handle, 0, NULL, 0));
        return;
    }
    for (uint32_t g = 0; g < w->twin.config.n_groups; g++)
        compare_table(w, s, g);
}

static void compare_page(world *w, uint32_t id)
{
    const twin_page *page = &w->twin.pages[id];
    kvk_page_info info = {.size = sizeof info};
    world_expect(w, "kvk_page_info_get", 0, kvk_page_info_get(w->cache, id, &info));
    world_expect(w, "page.state", page->state, info.state);
    world_expect(w, "page.refs", page->refs, info.refs);
    world_expect(w, "page.generation", page->generation, info.generation);
    world_expect(w, "page.findable", page->published_at != 0, info.findable);
    world_expect(w, "page.n_tokens", twin_filled(&w->twin, id), info.n_tokens);
}

static void compare_totals(world *w, const kvk_stats *want, const kvk_stats *got)
{
    world_expect(w, "peak_pages_used", want->peak_pages_used, got->peak_pages_used);
    world_expect(w, "peak_sequences", want->peak_sequences, got->peak_sequences);
    world_expect(w, "pages_taken", (int64_t)want->pages_taken, (int64_t)got->pages_taken);
    world_expect(w, "pages_reclaimed", (int64_t)want->pages_reclaimed, (int64_t)got->pages_reclaimed);
    world_expect(w, "cow_copies", (int64_t)want->cow_copies, (int64_t)got->cow_copies);
    world_expect(w, "prefix_queries", (int64_t)want->prefix_queries, (int64_t)got->prefix_queries);
    world_expect(w, "prefix_hits", (int64_t)want->prefix_hits, (int64_t)got->prefix_hits);
    world_expect(w, "prefix_page_queries", (int64_t)want->prefix_page_queries, (int64_t)got->prefix_page_queries);
    world_expect(w, "partial_hits", (int64_t)want->partial_hits, (int64_t)got->partial_hits);
    world_expect(w, "preemptions", (int64_t)want->preemptions, (int64_t)got->preemptions);
    world_expect(w, "swapped_out_pages", (int64_t)want->swapped_out_pages, (int64_t)got->swapped_out_pages);
    world_expect(w, "swapped_in_pages", (int64_t)want->swapped_in_pages, (int64_t)got->swapped_in_pages);
    world_expect(w, "pages_evicted", (int64_t)want->pages_evicted, (int64_t)got->pages_evicted);
    world_expect(w, "tokens_evicted", (int64_t)want->tokens_evicted, (int64_t)got->tokens_evicted);
    world_expect(w, "prefix_page_hits", (int64_t)want->prefix_page_hits, (int64_t)got->prefix_page_hits);
}

static void compare_stats(world *w)
{
    kvk_stats want, got = {.size = sizeof got};
    twin_stats(&w->twin, &want);
    world_expect(w, "kvk_stats_get", 0, kvk_stats_get(w->cache, &got));
    world_expect(w, "n_pages", want.n_pages, got.n_pages);
    world_expect(w, "page_tokens", want.page_tokens, got.page_tokens);
    world_expect(w, "pages_free", want.pages_free, got.pages_free);
    world_expect(w, "pages_cached", want.pages_cached, got.pages_cached);
    world_expect(w, "pages_limbo", want.pages_limbo, got.pages_limbo);
    world_expect(w, "pages_used", want.pages_used, got.pages_used);
    world_expect(w, "pages_pinned", want.pages_pinned, got.pages_pinned);
    world_expect(w, "pages_draining", want.pages_draining, got.pages_draining);
    world_expect(w, "host_pages_used", want.host_pages_used, got.host_pages_used);
    world_expect(w, "sequences", want.sequences, got.sequences);
    world_expect(w, "batches_in_flight", want.batches_in_flight, got.batches_in_flight);
    world_expect(w, "moves_waiting", want.moves_waiting, got.moves_waiting);
    world_expect(w, "live_tokens", (int64_t)want.live_tokens, (int64_t)got.live_tokens);
    world_expect(w, "usage_pages is exact", 1,
                 want.usage_pages >= got.usage_pages && want.usage_pages <= got.usage_pages);
    world_expect(w, "usage_tokens is exact", 1,
                 want.usage_tokens >= got.usage_tokens && want.usage_tokens <= got.usage_tokens);
    world_expect(w, "memory_bytes is at most its peak", 1, got.memory_bytes <= got.peak_memory_bytes);
    compare_totals(w, &want, &got);
}

/* No page that a batch in flight lists has been handed to anybody else. */
static void check_lists(world *w)
{
    for (uint32_t i = 0; i < TWIN_BATCHES; i++) {
        const twin_batch *b = &w->twin.batches[i];
        for (uint32_t k = 0; b->handle && k < TWIN_PAGES; k++) {
            if (b->lists[k])
                world_expect(w, "generation of a page in flight", b->lists[k], w->twin.pages[k].generation);
        }
    }
}

void world_compare(world *w)
{
    compare_stats(w);
    check_lists(w);
    for (uint32_t i = 0; i < TWIN_SEQS; i++) {
        if (w->twin.seqs[i].handle)
            compare_sequence(w, &w->twin.seqs[i]);
    }
    uint32_t n_pages = w->twin.config.n_pages > w->twin.n_touched ? w->twin.config.n_pages : w->twin.n_touched;
    for (uint32_t i = 0; i < n_pages; i++)
        compare_page(w, i);
    world_compare_events(w);
}

static void print_violation(void *ctx, const char *invariant, const char *text)
{
    (void)ctx;
    printf("model: audit: %s: %s\n", invariant, text);
}

/* ---- Planted faults ---- */

static void note_violation(void *ctx, const char *invariant, const char *text)
{
    char *names = ctx;
    (void)text;
    if (!strstr(names, invariant) && strlen(names) + strlen(invariant) + 2 < WORLD_VIOLATED) {
        strcat(names, invariant);
        strcat(names, " ");
    }
}

/* As soon as there is occasion for the fault. What the audit sees of it now or after some operations is noted, and the
 * run goes on until the twin sees it, too. */
void world_plant_fault(world *w)
{
    if (!w->planted_at) {
        w->planted_at = w->n_ops; /* events of it are no one else's fault */
        if (!world_plant(w->cache, w->fault))
            w->planted_at = 0;
    }
    if (w->planted_at)
        kvk_audit(w->cache, note_violation, w->violated);
}

void world_audit(world *w)
{
    world_expect(w, "kvk_audit", 0, kvk_audit(w->cache, print_violation, NULL));
}
