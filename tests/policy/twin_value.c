/* twin_value.c: what each policy thinks a page is worth, from the history alone. */
#include "twin.h"

#include <math.h>
#include <stdlib.h>

static double mean_of(const twin *t, uint32_t seen, uint32_t group, uint32_t page)
{
    return t->seen[seen].mean[group * t->n_pages + page];
}

/* H2O: all that it ever got. */
static double sum_of(const twin *t, uint32_t group, uint32_t page)
{
    double sum = 0;
    for (uint32_t i = 0; i < t->n_seen; i++)
        sum += mean_of(t, i, group, page);
    return sum;
}

/* More than the even share of the page's tokens: mean / n > tokens in it / tokens held. */
static int above_even(const twin *t, uint32_t i, uint32_t group, uint32_t page)
{
    const twin_seen *o = &t->seen[i];
    return mean_of(t, i, group, page) * o->tokens_held[group] > (double)twin_tokens_in(t, page, o->n_tokens) * o->n;
}

static double last_use(const twin *t, uint32_t group, uint32_t page)
{
    for (uint32_t i = t->n_seen; i-- > 0;)
        if (above_even(t, i, group, page))
            return t->seen[i].first + t->seen[i].n;
    return 0;
}

static double uses_of_late(const twin *t, uint32_t group, uint32_t page)
{
    uint32_t history = (uint32_t)twin_knob(t, "history", 400), n = 0;
    for (uint32_t i = t->n_seen > history ? t->n_seen - history : 0; i < t->n_seen; i++)
        n += (uint32_t)above_even(t, i, group, page);
    return n;
}

/* SnapKV: votes of the prompt's last queries. */
static double votes_of(const twin *t, uint32_t group, uint32_t page)
{
    double window = twin_knob(t, "window", 32), prompt = t->setup.n_prompt, sum = 0;
    for (uint32_t i = 0; i < t->n_seen; i++) {
        const twin_seen *o = &t->seen[i];
        if (prompt <= 0 || (o->first + o->n > prompt - window && o->first < prompt))
            sum += mean_of(t, i, group, page);
    }
    return sum;
}

/* The largest votes among held pages that are at most half a kernel away. */
static double pooled_votes(const twin *t, uint32_t group, uint32_t page, const ranking *r)
{
    uint32_t reach = (uint32_t)twin_knob(t, "kernel", 7) / 2 / t->setup.page_tokens;
    double most = 0;
    for (uint32_t i = 0; i < r->n; i++)
        if (r->number[i] + reach >= page && r->number[i] <= page + reach)
            most = fmax(most, votes_of(t, group, r->number[i]));
    return most;
}

static double last_mean(const twin *t, uint32_t group, uint32_t page)
{
    return t->n_seen ? mean_of(t, t->n_seen - 1, group, page) / t->seen[t->n_seen - 1].n : 0;
}

/* ---- keep ---------------------------------------------------------------------------------------------------- */

static double faded_mean(const twin *t, uint32_t group, uint32_t page)
{
    double half_life = twin_knob(t, "half_life", 128), score = 0;
    if (half_life <= 0)
        return sum_of(t, group, page);
    for (uint32_t i = 0; i < t->n_seen; i++) {
        double d = pow(0.5, t->seen[i].n / half_life);
        score = score * d + (1 - d) * mean_of(t, i, group, page) / t->seen[i].n;
    }
    return score;
}

static double largest_peak(const twin *t, uint32_t group, uint32_t page)
{
    double most = 0;
    for (uint32_t i = 0; i < t->n_seen; i++)
        most = fmax(most, t->seen[i].peak[group * t->n_pages + page]);
    return most;
}

/* Early peaks are high because few pages share the mass. */
static double damped(double damping, uint32_t page, double peak)
{
    double pages = page + 1;
    return peak * pages / (pages + damping);
}

/* The near peaks of a group, each the largest over the history, by head and page of the text. */
typedef struct near_table {
    double of[TWIN_HEADS][TWIN_PAGES];
    uint8_t known[TWIN_PAGES];
} near_table;

static void collect_near(const twin *t, uint32_t group, near_table *near)
{
    double damping = twin_knob(t, "damping", 4);
    *near = (near_table){0};
    for (uint32_t i = 0; i < t->n_seen; i++)
        for (uint32_t p = 0; p < t->n_pages; p++)
            for (uint32_t h = 0; h < t->setup.near_layers * t->setup.near_heads; h++) {
                double peak = damped(damping, p, t->seen[i].near[group * t->n_pages + p][h]);
                near->of[h][p] = fmax(near->of[h][p], peak);
                near->known[p] |= peak > 0;
            }
}

/* Over all known pages of the text but the first, dropped ones included. */
static double mean_over_known(const twin *t, const near_table *near, const double *of)
{
    double sum = 0, n = 0;
    for (uint32_t p = 1; p < t->n_pages; p++)
        if (near->known[p]) {
            sum += of[p];
            n++;
        }
    return fmax(n > 0 ? sum / n : 0, 1e-9);
}

