#include "twin.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

twin *twin_open(const twin_setup *setup)
{
    twin *t = calloc(1, sizeof *t);
    assert(t);
    t->setup = *setup;
    t->n_pages = setup->max_tokens / setup->page_tokens + 2;
    assert(t->n_pages <= TWIN_PAGES && setup->n_groups <= TWIN_GROUPS);
    return t;
}

static twin_seen *new_seen(twin *t)
{
    size_t n = (size_t)t->setup.n_groups * t->n_pages;
    t->seen = realloc(t->seen, (t->n_seen + 1) * sizeof *t->seen);
    assert(t->seen);
    twin_seen *o = &t->seen[t->n_seen++];
    *o = (twin_seen){
        .mean = calloc(n, sizeof *o->mean), .peak = calloc(n, sizeof *o->peak), .near = calloc(n, sizeof *o->near)};
    assert(o->mean && o->peak && o->near);
    return o;
}

twin *twin_copy(const twin *t)
{
    size_t n = (size_t)t->setup.n_groups * t->n_pages;
    twin *copy = twin_open(&t->setup);
    *copy = *t;
    copy->seen = NULL;
    copy->n_seen = 0;
    for (uint32_t i = 0; i < t->n_seen; i++) {
        twin_seen *o = new_seen(copy), fresh = *o;
        *o = t->seen[i];
        o->mean = memcpy(fresh.mean, t->seen[i].mean, n * sizeof *fresh.mean);
        o->peak = memcpy(fresh.peak, t->seen[i].peak, n * sizeof *fresh.peak);
        o->near = memcpy(fresh.near, t->seen[i].near, n * sizeof *fresh.near);
    }
    return copy;
}

void twin_close(twin *t)
{
    for (uint32_t i = 0; i < t->n_seen; i++) {
        free(t->seen[i].mean);
        free(t->seen[i].peak);
        free(t->seen[i].near);
    }
    free(t->seen);
    free(t);
}

double twin_knob(const twin *t, const char *name, double standard)
{
    size_t n = strlen(name);
    for (const char *at = strchr(t->setup.policy, ':'); at; at = strchr(at + 1, ':'))
        if (strncmp(at + 1, name, n) == 0 && at[n + 1] == '=')
            return strtod(at + n + 2, NULL);
    return standard;
}

int twin_is(const twin *t, const char *policy)
{
    size_t n = strlen(policy);
    return strncmp(t->setup.policy, policy, n) == 0 && strchr(":", t->setup.policy[n]);
}

/* ---- Budget and protection ----------------------------------------------------------------------------------- */

static double own_budget(const twin *t)
{
    if (twin_is(t, "window"))
        return twin_knob(t, "tokens", 1024);
    if (twin_is(t, "streaming"))
        return twin_knob(t, "sinks", 4) + twin_knob(t, "recent", 1020);
    if (twin_is(t, "h2o"))
        return twin_knob(t, "sinks", 4) + twin_knob(t, "heavy", 512) + twin_knob(t, "recent", 512);
    return 0;
}

uint32_t twin_budget(const twin *t, uint32_t group)
{
    const twin_setup *s = &t->setup;
    if (s->budgets)
        return s->budgets[group];
    double budget = s->budget ? s->budget : own_budget(t);
    double along = s->n_groups > 1 ? 1 - 2.0 * group / (s->n_groups - 1) : 0; /* 1 in the first group, -1 in the last */
    return (uint32_t)(budget * (1 + s->slope * along));
}

static uint32_t pages_of(const twin *t, double tokens)
{
    return ((uint32_t)tokens + t->setup.page_tokens - 1) / t->setup.page_tokens;
}

static uint32_t sink_pages(const twin *t)
{
    if (twin_is(t, "streaming") || twin_is(t, "h2o") || twin_is(t, "random") || twin_is(t, "keep"))
        return pages_of(t, twin_knob(t, "sinks", 4));
    if (twin_is(t, "window") || twin_is(t, "tova"))
        return 0;
    return pages_of(t, twin_knob(t, "sinks", 0));
}

static double wanted_recent(const twin *t, uint32_t budget)
{
    if (twin_is(t, "h2o"))
        return twin_knob(t, "exit", 0) > 0 ? 0 : twin_knob(t, "recent", 512);
    if (twin_is(t, "scissorhands"))
        return twin_knob(t, "recent", 10);
    if (twin_is(t, "snapkv"))
        return twin_knob(t, "window", 32);
    if (twin_is(t, "random"))
        return twin_knob(t, "recent", 512);
    if (twin_is(t, "keep"))
        return budget ? twin_knob(t, "recent_share", 0.5) * budget : 512;
    return 0;
}

