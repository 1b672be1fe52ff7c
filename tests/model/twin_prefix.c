/* twin_prefix.c: what a prompt finds, by comparing whole prefixes; what a commit makes findable. */
#include <string.h>

#include "twin.h"

/* The copy published first of the first `n` pages of `text`, or TWIN_PAGES. */
static uint32_t find_copy(const twin *t, const twin_text *text, uint32_t n, uint32_t group)
{
    uint32_t best = TWIN_PAGES;
    for (uint32_t i = 0; i < t->n_touched; i++) {
        const twin_page *page = &t->pages[i];
        if (page->published_at && page->group == group && page->content.n_bytes == n * twin_unit(t) &&
            twin_starts_with(text, &page->content) &&
            (best == TWIN_PAGES || page->published_at < t->pages[best].published_at))
            best = i;
    }
    return best;
}

static twin_text text_of(const twin *t, const kvk_seq_params *params, const kvk_text *prompt)
{
    twin_text text = {.salt = params->salt, .adapter = params->adapter};
    bool keys = t->config.content == KVK_CONTENT_KEYS;
    if (t->config.content == KVK_CONTENT_NONE)
        return text;
    text.n_bytes = keys ? prompt->n_keys * (uint32_t)sizeof(kvk_key) : prompt->n_tokens * (uint32_t)sizeof(uint32_t);
    if (text.n_bytes > sizeof text.bytes)
        text.n_bytes = sizeof text.bytes; /* no page is that far */
    if (text.n_bytes)
        memcpy(text.bytes, keys ? (const void *)prompt->keys : (const void *)prompt->tokens, text.n_bytes);
    return text;
}

static bool copies_at(const twin *t, const twin_text *text, uint32_t index, uint32_t ids[TWIN_GROUPS])
{
    for (uint32_t g = 0; g < t->config.n_groups; g++) {
        ids[g] = find_copy(t, text, index + 1, g);
        if (ids[g] == TWIN_PAGES)
            return false;
    }
    return true;
}

/* Whole pages of a prompt that may be attached: the last token stays to be computed. */
static uint32_t most_pages(const twin *t, const kvk_text *prompt)
{
    if (t->config.content == KVK_CONTENT_NONE || prompt->n_tokens == 0)
        return 0;
    uint32_t n = (prompt->n_tokens - 1) / t->config.page_tokens;
    return t->config.content == KVK_CONTENT_KEYS && prompt->n_keys < n ? prompt->n_keys : n;
}

/* Pages of each group that an attach would give, into table[][]. */
static uint32_t match(const twin *t, const kvk_seq_params *params, const kvk_text *prompt,
                      uint32_t table[TWIN_GROUPS][TWIN_PAGES])
{
    twin_text text = text_of(t, params, prompt);
    uint32_t n = most_pages(t, prompt), i = 0, ids[TWIN_GROUPS];
    for (; i < n && (i + 1) * twin_unit(t) <= text.n_bytes && copies_at(t, &text, i, ids); i++) {
        for (uint32_t g = 0; g < t->config.n_groups; g++)
            table[g][i] = ids[g];
    }
    return i;
}

static int check_prompt(const twin *t, const kvk_text *prompt)
{
    return t->config.content == KVK_CONTENT_KEYS && prompt->n_keys > prompt->n_tokens / t->config.page_tokens
               ? KVK_EINVAL
               : 0;
}

int twin_lookup(const twin *t, const kvk_seq_params *params, const kvk_text *prompt)
{
    uint32_t table[TWIN_GROUPS][TWIN_PAGES];
    int rc = check_prompt(t, prompt);
    return rc < 0 ? rc : (int)(match(t, params, prompt, table) * t->config.page_tokens);
}

int twin_attach(twin *t, kvk_seq handle, const kvk_text *prompt)
{
    twin_seq *s = twin_find(t, handle);
    if (check_prompt(t, prompt) < 0)
        return KVK_EINVAL;
    if (!s)
        return KVK_ESTALE;
    if (s->n_tokens || s->n_pages)
        return KVK_ESTATE;
    kvk_seq_params params = {.salt = s->text.salt, .adapter = s->text.adapter};
    s->n_pages = match(t, &params, prompt, s->table);
    s->n_tokens = s->n_committed = s->n_pages * t->config.page_tokens;
    s->text = text_of(t, &params, prompt);
    s->text.n_bytes = s->n_pages * twin_unit(t);
    s->mute = false;
    for (uint32_t i = 0; i < s->n_pages; i++) {
        for (uint32_t g = 0; g < t->config.n_groups; g++) {
            t->pages[s->table[g][i]].uses++;
            twin_share(t, s->table[g][i]);
        }
    }
    t->totals.prefix_queries += prompt->n_tokens;
    t->totals.prefix_page_queries += most_pages(t, prompt);
    t->totals.prefix_hits += s->n_tokens;
    t->totals.prefix_page_hits += s->n_pages;
    return (int)s->n_tokens;
}

