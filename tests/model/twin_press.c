/* twin_press.c: pages taken from all sequences that yield, cheapest first. */
#include "twin_view.h"

#include <string.h>

/* A page that may be taken. */
typedef struct {
    const twin_seq *s;
    uint32_t place; /* of its sequence */
    uint32_t group, entry;
    uint8_t tier;
    double price;
} offer;

typedef struct {
    uint32_t n;
    offer offers[TWIN_DROPS];
} offers;

/* The order in which pages are taken: below 0 if `a` goes first. */
static int compare(const offer *a, const offer *b)
{
    if (a->s->priority != b->s->priority)
        return a->s->priority < b->s->priority ? -1 : 1;
    if (a->tier != b->tier)
        return a->tier < b->tier ? -1 : 1;
    if (a->price < b->price || b->price < a->price)
        return a->price < b->price ? -1 : 1;
    if (a->s != b->s)
        return a->s->number > b->s->number ? -1 : 1;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    return a->entry < b->entry ? -1 : 1;
}

static void offer_table(const twin *t, twin_seq *s, uint32_t place, uint32_t group, offers *out)
{
    twin_view v;
    twin_look(t, s, group, twin_now(t, s), &v);
    double sum = twin_rank(s, &v);
    for (uint32_t i = 0; i < v.view.n; i++) {
        if (v.eligible[i] && twin_frees(t, s, group, v.index[i]))
            out->offers[out->n++] =
                (offer){s, place, group, v.index[i], v.tier[i], sum > 0 ? (double)v.score[i] / sum : 0};
    }
}

/* Pages that the table of an offer may give, besides those that it gives already. */
static bool is_above_floor(const twin *t, const offer *o, const twin_taken *taken)
{
    uint32_t held = twin_count_held(o->s, o->group, twin_pages_for(t, o->s->n_tokens));
    for (uint32_t i = 0; i < TWIN_ENTRIES; i++)
        held -= taken->goes[o->place][o->group][i];
    return held > twin_pages_for(t, o->s->eviction.floor);
}

static void gather(const twin *t, twin_seq *requester, uint32_t place, offers *out)
{
    static twin_seq copies[TWIN_SEQS];
    out->n = 0;
    for (uint32_t k = 0; k < TWIN_SEQS; k++) {
        twin_seq *s = &copies[k];
        *s = k == place ? *requester : t->seqs[k];
        const twin_eviction *e = &s->eviction;
        if (!s->handle || s->swapped || !e->policy || !e->policy->rank || !e->yields ||
            s->priority > requester->priority)
            continue;
        for (uint32_t g = 0; g < t->config.n_groups; g++)
            offer_table(t, s, k, g, out);
    }
}

uint32_t twin_press(twin *t, const twin_seq *copy, uint32_t missing, twin_taken *out)
{
    static offers all;
    twin_seq requester = *copy;
    uint32_t n = 0, place = (uint32_t)(twin_find(t, copy->handle) - t->seqs);
    memset(out, 0, sizeof *out);
    gather(t, &requester, place, &all);
    while (n < missing && all.n) {
        uint32_t best = 0;
        for (uint32_t i = 1; i < all.n; i++)
            best = compare(&all.offers[i], &all.offers[best]) < 0 ? i : best;
        const offer *o = &all.offers[best];
        if (is_above_floor(t, o, out)) {
            out->goes[o->place][o->group][o->entry] = true;
            n++;
        }
        all.offers[best] = all.offers[--all.n];
    }
    return n;
}

void twin_apply_press(twin *t, const twin_taken *taken)
{
    for (uint32_t k = 0; k < TWIN_SEQS; k++) {
        twin_seq *s = &t->seqs[k];
        for (uint32_t g = 0; s->handle && g < t->config.n_groups; g++)
            twin_drop(t, s, g, twin_now(t, s), taken->goes[k][g]);
    }
}
