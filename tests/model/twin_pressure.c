/* twin_pressure.c: preempting, pins, retention and a pool that changes its size. */
#include <string.h>

#include "twin_view.h"

/* ---- Preempting ---- */

void twin_drop_host(twin *t, twin_seq *s)
{
    for (uint32_t g = 0; g < t->config.n_groups; g++) {
        for (uint32_t i = s->end; i > s->first[g]; i--) {
            if (twin_holds(s, g, i - 1))
                t->host_given.ids[t->host_given.n++] = s->table[g][i - 1];
        }
        s->first[g] = 0;
    }
    for (; s->end; s->end--)
        twin_forget_entry(s, s->end - 1);
    s->swapped = false;
}

static int recompute(twin *t, twin_seq *s)
{
    int gone = s->swapped ? 0 : twin_give_back(t, s, 0);
    if (s->swapped)
        twin_drop_host(t, s);
    twin_leave_alone(t, s->handle);
    s->n_tokens = s->n_committed = 0;
    s->text.n_bytes = 0;
    s->mute = false;
    s->first_taint = UINT32_MAX;
    twin_near_cut(t, s, 0);
    s->eviction.asked_at = 0;
    memset(s->eviction.lost, 0, sizeof s->eviction.lost);
    return gone;
}

static uint32_t take_host_page(twin *t)
{
    return t->host_given.n ? t->host_given.ids[--t->host_given.n] : t->n_host_touched++;
}

/* Pages reserved ahead are given back, not moved. */
static int swap_out(twin *t, twin_seq *s)
{
    uint32_t keep = twin_pages_for(t, s->n_tokens), n = twin_held(t, s) - (s->end - keep) * t->config.n_groups;
    if (s->n_in_flight)
        return KVK_EBUSY;
    if (n > t->config.host_pages - t->n_host_touched + t->host_given.n)
        return KVK_ENOPAGE;
    int gone = twin_give_back(t, s, keep);
    for (uint32_t i = keep; i > 0; i--) {
        for (uint32_t g = 0; g < t->config.n_groups; g++) {
            if (!twin_holds(s, g, i - 1))
                continue;
            uint32_t host = take_host_page(t), page = s->table[g][i - 1];
            twin_queue_move(t, (kvk_move){KVK_MOVE_SWAP_OUT, g, page, host, t->config.page_tokens});
            gone += twin_let_go(t, s, g, i - 1);
            s->table[g][i - 1] = host;
        }
    }
    s->swapped = true;
    t->totals.swapped_out_pages += n;
    return gone;
}

int twin_preempt(twin *t, kvk_seq handle, kvk_preempt_how how)
{
    twin_seq *s = twin_find(t, handle);
    if (!s)
        return KVK_ESTALE;
    if (how == KVK_PREEMPT_SWAP && s->swapped)
        return KVK_ESTATE;
    int rc = how == KVK_PREEMPT_SWAP ? swap_out(t, s) : recompute(t, s);
    t->totals.preemptions += rc >= 0;
    return rc;
}

static void bring_in(twin *t, twin_seq *s, uint32_t group, uint32_t entry)
{
    uint32_t host = s->table[group][entry], page = twin_take_as_is(t, group), P = t->config.page_tokens;
    uint32_t filled = s->n_tokens - entry * P;
    t->pages[page].n_tokens = filled < P ? filled : P;
    s->table[group][entry] = page;
    twin_queue_move(t, (kvk_move){KVK_MOVE_SWAP_IN, group, host, page, P});
    t->host_given.ids[t->host_given.n++] = host;
}

/* Last page first, so that by age a leaf stands before what it hangs on. */
static void name_again(twin *t, twin_seq *s)
{
    for (uint32_t i = s->n_committed / t->config.page_tokens; i > 0; i--) {
        for (uint32_t g = 0; g < t->config.n_groups; g++) {
            if (twin_holds(s, g, i - 1))
                twin_name_page(t, s, g, i - 1);
        }
    }
}

