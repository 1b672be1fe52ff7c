/* twin_near.c: near peaks. They depend on the text alone: a sequence keeps those of all its pages, dropped ones too,
 * and a page that can be found takes its own along. */
#include "twin.h"

#include <string.h>

static bool keeps_near(const twin *t, const twin_seq *s)
{
    return twin_needs(t, s) & KVK_NEED_NEAR;
}

static const float *known(const twin *t, const twin_seq *s, uint32_t group, uint32_t entry)
{
    return s->eviction.near[group] + entry * t->n_near[group];
}

/* What a sequence knows of a page goes with it. */
static void hand_on(const twin *t, const twin_seq *s, uint32_t group, uint32_t entry, twin_page *page)
{
    memset(page->near, 0, sizeof page->near);
    if (keeps_near(t, s))
        memcpy(page->near, known(t, s, group, entry), t->n_near[group] * sizeof(float));
}

void twin_near_show(twin *t, const twin_seq *s, uint32_t group, uint32_t entry)
{
    twin_page *page = &t->pages[s->table[group][entry]];
    page->is_seen = false;
    hand_on(t, s, group, entry, page);
}

void twin_near_attach(const twin *t, twin_seq *s, uint32_t group, uint32_t entry)
{
    const twin_page *page = &t->pages[s->table[group][entry]];
    if (keeps_near(t, s) && page->published_at)
        memcpy(s->eviction.near[group] + entry * t->n_near[group], page->near, t->n_near[group] * sizeof(float));
}

void twin_near_cut(const twin *t, twin_seq *s, uint32_t entry)
{
    for (uint32_t g = 0; g < TWIN_GROUPS; g++) {
        uint32_t n = (TWIN_ENTRIES - entry) * t->n_near[g];
        memset(s->eviction.near[g] + entry * t->n_near[g], 0, n * sizeof(float));
    }
    memset(s->eviction.shared + entry, 0, (TWIN_ENTRIES - entry) * sizeof(float));
}

void twin_near_take(twin *t, twin_seq *s, uint32_t group, uint32_t entry, const float *values)
{
    float *to = s->eviction.near[group] + entry * t->n_near[group];
    for (uint32_t k = 0; k < t->n_near[group]; k++)
        to[k] = values[k] > to[k] ? values[k] : to[k];
}

void twin_near_settle(twin *t, const twin_seq *s, uint32_t group, uint32_t entry, uint32_t n_tokens)
{
    twin_page *page = &t->pages[s->table[group][entry]];
    if (!page->published_at || page->is_seen)
        return;
    hand_on(t, s, group, entry, page);
    page->is_seen = n_tokens >= (entry + 2) * t->config.page_tokens;
}
