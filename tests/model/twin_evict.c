/* twin_evict.c: which pages a sequence gives up by its own budget, and what follows when it loses some. */
#include "twin_view.h"

#include <string.h>

/* ---- Losing pages ---- */

static void forget_numbers(twin_seq *s, uint32_t entry)
{
    for (uint32_t g = 0; g < TWIN_GROUPS; g++) {
        for (uint32_t k = 0; k < TWIN_NUMBERS; k++)
            s->eviction.numbers[g][k][entry] = 0;
    }
}

void twin_forget_entry(twin_seq *s, uint32_t entry)
{
    forget_numbers(s, entry);
    for (uint32_t g = 0; g < TWIN_GROUPS; g++)
        s->lost[g][entry] = false;
}

static bool lacks_a_page(const twin *t, const twin_seq *s)
{
    for (uint32_t g = 0; g < t->config.n_groups; g++) {
        for (uint32_t i = s->first[g]; i < s->end; i++) {
            if (s->lost[g][i])
                return true;
        }
    }
    return false;
}

/* What was computed after a loss may be gone, and what was lost too. */
void twin_shorten(twin *t, twin_seq *s, uint32_t n_tokens)
{
    uint32_t was = s->n_tokens;
    twin_set_length(t, s, n_tokens);
    if (n_tokens < was && s->first_taint != UINT32_MAX && n_tokens <= s->first_taint)
        s->first_taint = lacks_a_page(t, s) ? n_tokens : UINT32_MAX;
    if (n_tokens < s->eviction.asked_at)
        s->eviction.asked_at = 0;
    for (uint32_t i = twin_pages_for(t, n_tokens); i < s->end; i++)
        forget_numbers(s, i);
}

bool twin_frees(const twin *t, const twin_seq *s, uint32_t group, uint32_t entry)
{
    uint32_t id = s->table[group][entry];
    return id < t->config.n_pages && !twin_is_shared(t, &t->pages[id]) && !twin_is_in_flight(t, s->last_batch);
}

static void tell_evicted(twin *t, const twin_seq *s, uint32_t group, uint32_t entry)
{
    if (t->listening)
        t->events[t->n_events++] = (twin_event){.kind = KVK_EVENT_EVICTED,
                                                .group = group,
                                                .page = s->table[group][entry],
                                                .position = entry * t->config.page_tokens,
                                                .seq = s->handle};
}

/* Notes the scores of what is to go: in all, and as shares of the table's. */
static void note_scores(twin *t, twin_seq *s, uint32_t group, twin_moment at, const bool goes[TWIN_ENTRIES])
{
    twin_view v;
    if (!s->eviction.policy || !s->eviction.policy->score_is_mass)
        return;
    twin_look(t, s, group, at, &v);
    double sum = twin_rank(s, &v), gone = 0;
    for (uint32_t i = 0; i < v.view.n; i++)
        gone += goes[v.index[i]] ? (double)v.score[i] : 0;
    s->eviction.lost[group] += gone;
    s->figures.share += sum > 0 ? gone / sum : 0;
}

int twin_drop(twin *t, twin_seq *s, uint32_t group, twin_moment at, const bool goes[TWIN_ENTRIES])
{
    int gone = 0;
    note_scores(t, s, group, at, goes);
    for (uint32_t i = 0; i < s->end; i++) {
        if (!goes[i])
            continue;
        if (s->first_taint == UINT32_MAX)
            s->first_taint = s->n_tokens;
        tell_evicted(t, s, group, i);
        gone += twin_let_go(t, s, group, i);
        s->lost[group][i] = true;
        s->figures.pages++;
        t->totals.pages_evicted++;
        t->totals.tokens_evicted += t->config.page_tokens;
    }
    return gone;
}

/* May a page be dropped by its position? */
static int check_entry(const twin *t, const twin_seq *s, uint32_t group, uint32_t position, uint32_t settled)
{
    uint32_t P = t->config.page_tokens, i = position / P;
    if (position % P || !twin_holds(s, group, i) || position >= s->n_tokens)
        return KVK_EINVAL;
    return position + P > settled || t->pages[s->table[group][i]].pins ? KVK_EBUSY : 0;
}

int twin_evict(twin *t, kvk_seq handle, uint32_t group, const uint32_t *positions, uint32_t n)
{
    twin_seq *s;
    bool goes[TWIN_ENTRIES] = {false};
    int rc = twin_use(t, handle, &s);
    twin_moment at = rc < 0 ? (twin_moment){0} : twin_now(t, s);
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        rc = i && positions[i] <= positions[i - 1] ? KVK_EINVAL : check_entry(t, s, group, positions[i], at.settled);
        if (rc == 0)
            goes[positions[i] / t->config.page_tokens] = true;
    }
    return rc < 0 ? rc : twin_drop(t, s, group, at, goes);
}

