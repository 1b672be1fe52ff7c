/* test_pressure.c: a reservation that takes pages from others, against a naive computation: all candidates of all
 * tables in a row, sorted as the header says; and kvk_can_reserve, which must have said so. */
#include "lab.h"
#include "run_tests.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PT = 4, SEQS = 6, GROUPS = 2, TABLE = 64 };

/* ---- A house of sequences in a small pool --------------------------------------------------------------------- */

typedef struct guest {
    subject who;
    uint32_t opened; /* number of opening; 0: not open */
    int32_t priority;
    uint32_t budget, floor, yields, slack; /* budget in pages, 0: none */
    int evictable;                         /* has a policy that ranks */
    uint32_t in_flight, last_plan;         /* numbers of plans; in_flight 0: none */
    uint32_t n_tokens;
    uint32_t n[GROUPS], pages[GROUPS][TABLE]; /* its tables, to see what it lets go */
} guest;

typedef struct house {
    lab l;
    guest guests[SEQS];
    uint32_t n_pages, opened, planned, seed, drawn;
    uint32_t last_reader[1000]; /* by page: the last plan of whoever let it go */
} house;

static uint32_t draw(house *h, uint32_t below)
{
    return mass_hash(h->seed, h->drawn++, 17, 0) % below;
}

static void set_policy(house *h, guest *g)
{
    static const char *const policies[] = {"h2o:sinks=4:recent=8", "tova", "keep:reserve=0.3:importance=2", "lru",
                                           "streaming:sinks=4",    "full"};
    uint32_t which = draw(h, 7);
    kvk_eviction e;
    kvk_eviction_init(&e);
    *g = (guest){.who = g->who, .opened = g->opened, .yields = 1};
    g->priority = (int32_t)draw(h, 3);
    LAB_HOLDS(kvk_seq_set_priority(h->l.cache, g->who.seq, g->priority) == 0);
    if (which == 6)
        return; /* no policy at all */
    LAB_HOLDS(kvk_policy_parse(policies[which], NULL, &e.choice, NULL, 0) == 0);
    g->evictable = which < 5;
    g->budget = which == 2 || draw(h, 3) ? 0 : 8 + draw(h, 6); /* trimming would change who is reserved */
    e.budget = g->budget * PT;
    if (which == 4 && !g->budget) /* its own budget is 1,024 */
        g->budget = 256;
    e.slack = g->slack = draw(h, 2);
    e.floor = g->floor = draw(h, 2) ? 0 : draw(h, 30);
    e.yields = g->yields = draw(h, 5) > 0;
    LAB_HOLDS(kvk_seq_set_eviction(h->l.cache, g->who.seq, &e) == 0);
}

static void open_guest(house *h, guest *g)
{
    *g = (guest){.who = {.masses = {MASS_RANDOM, draw(h, 1000), PT}}, .opened = ++h->opened};
    LAB_HOLDS(kvk_seq_open(h->l.cache, NULL, &g->who.seq) == 0);
    set_policy(h, g);
}

/* ---- The naive computation ------------------------------------------------------------------------------------ */

typedef struct table {
    uint32_t n, pages[TABLE];
    kvk_page_score scores[TABLE];
    uint8_t gone[TABLE];
} table;

typedef struct picture {
    table tables[SEQS][GROUPS];
    uint32_t available;
} picture;

static void take_picture(const house *h, picture *p)
{
    kvk_stats stats = {.size = sizeof stats};
    memset(p, 0, sizeof *p);
    LAB_HOLDS(kvk_stats_get(h->l.cache, &stats) == 0);
    p->available = stats.pages_free + stats.pages_cached;
    for (uint32_t i = 0; i < SEQS; i++)
        for (uint32_t g = 0; h->guests[i].opened && g < GROUPS; g++) {
            table *t = &p->tables[i][g];
            LAB_HOLDS(kvk_seq_table(h->l.cache, h->guests[i].who.seq, g, t->pages, TABLE) >= 0);
            t->n = lab_scores(&h->l, &h->guests[i].who, g, t->scores);
        }
}

static kvk_page_info page_of(const house *h, uint32_t page)
{
    kvk_page_info info = {.size = sizeof info};
    LAB_HOLDS(kvk_page_info_get(h->l.cache, page, &info) == 0);
    return info;
}

