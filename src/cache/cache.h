/* cache/cache.h: the state behind a kvk_cache, and what its files share. */
#ifndef KVK_CACHE_CACHE_H
#define KVK_CACHE_CACHE_H

#include "base/checked.h"
#include "base/heap.h"
#include "page/host_pool.h"
#include "page/store.h"
#include "page/table.h"

#include <kvkeep/kvkeep.h>

#define CHAIN_ROOT NODE_NONE          /* no full page yet */
#define CHAIN_BROKEN (NODE_NONE - 1u) /* a full page without known content: nothing after it can be found */

typedef struct eviction eviction; /* cache/eviction.h */

typedef struct sequence {
    /* what every step looks at lies together */
    uint32_t generation; /* of the slot; part of the handle */
    uint32_t is_open;
    uint32_t swapped;     /* its tables name pages of the host pool */
    uint32_t n_tokens;    /* computed or planned */
    uint32_t n_committed; /* named; <= n_tokens */
    uint32_t n_in_flight;
    uint32_t unsettled;  /* where the first token of its batches in flight stands; UINT32_MAX: none is */
    table *tables;       /* [n_groups] */
    eviction *eviction;  /* taken with the first policy set or page evicted */
    uint64_t plan_mark;  /* the last look over sequences that met it */
    uint64_t last_epoch; /* of the last batch planned with it; 0 never */
    uint64_t cut_epoch;  /* batches up to this one were planned before it was last shortened */
    uint32_t shape;      /* times that pages in the middle of its tables went */

    uint32_t first_taint; /* tokens from here on were computed after a loss; UINT32_MAX: none were */
    uint64_t number;      /* in order of opening */
    uint32_t next_closed; /* closed: the next closed slot */
    int32_t priority;
    scope scope;
    uint32_t chain; /* node of the last full page named (pinned), CHAIN_ROOT or CHAIN_BROKEN */
    uint32_t n_retentions;
    kvk_retention *retentions; /* [KVK_MAX_RETENTIONS], taken with the first one set */
    uint32_t *tail; /* the row of the last page as far as it is named: [page_tokens] tokens and what extra keys make */
} sequence;

/* A batch in flight, and what was planned for each of its entries. */
typedef struct flight_entry {
    kvk_seq seq;
    uint32_t n_query;
    uint32_t end;   /* its n_tokens when planned, queries included */
    uint32_t shape; /* of its sequence when planned */
} flight_entry;

/* What a plan lists for an entry in a group. */
typedef struct listing {
    uint32_t first, n; /* pages from this number on */
    uint32_t at;       /* where their numbers begin in flight.index; UINT32_MAX: none is missing */
    uint32_t n_near;   /* the last so many have near peaks */
} listing;

typedef struct flight {
    uint64_t epoch;
    flight_entry *entries;
    uint32_t n, cap;
    int observed;      /* a sequence of it has a policy; else nothing is listed here */
    listing *listings; /* [n][n_groups] */
    uint32_t *index;   /* numbers of pages, for tables that lack some */
    uint32_t listings_cap, index_cap;
} flight;

/* A queue that moves to the front of its memory when it is empty. */
typedef struct move_queue {
    kvk_move *moves;
    uint32_t first, end, cap;
} move_queue;

typedef struct recorder recorder;

/* A page that pressure may take. */
typedef struct candidate {
    const sequence *seq;
    double price;
    float score;
    uint32_t tier, group, number;
} candidate;

/* What pages to go are worth by their table's scores. */
typedef struct weight {
    double score; /* sum of theirs */
    double share; /* of the table's */
} weight;