/* When a content became known: it is while some page holds it or something longer. */
static uint64_t birth(twin *t, const twin_text *content, uint32_t index)
{
    for (uint32_t i = 0; i < t->n_touched; i++) {
        if (t->pages[i].published_at && twin_starts_with(&t->pages[i].content, content))
            return t->pages[i].born[index];
    }
    return ++t->n_born;
}

static void name_page(twin *t, twin_page *page, const twin_text *content, uint32_t index)
{
    twin_text head = *content;
    for (uint32_t i = 0; i <= index; i++) {
        head.n_bytes = (i + 1) * twin_unit(t);
        page->born[i] = birth(t, &head, i);
    }
    page->content = *content;
    page->published_at = ++t->n_published;
    twin_note_published(t, page);
}

/* Makes page `index` of a sequence findable, or finds that another sequence named it differently. */
static void publish(twin *t, twin_seq *s, uint32_t index)
{
    twin_text content = s->text;
    content.n_bytes = (index + 1) * twin_unit(t);
    for (uint32_t g = 0; g < t->config.n_groups && !s->mute; g++) {
        twin_page *page = &t->pages[s->table[g][index]];
        if (page->published_at) {
            s->mute = page->content.n_bytes != content.n_bytes || !twin_starts_with(&content, &page->content);
        } else {
            name_page(t, page, &content, index);
        }
    }
}

static void append_text(const twin *t, twin_seq *s, const kvk_text *text)
{
    bool keys = t->config.content == KVK_CONTENT_KEYS;
    uint32_t n_bytes = keys ? text->n_keys * (uint32_t)sizeof(kvk_key) : text->n_tokens * (uint32_t)sizeof(uint32_t);
    if (t->config.content == KVK_CONTENT_NONE || n_bytes == 0)
        return;
    memcpy(s->text.bytes + s->text.n_bytes, keys ? (const void *)text->keys : (const void *)text->tokens, n_bytes);
    s->text.n_bytes += n_bytes;
}

/* May a commit lengthen the sequence, or would it write into a page that others see? */
bool twin_may_write(const twin *t, const twin_seq *s)
{
    if (s->n_tokens % t->config.page_tokens == 0)
        return true;
    for (uint32_t g = 0; g < t->config.n_groups; g++) {
        const twin_page *page = &t->pages[s->table[g][s->n_tokens / t->config.page_tokens]];
        if (twin_is_shared(t, page) || page->published_at)
            return false;
    }
    return true;
}

int twin_commit(twin *t, kvk_seq handle, const kvk_text *text)
{
    twin_seq *s = twin_find(t, handle);
    if (!s)
        return KVK_ESTALE;
    uint64_t end = (uint64_t)s->n_committed + text->n_tokens;
    uint64_t full = end / t->config.page_tokens, was = s->n_committed / t->config.page_tokens;
    if (end > (uint64_t)s->n_pages * t->config.page_tokens || (end > s->n_tokens && !twin_may_write(t, s)))
        return KVK_ESTATE;
    if (t->config.content == KVK_CONTENT_KEYS && text->n_keys != full - was)
        return KVK_EINVAL;
    append_text(t, s, text);
    s->n_committed = (uint32_t)end;
    if (s->n_tokens < s->n_committed)
        twin_set_length(t, s, s->n_committed);
    for (uint32_t i = (uint32_t)was; i < full && t->config.content != KVK_CONTENT_NONE; i++)
        publish(t, s, i);
    return (int)(full - was);
}

/* What the sequence has named up to `n_committed` tokens. Where full pages are dropped, it goes on from what the kept
 * ones can be found by, and from nothing if they cannot. */
void twin_unname(twin *t, twin_seq *s, uint32_t n_committed)
{
    uint32_t full = n_committed / t->config.page_tokens, rest = n_committed % t->config.page_tokens;
    bool drops = full < s->n_committed / t->config.page_tokens, keys = t->config.content == KVK_CONTENT_KEYS;
    s->n_committed = n_committed;
    if (t->config.content == KVK_CONTENT_NONE)
        return;
    if (drops) {
        uint32_t last = rest && !keys ? full + 1 : full; /* pages that must be known */
        const twin_page *page = last ? &t->pages[s->table[0][last - 1]] : NULL;
        s->mute = page && !page->published_at;
        if (page && page->published_at)
            memcpy(s->text.bytes, page->content.bytes, page->content.n_bytes);
    }
    s->text.n_bytes = keys ? full * twin_unit(t) : n_committed * (uint32_t)sizeof(uint32_t);
}
