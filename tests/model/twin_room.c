/* twin_room.c: the room that sequences have. */
#include "twin_view.h"

typedef struct {
    uint32_t missing; /* pages more in each group */
    uint32_t copies;  /* pages that replace a shared partial last page */
    uint32_t need;    /* pages to take, all groups */
    int can;
    uint32_t taken; /* of pages of others, where it needs them */
} growth;

/* The page that the next token goes into, where it holds tokens already; else NULL. */
static twin_page *partial_page(twin *t, const twin_seq *s, uint32_t group)
{
    uint32_t index = s->n_tokens / t->config.page_tokens;
    return s->n_tokens % t->config.page_tokens ? &t->pages[s->table[group][index]] : NULL;
}

uint32_t twin_held(const twin *t, const twin_seq *s)
{
    uint32_t n = 0;
    for (uint32_t g = 0; g < t->config.n_groups; g++)
        n += twin_count_held(s, g, s->end);
    return n;
}

int twin_judge(const twin *t, uint64_t need, uint64_t frees, uint64_t pages_after, kvk_effort effort)
{
    uint64_t keep = effort == KVK_FREE_ONLY ? t->config.watermark : 0;
    if (need == 0)
        return KVK_OK;
    if (pages_after + keep > t->config.n_pages)
        return KVK_NEVER;
    return need + keep > twin_available(t) + frees ? KVK_LATER : KVK_OK;
}

/* Must the page be replaced before it is written? */
static bool is_to_copy(const twin *t, const twin_page *page)
{
    return page && (twin_is_shared(t, page) || page->pins);
}

/* Pages that come free when the sequence gives up what its copy has lost. */
static uint32_t count_frees(const twin *t, const twin_seq *s, const twin_seq *copy)
{
    uint32_t n = 0;
    for (uint32_t g = 0; g < t->config.n_groups; g++) {
        for (uint32_t i = 0; i < s->end; i++)
            n += twin_holds(s, g, i) && !twin_holds(copy, g, i) && twin_frees(t, s, g, i);
    }
    return n;
}

/* What a reservation takes. `copy` becomes the sequence as its own budget trims it, `taken` what others must give. */
static growth grow(twin *t, twin_seq *copy, uint32_t n_tokens, kvk_effort effort, twin_taken *taken)
{
    growth g = {.can = KVK_OK};
    const twin_seq *s = twin_find(t, copy->handle);
    if (n_tokens == 0)
        return g;
    twin_trim(t, copy, twin_now(t, s));
    uint64_t after = ((uint64_t)s->n_tokens + n_tokens + t->config.page_tokens - 1) / t->config.page_tokens;
    uint64_t missing = after > s->end ? after - s->end : 0;
    for (uint32_t i = 0; i < t->config.n_groups; i++)
        g.copies += is_to_copy(t, partial_page(t, s, i));
    uint64_t need = missing * t->config.n_groups + g.copies, frees = count_frees(t, s, copy);
    g.can = twin_judge(t, need, frees, twin_held(t, copy) + missing * t->config.n_groups, effort);
    if (g.can == KVK_LATER && effort == KVK_EVICT) {
        uint32_t lacking = (uint32_t)(need - twin_available(t) - frees);
        g.taken = lacking;
        if (twin_press(t, s, copy, lacking, taken) == lacking)
            g.can = KVK_OK;
    }
    if (g.can == KVK_OK) {
        g.missing = (uint32_t)missing;
        g.need = (uint32_t)need;
    }
    return g;
}

int twin_can_reserve(twin *t, kvk_seq handle, uint32_t n_tokens, kvk_effort effort)
{
    static twin_taken taken;
    twin_seq *s;
    int rc = twin_use(t, handle, &s);
    if (rc < 0)
        return rc;
    twin_seq copy = *s;
    return grow(t, &copy, n_tokens, effort, &taken).can;
}

/* Replaces the shared partial last page of a group. Returns the old page. */
static uint32_t copy_last(twin *t, twin_seq *s, uint32_t group)
{
    uint32_t *entry = &s->table[group][s->n_tokens / t->config.page_tokens], n = s->n_tokens % t->config.page_tokens;
    uint32_t old = *entry;
    *entry = twin_take(t, group);
    t->pages[*entry].n_tokens = n;
    twin_queue_move(t, (kvk_move){KVK_MOVE_COPY, group, old, *entry, n});
    t->totals.cow_copies++;
    return old;
}

/* Makes the partial last page of a group writable. Returns the page replaced, or TWIN_PAGES. */
static uint32_t open_last(twin *t, twin_seq *s, uint32_t group)
{
    twin_page *page = partial_page(t, s, group);
    if (is_to_copy(t, page))
        return copy_last(t, s, group);
    if (page && page->published_at) {
        twin_forget(t, s->table[group][s->n_tokens / t->config.page_tokens]);
        page->n_tokens = s->n_tokens % t->config.page_tokens;
    }
    return TWIN_PAGES;
}

int twin_reserve(twin *t, kvk_seq handle, uint32_t n_tokens, kvk_effort effort)
{
    static twin_taken taken;
    twin_seq *s;
    int rc = twin_use(t, handle, &s);
    if (rc < 0)
        return rc;
    twin_seq copy = *s;
    growth g = grow(t, &copy, n_tokens, effort, &taken);
    if (g.can != KVK_OK)
        return g.can == KVK_NEVER ? KVK_ENEVER : KVK_ENOPAGE;
    twin_apply_trim(t, s, &copy, twin_now(t, s));
    if (g.taken)
        twin_apply_press(t, &taken);
    uint32_t old[TWIN_GROUPS];
    for (uint32_t i = 0; i < t->config.n_groups && n_tokens; i++) {
        old[i] = open_last(t, s, i);
        for (uint32_t k = 0; k < g.missing; k++)
            s->table[i][s->end + k] = twin_take(t, i);
    }
    s->end += g.missing;
    for (uint32_t i = 0; i < t->config.n_groups && n_tokens; i++) {
        if (old[i] != TWIN_PAGES)
            twin_release(t, old[i], s->last_batch);
    }
    return (int)g.need;
}