/* Room for decisions about one sequence, or about all. */
typedef struct evict_scratch {
    uint32_t *counts;  /* [n_groups] victims in each */
    weight *weights;   /* [n_groups] of the victims */
    uint32_t *victims; /* entries to go, group after group */
    float *score;      /* of one table */
    uint8_t *tier, *eligible;
    uint32_t *order;
    float *lanes;          /* a copy of a sequence's numbers, for policies that change them when they choose */
    float *row;            /* masses in a table's order */
    candidate *candidates; /* a heap, the dearest on top */
    uint32_t counts_cap, weights_cap, places_cap, victims_cap, score_cap, tier_cap, eligible_cap, order_cap, lanes_cap,
        row_cap, candidates_cap;
    uint32_t n_candidates;
    uint64_t *places; /* [2][n_groups] floats read of a batch's `mean` (and `peak`), and of its `near` */
} evict_scratch;

typedef struct counters {
    uint64_t preemptions, swapped_out_pages, swapped_in_pages, partial_hits;
    uint64_t pages_evicted, tokens_evicted;
    uint64_t pages_taken, cow_copies, prefix_queries, prefix_hits, prefix_page_queries, prefix_page_hits;
    uint32_t sequences, peak_sequences;
} counters;

struct kvk_cache {
    memory home;    /* where the cache itself lies */
    memory *memory; /* of all its parts: its own home, or that of the cache whose state this one is to become */
    kvk_config config;
    store store;
    host_pool host;
    uint64_t opened;     /* sequences ever */
    sequence *sequences; /* [n_slots], slots of closed ones are used again */
    uint32_t n_slots, slots_cap;
    uint32_t closed; /* top of the stack of closed slots, LIST_NONE: none */
    flight *batches; /* [n_batches] in flight, oldest first; [.. batches_made] keep their memory */
    uint32_t n_batches, batches_made, batches_cap;
    uint64_t next_epoch;
    uint64_t plans;    /* calls of kvk_batch_plan */
    int plan_observed; /* a sequence of the plan in hand has a policy */
    move_queue moves;
    uint32_t *windows;  /* [n_groups] tokens, 0: no window */
    uint8_t *row;       /* a page's content, put together of tokens and extra keys */
    uint32_t *replaced; /* [n_groups] scratch of kvk_reserve */
    uint32_t *seen;     /* [seen_cap] scratch of kvk_audit */
    uint32_t seen_cap;
    evict_scratch evict;
    kvk_group *groups;    /* [n_groups] as configured */
    float *page_near;     /* [page_near_cap][near_stride] near peaks of pages that can be found */
    uint8_t *near_sealed; /* [near_sealed_cap] 1: they are complete */
    uint32_t near_stride; /* most near peaks of a page, any group; 0: none are kept */
    uint32_t near_row;    /* of a page of text in all groups */
    uint32_t *near_first; /* [n_groups] where a group's begin in a row */
    uint32_t page_near_cap, near_sealed_cap;
    counters counters;
    int drained;    /* used pages lost their content to a resize: tables may name pages that are not found */
    int retaining;  /* a retention was set: levels and deadlines cover all pages */
    heap deadlines; /* page ids by when their priority falls back to the default */
    uint64_t now_ms;
    kvk_event_fn on_event; /* NULL: none */
    void *event_ctx;
    int in_callback;
    recorder *recorder; /* NULL: off */
};

static inline uint32_t page_tokens(const kvk_cache *c)
{
    return c->config.page_tokens;
}

/* Pages that a number of tokens fills, the last one perhaps partly. */
static inline uint32_t pages_of_tokens(const kvk_cache *c, uint32_t n_tokens)
{
    return (uint32_t)ceil_div(n_tokens, page_tokens(c));
}

static inline pool *pool_of(kvk_cache *c)
{
    return &c->store.pool;
}

static inline uint64_t oldest_open(const kvk_cache *c)
{
    return c->n_batches ? c->batches[0].epoch : c->next_epoch;
}

/* False for NULL, and from inside a callback. */
static inline int cache_is_ready(const kvk_cache *c)
{
    return c && !c->in_callback;
}

