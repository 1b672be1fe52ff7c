/* world_bounds.c: what must hold of every sequence with a budget, whatever the twin says. */
#include "world.h"

/* Pages that so many tokens take. */
static uint32_t pages_for(const world *w, uint32_t n_tokens)
{
    return twin_pages_for(&w->twin, n_tokens);
}

static world_bound *bound_of(world *w, const twin_seq *s)
{
    return &w->bounds[s - w->twin.seqs];
}

void world_unbind(world *w, kvk_seq handle)
{
    for (uint32_t i = 0; i < TWIN_SEQS; i++) {
        if (w->bounds[i].seq == handle)
            w->bounds[i].seq = 0;
    }
}

static bool may_all_go(const world *w, const twin_seq *s, uint32_t group)
{
    for (uint32_t i = 0; i < s->end; i++) {
        if (twin_holds(s, group, i) && w->twin.pages[s->table[group][i]].pins)
            return false;
    }
    return s->n_in_flight == 0;
}

/* A table and the page of the next token are within the budget, or nothing more of it may go; and what is pinned or not
 * computed yet is all that can keep it from that. */
static void hold_to_budget(world *w, const twin_seq *s, uint32_t group)
{
    kvk_page_score scores[TWIN_ENTRIES];
    uint32_t n_eligible = 0, limit = s->eviction.budget[group] / w->twin.config.page_tokens;
    int n = kvk_seq_scores(w->cache, s->handle, group, scores, TWIN_ENTRIES);
    for (int i = 0; i < n; i++)
        n_eligible += scores[i].eligible;
    uint32_t held = (uint32_t)n + (s->n_tokens % w->twin.config.page_tokens == 0);
    if (s->eviction.budget[group] == 0 || !s->eviction.policy->rank || held <= limit)
        return;
    world_expect(w, "pages that could go from a table over its budget", 0, n_eligible);
    world_expect(w, "a table over its budget has pages that must stay", false, may_all_go(w, s, group));
}

void world_bind(world *w, kvk_seq handle)
{
    const twin_seq *s = twin_find(&w->twin, handle);
    if (!s || !s->eviction.policy)
        return;
    world_bound *bound = bound_of(w, s);
    *bound = (world_bound){.seq = handle, .n_tokens = s->n_tokens};
    for (uint32_t g = 0; g < w->twin.config.n_groups; g++) {
        hold_to_budget(w, s, g);
        bound->held[g] = kvk_seq_scores(w->cache, handle, g, NULL, 0);
    }
}

/* Since the last reservation a table grew by the pages of the batches since then at most. */
void world_check_bound(world *w, const twin_seq *s)
{
    const world_bound *bound = bound_of(w, s);
    if (bound->seq != s->handle || s->swapped)
        return;
    uint32_t now = pages_for(w, s->n_tokens), then = pages_for(w, bound->n_tokens);
    for (uint32_t g = 0; g < w->twin.config.n_groups; g++) {
        int most = bound->held[g] + (int)(now > then ? now - then : 0);
        world_expect(w, "a table grew by no more than its batches", true,
                     kvk_seq_scores(w->cache, s->handle, g, NULL, 0) <= most);
    }
}

/* Is what goes out of a policy's reach, pinned, or not computed yet? The twin has everything as it was before. */
void world_check_evicted(world *w, const kvk_event *event)
{
    const twin_seq *s = twin_find(&w->twin, event->seq);
    uint32_t P = w->twin.config.page_tokens, number = event->position / P;
    world_expect(w, "who lost a page is open", true, s != NULL);
    twin_reach reach = twin_protection(&w->twin, &s->eviction, event->group);
    world_expect(w, "what was evicted was held", true, twin_holds(s, event->group, number));
    world_expect(w, "pins of what was evicted", 0, w->twin.pages[event->page].pins);
    world_expect(w, "what was evicted was computed", true, event->position + P <= s->n_tokens);
    if (w->by_hand)
        return;
    world_expect(w, "sinks stay", true, number >= reach.sinks);
    world_expect(w, "recent pages stay", true, number + reach.recent < s->n_tokens / P);
}