/* True if a plan and all before it have ended. */
static int has_ended(const house *h, uint32_t plan)
{
    for (uint32_t i = 0; i < SEQS; i++)
        if (h->guests[i].in_flight && h->guests[i].in_flight <= plan)
            return 0;
    return 1;
}

/* Its memory comes back at once: nobody else refers to it and no batch in flight may read it. */
static int comes_free(const house *h, uint32_t i, uint32_t page)
{
    return page_of(h, page).refs == 1 && has_ended(h, h->guests[i].last_plan) && has_ended(h, h->last_reader[page]);
}

typedef struct place {
    uint32_t guest, group, at;
    double price;
} place;

/* The order in which pages go. */
static int order(const house *h, const picture *p, const place *a, const place *b)
{
    const guest *x = &h->guests[a->guest], *y = &h->guests[b->guest];
    const kvk_page_score *s = &p->tables[a->guest][a->group].scores[a->at];
    const kvk_page_score *t = &p->tables[b->guest][b->group].scores[b->at];
    if (x->priority != y->priority)
        return x->priority < y->priority ? -1 : 1;
    if (s->tier != t->tier)
        return s->tier < t->tier ? -1 : 1;
    if ((float)a->price < (float)b->price || (float)a->price > (float)b->price)
        return a->price < b->price ? -1 : 1;
    if (x->opened != y->opened)
        return x->opened > y->opened ? -1 : 1;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    return s->position < t->position ? -1 : 1;
}

static void sort_places(const house *h, const picture *p, place *places, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t k = i; k > 0 && order(h, p, &places[k], &places[k - 1]) < 0; k--) {
            place moved = places[k];
            places[k] = places[k - 1];
            places[k - 1] = moved;
        }
}

static uint32_t ceil_pages(uint32_t tokens)
{
    return (tokens + PT - 1) / PT;
}

/* The pages of one table in the order in which they go, those alone whose memory is wanted; at most as many as its
 * floor leaves. */
static uint32_t list_table(const house *h, const picture *p, uint32_t i, uint32_t g, place *places)
{
    const table *t = &p->tables[i][g];
    uint32_t n = 0, held = 0, floor = ceil_pages(h->guests[i].floor);
    double total = 0;
    for (uint32_t k = 0; k < t->n; k++) {
        total += (double)t->scores[k].score;
        held += !t->gone[k];
    }
    for (uint32_t k = 0; k < t->n; k++)
        if (t->scores[k].eligible && !t->gone[k] && comes_free(h, i, t->pages[k]))
            places[n++] = (place){i, g, k, total > 0 ? (double)t->scores[k].score / total : 0};
    sort_places(h, p, places, n);
    return held <= floor ? 0 : n < held - floor ? n : held - floor;
}

/* Evicts the cheapest from all that yield to the asker. Returns how many it found. */
static uint32_t squeeze(const house *h, picture *p, uint32_t asker, uint32_t missing)
{
    static place places[SEQS * GROUPS * TABLE];
    uint32_t n = 0, found;
    for (uint32_t i = 0; i < SEQS; i++) {
        const guest *from = &h->guests[i];
        for (uint32_t g = 0; g < GROUPS; g++)
            if (from->opened && from->evictable && from->yields && from->priority <= h->guests[asker].priority)
                n += list_table(h, p, i, g, places + n);
    }
    sort_places(h, p, places, n);
    for (found = 0; found < n && found < missing; found++)
        p->tables[places[found].guest][places[found].group].gone[places[found].at] = 1;
    return found;
}

/* By its own budget. Returns how many pages come free. */
static uint32_t trim(const house *h, picture *p, uint32_t i, uint32_t group)
{
    const guest *g = &h->guests[i];
    table *t = &p->tables[i][group];
    uint32_t held = t->n + (g->n_tokens % PT == 0), frees = 0;
    if (!g->evictable || !g->budget || held <= g->budget)
        return 0;
    for (uint32_t want = held - g->budget + g->slack; want > 0; want--) {
        uint32_t lowest = t->n;
        for (uint32_t k = 0; k < t->n; k++)
            if (t->scores[k].eligible && !t->gone[k] &&
                (lowest == t->n || t->scores[k].tier < t->scores[lowest].tier ||
                 (t->scores[k].tier == t->scores[lowest].tier && t->scores[k].score < t->scores[lowest].score)))
                lowest = k;
        if (lowest == t->n)
            break;
        t->gone[lowest] = 1;
        frees += (uint32_t)comes_free(h, i, t->pages[lowest]);
    }
    return frees;
}