/* ---- Trimming ---- */

/* Asks the policy for `want` pages at least; marks what goes. */
static void choose(twin_seq *s, twin_view *v, uint32_t want, bool goes[TWIN_ENTRIES])
{
    uint32_t answer[TWIN_ENTRIES], found = 0, n = 0;
    const kvk_policy *policy = s->eviction.policy;
    if (policy->choose)
        n = policy->choose(&v->view, want, answer);
    twin_keep_numbers(s, v);
    for (uint32_t i = 0; i < n && i < v->view.n; i++) {
        if (answer[i] < v->view.n && v->eligible[answer[i]] && !goes[v->index[answer[i]]]) {
            goes[v->index[answer[i]]] = true;
            found++;
        }
    }
    twin_rank(s, v);
    for (uint32_t i; found < want && (i = twin_lowest(v, goes)) < v->view.n; found++)
        goes[v->index[i]] = true;
}

/* Pages that may go, lowest first, so that the rest keeps the target's share of the mass and as many as the floor
 * says. */
static uint32_t count_spare(const twin *t, twin_seq *s, uint32_t group, twin_moment at)
{
    twin_view v;
    bool goes[TWIN_ENTRIES] = {false};
    twin_look(t, s, group, at, &v);
    double sum = twin_rank(s, &v), lost = s->eviction.lost[group];
    double allowed = (1 - s->eviction.target) * (sum + lost);
    if (sum + lost == 0)
        return 0;
    uint32_t held = v.view.n + (at.n_tokens % t->config.page_tokens == 0), n = 0;
    for (uint32_t i; held - n > twin_pages_for(t, s->eviction.floor) && (i = twin_lowest(&v, goes)) < v.view.n; n++) {
        lost += (double)v.score[i];
        if (lost > allowed)
            break;
        goes[v.index[i]] = true;
    }
    return n;
}

/* Pages that the table has to lose for its budget. */
static uint32_t count_over(const twin *t, const twin_seq *s, uint32_t group, twin_moment at)
{
    uint32_t limit = s->eviction.budget[group] / t->config.page_tokens;
    uint32_t held = twin_count_held(s, group, twin_pages_for(t, at.n_tokens));
    held += at.n_tokens % t->config.page_tokens == 0;
    return s->eviction.budget[group] && held > limit ? held - limit + s->eviction.slack : 0;
}

static void trim_table(const twin *t, twin_seq *s, uint32_t group, twin_moment at, bool asked)
{
    twin_view v;
    bool goes[TWIN_ENTRIES] = {false};
    uint32_t want = count_over(t, s, group, at), spare = 0;
    if (s->eviction.target > 0 && at.n_tokens % t->config.page_tokens == 0) /* once per page */
        spare = count_spare(t, s, group, at);
    want = spare > want ? spare : want;
    twin_look(t, s, group, at, &v);
    if (want || (asked && s->eviction.budget[group]))
        choose(s, &v, want, goes);
    for (uint32_t i = 0; i < s->end; i++)
        s->lost[group][i] |= goes[i];
}

void twin_trim(const twin *t, twin_seq *copy, twin_moment at)
{
    twin_eviction *e = &copy->eviction;
    if (!e->policy || !e->policy->rank)
        return;
    bool border = at.n_tokens && at.n_tokens % t->config.page_tokens == 0;
    bool asked = border && (twin_needs(t, copy) & KVK_NEED_ASK) && e->asked_at != at.n_tokens;
    for (uint32_t g = 0; g < t->config.n_groups; g++)
        trim_table(t, copy, g, at, asked);
    if (asked)
        e->asked_at = at.n_tokens;
}

void twin_apply_trim(twin *t, twin_seq *s, const twin_seq *copy, twin_moment at)
{
    bool goes[TWIN_GROUPS][TWIN_ENTRIES];
    memcpy(s->eviction.numbers, copy->eviction.numbers, sizeof s->eviction.numbers);
    memcpy(s->eviction.shared, copy->eviction.shared, sizeof s->eviction.shared);
    s->eviction.asked_at = copy->eviction.asked_at;
    for (uint32_t g = 0; g < t->config.n_groups; g++) {
        for (uint32_t i = 0; i < s->end; i++)
            goes[g][i] = copy->lost[g][i] && !s->lost[g][i];
        twin_drop(t, s, g, at, goes[g]);
    }
}