/* Never more than half of the budget; `keep` counts whole pages that fit, the others those that are touched. */
static uint32_t recent_pages(const twin *t, uint32_t budget)
{
    uint32_t pt = t->setup.page_tokens, half = budget / 2 / pt;
    double recent = wanted_recent(t, budget);
    uint32_t pages = twin_is(t, "keep") ? (uint32_t)(recent / pt) : pages_of(t, recent);
    return budget && pages > half ? half : pages;
}

/* ---- Tables -------------------------------------------------------------------------------------------------- */

uint32_t twin_tokens_in(const twin *t, uint32_t page, uint32_t n_tokens)
{
    uint32_t begin = page * t->setup.page_tokens, left = n_tokens > begin ? n_tokens - begin : 0;
    return left < t->setup.page_tokens ? left : t->setup.page_tokens;
}

void twin_extend(twin *t, uint32_t end)
{
    for (uint32_t g = 0; g < t->setup.n_groups; g++)
        for (uint32_t p = pages_of(t, t->n_tokens); p < pages_of(t, end); p++)
            t->held[g][p] = 1;
    t->n_tokens = end;
}

void twin_cut(twin *t, uint32_t n_tokens)
{
    for (uint32_t g = 0; g < t->setup.n_groups; g++)
        for (uint32_t p = pages_of(t, n_tokens); p < t->n_pages; p++) {
            t->held[g][p] = 0;
            t->pool[g][p] = TWIN_NO_POOL;
        }
    t->n_tokens = n_tokens;
}

void twin_rank(const twin *t, uint32_t group, uint32_t n_tokens, ranking *out)
{
    uint32_t first = sink_pages(t), recent = recent_pages(t, twin_budget(t, group));
    out->n = 0;
    for (uint32_t p = 0; p < pages_of(t, n_tokens); p++) {
        if (!t->held[group][p])
            continue;
        out->number[out->n] = p;
        out->eligible[out->n] = p >= first && p + recent < n_tokens / t->setup.page_tokens && !t->pinned[p];
        out->gone[out->n++] = 0;
    }
    twin_value(t, group, out);
}

int twin_is_due(const twin *t)
{
    if (t->n_tokens % t->setup.page_tokens == 0)
        return 1;
    for (uint32_t g = 0; g < t->setup.n_groups; g++) {
        uint32_t held = 0;
        for (uint32_t p = 0; p < t->n_pages; p++)
            held += t->held[g][p];
        if (twin_budget(t, g) && held > twin_budget(t, g) / t->setup.page_tokens)
            return 1;
    }
    return 0;
}

/* ---- Whom to evict ------------------------------------------------------------------------------------------- */

/* True if page a of the table goes before page b. */
static int goes_before(const ranking *r, uint32_t a, uint32_t b)
{
    if (r->tier[a] != r->tier[b])
        return r->tier[a] < r->tier[b];
    return r->score[a] < r->score[b] || (r->score[a] <= r->score[b] && a < b);
}

/* The page to go next; r->n if none may. */
static uint32_t lowest(const ranking *r)
{
    uint32_t best = r->n;
    for (uint32_t i = 0; i < r->n; i++)
        if (r->eligible[i] && !r->gone[i] && (best == r->n || goes_before(r, i, best)))
            best = i;
    return best;
}

static void evict_lowest(ranking *r, uint32_t want)
{
    for (uint32_t i; want > 0 && (i = lowest(r)) < r->n; want--)
        r->gone[i] = 1;
}

/* How many pages may go, the lowest first, so that the rest keeps the target's share of the score. */
static uint32_t spare(const twin *t, uint32_t group, const ranking *r, uint32_t held)
{
    ranking left = *r;
    uint32_t n = 0, floor = pages_of(t, t->setup.floor);
    double lost = t->lost[group], total = lost;
    for (uint32_t i = 0; i < r->n; i++)
        total += r->score[i];
    for (; held > floor + n; n++) {
        uint32_t i = lowest(&left);
        if (i == r->n || lost + r->score[i] > (1 - t->setup.target) * total)
            break;
        lost += r->score[i];
        left.gone[i] = 1;
    }
    return n;
}

static uint32_t pool_size(const twin *t, uint32_t group, const ranking *r, int pool)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n; i++)
        n += !r->gone[i] && t->pool[group][r->number[i]] == pool;
    return n;
}

/* Lowest score of a pool, then lowest position; r->n if it is empty. */
static uint32_t pool_lowest(const twin *t, uint32_t group, const ranking *r, int pool)
{
    uint32_t lowest = r->n;
    for (uint32_t i = 0; i < r->n; i++)
        if (!r->gone[i] && r->eligible[i] && t->pool[group][r->number[i]] == pool &&
            (lowest == r->n || r->score[i] < r->score[lowest]))
            lowest = i;
    return lowest;
}

static void drop(twin *t, uint32_t group, ranking *r, uint32_t i)
{
    r->gone[i] = 1;
    t->pool[group][r->number[i]] = TWIN_NO_POOL;
}

