/* twin_pages.c: which page is taken next, and what becomes of a page that nobody refers to. */
#include <string.h>

#include "twin.h"

void twin_init(twin *t, const kvk_config *config)
{
    memset(t, 0, sizeof *t);
    t->config = *config;
    for (uint32_t g = 0; config->groups && g < config->n_groups; g++) {
        t->windows[g] = config->groups[g].window;
        t->near_layers[g] = config->groups[g].near_layers;
        t->n_near[g] = t->near_layers[g] * config->groups[g].near_heads;
    }
    t->config.groups = NULL;
    for (uint32_t i = 0; i < TWIN_PAGES; i++) {
        t->pages[i].level = KVK_RETAIN_DEFAULT;
        t->pages[i].deadline = TWIN_NEVER;
    }
}

static void push(twin_list *list, uint32_t page)
{
    list->ids[list->n++] = page;
}

static void remove_at(twin_list *list, uint32_t i)
{
    list->n--;
    memmove(&list->ids[i], &list->ids[i + 1], (list->n - i) * sizeof list->ids[0]);
}

static void remove_page(twin_list *list, uint32_t page)
{
    for (uint32_t i = 0; i < list->n; i++) {
        if (list->ids[i] == page) {
            remove_at(list, i);
            return;
        }
    }
}

uint32_t twin_available(const twin *t)
{
    uint32_t n = t->freed.n + (t->config.n_pages > t->n_touched ? t->config.n_pages - t->n_touched : 0);
    for (uint32_t i = 0; i < t->cached.n; i++)
        n += t->pages[t->cached.ids[i]].pins == 0;
    return n;
}

uint32_t twin_draining(const twin *t)
{
    uint32_t n = 0;
    for (uint32_t i = t->config.n_pages; i < t->n_touched; i++)
        n += t->pages[i].state != KVK_PAGE_FREE;
    return n;
}

/* Is it the only copy, in its group, of content on which longer content hangs? Where there is a window longer content
 * does not need it. */
static bool is_inner(const twin *t, const twin_page *page)
{
    if (t->windows[page->group])
        return false;
    for (uint32_t i = 0; i < t->n_touched; i++) {
        const twin_page *other = &t->pages[i];
        if (other != page && other->published_at && other->group == page->group &&
            other->content.n_bytes == page->content.n_bytes && twin_starts_with(&other->content, &page->content))
            return false;
    }
    return twin_is_continued(t, &page->content);
}

/* The page that may go of the content that follows, by one page, on this one: of the oldest content its oldest copy. */
static uint32_t follower(const twin *t, const twin_page *page)
{
    uint32_t best = TWIN_PAGES, index = page->content.n_bytes / twin_unit(t);
    for (uint32_t i = 0; i < t->n_touched; i++) {
        const twin_page *p = &t->pages[i], *b = &t->pages[best % TWIN_PAGES];
        bool follows = p->state == KVK_PAGE_CACHED && p->pins == 0 && p->group == page->group &&
                       p->content.n_bytes == page->content.n_bytes + twin_unit(t) &&
                       twin_starts_with(&p->content, &page->content);
        if (follows && (best == TWIN_PAGES || p->born[index] < b->born[index] ||
                        (p->born[index] == b->born[index] && p->published_at < b->published_at)))
            best = i;
    }
    return best;
}

/* The cached page due, or a cached leaf of the content that hangs on it. */
static uint32_t reclaim(twin *t)
{
    uint32_t page = twin_due(t), next = page;
    while (next != TWIN_PAGES) {
        page = next;
        next = is_inner(t, &t->pages[page]) ? follower(t, &t->pages[page]) : TWIN_PAGES;
    }
    remove_page(&t->cached, page);
    t->pages[page].state = KVK_PAGE_USED;
    twin_note_reclaimed(t, &t->pages[page]);
    twin_forget(t, page);
    t->totals.pages_reclaimed++;
    return page;
}

static uint32_t next_page(twin *t)
{
    if (t->freed.n)
        return t->freed.ids[--t->freed.n];
    if (t->n_touched < t->config.n_pages)
        return t->n_touched++;
    return reclaim(t);
}

static uint32_t count_state(const twin *t, enum kvk_page_state state)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->n_touched; i++)
        n += t->pages[i].state == state;
    return n;
}

void twin_count_used(twin *t)
{
    uint32_t n = count_state(t, KVK_PAGE_USED);
    if (n > t->totals.peak_pages_used)
        t->totals.peak_pages_used = n;
}

uint32_t twin_take_as_is(twin *t, uint32_t group)
{
    uint32_t id = next_page(t);
    twin_page *page = &t->pages[id];
    page->state = KVK_PAGE_USED;
    page->group = group;
    page->refs = 1;
    page->generation++;
    page->n_tokens = 0;
    page->last_batch = 0;
    return id;
}

uint32_t twin_take(twin *t, uint32_t group)
{
    uint32_t id = twin_take_as_is(t, group);
    t->totals.pages_taken++;
    twin_count_used(t);
    if (t->config.zero_fill)
        twin_queue_move(t, (kvk_move){KVK_MOVE_ZERO, group, id, id, t->config.page_tokens});
    return id;
}

bool twin_is_in_flight(const twin *t, uint64_t last_batch)
{
    for (uint32_t i = 0; i < TWIN_BATCHES; i++) {
        if (t->batches[i].handle && t->batches[i].number <= last_batch)
            return true;
    }
    return false;
}

