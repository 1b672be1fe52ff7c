/* kvkeep.h: a paged KV-cache manager for batching LLM servers.
 *
 * A cache hands out fixed-size KV pages through per-sequence block tables, shares the pages of equal prefixes, and
 * says which pages a batch reads and where its new tokens go. It never touches K or V: it queues moves, the engine
 * runs them.
 *
 * What holds for every call:
 *   Threads   one thread at a time per cache; different caches never interfere; no globals, no locks.
 *   Results   an int >= 0, or a negative KVK_E* code (kvk_strerror tells it in words). Nothing aborts.
 *   Failure   a call that fails has changed nothing, memory shortage included.
 *   Memory    from one jemalloc arena of the cache's own, or from the caller's allocator. Every array grows to its
 *             high-water mark and stays, so a steady state allocates nothing.
 *   Ownership arrays and structs passed in belong to the caller and are not kept. Strings returned are static.
 *   Units     lengths in tokens, memory in pages of `page_tokens` tokens, page ids 0 .. n_pages-1.
 *   Sizes     structs with a `size` field are filled and read up to that many bytes, so old callers meet new libraries;
 *             kvk_plan and kvk_batch_result must have the size that this header gives them.
 *   Callbacks the caller's functions must not call the cache that calls them: KVK_EREENTRY from events, writers,
 *             readers and reports (kvk_cache_close does nothing then); allocators are not watched.
 *
 * Words: a *group* is a set of layers that share one block table; every sequence has one table per group. A page is
 *   free    nobody refers to it, content unknown
 *   cached  nobody refers to it, but its content can be found by prefix; reclaimed in the cache's order unless pinned
 *   limbo   released while a batch in flight may still read it; becomes free or cached when that batch ends
 *   used    referred to by at least one sequence
 * and free + cached + limbo + used == n_pages at all times.
 */
#ifndef KVKEEP_KVKEEP_H
#define KVKEEP_KVKEEP_H

#include <kvkeep/base.h>
#include <kvkeep/moves.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The cache ----------------------------------------------------------------------------------------------- */

typedef struct kvk_cache kvk_cache;

/* What identifies the content of a full page. */
typedef enum kvk_content {
    KVK_CONTENT_NONE = 0,   /* nothing: no prefix cache */
    KVK_CONTENT_TOKENS = 1, /* its tokens, passed to attach and commit */
    KVK_CONTENT_KEYS = 2    /* a 128-bit key per page, for engines that hash themselves */
} kvk_content;

#define KVK_MAX_PAGES 2147483647u /* 2^31 - 1 */
#define KVK_MAX_PAGE_TOKENS 65536u
#define KVK_MAX_GROUPS 1024u
#define KVK_MAX_TOKENS 2147483647u /* of one sequence */

/* A group of layers that share one block table. */
typedef struct kvk_group {
    uint32_t window; /* tokens that a token attends to, itself included (sliding window); 0: all before it */
    uint16_t near_layers, near_heads; /* near peaks kept per page (kvk_masses.near): both 0: none; 4096 at most */
} kvk_group;

/* Which cached page is reclaimed first, among those of the lowest retention priority. A leaf always goes before the
 * pages it hangs on. */
typedef enum kvk_reclaim {
    KVK_RECLAIM_LRU = 0,   /* least recently released */
    KVK_RECLAIM_FIFO = 1,  /* findable for longest */
    KVK_RECLAIM_LFU = 2,   /* attached least often since it became findable, then least recently released */
    KVK_RECLAIM_S3FIFO = 3 /* a small queue for new content, a main one for what came again (SOSP '23) */
} kvk_reclaim;

#define KVK_RETAIN_DEFAULT 35u /* retention priority, 0 .. 100 (TensorRT-LLM's scale and default) */

