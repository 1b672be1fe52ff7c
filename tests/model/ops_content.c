/* ops_content.c: attach, lookup, commit and reset with texts that collide a lot. */
#include <string.h>

#include "world.h"

enum { MOST_TOKENS = TWIN_TOKENS + 20 };

typedef struct {
    kvk_text text;
    uint32_t tokens[MOST_TOKENS];
    kvk_key keys[MOST_TOKENS];
    kvk_extra extras[MOST_TOKENS];
} random_text;

static void draw_text(world *w, random_text *r, uint32_t n_tokens, uint32_t n_keys)
{
    for (uint32_t i = 0; i < n_tokens; i++)
        r->tokens[i] = world_random(w, w->n_letters);
    for (uint32_t i = 0; i < n_keys; i++)
        r->keys[i] = (kvk_key){world_random(w, w->n_letters), world_one_in(w, 8)};
    r->text = (kvk_text){.n_tokens = n_tokens};
    if (w->twin.config.content == KVK_CONTENT_TOKENS)
        r->text.tokens = r->tokens;
    if (w->twin.config.content == KVK_CONTENT_KEYS) {
        r->text.keys = r->keys;
        r->text.n_keys = n_keys;
    }
}

/* Extra keys at some places, where there may be any; now and then they are in disorder. */
static void draw_extras(world *w, random_text *r, const twin_text *head)
{
    bool some = w->twin.config.extra_keys ? world_one_in(w, 2) : world_one_in(w, 200);
    kvk_text *text = &r->text;
    for (uint32_t i = 0; i < text->n_tokens && some; i++) {
        uint64_t lo = world_one_in(w, 12) ? 1 + world_random(w, 2) : 0;
        if (head && i < head->n_bytes / sizeof(uint32_t) && i < TWIN_TOKENS && !world_one_in(w, 40))
            lo = head->extras[i];
        if (lo)
            r->extras[text->n_extras++] = (kvk_extra){.position = i, .key = {lo, 0}};
    }
    if (text->n_extras && world_one_in(w, 40))
        r->extras[world_random(w, text->n_extras)].position += 1 + world_random(w, 3);
    text->extras = text->n_extras ? r->extras : NULL;
}

/* Most prompts begin as something that was committed. */
static const twin_text *copy_head(world *w, random_text *r)
{
    const twin_text *head = &w->twin.pages[world_random(w, w->n_pages)].content;
    bool keys = w->twin.config.content == KVK_CONTENT_KEYS;
    uint32_t has = keys ? r->text.n_keys * (uint32_t)sizeof(kvk_key) : r->text.n_tokens * (uint32_t)sizeof(uint32_t);
    memcpy(keys ? (void *)r->keys : (void *)r->tokens, head->bytes, has < head->n_bytes ? has : head->n_bytes);
    return head;
}

static void draw_prompt(world *w, random_text *r)
{
    uint32_t n = world_random(w, world_one_in(w, 3) ? MOST_TOKENS : 24), n_keys = n / w->twin.config.page_tokens;
    if (world_one_in(w, 5))
        n_keys = world_random(w, n_keys + 2);
    draw_text(w, r, n, n_keys);
    draw_extras(w, r, world_one_in(w, 3) ? NULL : copy_head(w, r));
}

void op_attach(world *w)
{
    random_text r;
    kvk_seq handle = world_pick_seq(w);
    for (uint32_t i = 0; i < TWIN_SEQS && !world_one_in(w, 10); i++) {
        const twin_seq *s = &w->twin.seqs[i];
        if (s->handle && s->n_tokens == 0 && !s->swapped)
            handle = s->handle;
    }
    int rc;
    draw_prompt(w, &r);
    world_say(w, "attach %llu, %u tokens, %u keys", (unsigned long long)handle, r.text.n_tokens, r.text.n_keys);
    do {
        world_arm(w);
        rc = kvk_prefix_attach(w->cache, handle, &r.text);
    } while (world_struck(w, rc));
    world_expect(w, "kvk_prefix_attach", twin_attach(&w->twin, handle, &r.text), rc);
    world_unbind(w, handle);
}

void op_lookup(world *w)
{
    random_text r;
    kvk_seq_params params = {.size = sizeof params, .salt = {world_one_in(w, 6), 0}, .adapter = world_one_in(w, 6)};
    draw_prompt(w, &r);
    world_say(w, "lookup %u tokens, %u keys", r.text.n_tokens, r.text.n_keys);
    world_expect(w, "kvk_prefix_lookup", twin_lookup(&w->twin, &params, &r.text),
                 kvk_prefix_lookup(w->cache, &params, &r.text));
}

/* Mostly what the sequence has computed and not yet named, else what fits, seldom more than that. */
static uint32_t commit_length(world *w, const twin_seq *s)
{
    if (!s || s->swapped)
        return world_random(w, 4);
    uint32_t room = s->end * w->twin.config.page_tokens - s->n_committed;
    uint32_t due = world_one_in(w, 2) ? s->n_tokens - s->n_committed : room;
    if (world_one_in(w, 8))
        return due + world_random(w, 3);
    return world_random(w, due + 1);
}

void world_commit(world *w, kvk_seq handle, uint32_t n)
{
    random_text r;
    const twin_seq *s = twin_find(&w->twin, handle);
    uint32_t was = s ? s->n_committed : 0, page_tokens = w->twin.config.page_tokens;
    uint32_t n_keys = (was + n) / page_tokens - was / page_tokens;
    int rc;
    draw_text(w, &r, n, world_one_in(w, 30) ? n_keys + 1 : n_keys);
    draw_extras(w, &r, NULL);
    world_say(w, "commit %llu, %u tokens, %u keys", (unsigned long long)handle, r.text.n_tokens, r.text.n_keys);
    do {
        world_arm(w);
        rc = kvk_commit(w->cache, handle, &r.text);
    } while (world_struck(w, rc));
    world_expect(w, "kvk_commit", twin_commit(&w->twin, handle, &r.text), rc);
}

void op_commit(world *w)
{
    kvk_seq handle = world_pick_seq(w);
    world_commit(w, handle, commit_length(w, twin_find(&w->twin, handle)));
}

void op_reset(world *w)
{
    uint32_t want = 0, got = 0;
    world_say(w, "reset");
    int rc = kvk_prefix_reset(w->cache, &got);
    world_expect(w, "kvk_prefix_reset", twin_reset(&w->twin, &want), rc);
    world_expect(w, "in_use", want, got);
}
