/* world.h: a cache and its twin, side by side. */
#ifndef WORLD_H
#define WORLD_H

#include "twin.h"

enum {
    WORLD_STALE = 8,
    WORLD_VIOLATED = 128,
    WORLD_EVENTS = TWIN_EVENTS,
    WORLD_ROW = TWIN_PAGE_TOKENS * 4 > 16 ? TWIN_PAGE_TOKENS * 4 : 16
};

/* An event as it came. */
typedef struct {
    kvk_event event;
    unsigned char row[WORLD_ROW]; /* the page's tokens or key */
} world_event;

/* The key that a content was told with. */
typedef struct {
    twin_text content;
    kvk_key key;
} world_key;

/* What a sequence held when it last reserved. */
typedef struct {
    kvk_seq seq; /* 0: nothing is known */
    uint32_t n_tokens;
    int held[TWIN_GROUPS]; /* entries with tokens */
} world_bound;

/* An allocator that counts what is held and, while armed, fails at random. */
typedef struct {
    bool armed, retrying;
    uint64_t random;
    size_t n_held; /* bytes */
} world_memory;

typedef struct {
    kvk_cache *cache;
    kvk_cache *loading; /* another one, while it is loaded */
    kvk_config config;  /* it was opened with */
    kvk_group groups[TWIN_GROUPS];
    twin twin;
    world_memory memory;
    kvk_allocator allocator;
    uint64_t seed, random, n_ops;
    uint32_t n_pages;   /* when it was opened */
    uint32_t n_letters; /* of the alphabet that texts are made of: few, so that prefixes collide */
    uint64_t audit_every;
    bool fail_allocations;
    bool evicts;       /* most sequences begin with a policy */
    bool own_policies; /* there are such of the tests */
    bool by_hand;      /* pages are dropped as the caller says */
    world_bound bounds[TWIN_SEQS];
    bool recorded;
    world_event events[WORLD_EVENTS]; /* since the last comparison */
    uint32_t n_events;
    world_key keys[64]; /* lately told, each in the place of the oldest */
    uint32_t n_keys;
    kvk_seq stale_seqs[WORLD_STALE]; /* closed handles; 0 at first */
    kvk_batch stale_batches[WORLD_STALE];
    const char *fault;             /* to plant; NULL: none */
    uint64_t plant_from;           /* the first operation before which it may be */
    uint64_t planted_at;           /* 0: not yet */
    char violated[WORLD_VIOLATED]; /* since then: invariants, in one line */
    char what[512];                /* the operation under way, in words */
} world;

/* Opens a cache with random parameters and its twin. */
void world_open(world *w);

/* Closes it; every byte must come back. */
void world_close(world *w);

/* One random operation on both, compared. */
void world_step(world *w);

/* An operation was made on both: is all alike? */
void world_check(world *w);

/* Everything that can be seen of the cache must be as the twin has it. */
void world_compare(world *w);
void world_audit(world *w);

/* A number below `n`. */
uint32_t world_random(world *w, uint32_t n);
bool world_one_in(world *w, uint32_t n);

void world_say(world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Ends the program unless `got` is `want`. */
void world_expect(world *w, const char *name, int64_t want, int64_t got);

/* Leaves the cache's content index hashes with few bits, those in `mask`, so that different contents collide. */
void world_collide(kvk_cache *cache, uint64_t mask);

/* Plants a fault in the cache, if there is occasion for it: "tainted", "pinned", "twice", "limbo" or "mass". */
bool world_plant(kvk_cache *cache, const char *fault);
void world_plant_fault(world *w);

/* Around a call: do { world_arm(w); rc = call; } while (world_struck(w, rc)); A failed allocation must have changed
 * nothing, and then the call is made again without failures. */
void world_arm(world *w);
bool world_struck(world *w, int rc);

/* A sequence to work on, now and then a closed handle or none. */
kvk_seq world_pick_seq(world *w);
kvk_batch world_pick_batch(world *w);
twin_seq *world_pick_open(world *w);

/* Policies of the tests' own. */
extern const kvk_policy world_witness, world_nonsense;

/* Masses for a batch; `accepted` becomes what goes with them. */
const kvk_masses *world_draw_masses(world *w, const twin_batch *b, uint32_t *accepted);

/* A sequence has reserved; what it holds may grow in other ways. */
void world_bind(world *w, kvk_seq handle);
void world_unbind(world *w, kvk_seq handle);
void world_check_bound(world *w, const twin_seq *s);
void world_check_evicted(world *w, const kvk_event *event);

/* Compares what can be seen of a sequence's eviction. */
void world_compare_eviction(world *w, const twin_seq *s);

/* Events: takes them in, and compares them with those that the twin expects. */
void world_listen(world *w, kvk_cache *cache, bool on);
void world_compare_events(world *w);

/* Operations as asked for. */
void world_reserve(world *w, kvk_seq handle, uint32_t n, kvk_effort effort);
void world_commit(world *w, kvk_seq handle, uint32_t n);
bool world_has_batch_place(const world *w);
kvk_batch world_plan(world *w, kvk_seq handle, uint32_t n_query); /* 0: it was refused */
void world_end(world *w, kvk_batch handle);
void world_set_eviction(world *w, kvk_seq handle);

/* Operations. */
void op_open(world *w);
void op_close(world *w);
void op_fork(world *w);
void op_set_priority(world *w);
void op_attach(world *w);
void op_lookup(world *w);
void op_can_reserve(world *w);
void op_reserve(world *w);
void op_commit(world *w);
void op_truncate(world *w);
void op_reset(world *w);
void op_plan(world *w);
void op_end(world *w);
void op_moves(world *w);
void op_preempt(world *w);
void op_swap_in(world *w);
void op_victim(world *w);
void op_pin(world *w);
void op_unpin(world *w);
void op_retain(world *w);
void op_set_time(world *w);
void op_resize(world *w);
void op_set_eviction(world *w);
void op_evict(world *w);
void op_decode(world *w);
void op_listen(world *w);
void op_reload(world *w);
void op_bad_arguments(world *w);

#endif