typedef struct kvk_config {
    uint32_t size;           /* sizeof(kvk_config) */
    uint32_t page_tokens;    /* 1 .. KVK_MAX_PAGE_TOKENS; default 16 */
    uint32_t n_pages;        /* 1 .. KVK_MAX_PAGES; required */
    uint32_t n_groups;       /* 1 .. KVK_MAX_GROUPS; default 1 */
    uint32_t watermark;      /* pages that KVK_FREE_ONLY leaves; 0 .. n_pages; default 0 */
    uint32_t content;        /* a kvk_content; default KVK_CONTENT_TOKENS */
    uint32_t zero_fill;      /* 1: queue a KVK_MOVE_ZERO for every page taken, so that no stale NaN is ever read */
    uint32_t reserved;       /* 0 */
    uint32_t reclaim;        /* a kvk_reclaim; default KVK_RECLAIM_LRU */
    uint32_t host_pages;     /* of the pool in host memory that sequences are swapped to; default 0 */
    uint32_t partial_reuse;  /* 1: attach also copies the matching head of a page (KVK_CONTENT_TOKENS only) */
    uint32_t extra_keys;     /* 1: texts may bring extra keys (KVK_CONTENT_TOKENS only) */
    uint64_t hash_seed;      /* of the content index; never changes a result, a random one defeats chosen collisions */
    uint64_t memory_limit;   /* host memory held, bytes: past it KVK_ENOMEM; 0 (default): no limit */
    const kvk_group *groups; /* [n_groups], copied; NULL: no group has a window */
    const kvk_allocator *allocator; /* copied; NULL: a jemalloc arena of the cache's own */
} kvk_config;

/* Fills in `size` and the defaults. */
KVK_API void kvk_config_init(kvk_config *config);

/* Makes a cache. Host memory grows with the pages that were ever used, not with n_pages. KVK_EINVAL, KVK_ENOMEM. */
KVK_API int kvk_cache_open(const kvk_config *config, kvk_cache **out);

/* Ends a cache and all its sequences; a recorder gets its last bytes. NULL does nothing. */
KVK_API void kvk_cache_close(kvk_cache *cache);

/* The configuration in use, defaults filled in (allocator and groups NULL). KVK_EINVAL. */
KVK_API int kvk_cache_config(const kvk_cache *cache, kvk_config *out);

/* ---- Sequences ----------------------------------------------------------------------------------------------- */

/* A sequence's handle, of one cache: another may take it for one of its own. 0 is never one, and a closed handle is
 * never valid again (generation-tagged): using it gives KVK_ESTALE. Handles are below 2^63. */
typedef uint64_t kvk_seq;

typedef struct kvk_key {
    uint64_t lo, hi;
} kvk_key;

typedef struct kvk_seq_params {
    uint32_t size;    /* sizeof(kvk_seq_params) */
    int32_t priority; /* higher is more important; default 0 */
    kvk_key salt;     /* sequences share pages only if salt and adapter are equal (vLLM: cache_salt); default 0 */
    uint64_t adapter; /* the adapter's identity, not its name: a reloaded LoRA needs a new one; default 0 */
} kvk_seq_params;

typedef struct kvk_seq_info {
    uint32_t size; /* sizeof(kvk_seq_info) */
    int32_t priority;
    uint32_t n_tokens;    /* tokens whose K/V are computed, or planned in a batch in flight */
    uint32_t n_committed; /* of these, tokens named by attach or commit */
    uint32_t n_pages;     /* entries of its longest table, those reserved ahead included */
    uint32_t n_in_flight; /* batches in flight that hold it */
    uint32_t swapped;     /* 1: its pages are in the host pool */
    uint32_t tainted;     /* 1: it lost pages by eviction: what it computes since is found by nobody else */
} kvk_seq_info;

/* Opens an empty sequence. `params` NULL: defaults. O(1). KVK_EINVAL, KVK_ENOMEM. */
KVK_API int kvk_seq_open(kvk_cache *cache, const kvk_seq_params *params, kvk_seq *out);

/* Ends a sequence and drops its references, tail first, so that a chain loses its tail before its head. Full pages
 * whose content is known become cached, the others free; what a batch in flight may read goes through limbo. Returns
 * the pages that no sequence refers to any more. O(pages). KVK_ESTALE. */
KVK_API int kvk_seq_close(kvk_cache *cache, kvk_seq seq);

