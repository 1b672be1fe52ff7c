/* twin_reclaim.c: which cached page is due next in each order, by looking at all of them. */
#include "twin.h"

#include <string.h>

/* S3-FIFO's memory of what left the small queue: contents in order, the oldest forgotten first. A content that came
 * back, or left again, does not count any more but still takes its place. */
static uint32_t find_gone(const twin *t, const twin_text *content)
{
    for (uint32_t i = 0; i < t->n_gone; i++) {
        if (t->gone[i].counts && t->gone[i].content.n_bytes == content->n_bytes &&
            twin_starts_with(&t->gone[i].content, content))
            return i;
    }
    return TWIN_PAGES;
}

static void forget_gone(twin *t, const twin_text *content)
{
    uint32_t i = find_gone(t, content);
    if (i < TWIN_PAGES)
        t->gone[i].counts = false;
}

void twin_note_published(twin *t, twin_page *page)
{
    page->uses = 0;
    page->in_main = find_gone(t, &page->content) < TWIN_PAGES;
    page->queued_at = ++t->n_queued;
    forget_gone(t, &page->content);
}

void twin_note_reclaimed(twin *t, const twin_page *page)
{
    if (t->config.reclaim != KVK_RECLAIM_S3FIFO || page->in_main)
        return;
    forget_gone(t, &page->content);
    if (t->n_gone == t->config.n_pages)
        memmove(t->gone, t->gone + 1, --t->n_gone * sizeof t->gone[0]);
    t->gone[t->n_gone].content = page->content;
    t->gone[t->n_gone++].counts = true;
}

static uint32_t oldest_born(const twin *t)
{
    uint32_t best = t->cached.ids[0];
    for (uint32_t i = 1; i < t->cached.n; i++) {
        if (t->pages[t->cached.ids[i]].published_at < t->pages[best].published_at)
            best = t->cached.ids[i];
    }
    return best;
}

static uint32_t least_used(const twin *t)
{
    uint32_t best = t->cached.ids[0];
    for (uint32_t i = 1; i < t->cached.n; i++) {
        if (t->pages[t->cached.ids[i]].uses < t->pages[best].uses)
            best = t->cached.ids[i];
    }
    return best;
}

/* The oldest page of a queue, or TWIN_PAGES; and how many it has. */
static uint32_t queue_head(const twin *t, bool in_main, uint32_t *n)
{
    uint32_t best = TWIN_PAGES;
    *n = 0;
    for (uint32_t i = 0; i < t->cached.n; i++) {
        uint32_t id = t->cached.ids[i];
        if (t->pages[id].in_main != in_main)
            continue;
        ++*n;
        if (best == TWIN_PAGES || t->pages[id].queued_at < t->pages[best].queued_at)
            best = id;
    }
    return best;
}

static uint32_t s3fifo_due(twin *t)
{
    for (;;) {
        uint32_t n_small, n_main;
        uint32_t small = queue_head(t, false, &n_small), main = queue_head(t, true, &n_main);
        bool from_small = n_small > t->config.n_pages / 10 || n_main == 0;
        twin_page *page = &t->pages[from_small ? small : main];
        uint32_t uses = page->uses < 3 ? page->uses : 3;
        if (from_small ? uses < 2 : uses == 0)
            return from_small ? small : main;
        page->uses = from_small ? 0 : uses - 1;
        page->in_main = true;
        page->queued_at = ++t->n_queued;
    }
}

uint32_t twin_due(twin *t)
{
    switch ((kvk_reclaim)t->config.reclaim) {
    case KVK_RECLAIM_FIFO:
        return oldest_born(t);
    case KVK_RECLAIM_LFU:
        return least_used(t);
    case KVK_RECLAIM_S3FIFO:
        return s3fifo_due(t);
    case KVK_RECLAIM_LRU:
        break;
    }
    return t->cached.ids[0];
}
