/* ops_batch.c: plans in every form, batches ended in any order, moves. */
#include <string.h>

#include "world.h"

enum {
    PLAN_ENTRIES = TWIN_SEQS + 2,
    PLAN_PAGES = TWIN_SEQS * TWIN_ENTRIES,
    PLAN_SLOTS = TWIN_SEQS * TWIN_TOKENS,
    UNTOUCHED = 0x5a /* every byte of an output array before the call */
};

/* Room for the largest plan there can be. */
typedef struct {
    int64_t indptr[TWIN_GROUPS * (PLAN_ENTRIES + 1)];
    int64_t pages[TWIN_GROUPS * PLAN_ENTRIES * TWIN_ENTRIES];
    int64_t positions[TWIN_GROUPS * PLAN_ENTRIES * TWIN_ENTRIES];
    int64_t last_page_len[TWIN_GROUPS * PLAN_ENTRIES];
    int64_t seq_lens[PLAN_ENTRIES];
    int64_t query_indptr[PLAN_ENTRIES + 1];
    int64_t slots[TWIN_GROUPS * PLAN_SLOTS];
} plan_arrays;

/* A plan as the library fills it and as it must be. */
typedef struct {
    kvk_batch_entry entries[TWIN_SEQS];
    uint32_t n;
    kvk_plan got, want;
    plan_arrays *got_arrays, *want_arrays;
} planned;

static uint32_t room_left(const world *w, const twin_seq *s)
{
    return s->swapped ? 0 : s->end * w->twin.config.page_tokens - s->n_tokens;
}

static void draw_entries(world *w, planned *p)
{
    p->n = 0;
    for (uint32_t i = 0; i < TWIN_SEQS; i++) {
        const twin_seq *s = &w->twin.seqs[i];
        if (!s->handle || world_one_in(w, 2))
            continue;
        uint32_t n_query = world_one_in(w, 2) ? room_left(w, s) : world_random(w, room_left(w, s) + 1);
        if (!twin_may_write(&w->twin, s))
            n_query = 0;
        p->entries[p->n++] = (kvk_batch_entry){.seq = s->handle, .n_query = n_query};
    }
    if (p->n && world_one_in(w, 12))
        p->entries[world_random(w, p->n)].seq = world_pick_seq(w);
    if (p->n && world_one_in(w, 12))
        p->entries[world_random(w, p->n)].n_query = world_one_in(w, 9) ? UINT32_MAX : world_random(w, 12);
}

/* Most plans have all arrays, some have few. */
static bool keep_some(world *w, bool few)
{
    return !world_one_in(w, few ? 2 : 40);
}

/* The arrays of a plan, those that `like` leaves out left out. */
static void point_to(kvk_plan *plan, plan_arrays *arrays, const kvk_plan *like)
{
    memset(arrays, UNTOUCHED, sizeof *arrays);
    plan->indptr = like->indptr ? arrays->indptr : NULL;
    plan->pages = like->pages ? arrays->pages : NULL;
    plan->positions = like->positions ? arrays->positions : NULL;
    plan->last_page_len = like->last_page_len ? arrays->last_page_len : NULL;
    plan->seq_lens = like->seq_lens ? arrays->seq_lens : NULL;
    plan->query_indptr = like->query_indptr ? arrays->query_indptr : NULL;
    plan->slots = like->slots ? arrays->slots : NULL;
}

static void draw_plan(world *w, planned *p)
{
    static plan_arrays got, want;
    kvk_plan *plan = &p->got;
    kvk_plan_init(plan);
    plan->form = world_random(w, 2);
    plan->index_bits = world_one_in(w, 2) ? 32 : 64;
    bool csr = plan->form == KVK_PLAN_CSR, few = world_one_in(w, 4);
    plan->entries_cap = world_one_in(w, few ? 3 : 20) ? world_random(w, 3) : p->n + world_random(w, 3);
    plan->pages_cap = world_one_in(w, 10) ? world_random(w, 20) : csr ? PLAN_PAGES : TWIN_ENTRIES;
    plan->slots_cap = world_one_in(w, 10) ? world_random(w, 20) : PLAN_SLOTS;
    plan->pad = world_one_in(w, 2) ? -1 : 0;
    plan->indptr = keep_some(w, few) ? got.indptr : NULL;
    plan->pages = keep_some(w, few) ? got.pages : NULL;
    plan->positions = keep_some(w, few) ? got.positions : NULL;
    plan->last_page_len = keep_some(w, few) ? got.last_page_len : NULL;
    plan->seq_lens = keep_some(w, few) ? got.seq_lens : NULL;
    plan->query_indptr = keep_some(w, few) ? got.query_indptr : NULL;
    plan->slots = keep_some(w, few) ? got.slots : NULL;
    p->want = p->got;
    p->got_arrays = &got;
    p->want_arrays = &want;
    point_to(&p->got, &got, plan);
    point_to(&p->want, &want, plan);
}