/* A page that nobody refers to or reads. One from n_pages on is gone unless it is pinned. */
static void settle(twin *t, uint32_t id)
{
    twin_page *page = &t->pages[id];
    page->state = page->published_at ? KVK_PAGE_CACHED : KVK_PAGE_FREE;
    if (page->published_at)
        push(&t->cached, id);
    else if (id < t->config.n_pages)
        push(&t->freed, id);
}

void twin_forget(twin *t, uint32_t id)
{
    twin_page *page = &t->pages[id];
    bool last = true;
    for (uint32_t i = 0; i < t->n_touched; i++) {
        const twin_page *p = &t->pages[i];
        if (i != id && p->published_at && p->group == page->group && p->content.n_bytes == page->content.n_bytes &&
            twin_starts_with(&p->content, &page->content))
            last = false;
    }
    if (last)
        twin_tell(t, KVK_EVENT_REMOVED, id);
    page->published_at = 0;
    if (page->state == KVK_PAGE_CACHED && page->refs == 0) {
        remove_page(&t->cached, id);
        settle(t, id);
    }
}

void twin_drop_gone(twin *t)
{
    for (uint32_t i = 0; i < t->freed.n;) {
        if (t->freed.ids[i] >= t->config.n_pages)
            remove_at(&t->freed, i);
        else
            i++;
    }
    for (uint32_t id = t->config.n_pages; id < t->n_touched; id++) {
        if (t->pages[id].state == KVK_PAGE_CACHED && t->pages[id].pins == 0)
            twin_forget(t, id);
    }
}

void twin_bring_back(twin *t, uint32_t was)
{
    uint32_t end = t->config.n_pages < t->n_touched ? t->config.n_pages : t->n_touched;
    for (uint32_t id = end; id-- > was;) {
        if (t->pages[id].state == KVK_PAGE_FREE)
            push(&t->freed, id);
    }
}

/* Is it another sequence's too, or may a batch in flight read it for one that has let it go? */
bool twin_is_shared(const twin *t, const twin_page *page)
{
    return page->refs > 1 || twin_is_in_flight(t, page->last_batch);
}

/* Drops one reference of a sequence whose last batch was `last_batch`. Was it the page's last one? */
bool twin_release(twin *t, uint32_t id, uint64_t last_batch)
{
    twin_page *page = &t->pages[id];
    if (last_batch > page->last_batch)
        page->last_batch = last_batch;
    if (--page->refs)
        return false;
    if (twin_is_in_flight(t, page->last_batch)) {
        page->state = KVK_PAGE_LIMBO;
        push(&t->limbo, id);
    } else {
        settle(t, id);
    }
    return true;
}

/* Lets the limbo pages go that no batch in flight may read. Returns how many. */
int twin_leave_limbo(twin *t)
{
    int gone = 0;
    for (uint32_t i = 0; i < t->limbo.n;) {
        uint32_t id = t->limbo.ids[i];
        if (twin_is_in_flight(t, t->pages[id].last_batch)) {
            i++;
            continue;
        }
        remove_at(&t->limbo, i);
        settle(t, id);
        gone++;
    }
    return gone;
}

/* One reference more to a page that can be found. */
void twin_hold(twin *t, uint32_t id)
{
    twin_page *page = &t->pages[id];
    if (page->refs++ == 0) {
        remove_page(page->state == KVK_PAGE_LIMBO ? &t->limbo : &t->cached, id);
        page->state = KVK_PAGE_USED;
    }
}

void twin_share(twin *t, uint32_t id)
{
    twin_hold(t, id);
    twin_count_used(t);
}

int twin_reset(twin *t, uint32_t *in_use)
{
    *in_use = count_state(t, KVK_PAGE_USED) + t->limbo.n + twin_host_used(t);
    for (uint32_t i = 0; i < t->cached.n; i++)
        *in_use += t->pages[t->cached.ids[i]].pins > 0;
    if (*in_use)
        return KVK_EBUSY;
    bool listening = t->listening;
    int n = (int)t->cached.n;
    t->listening = false;
    for (uint32_t i = 0; i < t->n_touched; i++) {
        if (t->pages[i].state == KVK_PAGE_CACHED)
            twin_forget(t, i);
    }
    t->listening = listening;
    twin_tell(t, KVK_EVENT_CLEARED, 0);
    return n;
}

void twin_set_length(twin *t, twin_seq *s, uint32_t n_tokens)
{
    uint32_t was = s->n_tokens, page_tokens = t->config.page_tokens;
    s->n_tokens = n_tokens;
    for (uint32_t i = 0; i < s->end; i++) {
        uint32_t before = i * page_tokens, end = before + page_tokens;
        uint32_t now = n_tokens < before ? before : n_tokens < end ? n_tokens : end;
        for (uint32_t g = 0; g < t->config.n_groups; g++) {
            twin_page *page = &t->pages[s->table[g][i]];
            bool reached = (was > before || n_tokens > before) && (was < end || n_tokens < end);
            if (twin_holds(s, g, i) && reached && page->refs == 1 && !page->published_at)
                page->n_tokens = now - before;
        }
    }
}

uint32_t twin_filled(const twin *t, uint32_t id)
{
    return t->pages[id].state == KVK_PAGE_FREE ? 0 : t->pages[id].n_tokens;
}