/* Takes from others what is missing. Returns a kvk_can. */
static int press(twin *t, const twin_seq *s, uint32_t need)
{
    static twin_taken taken;
    uint32_t missing = need - twin_available(t);
    if (twin_press(t, s, s, missing, &taken) < missing)
        return KVK_LATER;
    twin_apply_press(t, &taken);
    return KVK_OK;
}

int twin_swap_in(twin *t, kvk_seq handle, kvk_effort effort)
{
    twin_seq *s = twin_find(t, handle);
    if (!s)
        return KVK_ESTALE;
    if (!s->swapped)
        return KVK_ESTATE;
    uint32_t need = twin_held(t, s);
    int can = twin_judge(t, need, 0, need, effort);
    if (can == KVK_LATER && effort == KVK_EVICT)
        can = press(t, s, need);
    if (can != KVK_OK)
        return can == KVK_NEVER ? KVK_ENEVER : KVK_ENOPAGE;
    for (uint32_t g = 0; g < t->config.n_groups; g++) {
        for (uint32_t i = s->first[g]; i < s->end; i++) {
            if (twin_holds(s, g, i))
                bring_in(t, s, g, i);
        }
    }
    s->swapped = false;
    if (!s->mute && t->config.content != KVK_CONTENT_NONE)
        name_again(t, s);
    t->totals.pages_taken += need;
    t->totals.swapped_in_pages += need;
    twin_count_used(t);
    return (int)need;
}

int twin_victim(const twin *t, kvk_seq *out)
{
    const twin_seq *best = NULL;
    for (uint32_t i = 0; i < TWIN_SEQS; i++) {
        const twin_seq *s = &t->seqs[i];
        if (!s->handle || s->swapped || s->n_in_flight || !twin_held(t, s))
            continue;
        if (!best || s->priority < best->priority || (s->priority == best->priority && s->number > best->number))
            best = s;
    }
    if (best)
        *out = best->handle;
    return best != NULL;
}

/* ---- Pins and retention ---- */

int twin_change_pins(twin *t, kvk_seq handle, uint32_t n_tokens, int by)
{
    twin_seq *s;
    int rc = twin_use(t, handle, &s), n = 0;
    if (rc < 0)
        return rc;
    if (n_tokens > s->n_committed)
        return KVK_EINVAL;
    for (uint32_t g = 0; g < t->config.n_groups; g++) {
        for (uint32_t i = s->first[g]; i < n_tokens / t->config.page_tokens; i++) {
            const twin_page *page = &t->pages[s->table[g][i]];
            if (!twin_holds(s, g, i))
                continue;
            n++;
            if (by < 0 && page->pins == 0)
                return KVK_EINVAL;
            if (!page->published_at)
                return KVK_ESTATE;
        }
    }
    for (uint32_t g = 0; g < t->config.n_groups; g++) {
        for (uint32_t i = s->first[g]; i < n_tokens / t->config.page_tokens; i++) {
            uint32_t id = s->table[g][i];
            if (!twin_holds(s, g, i))
                continue;
            t->pages[id].pins += (uint32_t)by;
            if (id >= t->config.n_pages && t->pages[id].pins == 0)
                twin_forget(t, id);
        }
    }
    return n;
}

int twin_retain(twin *t, kvk_seq handle, const kvk_retention *ranges, uint32_t n)
{
    twin_seq *s;
    if (n > KVK_MAX_RETENTIONS)
        return KVK_EINVAL;
    for (uint32_t i = 0; i < n; i++) {
        if (ranges[i].begin >= ranges[i].end || ranges[i].priority > 100)
            return KVK_EINVAL;
    }
    int rc = twin_use(t, handle, &s);
    if (rc < 0)
        return rc;
    s->n_ranges = n;
    if (n)
        memcpy(s->ranges, ranges, n * sizeof *ranges);
    return 0;
}

/* The page whose deadline passes first, or TWIN_PAGES. */
static uint32_t next_deadline(const twin *t)
{
    uint32_t best = TWIN_PAGES;
    for (uint32_t i = 0; i < TWIN_PAGES; i++) {
        uint64_t deadline = t->pages[i].deadline;
        if (deadline != TWIN_NEVER && (best == TWIN_PAGES || deadline < t->pages[best].deadline))
            best = i;
    }
    return best;
}