/* ---- What the arrays must hold ---- */

static void put(const planned *p, void *array, uint64_t i, int64_t value)
{
    if (!array)
        return;
    if (p->want.index_bits == 32)
        ((int32_t *)array)[i] = (int32_t)value;
    else
        ((int64_t *)array)[i] = value;
}

static uint32_t listed_pages(const world *w, const twin_seq *s, uint32_t group)
{
    return twin_count_held(s, group, twin_pages_for(&w->twin, s->n_tokens));
}

/* Pages of a sequence, from place `at` of both lists on. */
static void put_list(const world *w, const planned *p, uint32_t group, const twin_seq *s, uint64_t at)
{
    uint32_t page_tokens = w->twin.config.page_tokens, n = 0;
    for (uint32_t i = 0; i < twin_pages_for(&w->twin, s->n_tokens); i++) {
        if (!twin_holds(s, group, i))
            continue;
        put(p, p->want.pages, at + n, s->table[group][i]);
        put(p, p->want.positions, at + n++, i * page_tokens);
    }
    for (uint64_t k = n; p->want.form == KVK_PLAN_PADDED && k < p->want.pages_cap; k++) {
        put(p, p->want.pages, at + k, p->want.pad);
        put(p, p->want.positions, at + k, p->want.pad);
    }
}

static void put_slots(const world *w, const planned *p, uint32_t group, const twin_seq *s, uint64_t at,
                      uint32_t n_query)
{
    uint32_t page_tokens = w->twin.config.page_tokens;
    for (uint32_t k = s->n_tokens - n_query; p->want.slots && k < s->n_tokens; k++) {
        uint64_t page = s->table[group][k / page_tokens];
        p->want.slots[group * p->want.slots_cap + at++] = (int64_t)(page * page_tokens + k % page_tokens);
    }
}

/* Entry i is past the last one: an empty one. */
static void put_nothing(const planned *p, uint32_t group, uint32_t i, int64_t listed)
{
    const kvk_plan *plan = &p->want;
    uint64_t E = plan->entries_cap, row = group * E + i;
    bool csr = plan->form == KVK_PLAN_CSR;
    put(p, csr ? plan->indptr : NULL, group * (E + 1) + i + 1, listed);
    put(p, plan->last_page_len, row, 0);
    for (uint64_t k = 0; !csr && k < plan->pages_cap; k++) {
        put(p, plan->pages, row * plan->pages_cap + k, plan->pad);
        put(p, plan->positions, row * plan->pages_cap + k, plan->pad);
    }
}

static void put_group(world *w, const planned *p, uint32_t group)
{
    const kvk_plan *plan = &p->want;
    bool csr = plan->form == KVK_PLAN_CSR;
    uint64_t E = plan->entries_cap, listed = 0, slot = 0;
    uint32_t page_tokens = w->twin.config.page_tokens;
    put(p, csr ? plan->indptr : NULL, group * (E + 1), 0);
    for (uint32_t i = 0; i < p->n; i++) {
        const twin_seq *s = twin_find(&w->twin, p->entries[i].seq);
        put_list(w, p, group, s, csr ? group * plan->pages_cap + listed : (group * E + i) * plan->pages_cap);
        uint32_t n = listed_pages(w, s, group);
        listed += n;
        put(p, csr ? plan->indptr : NULL, group * (E + 1) + i + 1, (int64_t)listed);
        put(p, plan->last_page_len, group * E + i, n ? (s->n_tokens - 1) % page_tokens + 1 : 0);
        put_slots(w, p, group, s, slot, p->entries[i].n_query);
        slot += p->entries[i].n_query;
    }
    for (uint32_t i = p->n; i < plan->entries_cap; i++)
        put_nothing(p, group, i, (int64_t)listed);
}

static void put_plan(world *w, const planned *p)
{
    int64_t n_queries = 0;
    for (uint32_t g = 0; g < w->twin.config.n_groups; g++)
        put_group(w, p, g);
    put(p, p->want.query_indptr, 0, 0);
    for (uint32_t i = 0; i < p->n; i++) {
        n_queries += p->entries[i].n_query;
        put(p, p->want.query_indptr, i + 1, n_queries);
        put(p, p->want.seq_lens, i, twin_find(&w->twin, p->entries[i].seq)->n_tokens);
    }
    for (uint32_t i = p->n; i < p->want.entries_cap; i++) {
        put(p, p->want.query_indptr, i + 1, n_queries);
        put(p, p->want.seq_lens, i, 0);
    }
}

static void same_array(world *w, const char *name, const int64_t *want, const int64_t *got, size_t n)
{
    for (size_t i = 0; i < n && memcmp(want, got, n * sizeof *want) != 0; i++)
        world_expect(w, name, want[i], got[i]);
}

