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
    page->level = KVK_RETAIN_DEFAULT;
    page->deadline = TWIN_NEVER;
    page->uses = 0;
    page->found_at = page->published_at;
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

/* Which of two cached pages goes first: by level, then by the order. */
static bool goes_before(const twin *t, uint32_t a, uint32_t b)
{
    const twin_page *x = &t->pages[a], *y = &t->pages[b];
    if (x->level != y->level)
        return x->level < y->level;
    switch ((kvk_reclaim)t->config.reclaim) {
    case KVK_RECLAIM_FIFO:
        return x->found_at < y->found_at;
    case KVK_RECLAIM_LFU:
        return x->uses < y->uses;
    case KVK_RECLAIM_S3FIFO:
        return x->queued_at < y->queued_at;
    case KVK_RECLAIM_LRU:
        break;
    }
    return false; /* the list is in order of release */
}

/* The first page to go of those with this `in_main`, or of all if `any`; TWIN_PAGES if there is none. And how many
 * there are. */
static uint32_t first_to_go(const twin *t, bool any, bool in_main, uint32_t *n)
{
    uint32_t best = TWIN_PAGES;
    *n = 0;
    for (uint32_t i = 0; i < t->cached.n; i++) {
        uint32_t id = t->cached.ids[i];
        if (t->pages[id].pins || (!any && t->pages[id].in_main != in_main))
            continue;
        ++*n;
        if (best == TWIN_PAGES || goes_before(t, id, best))
            best = id;
    }
    return best;
}

/* Is the small queue's turn? A lower level goes first, wherever it is. */
static bool is_small_due(const twin *t, uint32_t small, uint32_t main, uint32_t n_small)
{
    if (small == TWIN_PAGES || main == TWIN_PAGES)
        return main == TWIN_PAGES;
    if (t->pages[small].level != t->pages[main].level)
        return t->pages[small].level < t->pages[main].level;
    return n_small > t->config.n_pages / 10;
}

static uint32_t s3fifo_due(twin *t)
{
    for (;;) {
        uint32_t n_small, n_main;
        uint32_t small = first_to_go(t, false, false, &n_small), main = first_to_go(t, false, true, &n_main);
        bool from_small = is_small_due(t, small, main, n_small);
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
    uint32_t n;
    return t->config.reclaim == KVK_RECLAIM_S3FIFO ? s3fifo_due(t) : first_to_go(t, true, false, &n);
}

/* A cached page whose level changes comes last among those of its new level. */
void twin_set_level(twin *t, uint32_t id, uint32_t level)
{
    twin_page *page = &t->pages[id];
    if (page->level == level)
        return;
    page->level = level;
    for (uint32_t i = 0; i < t->cached.n; i++) {
        if (t->cached.ids[i] == id) {
            memmove(&t->cached.ids[i], &t->cached.ids[i + 1], (t->cached.n - i - 1) * sizeof id);
            t->cached.ids[t->cached.n - 1] = id;
            return;
        }
    }
}