/* Adds one layer's opinion of each page: the most that a head of it was changed, against what is usual for that head
 * and layer. */
static void add_layer(const twin *t, const near_table *near, uint32_t layer, double *importance)
{
    double largest[TWIN_PAGES] = {0};
    for (uint32_t h = layer * t->setup.near_heads; h < (layer + 1) * t->setup.near_heads; h++) {
        double usual = mean_over_known(t, near, near->of[h]);
        for (uint32_t p = 0; p < t->n_pages; p++)
            largest[p] = fmax(largest[p], near->of[h][p] / usual);
    }
    double usual = mean_over_known(t, near, largest);
    for (uint32_t p = 0; p < t->n_pages; p++)
        importance[p] += largest[p] / usual;
}

static void near_importance(const twin *t, uint32_t group, ranking *r)
{
    int all = twin_knob(t, "layers", 1) > 0;
    uint32_t first = all ? 0 : group, end = all ? t->setup.n_groups : group + 1;
    double importance[TWIN_PAGES] = {0};
    for (uint32_t g = first; g < end; g++) {
        near_table near;
        collect_near(t, g, &near);
        for (uint32_t l = 0; l < t->setup.near_layers; l++)
            add_layer(t, &near, l, importance);
    }
    for (uint32_t i = 0; i < r->n; i++)
        r->importance[i] = importance[r->number[i]] / ((end - first) * t->setup.near_layers);
}

static void peak_importance(const twin *t, uint32_t group, ranking *r)
{
    for (uint32_t i = 0; i < r->n; i++)
        r->importance[i] = largest_peak(t, group, r->number[i]);
}

/* A page gets a share of what the pages before and after it are worth themselves, if they are held. Page 0
 * neither lends nor borrows. */
static void spread_importance(const twin *t, ranking *r)
{
    double share = twin_knob(t, "spread", 0), own[TWIN_PAGES] = {0};
    for (uint32_t i = 0; i < r->n; i++)
        own[i] = r->importance[i];
    for (uint32_t i = 0; i < r->n; i++)
        for (uint32_t k = 0; k < r->n; k++)
            if (r->number[i] && r->number[k] && abs((int)r->number[k] - (int)r->number[i]) == 1)
                r->importance[i] += share * own[k];
}

static void reserve_most_important(const twin *t, uint32_t group, ranking *r)
{
    uint32_t limit = twin_budget(t, group) / t->setup.page_tokens, eligible = 0;
    uint32_t n = (uint32_t)round(twin_knob(t, "reserve", 0.25) * limit);
    for (uint32_t i = 0; i < r->n; i++)
        eligible += r->eligible[i];
    for (n = eligible == 0 ? 0 : n < eligible ? n : eligible - 1; n > 0; n--) {
        uint32_t most = r->n;
        for (uint32_t i = 0; i < r->n; i++)
            if (r->eligible[i] && !r->tier[i] && (most == r->n || r->importance[i] > r->importance[most]))
                most = i;
        r->tier[most] = 1;
    }
}

static void value_keep(const twin *t, uint32_t group, ranking *r)
{
    double kind = twin_knob(t, "importance", 0);
    int by_near = t->setup.near_heads > 0 ? kind < 2 : kind == 1;
    if (by_near)
        near_importance(t, group, r);
    else
        peak_importance(t, group, r);
    spread_importance(t, r);
    reserve_most_important(t, group, r);
    for (uint32_t i = 0; i < r->n; i++)
        r->tier[i] &= !by_near || r->importance[i] >= twin_knob(t, "least", 0);
    for (uint32_t i = 0; i < r->n; i++)
        r->score[i] = faded_mean(t, group, r->number[i]);
}

/* -------------------------------------------------------------------------------------------------------------- */

static double value_of(const twin *t, uint32_t group, uint32_t page, const ranking *r)
{
    if (twin_is(t, "window") || twin_is(t, "streaming"))
        return page;
    if (twin_is(t, "h2o"))
        return sum_of(t, group, page);
    if (twin_is(t, "lru"))
        return last_use(t, group, page);
    if (twin_is(t, "scissorhands"))
        return uses_of_late(t, group, page);
    if (twin_is(t, "snapkv"))
        return pooled_votes(t, group, page, r);
    if (twin_is(t, "tova"))
        return last_mean(t, group, page);
    return 0;
}

void twin_value(const twin *t, uint32_t group, ranking *r)
{
    for (uint32_t i = 0; i < r->n; i++) {
        r->tier[i] = 0;
        r->importance[i] = 0;
        r->score[i] = value_of(t, group, r->number[i], r);
    }
    if (twin_is(t, "keep"))
        value_keep(t, group, r);
}