/* Every byte, those that no plan may touch included. */
static void compare_plan(world *w, const planned *p)
{
    const plan_arrays *want = p->want_arrays, *got = p->got_arrays;
#define SAME(field) same_array(w, "plan." #field, want->field, got->field, sizeof want->field / sizeof want->field[0])
    SAME(indptr);
    SAME(pages);
    SAME(positions);
    SAME(last_page_len);
    SAME(seq_lens);
    SAME(query_indptr);
    SAME(slots);
#undef SAME
}

bool world_has_batch_place(const world *w)
{
    for (uint32_t i = 0; i < TWIN_BATCHES; i++) {
        if (!w->twin.batches[i].handle)
            return true;
    }
    return false;
}

/* Returns the batch; 0 if it was refused. */
static kvk_batch plan(world *w, planned *drawn)
{
    planned p = *drawn;
    kvk_batch batch = 0;
    int rc;
    draw_plan(w, &p);
    world_say(w, "plan %u entries, form %u, %u bits", p.n, p.got.form, p.got.index_bits);
    do {
        world_arm(w);
        rc = kvk_batch_plan(w->cache, p.entries, p.n, &p.got, &batch);
    } while (world_struck(w, rc));
    world_expect(w, "kvk_batch_plan", twin_plan_check(&w->twin, p.entries, p.n, &p.want), rc);
    if (rc == 0 || rc == KVK_ESPACE) {
        world_expect(w, "plan.n_pages", (int64_t)p.want.n_pages, (int64_t)p.got.n_pages);
        world_expect(w, "plan.needs", p.want.needs, p.got.needs);
        world_expect(w, "plan.n_slots", (int64_t)p.want.n_slots, (int64_t)p.got.n_slots);
    }
    if (rc == 0) {
        world_expect(w, "the batch is new", true, batch != 0 && !twin_find_batch(&w->twin, batch));
        twin_plan(&w->twin, p.entries, p.n, batch);
        world_expect(w, "the plan writes what others read", false, twin_overwrites(&w->twin, batch));
        put_plan(w, &p);
    }
    compare_plan(w, &p);
    return rc == 0 ? batch : 0;
}

void op_plan(world *w)
{
    planned p;
    if (!world_has_batch_place(w))
        return;
    draw_entries(w, &p);
    plan(w, &p);
}

kvk_batch world_plan(world *w, kvk_seq handle, uint32_t n_query)
{
    planned p = {.entries = {{.seq = handle, .n_query = n_query}}, .n = 1};
    return plan(w, &p);
}

void world_end(world *w, kvk_batch handle)
{
    const twin_batch *b = twin_find_batch(&w->twin, handle);
    uint32_t accepted[TWIN_SEQS] = {0}, n = b ? b->n : world_random(w, 3);
    for (uint32_t i = 0; i < n; i++) {
        accepted[i] = b ? b->entries[i].n_query : 0;
        if (world_one_in(w, 2) && accepted[i])
            accepted[i] -= world_random(w, accepted[i] + 1);
    }
    const kvk_masses *masses = b && !world_one_in(w, 4) ? world_draw_masses(w, b, accepted) : NULL;
    if (n && world_one_in(w, 30))
        accepted[world_random(w, n)] += 1 + world_random(w, 3);
    kvk_batch_result result = {.size = sizeof result,
                               .n = n + world_one_in(w, 40),
                               .accepted = world_one_in(w, 10) ? NULL : accepted,
                               .masses = masses};
    const kvk_batch_result *given = world_one_in(w, 5) ? NULL : &result;
    world_say(w, "end %llu%s", (unsigned long long)handle, !given || !given->accepted ? ", all accepted" : "");
    int rc = kvk_batch_end(w->cache, handle, given);
    world_expect(w, "kvk_batch_end", twin_end(&w->twin, handle, given), rc);
    if (rc >= 0)
        w->stale_batches[world_random(w, WORLD_STALE)] = handle;
}

void op_end(world *w)
{
    world_end(w, world_pick_batch(w));
}

static void check_move(world *w, const kvk_move *want, const kvk_move *got)
{
    world_expect(w, "move.kind", want->kind, got->kind);
    world_expect(w, "move.group", want->group, got->group);
    world_expect(w, "move.src", want->src, got->src);
    world_expect(w, "move.dst", want->dst, got->dst);
    world_expect(w, "move.n_tokens", want->n_tokens, got->n_tokens);
}

void op_moves(world *w)
{
    twin *t = &w->twin;
    static kvk_move moves[TWIN_MOVES];
    uint32_t cap = world_one_in(w, 4) ? world_random(w, 6) : TWIN_MOVES;
    uint32_t n = cap < t->n_moves ? cap : t->n_moves;
    world_say(w, "moves, up to %u", cap);
    world_expect(w, "kvk_moves_take", cap ? n : t->n_moves, kvk_moves_take(w->cache, cap ? moves : NULL, cap));
    for (uint32_t i = 0; i < n; i++)
        check_move(w, &t->moves[i], &moves[i]);
    t->n_moves -= n;
    memmove(t->moves, t->moves + n, t->n_moves * sizeof t->moves[0]);
}
