/* twin_seq.c: sequences and the room they have. */
#include <string.h>

#include "twin.h"

twin_seq *twin_find(twin *t, kvk_seq handle)
{
    for (uint32_t i = 0; handle && i < TWIN_SEQS; i++) {
        if (t->seqs[i].handle == handle)
            return &t->seqs[i];
    }
    return NULL;
}

static twin_seq *empty_place(twin *t)
{
    uint32_t i = 0;
    while (t->seqs[i].handle)
        i++;
    memset(&t->seqs[i], 0, sizeof t->seqs[i]);
    return &t->seqs[i];
}

static void count_sequences(twin *t)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < TWIN_SEQS; i++)
        n += t->seqs[i].handle != 0;
    t->totals.sequences = n;
    if (n > t->totals.peak_sequences)
        t->totals.peak_sequences = n;
}

uint32_t twin_pages_for(const twin *t, uint32_t n_tokens)
{
    return (n_tokens + t->config.page_tokens - 1) / t->config.page_tokens;
}

void twin_open(twin *t, const kvk_seq_params *params, kvk_seq handle)
{
    twin_seq *s = empty_place(t);
    s->handle = handle;
    s->priority = params->priority;
    s->text.salt = params->salt;
    s->text.adapter = params->adapter;
    count_sequences(t);
}

/* Gives back the pages past the first `keep` of each group, tail first. Returns those nobody refers to any more. */
static int give_back(twin *t, twin_seq *s, uint32_t keep)
{
    int gone = 0;
    for (; s->n_pages > keep; s->n_pages--) {
        for (uint32_t g = 0; g < t->config.n_groups; g++)
            gone += twin_release(t, s->table[g][s->n_pages - 1], s->last_batch);
    }
    return gone;
}

/* Batches in flight must not touch its length when they end. */
static void leave_alone(twin *t, kvk_seq handle)
{
    for (uint32_t i = 0; i < TWIN_BATCHES; i++) {
        for (uint32_t k = 0; k < t->batches[i].n; k++) {
            if (t->batches[i].entries[k].seq == handle)
                t->batches[i].entries[k].left_alone = true;
        }
    }
}

int twin_close(twin *t, kvk_seq handle)
{
    twin_seq *s = twin_find(t, handle);
    if (!s)
        return KVK_ESTALE;
    int gone = give_back(t, s, 0);
    leave_alone(t, handle);
    s->handle = 0;
    count_sequences(t);
    return gone;
}

int twin_fork(twin *t, kvk_seq parent, kvk_seq child)
{
    const twin_seq *from = twin_find(t, parent);
    if (!from)
        return KVK_ESTALE;
    if (from->n_in_flight)
        return KVK_EBUSY;
    twin_seq *s = empty_place(t);
    *s = *from;
    s->handle = child;
    s->n_pages = twin_pages_for(t, s->n_tokens);
    s->last_batch = 0;
    for (uint32_t i = 0; i < s->n_pages; i++) {
        for (uint32_t g = 0; g < t->config.n_groups; g++)
            t->pages[s->table[g][i]].refs++;
    }
    count_sequences(t);
    return 0;
}

int twin_truncate(twin *t, kvk_seq handle, uint32_t n_tokens)
{
    twin_seq *s = twin_find(t, handle);
    if (!s)
        return KVK_ESTALE;
    if (n_tokens > s->n_tokens)
        return KVK_EINVAL;
    if (n_tokens < s->n_tokens)
        leave_alone(t, handle);
    if (n_tokens < s->n_committed)
        twin_unname(t, s, n_tokens);
    int gone = give_back(t, s, twin_pages_for(t, n_tokens));
    twin_set_length(t, s, n_tokens);
    return gone;
}

typedef struct {
    uint32_t missing; /* pages more in each group */
    uint32_t copies;  /* pages that replace a shared partial last page */
    uint32_t need;    /* pages to take, all groups */
    int can;
} growth;

/* The page that the next token goes into, where it holds tokens already; else NULL. */
static twin_page *partial_page(twin *t, const twin_seq *s, uint32_t group)
{
    uint32_t index = s->n_tokens / t->config.page_tokens;
    return s->n_tokens % t->config.page_tokens ? &t->pages[s->table[group][index]] : NULL;
}

static int judge(const twin *t, uint64_t need, uint64_t pages_after, kvk_effort effort)
{
    uint64_t keep = effort == KVK_FREE_ONLY ? t->config.watermark : 0;
    if (need == 0)
        return KVK_OK;
    if (pages_after + keep > t->config.n_pages)
        return KVK_NEVER;
    return need + keep > twin_available(t) ? KVK_LATER : KVK_OK;
}

static growth grow(twin *t, const twin_seq *s, uint32_t n_tokens, kvk_effort effort)
{
    growth g = {.can = KVK_OK};
    if (n_tokens == 0)
        return g;
    uint64_t after = ((uint64_t)s->n_tokens + n_tokens + t->config.page_tokens - 1) / t->config.page_tokens;
    uint64_t missing = after > s->n_pages ? after - s->n_pages : 0;
    for (uint32_t i = 0; i < t->config.n_groups; i++) {
        const twin_page *page = partial_page(t, s, i);
        g.copies += page && twin_is_shared(t, page);
    }
    uint64_t need = missing * t->config.n_groups + g.copies;
    g.can = judge(t, need, (s->n_pages + missing) * t->config.n_groups, effort);
    if (g.can == KVK_OK) {
        g.missing = (uint32_t)missing;
        g.need = (uint32_t)need;
    }
    return g;
}

int twin_can_reserve(twin *t, kvk_seq handle, uint32_t n_tokens, kvk_effort effort)
{
    const twin_seq *s = twin_find(t, handle);
    return s ? grow(t, s, n_tokens, effort).can : KVK_ESTALE;
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
    if (page && twin_is_shared(t, page))
        return copy_last(t, s, group);
    if (page && page->published_at) {
        page->published_at = 0;
        page->n_tokens = s->n_tokens % t->config.page_tokens;
    }
    return TWIN_PAGES;
}

int twin_reserve(twin *t, kvk_seq handle, uint32_t n_tokens, kvk_effort effort)
{
    twin_seq *s = twin_find(t, handle);
    if (!s)
        return KVK_ESTALE;
    growth g = grow(t, s, n_tokens, effort);
    if (g.can != KVK_OK)
        return g.can == KVK_NEVER ? KVK_ENEVER : KVK_ENOPAGE;
    uint32_t old[TWIN_GROUPS];
    for (uint32_t i = 0; i < t->config.n_groups && n_tokens; i++) {
        old[i] = open_last(t, s, i);
        for (uint32_t k = 0; k < g.missing; k++)
            s->table[i][s->n_pages + k] = twin_take(t, i);
    }
    s->n_pages += g.missing;
    for (uint32_t i = 0; i < t->config.n_groups && n_tokens; i++) {
        if (old[i] != TWIN_PAGES)
            twin_release(t, old[i], s->last_batch);
    }
    return (int)g.need;
}
