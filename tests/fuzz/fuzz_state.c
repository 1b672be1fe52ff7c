/* fuzz_state.c: kvk_load of any bytes. The first byte picks the cache, the rest is the state; its checksum is put
 * right, since no fuzzer finds one. What is taken must pass the audit and can be used and saved. */
#include <stdlib.h>
#include <string.h>

#include "kvkeep/eviction.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PAGES = 16, MOST = 1 << 16, PLACES = 256 };

typedef struct bytes {
    const uint8_t *data;
    size_t n, at;
} bytes;

static int64_t give(void *ctx, char *to, size_t n)
{
    bytes *b = ctx;
    size_t step = b->n - b->at < n ? b->n - b->at : n;
    memcpy(to, b->data + b->at, step);
    b->at += step;
    return (int64_t)step;
}

static int take(void *ctx, const char *from, size_t n)
{
    (void)ctx, (void)from;
    return n > MOST;
}

static kvk_cache *open_cache(uint8_t kind)
{
    static const kvk_group plain[] = {{.window = 0}, {.window = 6}};
    static const kvk_group near[] = {{.near_layers = 1, .near_heads = 2}, {6, 2, 1}};
    kvk_config config;
    kvk_cache *cache = NULL;
    kvk_config_init(&config);
    config.page_tokens = 4;
    config.n_pages = PAGES;
    config.host_pages = PAGES;
    config.content = kind % 3;
    config.n_groups = 1 + kind / 3 % 2;
    config.groups = kind / 12 % 2 ? near : plain;
    config.extra_keys = kind / 6 % 2 && config.content == KVK_CONTENT_TOKENS;
    config.memory_limit = 64 << 20;
    if (kvk_cache_open(&config, &cache) < 0)
        abort();
    return cache;
}

/* A token, with a mass for each page that the batch lists and near peaks for the last ones. */
static void decode(kvk_cache *cache, kvk_seq seq)
{
    static const float some[2 * PLACES] = {0.5f, 0.25f};
    const kvk_masses masses = {
        .size = sizeof masses, .stride = PLACES, .near_stride = PLACES, .mean = some, .peak = some, .near = some};
    const kvk_batch_result result = {.size = sizeof result, .n = 1, .masses = &masses};
    const kvk_batch_entry entry = {.seq = seq, .n_query = 1};
    kvk_page_score scores[PLACES];
    kvk_batch batch;
    kvk_plan plan;
    kvk_plan_init(&plan);
    kvk_can_reserve(cache, seq, 1, KVK_EVICT);
    kvk_seq_scores(cache, seq, 0, scores, PLACES);
    if (kvk_reserve(cache, seq, 1, KVK_EVICT) >= 0 && kvk_batch_plan(cache, &entry, 1, &plan, &batch) == 0 &&
        kvk_batch_end(cache, batch, &result) < 0)
        kvk_batch_end(cache, batch, NULL); /* a table longer than the places */
}

/* Each slot's sequence, if there is one, is used and ended: a handle is generation << 32 | slot. */
static void use_and_end(kvk_cache *cache)
{
    for (uint64_t generation = 1; generation < 4; generation++)
        for (uint64_t slot = 0; slot < 8; slot++) {
            kvk_seq seq = generation << 32 | slot;
            kvk_swap_in(cache, seq, KVK_RECLAIM);
            decode(cache, seq);
            kvk_reserve(cache, seq, 3, KVK_RECLAIM);
            kvk_truncate(cache, seq, 2);
            kvk_seq_close(cache, seq);
        }
}

static void load(kvk_cache *cache, const uint8_t *data, size_t size)
{
    bytes b = {.data = data, .n = size};
    if (kvk_load(cache, give, &b) < 0)
        return;
    if (kvk_audit(cache, NULL, NULL) != 0 || kvk_save(cache, take, NULL) < 0)
        abort();
    use_and_end(cache);
    if (kvk_audit(cache, NULL, NULL) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 9 || size > MOST)
        return 0;
    kvk_cache *cache = open_cache(data[0]);
    uint8_t *state = malloc(size - 1);
    if (!state)
        abort();
    memcpy(state, data + 1, size - 1);
    uint64_t sum = XXH3_64bits(state, size - 9);
    memcpy(state + size - 9, &sum, sizeof sum);
    load(cache, state, size - 1);
    free(state);
    kvk_cache_close(cache);
    return 0;
}
