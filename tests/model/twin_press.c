/* twin_press.c: pages taken from all sequences that yield, cheapest first. */
#include "twin_view.h"

#include <math.h>
#include <string.h>

/* A page that may be taken. */
typedef struct {
    const twin_seq *s;
    uint32_t group, entry;
    uint8_t tier;
    float score;
    double price; /* its share of its table's score */
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
    if (a->score < b->score || b->score < a->score)
        return a->score < b->score ? -1 : 1;
    return a->entry < b->entry ? -1 : 1;
}

/* Offers pages of a table, those that go first, down to its floor. Those that `copy` has lost are gone already. */
static void offer_table(const twin *t, const twin_seq *from, const twin_seq *copy, uint32_t group, offers *out)
{
    twin_view v;
    bool goes[TWIN_ENTRIES] = {false};
    twin_seq s = *from;
    twin_look(t, &s, group, twin_now(t, from), &v);
    double sum = twin_rank(&s, &v);
    uint32_t left = 0;
    for (uint32_t i = 0; i < v.view.n; i++) {
        left += !copy->lost[group][v.index[i]];
        v.eligible[i] &= !copy->lost[group][v.index[i]] && twin_frees(t, from, group, v.index[i]);
    }
    for (uint32_t i; left > twin_pages_for(t, s.eviction.floor) && (i = twin_lowest(&v, goes)) < v.view.n; left--) {
        out->offers[out->n++] = (offer){.s = from,
                                        .group = group,
                                        .entry = v.index[i],
                                        .tier = v.tier[i],
                                        .score = v.score[i],
                                        .price = sum > 0 && isfinite(sum) ? (double)v.score[i] / sum : 0};
        goes[v.index[i]] = true;
    }
}

static void gather(const twin *t, const twin_seq *requester, const twin_seq *copy, offers *out)
{
    out->n = 0;
    for (uint32_t k = 0; k < TWIN_SEQS; k++) {
        const twin_seq *s = &t->seqs[k];
        const twin_eviction *e = &s->eviction;
        if (!s->handle || s->swapped || !e->policy || !e->policy->rank || !e->yields ||
            s->priority > requester->priority)
            continue;
        for (uint32_t g = 0; g < t->config.n_groups; g++)
            offer_table(t, s, s == requester ? copy : s, g, out);
    }
}

uint32_t twin_press(const twin *t, const twin_seq *requester, const twin_seq *copy, uint32_t missing, twin_taken *out)
{
    static offers all;
    uint32_t n = 0;
    memset(out, 0, sizeof *out);
    for (gather(t, requester, copy, &all); n < missing && all.n; n++) {
        uint32_t best = 0;
        for (uint32_t i = 1; i < all.n; i++)
            best = compare(&all.offers[i], &all.offers[best]) < 0 ? i : best;
        const offer *o = &all.offers[best];
        out->goes[o->s - t->seqs][o->group][o->entry] = true;
        all.offers[best] = all.offers[--all.n];
    }
    return n;
}

static twin_seq *opened_next(twin *t, uint64_t from)
{
    twin_seq *best = NULL;
    for (uint32_t k = 0; k < TWIN_SEQS; k++) {
        twin_seq *s = &t->seqs[k];
        if (s->handle && s->number >= from && (!best || s->number < best->number))
            best = s;
    }
    return best;
}

void twin_apply_press(twin *t, const twin_taken *taken)
{
    for (twin_seq *s = opened_next(t, 0); s; s = opened_next(t, s->number + 1)) {
        for (uint32_t g = 0; g < t->config.n_groups; g++)
            twin_drop(t, s, g, twin_now(t, s), taken->goes[s - t->seqs][g]);
    }
}
