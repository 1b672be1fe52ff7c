/* content.c: what identifies a page's content, as the engine gives it. */
#include "base/checked.h"
#include "cache/cache.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static uint32_t token_bytes(const kvk_config *config)
{
    return config->page_tokens * (uint32_t)sizeof(uint32_t);
}

uint32_t content_row_bytes(const kvk_config *config)
{
    switch ((kvk_content)config->content) {
    case KVK_CONTENT_TOKENS:
        return token_bytes(config) + (config->extra_keys ? (uint32_t)sizeof(kvk_key) : 0);
    case KVK_CONTENT_KEYS:
        return sizeof(kvk_key);
    case KVK_CONTENT_NONE:
        break;
    }
    return 0;
}

static int extras_are_valid(const kvk_cache *c, const kvk_text *text)
{
    if (text->n_extras == 0)
        return 1;
    if (!c->config.extra_keys || !text->extras)
        return 0;
    for (uint32_t i = 0; i < text->n_extras; i++)
        if (text->extras[i].position >= text->n_tokens ||
            (i > 0 && text->extras[i].position <= text->extras[i - 1].position))
            return 0;
    return 1;
}

int content_check(const kvk_cache *c, const kvk_text *text)
{
    if (!text || text->n_tokens > KVK_MAX_TOKENS)
        return KVK_EINVAL;
    if (c->config.content == KVK_CONTENT_TOKENS && text->n_tokens && !text->tokens)
        return KVK_EINVAL;
    if (c->config.content == KVK_CONTENT_KEYS && text->n_keys && !text->keys)
        return KVK_EINVAL;
    return extras_are_valid(c, text) ? 0 : KVK_EINVAL;
}

uint32_t content_pages(const kvk_cache *c, const kvk_text *prompt)
{
    if (c->config.content == KVK_CONTENT_NONE || prompt->n_tokens == 0)
        return 0;
    uint32_t pages = (prompt->n_tokens - 1) / page_tokens(c);
    return c->config.content == KVK_CONTENT_KEYS ? min_u32(pages, prompt->n_keys) : pages;
}

/* The first extra key at a position or after it. */
static uint32_t first_extra(const kvk_text *text, uint32_t position)
{
    uint32_t low = 0, high = text->n_extras;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (text->extras[middle].position < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A digest of 128 bits, as the keys themselves are; 0 without extra keys. */
void content_add_extras(const kvk_cache *c, void *row, const kvk_text *text, uint32_t from, uint32_t n, uint32_t offset)
{
    char *digest = (char *)row + token_bytes(&c->config);
    for (uint32_t i = first_extra(text, from); i < text->n_extras && text->extras[i].position - from < n; i++) {
        const kvk_extra *e = &text->extras[i];
        uint64_t next[5] = {0, 0, e->position - from + offset, e->key.lo, e->key.hi};
        memcpy(next, digest, sizeof(kvk_key));
        XXH128_hash_t mixed = XXH3_128bits(next, sizeof next);
        memcpy(digest, &mixed, sizeof(kvk_key));
    }
}

int content_has_extras(const kvk_cache *c, const void *row)
{
    kvk_key digest = {0, 0};
    if (c->config.extra_keys)
        memcpy(&digest, (const char *)row + token_bytes(&c->config), sizeof digest);
    return digest.lo || digest.hi;
}

const void *content_row(const kvk_cache *c, const kvk_text *text, uint32_t i)
{
    if (c->config.content == KVK_CONTENT_KEYS)
        return &text->keys[i];
    uint32_t from = i * page_tokens(c);
    if (!c->config.extra_keys)
        return text->tokens + from;
    memcpy(c->row, text->tokens + from, token_bytes(&c->config));
    memset(c->row + token_bytes(&c->config), 0, sizeof(kvk_key));
    content_add_extras(c, c->row, text, from, page_tokens(c), 0);
    return c->row;
}