/* Opens a sequence that shares every page holding tokens of `parent` (pages reserved ahead stay the parent's). Whoever
 * next writes into a shared partial page gets its own copy in kvk_reserve: copy-on-write. O(pages).
 * KVK_ESTALE, KVK_ENOMEM, KVK_EBUSY while a batch in flight holds the parent. */
KVK_API int kvk_seq_fork(kvk_cache *cache, kvk_seq parent, kvk_seq *out);

/* KVK_ESTALE. */
KVK_API int kvk_seq_set_priority(kvk_cache *cache, kvk_seq seq, int32_t priority);

/* KVK_ESTALE, KVK_EINVAL. */
KVK_API int kvk_seq_info_get(const kvk_cache *cache, kvk_seq seq, kvk_seq_info *out);

/* Copies the block table of one group, in token order, into pages[cap]. Returns its length. KVK_ESTALE, KVK_EINVAL,
 * KVK_ESPACE. With cap 0 and pages NULL it only returns the length. */
KVK_API int kvk_seq_table(const kvk_cache *cache, kvk_seq seq, uint32_t group, uint32_t *pages, uint32_t cap);

/* The position of the first token that the table of a group still holds: 0, or more in a group with a window or after
 * an eviction.
 * KVK_ESTALE, KVK_EINVAL. */
KVK_API int kvk_seq_first(const kvk_cache *cache, kvk_seq seq, uint32_t group);

/* ---- Prefix cache -------------------------------------------------------------------------------------------- */

/* What stands at a position besides its token: the hash of an image or of a sound, whose placeholder tokens look
 * alike. */
typedef struct kvk_extra {
    uint32_t position; /* within the text */
    uint32_t reserved;
    kvk_key key;
} kvk_extra;

/* Tokens and what names them. KVK_CONTENT_TOKENS: tokens[n_tokens]. KVK_CONTENT_KEYS: keys[n_keys], one per page that
 * these tokens make full. KVK_CONTENT_NONE: only n_tokens counts. */
typedef struct kvk_text {
    uint32_t n_tokens;
    uint32_t n_keys;
    const uint32_t *tokens;
    const kvk_key *keys;
    const kvk_extra *extras; /* [n_extras] by ascending position; only with config.extra_keys */
    uint32_t n_extras, reserved;
} kvk_text;

/* Gives an empty sequence the longest cached prefix of `prompt`, in whole pages, leaving at least the last token to
 * compute. A group with a window needs only the pages that the next token attends to; the hit is the longest that all
 * groups can serve. Hash keys are only an index: a page is taken after its parent, tokens and extra keys compared
 * equal. With config.partial_reuse a page that begins like the rest of the prompt is copied as far as it does: that
 * takes a page in each group, as KVK_RECLAIM would, and queues moves; it is left out where there is no page to spare.
 * Returns the tokens attached. Pages attached are used, so they cannot be reclaimed. O(prompt). KVK_ESTALE, KVK_EINVAL,
 * KVK_ENOMEM, KVK_ESTATE if the sequence is not empty. */
KVK_API int kvk_prefix_attach(kvk_cache *cache, kvk_seq seq, const kvk_text *prompt);

/* The tokens in whole pages that attach would find for a sequence opened with `params`, changing nothing. KVK_EINVAL.
 * */
KVK_API int kvk_prefix_lookup(const kvk_cache *cache, const kvk_seq_params *params, const kvk_text *prompt);

/* Forgets all cached content: every cached page becomes free. KVK_EBUSY while pages are used, pinned, swapped out or
 * in limbo. `in_use` (may be NULL) gets how many are. O(pages). Returns the pages freed. */
KVK_API int kvk_prefix_reset(kvk_cache *cache, uint32_t *in_use);

/* ---- Room for tokens ----------------------------------------------------------------------------------------- */

/* What a reservation may cost others. */
typedef enum kvk_effort {
    KVK_FREE_ONLY =
        0,           /* pages that no sequence refers to (free, then cached), leaving `watermark` of them: admission */
    KVK_RECLAIM = 1, /* the same down to the last one: sequences that already run */
    KVK_EVICT = 2    /* may also evict pages of live sequences that yield (eviction.h): of sequences of no higher
                        priority, the lowest first, then the page with the least share of its table's score */
} kvk_effort;

