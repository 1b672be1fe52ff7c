/* twin_prefix.c: what a prompt finds, by comparing whole prefixes; what a commit makes findable. */
#include <string.h>

#include "twin.h"

/* ---- Content ---- */

/* Bytes that name one page. */
uint32_t twin_unit(const twin *t)
{
    return t->config.content == KVK_CONTENT_KEYS ? (uint32_t)sizeof(kvk_key)
                                                 : t->config.page_tokens * (uint32_t)sizeof(uint32_t);
}

bool twin_starts_with(const twin_text *text, const twin_text *head)
{
    return text->n_bytes >= head->n_bytes && memcmp(text->bytes, head->bytes, head->n_bytes) == 0 &&
           memcmp(text->extras, head->extras, head->n_bytes / sizeof(uint32_t)) == 0 &&
           text->salt.lo == head->salt.lo && text->salt.hi == head->salt.hi && text->adapter == head->adapter;
}

/* Bytes of the full pages that the sequence goes on from. */
uint32_t twin_full_bytes(const twin *t, const twin_seq *s)
{
    bool goes_on = s->handle && !s->mute && t->config.content != KVK_CONTENT_NONE;
    return goes_on ? s->n_committed / t->config.page_tokens * twin_unit(t) : 0;
}

/* A content is known while a page holds it or something longer, or a sequence goes on from such: one of at least
 * `n_bytes`. Since when; 0: it is not known. */
uint64_t twin_known_since(const twin *t, const twin_text *content, uint32_t n_bytes)
{
    uint32_t index = content->n_bytes / twin_unit(t) - 1;
    for (uint32_t i = 0; i < t->n_touched; i++) {
        const twin_page *page = &t->pages[i];
        if (page->published_at && page->content.n_bytes >= n_bytes && twin_starts_with(&page->content, content))
            return page->born[index];
    }
    for (uint32_t i = 0; i < TWIN_SEQS; i++) {
        const twin_seq *s = &t->seqs[i];
        if (s->handle && twin_full_bytes(t, s) >= n_bytes && twin_starts_with(&s->text, content))
            return s->born[index];
    }
    return 0;
}

bool twin_is_known(const twin *t, const twin_text *content)
{
    return twin_known_since(t, content, content->n_bytes) != 0;
}

bool twin_is_continued(const twin *t, const twin_text *content)
{
    return twin_known_since(t, content, content->n_bytes + 1) != 0;
}

void twin_tell(twin *t, enum kvk_event_kind kind, uint32_t page)
{
    if (!t->listening)
        return;
    t->events[t->n_events] = (twin_event){.kind = kind, .page = page};
    if (kind != KVK_EVENT_CLEARED) {
        t->events[t->n_events].group = t->pages[page].group;
        t->events[t->n_events].content = t->pages[page].content;
    }
    t->n_events++;
}

void twin_copy_tokens(twin_text *to, const twin_text *from, uint32_t first, uint32_t n)
{
    memcpy(to->bytes + first * sizeof(uint32_t), from->bytes + first * sizeof(uint32_t), n * sizeof(uint32_t));
    memcpy(to->extras + first, from->extras + first, n);
}

/* ---- Finding ---- */

/* The copy published first of the first `n` pages of `text`, or TWIN_PAGES. */
uint32_t twin_find_copy(const twin *t, const twin_text *text, uint32_t n, uint32_t group)
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
    for (uint32_t i = 0; i < prompt->n_extras && prompt->extras[i].position < TWIN_TOKENS; i++)
        text.extras[prompt->extras[i].position] = (unsigned char)prompt->extras[i].key.lo;
    return text;
}