/* Why a call is refused that did not pass its first checks. */
static inline int cache_refuses(const kvk_cache *c)
{
    return c && c->in_callback ? KVK_EREENTRY : KVK_EINVAL;
}

/* Opens all parts of a zeroed cache, which take their memory from `from`. KVK_ENOMEM: close them. */
int cache_open_parts(kvk_cache *c, memory *from, const kvk_config *config);
void cache_close_parts(kvk_cache *c);

/* True if no batch is in flight, no move waits and no page drains. */
int cache_is_quiet(const kvk_cache *c);

/* ---- handles (sequence.c) */

/* The open sequence behind a handle, or NULL. */
static inline sequence *sequence_find(const kvk_cache *c, kvk_seq handle)
{
    uint32_t slot = (uint32_t)handle;
    if (slot >= c->n_slots)
        return NULL;
    sequence *s = &c->sequences[slot];
    return s->is_open && s->generation == handle >> 32 ? s : NULL;
}

/* Finds one whose pages are in place. KVK_ESTALE, KVK_ESTATE while it is swapped. */
static inline int sequence_use(const kvk_cache *c, kvk_seq handle, sequence **out)
{
    *out = sequence_find(c, handle);
    if (!*out)
        return KVK_ESTALE;
    return (*out)->swapped ? KVK_ESTATE : 0;
}

/* The same for a call that asks about one group, with its first checks; `out` has room for `cap` answers. KVK_EINVAL,
 * KVK_EREENTRY. */
int sequence_query(const kvk_cache *c, kvk_seq seq, uint32_t group, const void *out, uint32_t cap, sequence **s);

/* A slot's own memory. What was taken before a failure waits in the slot for the next try. KVK_ENOMEM. */
int sequence_furnish(kvk_cache *c, sequence *s);

/* A new slot, closed, at the end of the slots. KVK_ENOMEM. */
int sequence_add_slot(kvk_cache *c);

kvk_seq sequence_handle(const kvk_cache *c, const sequence *s);

/* The caller's parameters, defaults where it gives none. KVK_EINVAL. */
int sequence_params(const kvk_seq_params *from, kvk_seq_params *to);

/* Drops the reference to its page with number i, whose entry stays. Returns 1 if nobody refers to it any more. */
int sequence_let_go(kvk_cache *c, const sequence *s, uint32_t i, uint32_t page);

/* Room for n entries in each table, and for what is kept of them. KVK_ENOMEM. */
int sequence_prepare_tables(kvk_cache *c, sequence *s, uint64_t n);

/* Entries of its longest table. */
uint32_t sequence_longest(const kvk_cache *c, const sequence *s);

/* True if a table lacks a page between its first and its end. */
int sequence_has_lost(const kvk_cache *c, const sequence *s);

/* Gives the host pages of a swapped sequence back. */
void sequence_drop_host(kvk_cache *c, sequence *s);

/* Tokens that a sequence of this length has in entry i. */
uint32_t sequence_tokens_in(const kvk_cache *c, uint32_t n_tokens, uint32_t i);

/* Drops table entries from index `keep` on, tail first, in all groups. Returns the pages nobody refers to any more. */
int sequence_release(kvk_cache *c, sequence *s, uint32_t keep);

/* Sets how many tokens the sequence holds, and with it how much of each page it alone writes is filled. */
void sequence_set_length(kvk_cache *c, sequence *s, uint32_t n_tokens);

/* Lets the pages go, first to last, that no token after the committed ones attends to, in groups with a window. */
void sequence_slide(kvk_cache *c, sequence *s);

/* The first entry that a group needs to go on after n_tokens tokens. */
uint32_t sequence_needs_from(const kvk_cache *c, uint32_t group, uint32_t n_tokens);

/* The sequence goes on from another node. */
void sequence_follow(kvk_cache *c, sequence *s, uint32_t chain);