enum kvk_can {
    KVK_OK = 0,    /* now */
    KVK_LATER = 1, /* when others finish: kvk_reserve gives KVK_ENOPAGE now */
    KVK_NEVER = 2  /* not even alone in the pool: kvk_reserve gives KVK_ENEVER */
};

/* Says what kvk_reserve with the same arguments would do. Returns a kvk_can. O(groups), where a policy has to choose
 * O(its tables), where KVK_EVICT lacks pages O(all tables). KVK_ESTALE, KVK_EINVAL. */
KVK_API int kvk_can_reserve(const kvk_cache *cache, kvk_seq seq, uint32_t n_tokens, kvk_effort effort);

/* Makes room for `n_tokens` more than the sequence holds (prompt, chunk, next token, drafts), in all groups or in
 * none. Takes free pages first, then reclaims cached ones, leaves before their parents. What others see is never
 * written: a partial last page that another sequence shares, or had in a batch still in flight, is replaced by a copy
 * (one more page and a queued KVK_MOVE_COPY); one that only this sequence refers to, but that was full and findable
 * before kvk_truncate, is no longer found. Room already there is used first. Returns the pages taken. O(pages taken),
 * and what eviction looks at: the sequence's tables where its policy has to choose, all tables where KVK_EVICT lacks
 * pages.
 * KVK_ESTALE, KVK_EINVAL, KVK_ENOMEM, KVK_ENOPAGE, KVK_ENEVER. */
KVK_API int kvk_reserve(kvk_cache *cache, kvk_seq seq, uint32_t n_tokens, kvk_effort effort);

/* Names the next text->n_tokens tokens of the sequence; their K/V must be in place before anybody who finds them
 * reads (commit after kvk_batch_end, or before it if all reads come later on the same stream). Each page that becomes
 * full becomes findable. Equal content in several pages is fine. Tokens beyond n_tokens lengthen the sequence (an
 * engine without batches); the room must be reserved. In groups with a window the pages go that no
 * later token attends to. Returns how many pages of each group became full. O(tokens).
 * KVK_ESTALE, KVK_EINVAL, KVK_ENOMEM, KVK_ESTATE without room. */
KVK_API int kvk_commit(kvk_cache *cache, kvk_seq seq, const kvk_text *text);

/* Shortens the sequence to its first `n_tokens` tokens and gives back every page past them, pages reserved ahead too.
 * Returns the pages that no sequence refers to any more. KVK_ESTALE, KVK_EINVAL if the sequence is shorter,
 * KVK_ESTATE if a group with a window has let pages go that the next token would attend to, or if the page that the
 * text would end in was evicted. */
KVK_API int kvk_truncate(kvk_cache *cache, kvk_seq seq, uint32_t n_tokens);

/* ---- Under pressure ------------------------------------------------------------------------------------------ */

typedef enum kvk_preempt_how {
    KVK_PREEMPT_RECOMPUTE = 0, /* the sequence becomes empty: attach and compute again */
    KVK_PREEMPT_SWAP = 1       /* its pages move to the host pool until kvk_swap_in */
} kvk_preempt_how;

/* Takes all pages of a sequence, which stays open. Full pages stay findable while they are not reclaimed.
 * KVK_PREEMPT_SWAP needs a free host page for each page that holds tokens, checked before anything moves, and queues a
 * KVK_MOVE_SWAP_OUT for each; until kvk_swap_in only kvk_seq_info_get, kvk_seq_set_priority, kvk_seq_close and
 * preempting by recompute are allowed (KVK_ESTATE otherwise). Returns the pages that no sequence refers to any more.
 * KVK_ESTALE, KVK_EINVAL, KVK_ENOMEM, KVK_EBUSY (swap while a batch in flight holds it), KVK_ENOPAGE (host pool
 * full), KVK_ESTATE (swapped already). */
KVK_API int kvk_preempt(kvk_cache *cache, kvk_seq seq, kvk_preempt_how how);

