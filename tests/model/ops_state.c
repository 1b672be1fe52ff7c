/* ops_state.c: saving the state, and going on with what was loaded. */
#include <string.h>

#include "world.h"

typedef struct {
    world *world;
    size_t n, at;
    char bytes[1 << 20];
} file;

static int write_bytes(void *ctx, const char *bytes, size_t n)
{
    file *f = ctx;
    world_expect(f->world, "a call from a writer", KVK_EREENTRY, kvk_seq_close(f->world->cache, 1));
    world_expect(f->world, "the state is not too large", true, n <= sizeof f->bytes - f->n);
    memcpy(f->bytes + f->n, bytes, n);
    f->n += n;
    return 0;
}

/* Pieces of any size. */
static int64_t read_bytes(void *ctx, char *bytes, size_t n)
{
    file *f = ctx;
    size_t left = f->n - f->at, most = 1 + world_random(f->world, 3000);
    n = n < left ? n : left;
    n = n < most ? n : most;
    memcpy(bytes, f->bytes + f->at, n);
    f->at += n;
    return (int64_t)n;
}

static int save(world *w, file *f)
{
    int rc;
    do {
        f->n = 0;
        world_arm(w);
        rc = kvk_save(w->cache, write_bytes, f);
    } while (world_struck(w, rc));
    return rc;
}

static int load(world *w, kvk_cache *to, file *f)
{
    int rc;
    do {
        f->at = 0;
        world_arm(w);
        rc = kvk_load(to, read_bytes, f);
    } while (world_struck(w, rc));
    return rc;
}

/* An empty cache of the same kind; what the state brings along may differ. */
static kvk_cache *open_another(world *w)
{
    kvk_config config = w->config;
    kvk_cache *cache = NULL;
    int rc;
    config.groups = w->config.groups ? w->groups : NULL;
    if (world_one_in(w, 2)) {
        config.n_pages = 1 + world_random(w, TWIN_PAGES);
        config.watermark = 0;
        config.hash_seed++;
        config.reclaim = world_random(w, 4);
    }
    do {
        world_arm(w);
        rc = kvk_cache_open(&config, &cache);
    } while (world_struck(w, rc));
    world_expect(w, "kvk_cache_open", 0, rc);
    world_listen(w, cache, w->twin.listening);
    return cache;
}

static void go_on_with(world *w, kvk_cache *cache)
{
    kvk_cache_close(w->cache);
    w->cache = cache;
    w->recorded = false;
}

/* A file of which one byte changed is not taken. */
static void load_damaged(world *w, file *f)
{
    char *byte = &f->bytes[world_random(w, (uint32_t)f->n)], was = *byte;
    *byte = (char)(was ^ (char)(1 << world_random(w, 8)));
    world_expect(w, "kvk_load of a damaged state", w->recorded ? KVK_EBUSY : KVK_EFORMAT, load(w, w->cache, f));
    *byte = was;
}

/* A policy that is not the library's can't be found again. */
static bool has_policy_of_the_tests(const twin *t)
{
    for (uint32_t i = 0; i < TWIN_SEQS; i++) {
        const kvk_policy *policy = t->seqs[i].eviction.policy;
        if (t->seqs[i].handle && (policy == &world_witness || policy == &world_nonsense))
            return true;
    }
    return false;
}

void op_reload(world *w)
{
    static file f;
    f.world = w;
    world_say(w, "save and load");
    bool quiet = twin_is_quiet(&w->twin), foreign = has_policy_of_the_tests(&w->twin);
    world_expect(w, "kvk_save", !quiet ? KVK_EBUSY : foreign ? KVK_ESTATE : 0, save(w, &f));
    if (!quiet || foreign)
        return;
    if (world_one_in(w, 4))
        load_damaged(w, &f);
    kvk_cache *other = world_one_in(w, 2) ? open_another(w) : NULL;
    w->loading = other;
    int rc = load(w, other ? other : w->cache, &f);
    w->loading = NULL;
    world_expect(w, "kvk_load", w->recorded && !other ? KVK_EBUSY : 0, rc);
    if (rc < 0)
        return;
    if (other)
        go_on_with(w, other);
    w->n_keys = 0; /* keys that were made to collide do so no more */
    twin_reload(&w->twin);
}
