/* twin_seq.c: sequences: open, fork, shorten, close. */
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

int twin_use(twin *t, kvk_seq handle, twin_seq **out)
{
    *out = twin_find(t, handle);
    if (!*out)
        return KVK_ESTALE;
    return (*out)->swapped ? KVK_ESTATE : 0;
}

bool twin_holds(const twin_seq *s, uint32_t group, uint32_t entry)
{
    return entry >= s->first[group] && entry < s->end && !s->lost[group][entry];
}

uint32_t twin_count_held(const twin_seq *s, uint32_t group, uint32_t before)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < before; i++)
        n += twin_holds(s, group, i);
    return n;
}

static twin_seq *empty_place(twin *t)
{
    uint32_t i = 0;
    while (t->seqs[i].handle)
        i++;
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

/* A new sequence, in the slot left last. */
static void enter(twin *t, twin_seq *s, kvk_seq handle)
{
    s->handle = handle;
    s->slot = t->left_slots.n ? t->left_slots.ids[--t->left_slots.n] : t->n_slots++;
    s->number = t->n_opened++;
    count_sequences(t);
}

void twin_open(twin *t, const kvk_seq_params *params, kvk_seq handle)
{
    twin_seq *s = empty_place(t);
    memset(s, 0, sizeof *s);
    s->priority = params->priority;
    s->text.salt = params->salt;
    s->text.adapter = params->adapter;
    s->first_taint = UINT32_MAX;
    enter(t, s, handle);
}

static const kvk_retention *range_of(const twin_seq *s, uint64_t token)
{
    for (uint32_t i = 0; i < s->n_ranges; i++) {
        if (s->ranges[i].begin <= token && token < s->ranges[i].end)
            return &s->ranges[i];
    }
    return NULL;
}

bool twin_let_go(twin *t, twin_seq *s, uint32_t group, uint32_t entry)
{
    uint32_t page = s->table[group][entry];
    const kvk_retention *range = range_of(s, (uint64_t)entry * t->config.page_tokens);
    if (range) {
        bool ends = range->duration_ms && range->duration_ms < TWIN_NEVER - t->now;
        twin_set_level(t, page, range->priority);
        t->pages[page].deadline = ends ? t->now + range->duration_ms : TWIN_NEVER;
    }
    return twin_release(t, page, s->last_batch);
}

int twin_give_back(twin *t, twin_seq *s, uint32_t keep)
{
    int gone = 0;
    for (; s->end > keep; s->end--) {
        for (uint32_t g = 0; g < t->config.n_groups; g++)
            gone += twin_holds(s, g, s->end - 1) && twin_let_go(t, s, g, s->end - 1);
        twin_forget_entry(s, s->end - 1);
    }
    for (uint32_t g = 0; g < t->config.n_groups; g++)
        s->first[g] = s->first[g] < keep ? s->first[g] : keep;
    return gone;
}

/* Batches in flight must not touch its length when they end. */
void twin_leave_alone(twin *t, kvk_seq handle)
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
    int gone = s->swapped ? 0 : twin_give_back(t, s, 0);
    if (s->swapped)
        twin_drop_host(t, s);
    twin_leave_alone(t, handle);
    s->handle = 0;
    t->left_slots.ids[t->left_slots.n++] = s->slot;
    count_sequences(t);
    return gone;
}

int twin_fork(twin *t, kvk_seq parent, kvk_seq child)
{
    twin_seq *from;
    int rc = twin_use(t, parent, &from);
    if (rc < 0)
        return rc;
    if (from->n_in_flight)
        return KVK_EBUSY;
    twin_seq *s = empty_place(t);
    *s = *from;
    s->end = twin_pages_for(t, s->n_tokens);
    s->last_batch = 0;
    s->n_ranges = 0;
    for (uint32_t i = s->end; i < from->end; i++)
        twin_forget_entry(s, i);
    for (uint32_t g = 0; g < t->config.n_groups; g++) {
        for (uint32_t i = s->first[g]; i < s->end; i++)
            t->pages[s->table[g][i]].refs += twin_holds(s, g, i);
    }
    enter(t, s, child);
    return 0;
}

/* Has a window let go what the token after the first `n_tokens` would attend to, or was the page evicted that it is
 * to be written into? */
static bool cannot_go_on(const twin *t, const twin_seq *s, uint32_t n_tokens)
{
    bool partial = n_tokens % t->config.page_tokens;
    for (uint32_t g = 0; g < t->config.n_groups; g++) {
        if (n_tokens && twin_needs_from(t, g, n_tokens) < s->first[g])
            return true;
        if (partial && s->lost[g][n_tokens / t->config.page_tokens])
            return true;
    }
    return false;
}

int twin_truncate(twin *t, kvk_seq handle, uint32_t n_tokens)
{
    twin_seq *s;
    int rc = twin_use(t, handle, &s);
    if (rc < 0)
        return rc;
    if (n_tokens > s->n_tokens)
        return KVK_EINVAL;
    if (cannot_go_on(t, s, n_tokens))
        return KVK_ESTATE;
    if (n_tokens < s->n_tokens)
        twin_leave_alone(t, handle);
    if (n_tokens < s->n_committed)
        twin_unname(t, s, n_tokens);
    int gone = twin_give_back(t, s, twin_pages_for(t, n_tokens));
    if (n_tokens < s->n_tokens)
        twin_near_cut(t, s, n_tokens / t->config.page_tokens);
    twin_shorten(t, s, n_tokens);
    return gone;
}