int twin_set_time(twin *t, uint64_t now)
{
    if (now < t->now)
        return KVK_EINVAL;
    t->now = now;
    for (uint32_t id = next_deadline(t); id < TWIN_PAGES && t->pages[id].deadline <= now; id = next_deadline(t)) {
        t->pages[id].deadline = TWIN_NEVER;
        twin_set_level(t, id, KVK_RETAIN_DEFAULT);
    }
    return 0;
}

/* ---- Resizing ---- */

/* Does a sequence in a batch in flight hold the page? */
static bool is_read(const twin *t, uint32_t page)
{
    for (uint32_t k = 0; k < TWIN_SEQS; k++) {
        const twin_seq *s = &t->seqs[k];
        for (uint32_t g = 0; s->handle && s->n_in_flight && g < t->config.n_groups; g++) {
            for (uint32_t i = s->first[g]; i < s->end; i++) {
                if (s->table[g][i] == page && twin_holds(s, g, i))
                    return true;
            }
        }
    }
    return false;
}

/* All tables that name `old` name `page`. */
static void rename(twin *t, uint32_t old, uint32_t page)
{
    for (uint32_t k = 0; k < TWIN_SEQS; k++) {
        twin_seq *s = &t->seqs[k];
        for (uint32_t g = 0; s->handle && !s->swapped && g < t->config.n_groups; g++) {
            for (uint32_t i = s->first[g]; i < s->end; i++) {
                if (s->table[g][i] == old && twin_holds(s, g, i))
                    s->table[g][i] = page;
            }
        }
    }
}

static void replace(twin *t, uint32_t old, uint32_t group)
{
    uint32_t page = twin_take_as_is(t, group);
    twin_page *from = &t->pages[old], *to = &t->pages[page];
    twin_queue_move(t, (kvk_move){KVK_MOVE_COPY, group, old, page, t->config.page_tokens});
    if (from->published_at) {
        twin_show(t, page, from);
        to->found_at = from->found_at;
        to->uses = from->uses;
        to->in_main = from->in_main;
        to->queued_at = from->queued_at;
        to->level = from->level;
        memcpy(to->near, from->near, sizeof to->near);
        to->is_seen = from->is_seen;
        twin_forget(t, old);
    }
    to->refs = from->refs;
    to->n_tokens = from->n_tokens;
    to->pins = from->pins;
    from->pins = 0;
    to->deadline = from->deadline;
    from->deadline = TWIN_NEVER;
    from->refs = 1;
    rename(t, old, page);
    twin_release(t, old, 0);
}

/* Replaces what a sequence holds beyond the end of the pool, as far as there are other pages. */
static void move_pages(twin *t, twin_seq *s)
{
    for (uint32_t g = 0; g < t->config.n_groups; g++) {
        for (uint32_t i = s->first[g]; i < s->end; i++) {
            uint32_t page = s->table[g][i];
            if (twin_holds(s, g, i) && page >= t->config.n_pages && !is_read(t, page) && twin_available(t) > 0)
                replace(t, page, g);
        }
    }
}

static void move_all(twin *t)
{
    for (uint32_t slot = 0; slot < t->n_slots; slot++) {
        for (uint32_t k = 0; k < TWIN_SEQS; k++) {
            if (t->seqs[k].handle && t->seqs[k].slot == slot && !t->seqs[k].swapped)
                move_pages(t, &t->seqs[k]);
        }
    }
    twin_count_used(t);
}

int twin_resize(twin *t, uint32_t n_pages, bool move)
{
    uint32_t was = t->config.n_pages;
    if (n_pages < 1 || n_pages > KVK_MAX_PAGES)
        return KVK_EINVAL;
    t->config.n_pages = n_pages;
    if (t->config.watermark > n_pages)
        t->config.watermark = n_pages;
    if (n_pages != was)
        t->n_gone = 0;
    twin_drop_gone(t);
    twin_bring_back(t, was);
    if (move)
        move_all(t);
    for (uint32_t id = n_pages; id < t->n_touched; id++) {
        if (t->pages[id].published_at && !t->pages[id].pins)
            twin_forget(t, id);
    }
    return (int)twin_draining(t);
}
