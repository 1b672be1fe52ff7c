/* lab_step.c: one step of a server: room, plan, masses, end. */
#include "lab.h"

/* ---- What attention gave: row after row over the pages that the plan lists for an entry ----------------------- */

/* One entry in one group, and where its rows go. */
typedef struct listing {
    const masses *masses;
    const uint32_t *positions;
    uint32_t group, n, page_tokens;
    uint32_t start, first, end; /* of the entry; queries of the row */
    uint32_t layers, heads;     /* near peaks */
} listing;

static void fill_row(const listing *at, float *mean, float *peak)
{
    for (uint32_t i = 0; i < at->n; i++) {
        double sum = 0, most = 0;
        for (uint32_t q = at->first; q < at->end; q++) {
            double one = mass_peak(at->masses, at->group, q, at->positions[i] / at->page_tokens);
            sum += mass_mean(at->masses, at->group, q, at->positions[i] / at->page_tokens);
            most = one > most ? one : most;
        }
        mean[i] = (float)sum;
        peak[i] = (float)most;
    }
}

/* Returns how many numbers there are. */
static uint32_t fill_near(const listing *at, float *near)
{
    uint32_t heads = at->layers * at->heads, before = at->start / at->page_tokens, n = 0;
    for (uint32_t i = 0; i < at->n; i++) {
        uint32_t page = at->positions[i] / at->page_tokens;
        for (uint32_t h = 0; h < heads && page + 1 >= before; h++) {
            double most = 0;
            for (uint32_t q = at->first; q < at->end; q++) {
                double one = mass_near(at->masses, at->group * heads + h, q, page);
                most = one > most ? one : most;
            }
            near[n++] = (float)most;
        }
    }
    return n;
}

static listing list_entry(const lab *l, const lab_entry *e, const lab_batch *b, uint32_t group, uint32_t i)
{
    const uint32_t *indptr = b->indptr[group];
    return (listing){.masses = &e->who->masses,
                     .positions = &b->positions[group][indptr[i]],
                     .group = group,
                     .n = indptr[i + 1] - indptr[i],
                     .page_tokens = l->page_tokens,
                     .start = b->start[i],
                     .layers = l->near_layers,
                     .heads = l->near_heads};
}

static void fill_group(const lab *l, const lab_entry *entries, uint32_t group, lab_batch *b)
{
    uint32_t at = 0, near_at = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        listing row = list_entry(l, &entries[i], b, group, i);
        uint32_t queries = entries[i].n_query / b->rows[i];
        for (uint32_t r = 0; r < b->rows[i]; r++) {
            row.first = row.start + r * queries;
            row.end = row.first + queries;
            LAB_HOLDS(at + row.n <= LAB_LISTED);
            fill_row(&row, &b->mean[group][at], &b->peak[group][at]);
            at += row.n;
            near_at += fill_near(&row, &b->near[group][near_at]);
            LAB_HOLDS(near_at <= LAB_LISTED);
        }
    }
}

/* ---- The batch ----------------------------------------------------------------------------------------------- */

static void plan_batch(lab *l, const lab_entry *entries, lab_batch *b)
{
    kvk_batch_entry planned[LAB_ENTRIES];
    kvk_plan plan;
    kvk_plan_init(&plan);
    plan.entries_cap = LAB_ENTRIES;
    plan.pages_cap = LAB_LISTED;
    plan.indptr = b->indptr;
    plan.positions = b->positions;
    for (uint32_t i = 0; i < b->n; i++) {
        kvk_seq_info info = {.size = sizeof info};
        LAB_HOLDS(kvk_seq_info_get(l->cache, entries[i].who->seq, &info) == 0);
        planned[i] = (kvk_batch_entry){entries[i].who->seq, entries[i].n_query, 0};
        b->start[i] = info.n_tokens;
        b->accepted[i] = entries[i].accepted;
        b->rows[i] = entries[i].per_query && entries[i].n_query > 0 ? entries[i].n_query : 1;
    }
    LAB_HOLDS(kvk_batch_plan(l->cache, planned, b->n, &plan, &b->id) == 0);
}

void lab_plan(lab *l, const lab_entry *entries, uint32_t n, lab_batch *out)
{
    out->n = n;
    plan_batch(l, entries, out);
    for (uint32_t g = 0; g < l->n_groups; g++)
        fill_group(l, entries, g, out);
    out->masses = (kvk_masses){.size = sizeof out->masses,
                               .stride = LAB_LISTED,
                               .near_stride = LAB_LISTED,
                               .mean = out->mean[0],
                               .peak = out->peak[0],
                               .near = l->near_heads ? out->near[0] : NULL,
                               .rows = out->rows};
    out->result = (kvk_batch_result){sizeof out->result, n, out->accepted, &out->masses};
}

uint32_t lab_token(uint32_t position)
{
    return 1000 + position;
}

static void commit(lab *l, subject *s, uint32_t start, uint32_t n)
{
    uint32_t tokens[TWIN_PAGES];
    const kvk_text text = {.n_tokens = n, .tokens = tokens};
    LAB_HOLDS(n <= TWIN_PAGES);
    for (uint32_t i = 0; i < n; i++)
        tokens[i] = lab_token(start + i);
    LAB_HOLDS(kvk_commit(l->cache, s->seq, &text) >= 0);
}

/* The same for the twin, by its own decisions. */
static void end_twin(const lab_entry *e, uint32_t start)
{
    twin *t = e->who->twin;
    twin_extend(t, start + e->n_query);
    if (!e->per_query && e->accepted > 0)
        twin_observe(t, &e->who->masses, start, e->n_query);
    for (uint32_t r = 0; e->per_query && r < e->accepted; r++) {
        if (r > 0 && (start + r) % t->setup.page_tokens == 0)
            twin_trim(t, start + r);
        twin_observe(t, &e->who->masses, start + r, 1);
    }
    twin_cut(t, start + e->accepted);
}

void lab_step(lab *l, const lab_entry *entries, uint32_t n)
{
    static lab_batch b;
    for (uint32_t i = 0; i < n; i++)
        lab_reserve(l, entries[i].who, entries[i].n_query);
    lab_plan(l, entries, n, &b);
    LAB_HOLDS(kvk_batch_end(l->cache, b.id, &b.result) >= 0);
    for (uint32_t i = 0; i < n; i++) {
        if (entries[i].who->twin)
            end_twin(&entries[i], b.start[i]);
        if (l->setup.has_text)
            commit(l, entries[i].who, b.start[i], entries[i].accepted);
        lab_compare(l, entries[i].who);
    }
}

void lab_run(lab *l, subject *s, uint32_t n_query)
{
    const lab_entry entry = {s, n_query, n_query, 0};
    lab_step(l, &entry, 1);
}

void lab_decode(lab *l, subject *s, uint32_t n_tokens)
{
    while (s->twin->n_tokens < n_tokens)
        lab_run(l, s, 1);
}