/* A partial tail that others share, or may still read, is replaced by a copy. */
static uint32_t copies(const house *h, const picture *p, uint32_t i, uint32_t group)
{
    const table *t = &p->tables[i][group];
    uint32_t tail = t->n ? t->pages[t->n - 1] : 0;
    return h->guests[i].n_tokens % PT && (page_of(h, tail).refs > 1 || !has_ended(h, h->last_reader[tail]));
}

/* What kvk_reserve has to return; the picture then shows what is gone. */
static int predict(const house *h, picture *p, uint32_t i, uint32_t n_tokens, kvk_effort effort)
{
    uint32_t need = 0, held = 0, copied = 0, frees = 0, room, now = h->guests[i].n_tokens;
    for (uint32_t g = 0; g < GROUPS; g++) {
        int entries = kvk_seq_table(h->l.cache, h->guests[i].who.seq, g, NULL, 0); /* reserved ahead included */
        uint32_t ahead = (uint32_t)entries - p->tables[i][g].n, all = ceil_pages(now + n_tokens) - ceil_pages(now);
        frees += trim(h, p, i, g);
        copied += copies(h, p, i, g);
        need += all > ahead ? all - ahead : 0;
        held += (uint32_t)entries;
        for (uint32_t k = 0; k < p->tables[i][g].n; k++)
            held -= p->tables[i][g].gone[k];
    }
    room = p->available + frees;
    if (need + copied > 0 && held + need > h->n_pages)
        return KVK_ENEVER;
    need += copied;
    if (need > room && (effort != KVK_EVICT || squeeze(h, p, i, need - room) < need - room))
        return KVK_ENOPAGE;
    return (int)need;
}

/* ---- Who let go of which page --------------------------------------------------------------------------------- */

static void note_guest(house *h, guest *g)
{
    for (uint32_t group = 0; group < GROUPS; group++) {
        uint32_t now[TABLE], at = 0;
        int n = g->opened ? kvk_seq_table(h->l.cache, g->who.seq, group, now, TABLE) : 0;
        LAB_HOLDS(n >= 0);
        for (uint32_t k = 0; k < g->n[group]; k++) {
            uint32_t page = g->pages[group][k];
            for (at = 0; at < (uint32_t)n && now[at] != page; at++)
                continue;
            if (at == (uint32_t)n && h->last_reader[page] < g->last_plan)
                h->last_reader[page] = g->last_plan;
        }
        g->n[group] = (uint32_t)n;
        memcpy(g->pages[group], now, (uint32_t)n * sizeof *now);
    }
}

static void note_released(house *h)
{
    for (uint32_t i = 0; i < SEQS; i++)
        note_guest(h, &h->guests[i]);
}

/* ---- Comparing ------------------------------------------------------------------------------------------------ */

static uint32_t check_table(const house *h, const picture *p, uint32_t i, uint32_t g)
{
    const table *t = &p->tables[i][g];
    uint32_t numbers[TWIN_PAGES], n = lab_table(&h->l, &h->guests[i].who, g, numbers), at = 0, evicted = 0;
    for (uint32_t k = 0; k < t->n; k++) {
        int held = at < n && numbers[at] * PT == t->scores[k].position;
        LAB_CHECK(held != t->gone[k], "seed %u, draw %u: sequence %u, group %u, position %u is held: %d", h->seed,
                  h->drawn, i, g, t->scores[k].position, held);
        at += (uint32_t)held;
        evicted += t->gone[k];
    }
    return evicted;
}

