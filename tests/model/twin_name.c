/* twin_name.c: what a commit makes findable, and what a sequence is named after it was shortened. */
#include <string.h>

#include "twin.h"

void twin_show(twin *t, uint32_t id, const twin_page *like)
{
    twin_page *page = &t->pages[id];
    page->content = like->content;
    memcpy(page->born, like->born, sizeof page->born);
    bool is_first = twin_find_copy(t, &page->content, page->content.n_bytes / twin_unit(t), page->group) == TWIN_PAGES;
    page->published_at = ++t->n_published;
    twin_note_published(t, page);
    if (is_first)
        twin_tell(t, KVK_EVENT_STORED, id);
}

/* A page that drains is not to be found. */
void twin_name_page(twin *t, const twin_seq *s, uint32_t group, uint32_t entry)
{
    twin_page like = {.content = s->text};
    like.content.n_bytes = (entry + 1) * twin_unit(t);
    memcpy(like.born, s->born, sizeof like.born);
    if (s->table[group][entry] < t->config.n_pages)
        twin_show(t, s->table[group][entry], &like);
    twin_near_show(t, s, group, entry);
}

/* Makes page `index` of a sequence findable, or finds that another sequence named it differently, or that it is no
 * one else's since pages were lost. */
static void publish(twin *t, twin_seq *s, uint32_t index)
{
    twin_text content = s->text;
    content.n_bytes = (index + 1) * twin_unit(t);
    s->mute = (index + 1) * t->config.page_tokens > s->first_taint;
    for (uint32_t g = 0; g < t->config.n_groups; g++) {
        const twin_page *page = &t->pages[s->table[g][index]];
        if (s->lost[g][index] || (page->published_at && (page->content.n_bytes != content.n_bytes ||
                                                         !twin_starts_with(&content, &page->content))))
            s->mute = true;
    }
    if (s->mute)
        return;
    uint64_t since = twin_known_since(t, &content, content.n_bytes);
    s->born[index] = since ? since : ++t->n_born;
    for (uint32_t g = 0; g < t->config.n_groups; g++) {
        if (!t->pages[s->table[g][index]].published_at)
            twin_name_page(t, s, g, index);
    }
}

static void append_text(const twin *t, twin_seq *s, const kvk_text *text)
{
    bool keys = t->config.content == KVK_CONTENT_KEYS;
    uint32_t n_bytes = keys ? text->n_keys * (uint32_t)sizeof(kvk_key) : text->n_tokens * (uint32_t)sizeof(uint32_t);
    if (t->config.content == KVK_CONTENT_NONE || n_bytes == 0)
        return;
    uint32_t first = s->text.n_bytes / (uint32_t)sizeof(uint32_t);
    memcpy(s->text.bytes + s->text.n_bytes, keys ? (const void *)text->keys : (const void *)text->tokens, n_bytes);
    memset(s->text.extras + first, 0, n_bytes / sizeof(uint32_t));
    for (uint32_t i = 0; i < text->n_extras; i++)
        s->text.extras[first + text->extras[i].position] = (unsigned char)text->extras[i].key.lo;
    s->text.n_bytes += n_bytes;
}

/* May a commit lengthen the sequence, or would it write into a page that others see or that is to stay? */
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

/* Lets the entries go that no token after the committed ones attends to. */
static void slide(twin *t, twin_seq *s)
{
    for (uint32_t g = 0; g < t->config.n_groups; g++) {
        for (uint32_t from = twin_needs_from(t, g, s->n_committed); s->first[g] < from; s->first[g]++) {
            if (twin_holds(s, g, s->first[g]))
                twin_let_go(t, s, g, s->first[g]);
        }
    }
}

int twin_commit(twin *t, kvk_seq handle, const kvk_text *text)
{
    twin_seq *s;
    if (twin_check_text(t, text) < 0)
        return KVK_EINVAL;
    int rc = twin_use(t, handle, &s);
    if (rc < 0)
        return rc;
    uint64_t end = (uint64_t)s->n_committed + text->n_tokens;
    uint64_t full = end / t->config.page_tokens, was = s->n_committed / t->config.page_tokens;
    if (end > (uint64_t)s->end * t->config.page_tokens || (end > s->n_tokens && !twin_may_write(t, s)))
        return KVK_ESTATE;
    if (t->config.content == KVK_CONTENT_KEYS && text->n_keys != full - was)
        return KVK_EINVAL;
    append_text(t, s, text);
    if (s->n_tokens < end)
        twin_set_length(t, s, (uint32_t)end);
    for (uint32_t i = (uint32_t)was; i < full && t->config.content != KVK_CONTENT_NONE && !s->mute; i++) {
        publish(t, s, i);
        s->n_committed = (i + 1) * t->config.page_tokens;
    }
    s->n_committed = (uint32_t)end;
    slide(t, s);
    return (int)(full - was);
}

static const twin_page *findable(const twin *t, const twin_seq *s, uint32_t entry)
{
    const twin_page *page = &t->pages[s->table[0][entry]];
    return twin_holds(s, 0, entry) && page->published_at ? page : NULL;
}

/* A sequence that disagreed with a page it shares goes on from what the kept pages can be found by, and from nothing
 * if they cannot. */
static void find_again(twin *t, twin_seq *s, uint32_t full, uint32_t rest)
{
    const twin_page *before = full ? findable(t, s, full - 1) : NULL, *on = findable(t, s, full);
    bool head = rest && t->config.content == KVK_CONTENT_TOKENS; /* of page `full`: it must be known too */
    s->mute = (full && !before) || (head && !on);
    if (s->mute)
        return;
    if (before) {
        memcpy(s->text.bytes, before->content.bytes, before->content.n_bytes);
        memcpy(s->text.extras, before->content.extras, full * t->config.page_tokens);
        memcpy(s->born, before->born, sizeof s->born);
    }
    if (head) /* the whole page, for its extra keys */
        twin_copy_tokens(&s->text, &on->content, full * t->config.page_tokens, t->config.page_tokens);
}

/* Does the page that is to be cut have extra keys among its `n` named tokens? Which of them stand before the cut is
 * not remembered. */
static bool has_extras(const twin *t, const twin_seq *s, uint32_t full, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (s->text.extras[full * t->config.page_tokens + i])
            return t->config.content == KVK_CONTENT_TOKENS;
    }
    return false;
}

/* What the sequence has named up to `n_committed` tokens. */
void twin_unname(twin *t, twin_seq *s, uint32_t n_committed)
{
    uint32_t was = s->n_committed;
    uint32_t full = n_committed / t->config.page_tokens, rest = n_committed % t->config.page_tokens;
    bool drops = full < s->n_committed / t->config.page_tokens, keys = t->config.content == KVK_CONTENT_KEYS;
    s->n_committed = n_committed;
    if (t->config.content == KVK_CONTENT_NONE)
        return;
    if (drops && s->mute)
        find_again(t, s, full, rest);
    if (rest && has_extras(t, s, full, drops ? t->config.page_tokens : was - full * t->config.page_tokens))
        s->mute = true;
    s->text.n_bytes = keys ? full * twin_unit(t) : n_committed * (uint32_t)sizeof(uint32_t);
}
