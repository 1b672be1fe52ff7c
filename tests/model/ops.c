/* ops.c: which operation is next, and those on sequences and their room. */
#include "world.h"

twin_seq *world_pick_open(world *w)
{
    uint32_t first = world_random(w, TWIN_SEQS);
    for (uint32_t i = 0; i < TWIN_SEQS; i++) {
        twin_seq *s = &w->twin.seqs[(first + i) % TWIN_SEQS];
        if (s->handle)
            return s;
    }
    return NULL;
}

kvk_seq world_pick_seq(world *w)
{
    const twin_seq *s = world_one_in(w, 40) ? NULL : world_pick_open(w);
    return s ? s->handle : w->stale_seqs[world_random(w, WORLD_STALE)];
}

kvk_batch world_pick_batch(world *w)
{
    uint32_t first = world_random(w, TWIN_BATCHES);
    for (uint32_t i = 0; i < TWIN_BATCHES && !world_one_in(w, 40); i++) {
        const twin_batch *b = &w->twin.batches[(first + i) % TWIN_BATCHES];
        if (b->handle)
            return b->handle;
    }
    return w->stale_batches[world_random(w, WORLD_STALE)];
}

static unsigned long long print(uint64_t handle)
{
    return (unsigned long long)handle;
}

static bool has_place(const world *w)
{
    return w->twin.totals.sequences < TWIN_SEQS;
}

/* A new handle is none that was ever seen. */
static void check_new(world *w, kvk_seq handle)
{
    bool fresh = handle != 0 && handle < (uint64_t)1 << 63 && !twin_find(&w->twin, handle);
    for (uint32_t i = 0; i < WORLD_STALE; i++)
        fresh = fresh && w->stale_seqs[i] != handle;
    world_expect(w, "the handle is new", true, fresh);
}

void op_open(world *w)
{
    kvk_seq_params params = {.size = sizeof params, .priority = (int32_t)world_random(w, 5) - 2};
    kvk_seq handle = 0;
    int rc;
    if (!has_place(w))
        return;
    params.salt.lo = world_one_in(w, 6);
    params.salt.hi = world_one_in(w, 12);
    params.adapter = world_one_in(w, 6);
    bool defaults = world_one_in(w, 8);
    if (defaults)
        params = (kvk_seq_params){.size = sizeof params};
    world_say(w, "open");
    do {
        world_arm(w);
        rc = kvk_seq_open(w->cache, defaults ? NULL : &params, &handle);
    } while (world_struck(w, rc));
    world_expect(w, "kvk_seq_open", 0, rc);
    check_new(w, handle);
    twin_open(&w->twin, &params, handle);
    if (w->evicts && !world_one_in(w, 4))
        world_set_eviction(w, handle);
}

void op_close(world *w)
{
    kvk_seq handle = world_pick_seq(w);
    world_say(w, "close %llu", print(handle));
    int rc = kvk_seq_close(w->cache, handle);
    world_expect(w, "kvk_seq_close", twin_close(&w->twin, handle), rc);
    if (rc >= 0)
        w->stale_seqs[world_random(w, WORLD_STALE)] = handle;
}

void op_fork(world *w)
{
    kvk_seq parent = world_pick_seq(w), child = 0;
    int rc;
    if (!has_place(w))
        return;
    world_say(w, "fork %llu", print(parent));
    do {
        world_arm(w);
        rc = kvk_seq_fork(w->cache, parent, &child);
    } while (world_struck(w, rc));
    if (rc >= 0)
        check_new(w, child);
    world_expect(w, "kvk_seq_fork", twin_fork(&w->twin, parent, child), rc);
}

void op_set_priority(world *w)
{
    kvk_seq handle = world_pick_seq(w);
    int32_t priority = (int32_t)world_random(w, 9) - 4;
    twin_seq *s = twin_find(&w->twin, handle);
    world_say(w, "set_priority %llu %d", print(handle), priority);
    world_expect(w, "kvk_seq_set_priority", s ? 0 : KVK_ESTALE, kvk_seq_set_priority(w->cache, handle, priority));
    if (s)
        s->priority = priority;
}