/* Brings a swapped sequence back: takes a page for each one swapped, all or none, queues a KVK_MOVE_SWAP_IN each and
 * gives the host pages back; full pages become findable again. Returns the pages taken. KVK_ESTALE, KVK_EINVAL,
 * KVK_ENOMEM, KVK_ENOPAGE, KVK_ENEVER, KVK_ESTATE (not swapped). */
KVK_API int kvk_swap_in(kvk_cache *cache, kvk_seq seq, kvk_effort effort);

/* Whom to preempt: among the sequences that hold pages and are in no batch in flight, one of the lowest priority, of
 * these the one opened last. Returns 1 and sets *out, or 0 if there is none. O(sequences). KVK_EINVAL. */
KVK_API int kvk_victim(const kvk_cache *cache, kvk_seq *out);

/* Pins the full pages within the sequence's first `n_tokens` tokens, in all groups: when nobody refers to them any
 * more they stay cached and are never reclaimed, until unpinned as often as pinned (through any sequence that holds
 * them: attach, then unpin). A pin stays with its page: a sequence swapped out and in holds others. Only findable
 * pages can be pinned. Returns the pages pinned. KVK_ESTALE, KVK_EINVAL (more tokens than committed; more than 65,535
 * pins; unpinning what is not pinned), KVK_ESTATE (a page is not findable). */
KVK_API int kvk_pin(kvk_cache *cache, kvk_seq seq, uint32_t n_tokens);
KVK_API int kvk_unpin(kvk_cache *cache, kvk_seq seq, uint32_t n_tokens);

#define KVK_MAX_RETENTIONS 16u

/* How long a range of a sequence's tokens is worth keeping after it is released: cached pages of lower priority are
 * reclaimed first. A page has the priority of the first range that holds its first token. */
typedef struct kvk_retention {
    uint32_t begin, end; /* tokens begin .. end-1; end UINT32_MAX: to the end of the sequence */
    uint32_t priority;   /* 0 .. 100 */
    uint32_t reserved;
    uint64_t duration_ms; /* after its release the page falls back to the default, as if released then; 0: never */
} kvk_retention;

/* Sets the ranges of a sequence (copied; at most KVK_MAX_RETENTIONS; n 0: none). They take effect when it releases its
 * pages; a release by a sequence without a range for a page leaves the page's priority as it is. Content that becomes
 * findable anew begins at the default. KVK_ESTALE, KVK_EINVAL, KVK_ENOMEM, KVK_ESTATE while it is swapped. */
KVK_API int kvk_retain(kvk_cache *cache, kvk_seq seq, const kvk_retention *ranges, uint32_t n);

/* Tells the time, for durations; it must not go back. Starts at 0. KVK_EINVAL. */
KVK_API int kvk_set_time(kvk_cache *cache, uint64_t now_ms);

/* Changes the size of the pool, 1 .. KVK_MAX_PAGES; the watermark becomes no larger. Growing takes effect at once.
 * Shrinking drains: pages with ids from n_pages on are handed out no more; free and cached ones go at once, used,
 * pinned and limbo ones when they are let go, and but for pinned ones they are found no more. With `move` used ones
 * are replaced as far as there are other pages: all tables that name one name the new one from now on, and a
 * KVK_MOVE_COPY is queued. Returns how many pages are still to drain. KVK_EINVAL, KVK_ENOMEM. */
KVK_API int kvk_resize(kvk_cache *cache, uint32_t n_pages, int move);

/* ---- Batches ------------------------------------------------------------------------------------------------- */

typedef struct kvk_batch_entry {
    kvk_seq seq;
    uint32_t n_query; /* new tokens that the batch computes for it; 0 is allowed */
    uint32_t reserved;
} kvk_batch_entry;

typedef enum kvk_plan_form {
    KVK_PLAN_CSR = 0,   /* as FlashInfer takes it: indptr, pages, last_page_len */
    KVK_PLAN_PADDED = 1 /* as vLLM takes it: one row of pages per entry */
} kvk_plan_form;

