#include "page/prefix.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* What comes before the row in the hashed bytes. */
typedef struct hashed_head {
    uint64_t parent_lo, parent_hi;
    scope scope;
} hashed_head;

int prefix_open(prefix *p, memory *from, const prefix_config *config)
{
    *p = (prefix){.memory = from,
                  .row_bytes = config->row_bytes,
                  .n_groups = config->n_groups,
                  .windows = config->windows,
                  .seed = config->seed,
                  .hash_mask = UINT64_MAX,
                  .dead = NODE_NONE,
                  .roots = LIST_EMPTY};
    map_open(&p->index, from);
    p->scratch = memory_take(from, sizeof(hashed_head) + p->row_bytes);
    return p->scratch ? 0 : KVK_ENOMEM;
}

void prefix_close(prefix *p)
{
    memory *m = p->memory;
    if (!m)
        return;
    map_close(&p->index);
    memory_give(m, p->nodes, p->node_cap * sizeof *p->nodes);
    memory_give(m, p->rows, (size_t)p->row_cap * p->row_bytes);
    memory_give(m, p->scopes, p->scope_cap * sizeof *p->scopes);
    memory_give(m, p->copies, p->copies_cap * sizeof *p->copies);
    memory_give(m, p->holders, p->holder_cap * sizeof *p->holders);
    memory_give(m, p->scratch, sizeof(hashed_head) + p->row_bytes);
}

int prefix_prepare(prefix *p, uint32_t more, uint32_t n_pages)
{
    uint64_t dead = p->n_nodes - p->n_live, nodes = p->n_nodes + (more > dead ? more - dead : 0);
    if (memory_grow(p->memory, &p->nodes, &p->node_cap, nodes, sizeof *p->nodes) < 0 ||
        memory_grow(p->memory, &p->rows, &p->row_cap, nodes, p->row_bytes) < 0 ||
        memory_grow(p->memory, &p->scopes, &p->scope_cap, nodes, sizeof *p->scopes) < 0 ||
        memory_grow(p->memory, &p->copies, &p->copies_cap, nodes * p->n_groups, sizeof *p->copies) < 0 ||
        memory_grow(p->memory, &p->holders, &p->holder_cap, n_pages, sizeof *p->holders) < 0)
        return KVK_ENOMEM;
    return map_prepare(&p->index, more);
}

static XXH128_hash_t key_of(const prefix *p, const content *c)
{
    hashed_head head = {0};
    if (c->parent == NODE_NONE) {
        head.scope = *c->scope;
    } else {
        head.parent_lo = p->nodes[c->parent].lo;
        head.parent_hi = p->nodes[c->parent].hi;
    }
    memcpy(p->scratch, &head, sizeof head);
    memcpy(p->scratch + sizeof head, c->row, p->row_bytes);
    XXH128_hash_t key = XXH3_128bits_withSeed(p->scratch, sizeof head + p->row_bytes, p->seed);
    key.low64 &= p->hash_mask;
    key.high64 &= p->hash_mask;
    return key;
}

static int holds(const prefix *p, uint32_t id, const content *c)
{
    return p->nodes[id].parent == c->parent && !memcmp(prefix_row(p, id), c->row, p->row_bytes) &&
           (c->parent != NODE_NONE || prefix_same_scope(&p->scopes[id], c->scope));
}

/* The first node of the chain of nodes with this `lo`. */
static uint32_t chain_head(const prefix *p, uint64_t lo)
{
    uint64_t id = map_get(&p->index, lo);
    return id == MAP_NONE ? NODE_NONE : (uint32_t)id;
}

uint32_t prefix_find(const prefix *p, const content *c)
{
    XXH128_hash_t key = key_of(p, c);
    uint32_t id = chain_head(p, key.low64);
    while (id != NODE_NONE && !(p->nodes[id].hi == key.high64 && holds(p, id, c)))
        id = p->nodes[id].next;
    return id;
}

static uint32_t take_node(prefix *p)
{
    uint32_t id = p->dead;
    if (id == NODE_NONE)
        return p->n_nodes++;
    p->dead = p->nodes[id].next;
    return id;
}

static list_items sibling_links(const prefix *p)
{
    return (list_items){&p->nodes->sibling, sizeof *p->nodes};
}

uint32_t prefix_add(prefix *p, const content *c)
{
    XXH128_hash_t key = key_of(p, c);
    uint32_t id = take_node(p);
    p->nodes[id] = (prefix_node){.lo = key.low64,
                                 .hi = key.high64,
                                 .parent = c->parent,
                                 .children = LIST_EMPTY,
                                 .next = chain_head(p, key.low64)};
    p->scopes[id] = *c->scope;
    memcpy(p->rows + (size_t)id * p->row_bytes, c->row, p->row_bytes);
    for (uint32_t g = 0; g < p->n_groups; g++)
        p->copies[(size_t)id * p->n_groups + g] = LIST_EMPTY;
    map_set(&p->index, key.low64, id);
    list_push_tail(prefix_children(p, c->parent), sibling_links(p), id);
    p->n_live++;
    return id;
}

static list_items holder_links(const prefix *p)
{
    return (list_items){p->holders, sizeof *p->holders};
}

static list *copies_of(prefix *p, uint32_t id, uint32_t group)
{
    return &p->copies[(size_t)id * p->n_groups + group];
}

void prefix_hold(prefix *p, uint32_t id, uint32_t group, uint32_t page)
{
    list *copies = copies_of(p, id, group);
    p->holders[page].group = group;
    p->nodes[id].holders++;
    list_push_tail(copies, holder_links(p), page);
    if (p->watch && copies->count == 1)
        p->watch(p->watch_ctx, id, group, page, 1);
}

static void unchain(prefix *p, uint32_t id)
{
    prefix_node *n = &p->nodes[id];
    uint32_t before = chain_head(p, n->lo);
    if (before != id) {
        while (p->nodes[before].next != id)
            before = p->nodes[before].next;
        p->nodes[before].next = n->next;
    } else if (n->next != NODE_NONE) {
        map_set(&p->index, n->lo, n->next);
    } else {
        map_remove(&p->index, n->lo);
    }
}

/* Lets a node go if nothing needs it, and then its ancestors likewise. */
static void bury(prefix *p, uint32_t id)
{
    while (id != NODE_NONE && !prefix_is_live(p, id)) {
        uint32_t parent = p->nodes[id].parent;
        unchain(p, id);
        list_remove(prefix_children(p, parent), sibling_links(p), id);
        p->nodes[id].next = p->dead;
        p->dead = id;
        p->n_live--;
        id = parent;
    }
}

void prefix_drop(prefix *p, uint32_t id, uint32_t page)
{
    uint32_t group = p->holders[page].group;
    list *copies = copies_of(p, id, group);
    list_remove(copies, holder_links(p), page);
    p->nodes[id].holders--;
    if (p->watch && copies->count == 0)
        p->watch(p->watch_ctx, id, group, page, 0);
    bury(p, id);
}

void prefix_pin(prefix *p, uint32_t id)
{
    if (id != NODE_NONE)
        p->nodes[id].pins++;
}

void prefix_unpin(prefix *p, uint32_t id)
{
    if (id == NODE_NONE)
        return;
    p->nodes[id].pins--;
    bury(p, id);
}