/* Is page `index` of the text known, and there in all groups without a window? */
static bool is_there(const twin *t, const twin_text *text, uint32_t index)
{
    twin_text head = *text;
    head.n_bytes = (index + 1) * twin_unit(t);
    if (head.n_bytes > text->n_bytes || !twin_is_known(t, &head))
        return false;
    for (uint32_t g = 0; g < t->config.n_groups; g++) {
        if (t->windows[g] == 0 && twin_find_copy(t, text, index + 1, g) == TWIN_PAGES)
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

uint32_t twin_needs_from(const twin *t, uint32_t group, uint32_t n_tokens)
{
    uint32_t window = t->windows[group];
    return window == 0 || n_tokens < window ? 0 : (n_tokens - window + 1) / t->config.page_tokens;
}

/* Do all groups with a window have what follows `n` pages of the text? If not, *n is where the last gap begins. */
static bool windows_are_whole(const twin *t, const twin_text *text, uint32_t *n)
{
    for (uint32_t g = 0; g < t->config.n_groups; g++) {
        for (uint32_t i = *n; t->windows[g] && i > twin_needs_from(t, g, *n * t->config.page_tokens); i--) {
            if (twin_find_copy(t, text, i, g) == TWIN_PAGES) {
                *n = i - 1;
                return false;
            }
        }
    }
    return true;
}

/* Pages that an attach would give. */
static uint32_t match(const twin *t, const twin_text *text, const kvk_text *prompt)
{
    uint32_t most = most_pages(t, prompt), n = 0;
    while (n < most && is_there(t, text, n))
        n++;
    while (!windows_are_whole(t, text, &n))
        ;
    return n;
}

/* Are extra keys allowed, within the text and in order? */
int twin_check_text(const twin *t, const kvk_text *text)
{
    bool valid = text->n_extras == 0 || t->config.extra_keys;
    for (uint32_t i = 0; i < text->n_extras; i++) {
        valid = valid && text->extras[i].position < text->n_tokens;
        valid = valid && (i == 0 || text->extras[i].position > text->extras[i - 1].position);
    }
    return valid ? 0 : KVK_EINVAL;
}

static int check_prompt(const twin *t, const kvk_text *prompt)
{
    if (twin_check_text(t, prompt) < 0)
        return KVK_EINVAL;
    return t->config.content == KVK_CONTENT_KEYS && prompt->n_keys > prompt->n_tokens / t->config.page_tokens
               ? KVK_EINVAL
               : 0;
}

int twin_lookup(const twin *t, const kvk_seq_params *params, const kvk_text *prompt)
{
    if (check_prompt(t, prompt) < 0)
        return KVK_EINVAL;
    twin_text text = text_of(t, params, prompt);
    return (int)(match(t, &text, prompt) * t->config.page_tokens);
}

static void remember_births(const twin *t, twin_seq *s)
{
    twin_text head = s->text;
    for (uint32_t i = 0; i < s->end; i++) {
        head.n_bytes = (i + 1) * twin_unit(t);
        s->born[i] = twin_known_since(t, &head, head.n_bytes);
    }
}

static void attach_pages(twin *t, twin_seq *s, const twin_text *text, uint32_t n)
{
    s->text = *text;
    s->text.n_bytes = n * twin_unit(t);
    s->mute = false;
    s->end = n;
    remember_births(t, s);
    s->n_tokens = s->n_committed = n * t->config.page_tokens;
    for (uint32_t g = 0; g < t->config.n_groups; g++) {
        s->first[g] = twin_needs_from(t, g, s->n_tokens);
        for (uint32_t i = s->first[g]; i < n; i++) {
            s->table[g][i] = twin_find_copy(t, text, i + 1, g);
            t->pages[s->table[g][i]].uses++;
            twin_share(t, s->table[g][i]);
            twin_near_attach(t, s, g, i);
        }
    }
}

int twin_attach(twin *t, kvk_seq handle, const kvk_text *prompt)
{
    twin_seq *s;
    if (check_prompt(t, prompt) < 0)
        return KVK_EINVAL;
    int rc = twin_use(t, handle, &s);
    if (rc < 0)
        return rc;
    if (s->n_tokens || s->end)
        return KVK_ESTATE;
    kvk_seq_params params = {.salt = s->text.salt, .adapter = s->text.adapter};
    twin_text text = text_of(t, &params, prompt);
    attach_pages(t, s, &text, match(t, &text, prompt));
    t->totals.prefix_page_hits += s->end;
    uint32_t head = twin_attach_head(t, s, prompt);
    t->totals.partial_hits += head;
    t->totals.prefix_queries += prompt->n_tokens;
    t->totals.prefix_page_queries += most_pages(t, prompt);
    t->totals.prefix_hits += s->n_tokens;
    return (int)s->n_tokens;
}