/* Where a plan goes. Index arrays are int32_t or int64_t by `index_bits`. G = n_groups, E = entries_cap, Q =
 * slots_cap, P = pages_cap; each group has its region of fixed size, so addresses stay the same from step to step
 * (CUDA graphs). Entries from n to E-1 are written as empty ones: `pad`, 0 tokens, indptr repeated. A page list
 * covers the entry's tokens, its new ones included, and nothing reserved beyond. NULL arrays are left out. */
typedef struct kvk_plan {
    uint32_t size;        /* sizeof(kvk_plan) */
    uint32_t form;        /* a kvk_plan_form */
    uint32_t index_bits;  /* 32 or 64 */
    uint32_t entries_cap; /* E */
    uint64_t pages_cap;   /* P: CSR, pages per group; PADDED, pages per row */
    uint64_t slots_cap;   /* Q */
    void *indptr;        /* CSR only, [G][E+1]: entry i of group g has pages indptr[i] .. indptr[i+1]-1 of that group */
    void *pages;         /* CSR [G][P]; PADDED [G][E][P], unused places hold `pad` */
    void *positions;     /* as `pages`: the position of each page's first token */
    void *last_page_len; /* [G][E]: tokens in the last page, 1 .. page_tokens; 0 for an entry that lists no page */
    void *seq_lens;      /* [E]: tokens of each entry, its new ones included */
    void *query_indptr;  /* [E+1]: entry i has queries query_indptr[i] .. query_indptr[i+1]-1 */
    int64_t *slots;      /* [G][Q]: page * page_tokens + offset of each new token */
    int64_t pad;         /* default 0 */
    uint64_t n_pages;    /* out: what pages_cap must at least be */
    uint64_t n_slots;    /* out: what slots_cap must at least be */
    uint32_t needs;      /* out: what the policies of its sequences need to be told (kvk_need bits, policy.h) */
    uint32_t reserved;
} kvk_plan;

/* A batch in flight; 0 is never one. */
typedef uint64_t kvk_batch;

/* Fills in `size`, CSR form and 32-bit indices. */
KVK_API void kvk_plan_init(kvk_plan *plan);

/* Plans a batch: fills the caller's arrays and opens an epoch. Until its kvk_batch_end no page that it lists is
 * handed to anybody else, even if its sequence is closed. Several batches may be in flight, also of one sequence.
 * Each entry's n_query tokens must have been reserved. Run the queued moves before the batch's kernels. O(pages
 * listed). KVK_ESTALE, KVK_EINVAL (a sequence listed twice, a number too large for 32 bits), KVK_ENOMEM, KVK_ESTATE
 * (not reserved), KVK_ESPACE (n_pages and n_slots say what is needed). */
KVK_API int kvk_batch_plan(kvk_cache *cache, const kvk_batch_entry *entries, uint32_t n, kvk_plan *plan,
                           kvk_batch *out);

typedef struct kvk_batch_result {
    uint32_t size;            /* sizeof(kvk_batch_result) */
    uint32_t n;               /* entries, as planned */
    const uint32_t *accepted; /* [n] tokens kept of each entry's n_query (the rest were rejected drafts); NULL: all */
    const struct kvk_masses *masses; /* what attention gave the pages (eviction.h); NULL: not observed */
} kvk_batch_result;

/* Ends a batch: takes rejected tokens off their sequences (their pages stay reserved) and lets limbo pages go whose
 * last reader has ended, and every batch planned before it. Sequences closed or shortened since the plan are left as
 * they are. Masses go into the scores of sequences with a policy; those of rejected tokens, and of pages that the
 * sequence lost meanwhile, are dropped. `result` NULL: all accepted. Returns the pages that left limbo. O(entries +
 * limbo + masses). KVK_ESTALE, KVK_EINVAL (more accepted than planned, fewer than already committed; a mass that is
 * negative, not finite or above the queries it is a sum of; some but not all tokens of an entry with one row accepted;
 * masses of another shape than kvk_masses says), KVK_EBUSY (tokens rejected while a later batch in flight builds on
 * them). */
KVK_API int kvk_batch_end(kvk_cache *cache, kvk_batch batch, const kvk_batch_result *result);