static uint32_t random_length(world *w)
{
    static const uint32_t huge[] = {KVK_MAX_TOKENS, UINT32_MAX, KVK_MAX_TOKENS + 1, UINT32_MAX - 2};
    if (world_one_in(w, 50))
        return huge[world_random(w, 4)];
    if (world_one_in(w, 10))
        return world_random(w, TWIN_TOKENS + 20);
    return world_random(w, world_one_in(w, 3) ? 12 : 4);
}

void op_can_reserve(world *w)
{
    kvk_seq handle = world_pick_seq(w);
    uint32_t n = random_length(w);
    kvk_effort effort = (kvk_effort)world_random(w, 3);
    world_say(w, "can_reserve %llu %u effort %u", print(handle), n, effort);
    world_expect(w, "kvk_can_reserve", twin_can_reserve(&w->twin, handle, n, effort),
                 kvk_can_reserve(w->cache, handle, n, effort));
}

void world_reserve(world *w, kvk_seq handle, uint32_t n, kvk_effort effort)
{
    twin_seq *s = twin_find(&w->twin, handle);
    int rc;
    if (s && n > TWIN_ENTRIES * w->twin.config.page_tokens - s->n_tokens &&
        twin_can_reserve(&w->twin, handle, n, effort) == KVK_OK)
        return; /* with windows a sequence can become longer than the twin can remember */
    world_say(w, "reserve %llu %u effort %u", print(handle), n, effort);
    int can = kvk_can_reserve(w->cache, handle, n, effort);
    do {
        world_arm(w);
        rc = kvk_reserve(w->cache, handle, n, effort);
    } while (world_struck(w, rc));
    world_expect(w, "kvk_reserve", twin_reserve(&w->twin, handle, n, effort), rc);
    world_expect(w, "what kvk_can_reserve said",
                 rc >= 0             ? KVK_OK
                 : rc == KVK_ENEVER  ? KVK_NEVER
                 : rc == KVK_ENOPAGE ? KVK_LATER
                                     : rc,
                 can);
    if (rc >= 0 && n)
        world_bind(w, handle);
}

void op_reserve(world *w)
{
    kvk_seq handle = world_pick_seq(w);
    uint32_t n = random_length(w);
    world_reserve(w, handle, n, (kvk_effort)world_random(w, 3));
}

void op_truncate(world *w)
{
    kvk_seq handle = world_pick_seq(w);
    const twin_seq *s = twin_find(&w->twin, handle);
    uint32_t held = s ? s->n_tokens : 0, n = world_random(w, held + 1);
    if (world_one_in(w, 8))
        n = held + world_random(w, 3);
    else if (world_one_in(w, 2) && held > 3)
        n = held - world_random(w, 4);
    world_say(w, "truncate %llu to %u", print(handle), n);
    world_expect(w, "kvk_truncate", twin_truncate(&w->twin, handle, n), kvk_truncate(w->cache, handle, n));
}

/* ---- The next operation ---- */

static const struct {
    void (*run)(world *w);
    uint32_t weight;
} ops[] = {
    {op_open, 7},        {op_close, 5},    {op_fork, 5},          {op_set_priority, 1}, {op_attach, 10}, {op_lookup, 3},
    {op_can_reserve, 5}, {op_reserve, 20}, {op_commit, 20},       {op_truncate, 4},     {op_plan, 14},   {op_end, 11},
    {op_moves, 5},       {op_reset, 1},    {op_bad_arguments, 1}, {op_preempt, 3},      {op_swap_in, 5}, {op_victim, 1},
    {op_pin, 1},         {op_unpin, 3},    {op_decode, 6},        {op_set_eviction, 5}, {op_evict, 2},   {op_retain, 3},
    {op_set_time, 2},    {op_resize, 1},   {op_listen, 1},        {op_reload, 1},
};

void world_check(world *w)
{
    if (w->fault && w->n_ops >= w->plant_from)
        world_plant_fault(w);
    world_compare(w);
    if (!w->fault && w->n_ops % w->audit_every == 0)
        world_audit(w);
    w->n_ops++;
}

void world_step(world *w)
{
    uint32_t total = 0, i = 0;
    for (uint32_t k = 0; k < sizeof ops / sizeof ops[0]; k++)
        total += ops[k].weight;
    uint32_t draw = world_random(w, total);
    for (; draw >= ops[i].weight; i++)
        draw -= ops[i].weight;
    ops[i].run(w);
    world_check(w);
}
