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
           text->salt.lo == head->salt.lo && text->salt.hi == head->salt.hi && text->adapter == head->adapter;
}

/* Bytes of the full pages that the sequence goes on from. */
static uint32_t full_bytes(const twin *t, const twin_seq *s)
{
    bool goes_on = s->handle && !s->mute && t->config.content != KVK_CONTENT_NONE;
    return goes_on ? s->n_committed / t->config.page_tokens * twin_unit(t) : 0;
}

/* A content is known while a page holds it or something longer, or a sequence goes on from such: one of at least
 * `n_bytes`. Since when; 0: it is not known. */
static uint64_t known_since(const twin *t, const twin_text *content, uint32_t n_bytes)
{
    uint32_t index = content->n_bytes / twin_unit(t) - 1;
    for (uint32_t i = 0; i < t->n_touched; i++) {
        const twin_page *page = &t->pages[i];
        if (page->published_at && page->content.n_bytes >= n_bytes && twin_starts_with(&page->content, content))
            return page->born[index];
    }
    for (uint32_t i = 0; i < TWIN_SEQS; i++) {
        const twin_seq *s = &t->seqs[i];
        if (s->handle && full_bytes(t, s) >= n_bytes && twin_starts_with(&s->text, content))
            return s->born[index];
    }
    return 0;
}

bool twin_is_known(const twin *t, const twin_text *content)
{
    return known_since(t, content, content->n_bytes) != 0;
}

bool twin_is_continued(const twin *t, const twin_text *content)
{
    return known_since(t, content, content->n_bytes + 1) != 0;
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

/* ---- Finding ---- */

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

/* Is page `index` of the text known, and there in all groups without a window? */
static bool is_there(const twin *t, const twin_text *text, uint32_t index)
{
    twin_text head = *text;
    head.n_bytes = (index + 1) * twin_unit(t);
    if (head.n_bytes > text->n_bytes || !twin_is_known(t, &head))
        return false;
    for (uint32_t g = 0; g < t->config.n_groups; g++) {
        if (t->windows[g] == 0 && find_copy(t, text, index + 1, g) == TWIN_PAGES)
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
            if (find_copy(t, text, i, g) == TWIN_PAGES) {
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

static int check_prompt(const twin *t, const kvk_text *prompt)
{
    return t->config.content == KVK_CONTENT_KEYS && prompt->n_keys > prompt->n_tokens / t->config.page_tokens
               ? KVK_EINVAL
               : 0;
}

int twin_lookup(const twin *t, const kvk_seq_params *params, const kvk_text *prompt)
{
    int rc = check_prompt(t, prompt);
    twin_text text = text_of(t, params, prompt);
    return rc < 0 ? rc : (int)(match(t, &text, prompt) * t->config.page_tokens);
}

static void remember_births(const twin *t, twin_seq *s)
{
    twin_text head = s->text;
    for (uint32_t i = 0; i < s->end; i++) {
        head.n_bytes = (i + 1) * twin_unit(t);
        s->born[i] = known_since(t, &head, head.n_bytes);
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
            s->table[g][i] = find_copy(t, text, i + 1, g);
            t->pages[s->table[g][i]].uses++;
            twin_share(t, s->table[g][i]);
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
    t->totals.prefix_queries += prompt->n_tokens;
    t->totals.prefix_page_queries += most_pages(t, prompt);
    t->totals.prefix_hits += s->n_tokens;
    t->totals.prefix_page_hits += s->end;
    return (int)s->n_tokens;
}

/* ---- Naming ---- */

void twin_show(twin *t, uint32_t id, const twin_page *like)
{
    twin_page *page = &t->pages[id];
    page->content = like->content;
    memcpy(page->born, like->born, sizeof page->born);
    bool is_first = find_copy(t, &page->content, page->content.n_bytes / twin_unit(t), page->group) == TWIN_PAGES;
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
}

/* Makes page `index` of a sequence findable, or finds that another sequence named it differently. */
static void publish(twin *t, twin_seq *s, uint32_t index)
{
    twin_text content = s->text;
    content.n_bytes = (index + 1) * twin_unit(t);
    for (uint32_t g = 0; g < t->config.n_groups; g++) {
        const twin_page *page = &t->pages[s->table[g][index]];
        if (page->published_at &&
            (page->content.n_bytes != content.n_bytes || !twin_starts_with(&content, &page->content)))
            s->mute = true;
    }
    if (s->mute)
        return;
    uint64_t since = known_since(t, &content, content.n_bytes);
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
    memcpy(s->text.bytes + s->text.n_bytes, keys ? (const void *)text->keys : (const void *)text->tokens, n_bytes);
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
        for (uint32_t from = twin_needs_from(t, g, s->n_committed); s->first[g] < from; s->first[g]++)
            twin_let_go(t, s, g, s->first[g]);
    }
}

int twin_commit(twin *t, kvk_seq handle, const kvk_text *text)
{
    twin_seq *s;
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
    return entry >= s->first[0] && page->published_at ? page : NULL;
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
        memcpy(s->born, before->born, sizeof s->born);
    }
    if (head)
        memcpy(s->text.bytes + full * twin_unit(t), on->content.bytes + full * twin_unit(t), rest * sizeof(uint32_t));
}

/* What the sequence has named up to `n_committed` tokens. */
void twin_unname(twin *t, twin_seq *s, uint32_t n_committed)
{
    uint32_t full = n_committed / t->config.page_tokens, rest = n_committed % t->config.page_tokens;
    bool drops = full < s->n_committed / t->config.page_tokens, keys = t->config.content == KVK_CONTENT_KEYS;
    s->n_committed = n_committed;
    if (t->config.content == KVK_CONTENT_NONE)
        return;
    if (drops && s->mute)
        find_again(t, s, full, rest);
    s->text.n_bytes = keys ? full * twin_unit(t) : n_committed * (uint32_t)sizeof(uint32_t);
}
