/* ops_pressure.c: preempting, pins, retention, time and resizing. */
#include "world.h"

static unsigned long long print(uint64_t handle)
{
    return (unsigned long long)handle;
}

void op_preempt(world *w)
{
    kvk_seq handle = world_pick_seq(w);
    kvk_preempt_how how = world_one_in(w, 3) ? KVK_PREEMPT_RECOMPUTE : KVK_PREEMPT_SWAP;
    int rc;
    world_say(w, "preempt %llu by %s", print(handle), how == KVK_PREEMPT_SWAP ? "swap" : "recompute");
    do {
        world_arm(w);
        rc = kvk_preempt(w->cache, handle, how);
    } while (world_struck(w, rc));
    world_expect(w, "kvk_preempt", twin_preempt(&w->twin, handle, how), rc);
}

void op_swap_in(world *w)
{
    kvk_seq handle = world_pick_seq(w);
    kvk_effort effort = (kvk_effort)world_random(w, 3);
    int rc;
    for (uint32_t i = 0; i < TWIN_SEQS && !world_one_in(w, 10); i++) {
        const twin_seq *s = &w->twin.seqs[i];
        if (s->handle && s->swapped)
            handle = s->handle;
    }
    world_say(w, "swap_in %llu effort %u", print(handle), effort);
    do {
        world_arm(w);
        rc = kvk_swap_in(w->cache, handle, effort);
    } while (world_struck(w, rc));
    world_expect(w, "kvk_swap_in", twin_swap_in(&w->twin, handle, effort), rc);
}

void op_victim(world *w)
{
    kvk_seq want = 1, got = 1;
    world_say(w, "victim");
    world_expect(w, "kvk_victim", twin_victim(&w->twin, &want), kvk_victim(w->cache, &got));
    world_expect(w, "the victim", (int64_t)want, (int64_t)got);
}

/* Mostly one that has something to pin. */
static kvk_seq pick_named(world *w)
{
    const twin_seq *s = world_one_in(w, 10) ? NULL : world_pick_open(w);
    return s && !s->swapped ? s->handle : world_pick_seq(w);
}

static uint32_t pin_length(world *w, kvk_seq handle)
{
    const twin_seq *s = twin_find(&w->twin, handle);
    if (s && !world_one_in(w, 8))
        return world_one_in(w, 2) ? s->n_committed : world_random(w, s->n_committed + 1);
    return world_random(w, TWIN_TOKENS);
}

void op_pin(world *w)
{
    kvk_seq handle = pick_named(w);
    uint32_t n = pin_length(w, handle);
    int rc;
    world_say(w, "pin %llu %u", print(handle), n);
    do {
        world_arm(w);
        rc = kvk_pin(w->cache, handle, n);
    } while (world_struck(w, rc));
    world_expect(w, "kvk_pin", twin_change_pins(&w->twin, handle, n, 1), rc);
}

/* Is the first page that the sequence holds pinned? */
static bool is_pinned(const world *w, const twin_seq *s)
{
    return s->handle && !s->swapped && twin_holds(s, 0, s->first[0]) && w->twin.pages[s->table[0][s->first[0]]].pins;
}

/* As much of the sequence as can be unpinned. */
static uint32_t pinned_length(const world *w, const twin_seq *s)
{
    uint32_t i = s->first[0];
    while (i < s->end && (!twin_holds(s, 0, i) || w->twin.pages[s->table[0][i]].pins))
        i++;
    return i * w->twin.config.page_tokens;
}

void op_unpin(world *w)
{
    kvk_seq handle = pick_named(w);
    uint32_t n = pin_length(w, handle);
    int rc;
    for (uint32_t i = 0; i < TWIN_SEQS && !world_one_in(w, 10); i++) {
        if (!is_pinned(w, &w->twin.seqs[i]))
            continue;
        handle = w->twin.seqs[i].handle;
        n = pinned_length(w, &w->twin.seqs[i]);
    }
    world_say(w, "unpin %llu %u", print(handle), n);
    do {
        world_arm(w);
        rc = kvk_unpin(w->cache, handle, n);
    } while (world_struck(w, rc));
    world_expect(w, "kvk_unpin", twin_change_pins(&w->twin, handle, n, -1), rc);
}

static kvk_retention draw_range(world *w)
{
    static const uint32_t priorities[] = {0, 10, KVK_RETAIN_DEFAULT, 36, 63, 64, 80, 100};
    kvk_retention r = {.begin = world_random(w, 24), .priority = priorities[world_random(w, 8)]};
    r.end = world_one_in(w, 3) ? UINT32_MAX : r.begin + 1 + world_random(w, 24);
    r.duration_ms = world_one_in(w, 2) ? 0 : 1 + world_random(w, 40);
    if (world_one_in(w, 20))
        r.duration_ms = UINT64_MAX - world_random(w, 60);
    if (world_one_in(w, 60))
        r.priority = 101;
    if (world_one_in(w, 60))
        r.end = r.begin;
    return r;
}

void op_retain(world *w)
{
    kvk_retention ranges[KVK_MAX_RETENTIONS + 1];
    kvk_seq handle = world_pick_seq(w);
    uint32_t n = world_random(w, world_one_in(w, 10) ? KVK_MAX_RETENTIONS + 2 : 4);
    int rc;
    for (uint32_t i = 0; i < n; i++)
        ranges[i] = draw_range(w);
    world_say(w, "retain %llu, %u ranges", print(handle), n);
    do {
        world_arm(w);
        rc = kvk_retain(w->cache, handle, ranges, n);
    } while (world_struck(w, rc));
    world_expect(w, "kvk_retain", twin_retain(&w->twin, handle, ranges, n), rc);
}

void op_set_time(world *w)
{
    uint64_t now = w->twin.now + world_random(w, 30);
    if (world_one_in(w, 20) && now > 40)
        now -= 40;
    world_say(w, "set_time %llu", print(now));
    world_expect(w, "kvk_set_time", twin_set_time(&w->twin, now), kvk_set_time(w->cache, now));
}

/* Half of the time back to where it began, else to some more or less than that, seldom down to one page. */
void op_resize(world *w)
{
    uint32_t n = w->n_pages, least = world_one_in(w, 4) ? 1 : 1 + n * 2 / 3;
    if (world_one_in(w, 2))
        n = least + world_random(w, n + 9 - least);
    bool move = world_one_in(w, 2);
    int rc;
    world_say(w, "resize to %u%s", n, move ? ", moving" : "");
    do {
        world_arm(w);
        rc = kvk_resize(w->cache, n, move);
    } while (world_struck(w, rc));
    world_expect(w, "kvk_resize", twin_resize(&w->twin, n, move), rc);
}

void op_listen(world *w)
{
    world_say(w, "set_events");
    world_listen(w, w->cache, world_one_in(w, 2));
}