/* ---- Moves --------------------------------------------------------------------------------------------------- */

/* Takes up to `cap` queued moves, oldest first, off the queue. Returns how many; with cap 0 how many wait. The engine
 * runs them in this order before the kernels of any batch planned after them. KVK_EINVAL. */
KVK_API int kvk_moves_take(kvk_cache *cache, kvk_move *moves, uint32_t cap);

/* ---- Seeing what goes on ------------------------------------------------------------------------------------- */

typedef struct kvk_stats {
    uint32_t size; /* sizeof(kvk_stats) */
    uint32_t n_pages, page_tokens;
    uint32_t pages_free, pages_cached, pages_limbo, pages_used;
    uint32_t sequences, batches_in_flight, moves_waiting;
    uint32_t peak_pages_used, peak_sequences;
    uint64_t live_tokens;     /* token places filled in used pages, a shared page counted once, all groups */
    uint64_t pages_taken;     /* pages handed to sequences, free or reclaimed */
    uint64_t pages_reclaimed; /* of these, cached ones whose content was lost */
    uint64_t cow_copies;
    uint64_t prefix_queries;                        /* tokens asked for by attach (vllm:prefix_cache_queries) */
    uint64_t prefix_hits;                           /* tokens attached (vllm:prefix_cache_hits) */
    uint64_t prefix_page_queries, prefix_page_hits; /* the same in whole pages of one group */
    uint64_t memory_bytes, peak_memory_bytes;       /* host memory held */
    uint64_t memory_allocations;                    /* made since open */
    uint32_t pages_pinned;                          /* cached pages that are pinned: not reclaimable */
    uint32_t host_pages_used;                       /* of the host pool, by swapped sequences */
    uint32_t pages_draining, reserved;              /* of n_pages, those that go when they are let go (kvk_resize) */
    uint64_t preemptions, swapped_out_pages, swapped_in_pages;
    uint64_t partial_hits;                  /* of prefix_hits, tokens copied from the head of a page */
    double usage_pages;                     /* pages_used / n_pages */
    double usage_tokens;                    /* live_tokens / (n_pages * page_tokens) */
    uint64_t pages_evicted, tokens_evicted; /* by all sequences, a shared page once for each that lost it */
} kvk_stats;

/* O(1). KVK_EINVAL. */
KVK_API int kvk_stats_get(const kvk_cache *cache, kvk_stats *out);

enum kvk_page_state { KVK_PAGE_FREE = 0, KVK_PAGE_CACHED = 1, KVK_PAGE_LIMBO = 2, KVK_PAGE_USED = 3 };

typedef struct kvk_page_info {
    uint32_t size;       /* sizeof(kvk_page_info) */
    uint32_t state;      /* a kvk_page_state */
    uint32_t refs;       /* sequences that refer to it */
    uint32_t generation; /* times it was taken: a changed number means a new owner */
    uint32_t n_tokens;   /* token places filled */
    uint32_t findable;   /* 1: its content can be found by prefix */
} kvk_page_info;

/* KVK_EINVAL. */
KVK_API int kvk_page_info_get(const kvk_cache *cache, uint32_t page, kvk_page_info *out);

/* Gets one violated invariant: its number in docs/invariants.md, and what was found. */
typedef void (*kvk_audit_fn)(void *ctx, const char *invariant, const char *text);

/* Checks every invariant of docs/invariants.md over the whole state and reports all violations. Returns their number.
 * `report` may be NULL. O(pages + table entries). KVK_ENOMEM. */
KVK_API int kvk_audit(kvk_cache *cache, kvk_audit_fn report, void *ctx);

typedef enum kvk_event_kind {
    KVK_EVENT_STORED = 0,  /* content became findable in a group */
    KVK_EVENT_REMOVED = 1, /* the last page of a group that held it is gone */
    KVK_EVENT_CLEARED = 2, /* all content was forgotten at once; no KVK_EVENT_REMOVED comes for it */
    KVK_EVENT_EVICTED = 3  /* a sequence lost a page by eviction: `seq`, `position`, `group` and `page` say which */
} kvk_event_kind;