/* What the partial last page of a group needs before more tokens can be written into it. */
typedef enum tail_need {
    TAIL_NOTHING,
    TAIL_WITHDRAW, /* only this sequence has it, but it can be found */
    TAIL_COPY      /* another sequence has it, or had it in a batch that is in flight, or it is pinned */
} tail_need;

static inline tail_need sequence_tail_need(const kvk_cache *c, const sequence *s, uint32_t group)
{
    if (s->n_tokens % page_tokens(c) == 0)
        return TAIL_NOTHING;
    uint32_t page = *table_at(&s->tables[group], s->n_tokens / page_tokens(c));
    const page_record *g = &c->store.pool.pages[page];
    if (g->refs > 1 || g->epoch >= c->store.pool.oldest_open || pool_is_pinned(&c->store.pool, page))
        return TAIL_COPY;
    return g->content == CONTENT_NONE ? TAIL_NOTHING : TAIL_WITHDRAW;
}

/* True if the place of the next token may be written in all groups. */
int sequence_is_writable(const kvk_cache *c, const sequence *s);

/* Tokens that the tables have room for. */
uint64_t sequence_room(const kvk_cache *c, const sequence *s);

/* ---- retention (retain.c) */

/* Makes room for the levels and deadlines of all pages, if any sequence has retentions. KVK_ENOMEM. */
int retain_prepare(kvk_cache *c);

/* Makes sure that `n` pages can be taken, and whatever is kept by page has room for them. KVK_ENOMEM. */
int cache_prepare_pages(kvk_cache *c, uint32_t n);

/* ---- near peaks (near.c) */

/* Room for the near peaks of all pages. KVK_ENOMEM. */
int near_prepare_pages(kvk_cache *c);

/* What is known of a page goes with its content to another. */
void near_move(kvk_cache *c, uint32_t old, uint32_t page);

/* Gives page i of a sequence that releases it the priority of the range that holds its first token, if one does. */
void retain_page(kvk_cache *c, const sequence *s, uint32_t i, uint32_t page);

/* ---- events (events.c) */

/* Tells that all content was forgotten. */
void events_cleared(kvk_cache *c);

/* Tells what a loaded state holds. */
void events_reloaded(kvk_cache *c);

/* Tells that a sequence lost a page. */
void events_evicted(kvk_cache *c, const sequence *s, uint32_t group, uint32_t number, uint32_t page);

/* Turns events off around what is told as a whole, and on again. */
void events_listen(kvk_cache *c, int on);

/* ---- content (content.c) */

/* Bytes that identify a page's content: its tokens or its key; 0 without a prefix cache. */
uint32_t content_row_bytes(const kvk_config *config);

/* 0 if `text` brings what the cache's kind of content needs, else KVK_EINVAL. */
int content_check(const kvk_cache *c, const kvk_text *text);

/* Whole pages of `prompt` that a lookup may find: the last token stays to be computed. */
uint32_t content_pages(const kvk_cache *c, const kvk_text *prompt);

/* Extra keys make a digest behind the tokens of a row: adds those of text positions from .. from + n - 1, which stand
 * at `offset` and on in the page. */
void content_add_extras(const kvk_cache *c, void *row, const kvk_text *text, uint32_t from, uint32_t n,
                        uint32_t offset);

/* True if extra keys took part in the row. */
int content_has_extras(const kvk_cache *c, const void *row);

/* The row of page i of a text that begins at a page border, valid until the next call. */
const void *content_row(const kvk_cache *c, const kvk_text *text, uint32_t i);

/* ---- moves (moves.c) */

/* Makes room for `n` more moves. KVK_ENOMEM. */
int moves_prepare(kvk_cache *c, uint32_t n);
void moves_push(kvk_cache *c, kvk_move move);

/* ---- self-sized structs (cache.c) */

/* Copies a self-sized struct out: as much of `from` as the caller's `size` says, the size itself kept. */
int copy_sized(void *to, const void *from, uint32_t size);

#endif