/* Returns how many pages were evicted. */
static uint32_t reserve(house *h, uint32_t i, uint32_t n_tokens, kvk_effort effort)
{
    static picture p;
    uint32_t evicted = 0;
    guest *g = &h->guests[i];
    take_picture(h, &p);
    int expected = predict(h, &p, i, n_tokens, effort);
    int can = kvk_can_reserve(h->l.cache, g->who.seq, n_tokens, effort);
    int said = expected == KVK_ENEVER ? KVK_NEVER : expected == KVK_ENOPAGE ? KVK_LATER : KVK_OK;
    LAB_CHECK(can == said, "seed %u, draw %u: can %d, not %d", h->seed, h->drawn, can, said);
    int got = kvk_reserve(h->l.cache, g->who.seq, n_tokens, effort);
    LAB_CHECK(got == expected, "seed %u, draw %u: reserved %d, not %d", h->seed, h->drawn, got, expected);
    if (got < 0)
        for (uint32_t k = 0; k < SEQS; k++)
            for (uint32_t group = 0; group < GROUPS; group++)
                memset(p.tables[k][group].gone, 0, TABLE);
    for (uint32_t k = 0; k < SEQS; k++)
        for (uint32_t group = 0; h->guests[k].opened && group < GROUPS; group++)
            evicted += check_table(h, &p, k, group);
    note_released(h);
    return evicted;
}

/* ---- A day in the house --------------------------------------------------------------------------------------- */

static lab_batch flights[SEQS];

static void plan(house *h, uint32_t i, uint32_t n)
{
    const lab_entry entry = {&h->guests[i].who, n, n, 0};
    lab_plan(&h->l, &entry, 1, &flights[i]);
    h->guests[i].in_flight = h->guests[i].last_plan = ++h->planned;
    h->guests[i].n_tokens += n;
}

static void end(house *h, uint32_t i)
{
    LAB_HOLDS(kvk_batch_end(h->l.cache, flights[i].id, &flights[i].result) >= 0);
    h->guests[i].in_flight = 0;
}

static void close_guest(house *h, uint32_t i)
{
    if (h->guests[i].in_flight)
        end(h, i);
    LAB_HOLDS(kvk_seq_close(h->l.cache, h->guests[i].who.seq) >= 0);
    h->guests[i].opened = 0;
    note_released(h);
}

/* Only what is not in flight can be forked. */
static void fork_guest(house *h, uint32_t from, uint32_t to)
{
    if (h->guests[from].in_flight)
        end(h, from);
    h->guests[to] = h->guests[from];
    h->guests[to].opened = ++h->opened;
    h->guests[to].last_plan = 0;
    LAB_HOLDS(kvk_seq_fork(h->l.cache, h->guests[from].who.seq, &h->guests[to].who.seq) == 0);
}

static uint32_t step(house *h)
{
    uint32_t i = draw(h, SEQS), what = draw(h, 20), n = draw(h, 4) ? 1 + draw(h, 6) : 1 + draw(h, 30), evicted = 0;
    guest *g = &h->guests[i];
    if (!g->opened) {
        uint32_t from = draw(h, SEQS);
        if (h->guests[from].opened && draw(h, 3) == 0)
            fork_guest(h, from, i);
        else
            open_guest(h, g);
    }
    if (g->in_flight)
        end(h, i);
    else if (what == 0 || g->n_tokens > 150)
        close_guest(h, i);
    else {
        evicted = reserve(h, i, n, (kvk_effort)(draw(h, 4) ? KVK_EVICT : draw(h, 3)));
        int again = kvk_reserve(h->l.cache, g->who.seq, n, KVK_RECLAIM);
        note_released(h);
        if (again >= 0)
            plan(h, i, n);
    }
    return evicted;
}

START_TEST(pages_are_taken_as_a_naive_computation_takes_them)
{
    uint32_t evicted = 0;
    for (uint32_t seed = 0; seed < 20; seed++) {
        house h = {.n_pages = 60, .seed = seed + 100 * (uint32_t)_i};
        lab_open(&h.l, &(lab_setup){.page_tokens = PT, .n_groups = GROUPS, .n_pages = h.n_pages});
        for (uint32_t i = 0; i < 1500; i++)
            evicted += step(&h);
        for (uint32_t i = 0; i < SEQS; i++)
            if (h.guests[i].opened)
                close_guest(&h, i);
        lab_close(&h.l);
    }
    ck_assert_uint_gt(evicted, 1000);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("pressure");
    tcase_add_loop_test(tests, pages_are_taken_as_a_naive_computation_takes_them, 0, 10);
    return run_tests("pressure", tests);
}