/* A page enters the recent pool; whoever is one too many leaves it, into the heavy pool if it is worth it. */
static void enter(twin *t, uint32_t group, ranking *r, uint32_t page)
{
    uint32_t pt = t->setup.page_tokens, recent = (uint32_t)twin_knob(t, "recent", 512) / pt;
    uint32_t heavy = twin_budget(t, group) / pt - recent - sink_pages(t) - 1;
    t->pool[group][r->number[page]] = TWIN_RECENT;
    if (pool_size(t, group, r, TWIN_RECENT) <= recent)
        return;
    uint32_t out = pool_lowest(t, group, r, TWIN_RECENT);
    if (out == r->n)
        return;
    if (r->score[out] <= twin_knob(t, "threshold", 0)) {
        drop(t, group, r, out);
        return;
    }
    t->pool[group][r->number[out]] = TWIN_HEAVY;
    out = pool_lowest(t, group, r, TWIN_HEAVY);
    if (pool_size(t, group, r, TWIN_HEAVY) > heavy && out < r->n)
        drop(t, group, r, out);
}

static void run_pools(twin *t, uint32_t group, ranking *r)
{
    for (uint32_t i = 0; i < r->n; i++) {
        uint32_t page = r->number[i];
        if (r->eligible[i] && t->pool[group][page] == TWIN_NO_POOL && !r->gone[i])
            enter(t, group, r, i);
    }
}

static void evict_from_pools(twin *t, uint32_t group, ranking *r, uint32_t want)
{
    for (uint32_t i = 0; i < r->n && want > 0; i++)
        want -= r->gone[i];
    for (; want > 0; want--) {
        uint32_t i = pool_lowest(t, group, r, TWIN_HEAVY);
        if (i == r->n)
            i = pool_lowest(t, group, r, TWIN_RECENT);
        if (i == r->n)
            return;
        drop(t, group, r, i);
    }
}

void twin_choose(twin *t, uint32_t group, uint32_t n_tokens, ranking *r)
{
    uint32_t pt = t->setup.page_tokens, limit = twin_budget(t, group) / pt, border = n_tokens % pt == 0;
    uint32_t held = r->n + border, pools = twin_is(t, "h2o") && twin_knob(t, "exit", 0) > 0;
    uint32_t want = limit && held > limit ? held - limit + t->setup.slack : 0;
    if (twin_is(t, "full"))
        return;
    if (t->setup.target > 0 && border && spare(t, group, r, held) > want)
        want = spare(t, group, r, held);
    if (twin_is(t, "scissorhands") && want > 0 && held - (limit - limit / 2) > want)
        want = held - (limit - limit / 2);
    if (pools && (want > 0 || (border && n_tokens > 0 && t->asked != n_tokens))) {
        run_pools(t, group, r);
        evict_from_pools(t, group, r, want);
    } else {
        evict_lowest(r, want);
    }
}

void twin_apply(twin *t, uint32_t group, const ranking *r)
{
    for (uint32_t i = 0; i < r->n; i++) {
        t->evicted += r->gone[i];
        t->lost[group] += r->gone[i] ? r->score[i] : 0;
        if (r->gone[i])
            t->held[group][r->number[i]] = 0;
    }
}

void twin_trim(twin *t, uint32_t n_tokens)
{
    for (uint32_t g = 0; g < t->setup.n_groups; g++) {
        ranking r;
        twin_rank(t, g, n_tokens, &r);
        twin_choose(t, g, n_tokens, &r);
        twin_apply(t, g, &r);
    }
    t->asked = n_tokens;
}

/* ---- The history --------------------------------------------------------------------------------------------- */

static void observe_page(const twin *t, const masses *m, twin_seen *o, uint32_t group, uint32_t page)
{
    uint32_t at = group * t->n_pages + page, heads = t->setup.near_layers * t->setup.near_heads;
    for (uint32_t q = o->first; q < o->first + o->n; q++) {
        double peak = mass_peak(m, group, q, page);
        o->mean[at] += mass_mean(m, group, q, page);
        o->peak[at] = peak > o->peak[at] ? peak : o->peak[at];
        for (uint32_t h = 0; h < heads; h++) {
            double near = mass_near(m, group * heads + h, q, page);
            o->near[at][h] = near > o->near[at][h] ? near : o->near[at][h];
        }
    }
}

void twin_observe(twin *t, const masses *m, uint32_t first, uint32_t n)
{
    twin_seen *o = new_seen(t);
    o->first = first;
    o->n = n;
    o->n_tokens = first + n;
    for (uint32_t g = 0; g < t->setup.n_groups; g++) {
        t->lost[g] *= pow(0.5, n / 128.0);
        for (uint32_t p = 0; p < pages_of(t, o->n_tokens); p++) {
            if (!t->held[g][p])
                continue;
            observe_page(t, m, o, g, p);
            o->tokens_held[g] += twin_tokens_in(t, p, o->n_tokens);
        }
    }
}
