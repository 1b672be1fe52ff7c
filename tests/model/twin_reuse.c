/* twin_reuse.c: heads of pages that are copied, and a state that was saved and loaded. */
#include "twin.h"

enum { CANDIDATES = 32 }; /* of the contents that follow, the oldest: a long list must not make attach slow */

/* The content one page longer than `head` that became known next after `after`. Its time; 0: there is none. Contents of
 * one page follow on an empty head, whoever may share them. */
uint64_t twin_next_child(const twin *t, const twin_text *head, uint64_t after, twin_text *out)
{
    uint32_t index = head->n_bytes / twin_unit(t), n_bytes = head->n_bytes + twin_unit(t);
    uint64_t best = 0;
    for (uint32_t i = 0; i < t->n_touched + TWIN_SEQS; i++) {
        bool is_page = i < t->n_touched;
        const twin_page *page = &t->pages[is_page ? i : 0];
        const twin_seq *s = &t->seqs[is_page ? 0 : i - t->n_touched];
        const twin_text *text = is_page ? &page->content : &s->text;
        uint32_t has = is_page ? (page->published_at ? page->content.n_bytes : 0) : twin_full_bytes(t, s);
        uint64_t born = is_page ? page->born[index] : s->born[index];
        if (has < n_bytes || born <= after || (best && born >= best))
            continue;
        if (head->n_bytes && !twin_starts_with(text, head))
            continue;
        best = born;
        *out = *text;
        out->n_bytes = n_bytes;
    }
    return best;
}

/* Tokens of the prompt after the hit, its last one left out, that the content's last page begins with. */
static uint32_t common_head(const twin *t, const twin_seq *s, const kvk_text *prompt, const twin_text *content)
{
    uint32_t P = t->config.page_tokens, most = prompt->n_tokens - s->n_tokens - 1, n = 0;
    const uint32_t *tokens = (const uint32_t *)(const void *)content->bytes;
    if (content->salt.lo != s->text.salt.lo || content->salt.hi != s->text.salt.hi ||
        content->adapter != s->text.adapter)
        return 0;
    for (uint32_t i = 0; i < P; i++) {
        if (content->extras[s->n_tokens + i])
            return 0;
    }
    for (uint32_t g = 0; g < t->config.n_groups; g++) {
        if (twin_find_copy(t, content, s->end + 1, g) == TWIN_PAGES)
            return 0;
    }
    while (n < P && n < most && tokens[s->n_tokens + n] == prompt->tokens[s->n_tokens + n])
        n++;
    return n;
}

/* The content that agrees furthest, of these the oldest. Returns how many tokens do. */
static uint32_t best_head(const twin *t, const twin_seq *s, const kvk_text *prompt, twin_text *best)
{
    uint32_t n_best = 0;
    uint64_t born = 0;
    twin_text content;
    for (uint32_t i = 0; i < CANDIDATES && (born = twin_next_child(t, &s->text, born, &content)) != 0; i++) {
        uint32_t n = common_head(t, s, prompt, &content);
        if (n > n_best) {
            n_best = n;
            *best = content;
        }
    }
    return n_best;
}

static void copy_head(twin *t, twin_seq *s, const uint32_t from[TWIN_GROUPS], uint32_t n)
{
    for (uint32_t g = 0; g < t->config.n_groups; g++) {
        uint32_t page = twin_take_as_is(t, g);
        if (t->config.zero_fill)
            twin_queue_move(t, (kvk_move){KVK_MOVE_ZERO, g, page, page, t->config.page_tokens});
        twin_queue_move(t, (kvk_move){KVK_MOVE_COPY, g, from[g], page, n});
        t->pages[page].n_tokens = n;
        s->table[g][s->end] = page;
        t->totals.pages_taken++;
    }
    s->end++;
}

/* Copies the head of a page to a sequence that has just been given whole pages. Returns the tokens copied. The page
 * copied from counts as used meanwhile, so that it is not reclaimed, and as released then. */
uint32_t twin_attach_head(twin *t, twin_seq *s, const kvk_text *prompt)
{
    twin_text content;
    uint32_t from[TWIN_GROUPS], n = 0;
    if (t->config.partial_reuse && prompt->n_tokens && prompt->n_extras == 0)
        n = best_head(t, s, prompt, &content);
    if (n == 0)
        return 0;
    for (uint32_t g = 0; g < t->config.n_groups; g++) {
        from[g] = twin_find_copy(t, &content, s->end + 1, g);
        twin_hold(t, from[g]);
    }
    if (twin_available(t) < t->config.n_groups)
        n = 0;
    else
        copy_head(t, s, from, n);
    for (uint32_t g = 0; g < t->config.n_groups; g++)
        twin_release(t, from[g], 0);
    twin_count_used(t);
    twin_copy_tokens(&s->text, &content, s->n_tokens, n);
    s->text.n_bytes += n * (uint32_t)sizeof(uint32_t);
    s->n_tokens += n;
    s->n_committed += n;
    return n;
}

/* Tells all that can be found: shorter before longer, elder before younger. */
static void tell_below(twin *t, const twin_text *head)
{
    twin_text content;
    for (uint64_t born = 0; (born = twin_next_child(t, head, born, &content)) != 0;) {
        for (uint32_t g = 0; g < t->config.n_groups; g++) {
            uint32_t page = twin_find_copy(t, &content, content.n_bytes / twin_unit(t), g);
            if (page < TWIN_PAGES)
                twin_tell(t, KVK_EVENT_STORED, page);
        }
        tell_below(t, &content);
    }
}

void twin_reload(twin *t)
{
    static const twin_text nothing;
    t->n_gone = 0;
    twin_tell(t, KVK_EVENT_CLEARED, 0);
    if (t->listening && t->config.content != KVK_CONTENT_NONE)
        tell_below(t, &nothing);
}
