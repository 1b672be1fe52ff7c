/* A program outside the tree: what an engine's first hour with the installed library looks like. Compiled as C and
 * C++. */
#include <kvkeep/kvkeep.h>

#include <stdio.h>
#include <string.h>

static int failures;

static void equal(int found, int expected, const char *what)
{
    if (found == expected)
        return;
    fprintf(stderr, "%s: %d, expected %d (%s)\n", what, found, expected, kvk_strerror(found));
    failures++;
}

/* As C and C++ both can write it. */
static kvk_text text_of(const uint32_t *tokens, uint32_t n)
{
    kvk_text text;
    memset(&text, 0, sizeof text);
    text.n_tokens = n;
    text.tokens = tokens;
    return text;
}

/* Prompt of 40 tokens in pages of 16: attach, reserve, plan, end, commit. */
static void serve(kvk_cache *cache, int expected_hit, int expected_pages)
{
    uint32_t tokens[40];
    for (uint32_t i = 0; i < 40; i++)
        tokens[i] = i;
    kvk_text prompt = text_of(tokens, 40);
    kvk_seq seq;
    equal(kvk_seq_open(cache, NULL, &seq), 0, "open");
    int hit = kvk_prefix_attach(cache, seq, &prompt);
    equal(hit, expected_hit, "attach");
    uint32_t left = 40 - (uint32_t)hit;
    equal(kvk_can_reserve(cache, seq, left, KVK_FREE_ONLY), KVK_OK, "can_reserve");
    equal(kvk_reserve(cache, seq, left, KVK_FREE_ONLY), expected_pages, "reserve");

    int32_t indptr[2], pages[8], last[1];
    int64_t slots[40];
    kvk_plan plan;
    kvk_plan_init(&plan);
    plan.entries_cap = 1;
    plan.pages_cap = 8;
    plan.slots_cap = 40;
    plan.indptr = indptr;
    plan.pages = pages;
    plan.last_page_len = last;
    plan.slots = slots;
    kvk_batch_entry entry = {seq, left, 0};
    kvk_batch batch;
    equal(kvk_batch_plan(cache, &entry, 1, &plan, &batch), 0, "plan");
    equal(indptr[1] - indptr[0], 3, "pages of the plan");
    equal(last[0], 8, "tokens in the last page");
    equal(kvk_batch_end(cache, batch, NULL) >= 0, 1, "end");

    kvk_text computed = text_of(tokens + hit, left);
    equal(kvk_commit(cache, seq, &computed), 2 - hit / 16, "commit");
    equal(kvk_seq_close(cache, seq), 3, "close");
    equal(kvk_seq_close(cache, seq), KVK_ESTALE, "close of a closed one");
}

int main(void)
{
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", KVK_VERSION_MAJOR, KVK_VERSION_MINOR, KVK_VERSION_PATCH);
    equal(strcmp(version, kvk_version()), 0, "the header's version is the library's");
    kvk_config config;
    kvk_config_init(&config);
    config.n_pages = 10;
    kvk_cache *cache;
    equal(kvk_cache_open(&config, &cache), 0, "cache_open");
    serve(cache, 0, 3);
    serve(cache, 32, 1);
    equal(kvk_audit(cache, NULL, NULL), 0, "audit");
    kvk_cache_close(cache);
    return failures != 0;
}