/* What a router needs that sends requests where their prefix is (the words of vLLM's KV events). */
typedef struct kvk_event {
    uint32_t size;
    uint32_t kind;       /* a kvk_event_kind */
    kvk_key key, parent; /* XXH3-128 chain keys; parent 0 at the first page */
    kvk_key salt;
    uint64_t adapter;
    const uint32_t *tokens;  /* [page_tokens], KVK_CONTENT_TOKENS; else NULL. Valid during the callback */
    const kvk_key *page_key; /* KVK_CONTENT_KEYS: the caller's; else NULL */
    uint32_t page_tokens;
    uint32_t group;
    uint32_t page;     /* KVK_EVENT_STORED: the page that holds it */
    uint32_t medium;   /* 0: the pool (vLLM: GPU) */
    uint32_t position; /* KVK_EVENT_EVICTED: of the page's first token */
    uint32_t reserved;
    kvk_seq seq; /* KVK_EVENT_EVICTED: who lost it */
} kvk_event;

/* Is called for each event, in the order in which things happen. A listener that comes late hears of nothing before
 * it. In groups with a window content may be removed, or never stored where its page drains, while longer content that
 * hangs on it stays: its key is still the parent's. Every call on this cache from inside gives KVK_EREENTRY. */
typedef void (*kvk_event_fn)(void *ctx, const kvk_event *event);

/* `fn` NULL: no events, which cost nothing. KVK_EINVAL. */
KVK_API int kvk_set_events(kvk_cache *cache, kvk_event_fn fn, void *ctx);

/* Takes `n` bytes of the op log; returns 0, or anything else to say that it failed. */
typedef int (*kvk_write_fn)(void *ctx, const char *bytes, size_t n);

/* Records every later call that may change the cache as a line of the op log (docs/oplog.md), with its result,
 * through `write`, in large pieces. Calls refused with KVK_EINVAL or KVK_ENOMEM are left out: they changed nothing
 * and a replay could not repeat them. Only on a cache that has never held a sequence, since a replay starts from an
 * empty one. After a failed write recording stops. KVK_EINVAL, KVK_ENOMEM, KVK_ESTATE. */
KVK_API int kvk_record_start(kvk_cache *cache, kvk_write_fn write, void *ctx);

/* Writes what is left and stops. Returns 0, or KVK_EIO if any write failed, KVK_ESTATE if nothing is recorded. */
KVK_API int kvk_record_stop(kvk_cache *cache);

/* ---- Saving the state ---------------------------------------------------------------------------------------- */

/* Gives up to `n` bytes; returns how many, 0 at the end, negative on failure. */
typedef int64_t (*kvk_read_fn)(void *ctx, char *bytes, size_t n);

/* Writes the whole state: tables, content, scores, counters. The engine saves the pages' bytes. Versioned,
 * checksummed, of one byte order. `write` is called many times. KVK_EINVAL, KVK_ENOMEM, KVK_EIO, KVK_EBUSY (batches in
 * flight, moves waiting or pages draining: the bytes would not match), KVK_ESTATE (an open sequence has a policy that
 * is not the library's own: nobody could find it again). */
KVK_API int kvk_save(kvk_cache *cache, kvk_write_fn write, void *ctx);

/* Replaces the state by a saved one, of a cache with the same page_tokens, groups, content, host_pages and
 * extra_keys; n_pages, watermark, reclaim and hash_seed are taken from the state. Handles are those of the saved
 * cache. A state that is damaged, made up or does not fit is refused with KVK_EFORMAT and the old state kept; what is
 * taken has passed the audit. Events: all is cleared, then what the state holds is stored. With KVK_RECLAIM_S3FIFO it
 * is forgotten what left the small queue. KVK_EINVAL, KVK_ENOMEM, KVK_EIO, KVK_EBUSY (batches in flight, moves
 * waiting or pages draining, or a recorder attached). */
KVK_API int kvk_load(kvk_cache *cache, kvk_read_fn read, void *ctx);

#ifdef __cplusplus
}
#endif

#endif
