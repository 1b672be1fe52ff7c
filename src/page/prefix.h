/* page/prefix.h: the content index, which finds pages by what they hold.
 *
 * A node is the content of one full page together with everything before it: its parent node, its row (the page's
 * tokens, or the caller's key) and, at the root, the scope (salt and adapter). Pages hold nodes: several pages may
 * hold the same one, a page holds at most one. A node lives while a page holds it, a child names it or a sequence
 * goes on from it, so a parent never dies before its child. A node's key is XXH3-128(parent's key, scope, row): the
 * map from keys is only an index, and a hit is taken after parent, scope and row compared equal, so a collision costs
 * time and nothing else.
 *
 * Every function is O(row) and none but prefix_prepare allocates. */
#ifndef KVK_PAGE_PREFIX_H
#define KVK_PAGE_PREFIX_H

#include "base/list.h"
#include "base/map.h"

#include <kvkeep/kvkeep.h>

#define NODE_NONE UINT32_MAX /* also the parent of a sequence's first page */

typedef struct scope {
    kvk_key salt;
    uint64_t adapter;
} scope;

typedef struct prefix_node {
    uint64_t lo, hi;   /* its key */
    uint32_t parent;   /* NODE_NONE at the root */
    uint32_t pins;     /* sequences that go on from it */
    list children;     /* nodes that name it as parent, oldest first */
    list_link sibling; /* among its parent's children */
    uint32_t holders;  /* pages that hold it, all groups */
    uint32_t next;     /* node with the same `lo`; of a dead node, the next dead one */
} prefix_node;

typedef struct holder {
    list_link link; /* among the pages of one group that hold the same node, oldest first */
    uint32_t group;
} holder;

typedef struct prefix_config {
    uint32_t row_bytes, n_groups;
    const uint32_t *windows; /* [n_groups] tokens, 0: no window; the caller's */
    uint64_t seed;
} prefix_config;

/* `came` is 1 when the first page of a group came to hold the node, 0 when the last one went. */
typedef void (*prefix_watch)(void *ctx, uint32_t id, uint32_t group, uint32_t page, int came);

typedef struct prefix {
    memory *memory;
    uint32_t row_bytes, n_groups;
    uint64_t seed;
    uint64_t hash_mask; /* all ones; tests take bits away to force collisions */
    const uint32_t *windows;
    map index;          /* lo -> first node */
    prefix_node *nodes; /* [node_cap] */
    uint8_t *rows;      /* [row_cap][row_bytes] */
    scope *scopes;      /* [scope_cap] */
    list *copies;       /* [copies_cap / n_groups][n_groups] pages that hold the node */
    holder *holders;    /* [holder_cap] by page id */
    prefix_watch watch; /* told when a content's first page of a group comes and its last one goes; may be NULL */
    void *watch_ctx;
    uint8_t *scratch; /* what is hashed */
    uint32_t node_cap, row_cap, scope_cap, copies_cap, holder_cap;
    uint32_t n_nodes; /* ever made: those beyond were never used */
    uint32_t n_live, dead;
    list roots; /* nodes without a parent, oldest first */
} prefix;

/* What a node is asked for by. */
typedef struct content {
    uint32_t parent;
    const scope *scope; /* counts only at the root */
    const void *row;    /* row_bytes */
} content;

int prefix_open(prefix *p, memory *from, const prefix_config *config);
void prefix_close(prefix *p);

/* Makes sure that `more` nodes can be added, and pages below `n_pages` hold them, without allocating. KVK_ENOMEM. */
int prefix_prepare(prefix *p, uint32_t more, uint32_t n_pages);

/* The node with this content, or NODE_NONE. */
uint32_t prefix_find(const prefix *p, const content *c);

/* Adds a node that prefix_find does not find. Some page must hold it before the next call. */
uint32_t prefix_add(prefix *p, const content *c);

/* A page of a group holds the node from now on; it must hold none. */
void prefix_hold(prefix *p, uint32_t id, uint32_t group, uint32_t page_id);

static inline int prefix_same_scope(const scope *a, const scope *b)
{
    return a->salt.lo == b->salt.lo && a->salt.hi == b->salt.hi && a->adapter == b->adapter;
}

/* The node's children, oldest first, or those without a parent. */
static inline list *prefix_children(prefix *p, uint32_t id)
{
    return id == NODE_NONE ? &p->roots : &p->nodes[id].children;
}

/* A sequence goes on from the node, or does so no more. NODE_NONE is ignored. */
void prefix_pin(prefix *p, uint32_t id);
void prefix_unpin(prefix *p, uint32_t id);

/* A page holds its node no more. Nodes that neither a page nor a child needs any more go. Amortised O(1). */
void prefix_drop(prefix *p, uint32_t id, uint32_t page_id);

/* The oldest page of a group that holds the node, or LIST_NONE. */
static inline uint32_t prefix_page(const prefix *p, uint32_t id, uint32_t group)
{
    return p->copies[(size_t)id * p->n_groups + group].head;
}

/* True if the page is the only copy, in its group, of content on which longer content hangs. In a group with a window
 * longer content does not need it. */
static inline int prefix_is_inner(const prefix *p, uint32_t id, uint32_t page)
{
    uint32_t group = p->holders[page].group;
    return p->windows[group] == 0 && p->nodes[id].children.count > 0 &&
           p->copies[(size_t)id * p->n_groups + group].count == 1;
}

static inline int prefix_is_live(const prefix *p, uint32_t id)
{
    const prefix_node *n = &p->nodes[id];
    return n->holders > 0 || n->children.count > 0 || n->pins > 0;
}

static inline const void *prefix_row(const prefix *p, uint32_t id)
{
    return p->rows + (size_t)id * p->row_bytes;
}

#endif
