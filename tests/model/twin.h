/* twin.h: a naive cache that always tells the truth.
 *
 * It promises what kvkeep.h promises, and predicts every result, page id and number of it, with plain arrays, linear
 * scans and whole token prefixes compared byte by byte: no hashing, no links, nothing clever. It knows the library by
 * its header alone. Calls are named as there; a call that fails has changed nothing.
 */
#ifndef TWIN_H
#define TWIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kvkeep/kvkeep.h"

enum {
    TWIN_PAGES = 40,
    TWIN_GROUPS = 3,
    TWIN_PAGE_TOKENS = 5,
    TWIN_TOKENS = TWIN_PAGES * TWIN_PAGE_TOKENS,
    TWIN_SEQS = 10,
    TWIN_BATCHES = 4,
    TWIN_MOVES = 4096
};

/* What names a prefix: `bytes` of tokens (4 each) or page keys (16 each), and who may share it. */
typedef struct {
    kvk_key salt;
    uint64_t adapter;
    uint32_t n_bytes;
    unsigned char bytes[TWIN_TOKENS * sizeof(uint32_t)];
} twin_text;

typedef struct {
    enum kvk_page_state state;
    uint32_t group; /* of the last owner */
    uint32_t refs, generation, n_tokens;
    uint64_t last_batch;       /* that may read it */
    uint64_t published_at;     /* when its content became findable; 0: it is not */
    uint32_t uses;             /* attached since then */
    bool in_main;              /* S3-FIFO: in the main queue */
    uint64_t queued_at;        /* S3-FIFO: when it entered its queue */
    twin_text content;         /* from the sequence's first token on */
    uint64_t born[TWIN_PAGES]; /* when the content of each length became known, all pages of it taken together */
} twin_page;

/* Page ids in order. */
typedef struct {
    uint32_t n;
    uint32_t ids[TWIN_PAGES];
} twin_list;

typedef struct {
    kvk_seq handle; /* 0: this place is empty */
    int32_t priority;
    uint32_t n_tokens, n_committed, n_pages, n_in_flight;
    uint64_t last_batch; /* that it took part in */
    bool mute;           /* its text contradicts a page it shares: it publishes nothing more */
    twin_text text;      /* committed */
    uint32_t table[TWIN_GROUPS][TWIN_PAGES];
} twin_seq;

typedef struct {
    kvk_seq seq;
    uint32_t start; /* tokens before it */
    uint32_t n_query;
    bool left_alone;                         /* its sequence was closed or shortened meanwhile */
    uint32_t table[TWIN_GROUPS][TWIN_PAGES]; /* as planned */
} twin_entry;

typedef struct {
    kvk_batch handle; /* 0: this place is empty */
    uint64_t number;  /* in order of planning, from 1 */
    uint32_t n;
    twin_entry entries[TWIN_SEQS];
    uint32_t lists[TWIN_PAGES]; /* generation of each page that the plan lists; 0: not listed */
} twin_batch;

typedef struct {
    kvk_config config;
    twin_page pages[TWIN_PAGES];
    twin_list freed;    /* last freed is first taken */
    twin_list cached;   /* least recently cached first */
    twin_list limbo;    /* in order of release */
    uint32_t n_touched; /* pages below were taken at least once */
    twin_seq seqs[TWIN_SEQS];
    twin_batch batches[TWIN_BATCHES];
    uint64_t n_planned, n_published, n_born, n_queued;
    struct {
        twin_text content;
        bool counts;
    } gone[TWIN_PAGES]; /* S3-FIFO: left the small queue, oldest first */
    uint32_t n_gone;
    kvk_move moves[TWIN_MOVES];
    uint32_t n_moves;
    kvk_stats totals; /* the fields that only grow */
} twin;

void twin_init(twin *t, const kvk_config *config);

/* Sequences. The handles are the library's. */
twin_seq *twin_find(twin *t, kvk_seq handle);
void twin_open(twin *t, const kvk_seq_params *params, kvk_seq handle);
int twin_close(twin *t, kvk_seq handle);
int twin_fork(twin *t, kvk_seq parent, kvk_seq child);
int twin_truncate(twin *t, kvk_seq handle, uint32_t n_tokens);

/* Content. */
int twin_attach(twin *t, kvk_seq handle, const kvk_text *prompt);
int twin_lookup(const twin *t, const kvk_seq_params *params, const kvk_text *prompt);
int twin_commit(twin *t, kvk_seq handle, const kvk_text *text);
int twin_reset(twin *t, uint32_t *in_use);

/* Room. */
int twin_can_reserve(twin *t, kvk_seq handle, uint32_t n_tokens, kvk_effort effort);
int twin_reserve(twin *t, kvk_seq handle, uint32_t n_tokens, kvk_effort effort);

/* Batches. twin_plan_check says what the library must answer, and sets what the plan needs. */
int twin_plan_check(twin *t, const kvk_batch_entry *entries, uint32_t n, kvk_plan *plan);
void twin_plan(twin *t, const kvk_batch_entry *entries, uint32_t n, kvk_batch handle);
twin_batch *twin_find_batch(twin *t, kvk_batch handle);

/* Does a batch just planned write a place that one in flight reads for another sequence? */
bool twin_overwrites(const twin *t, kvk_batch handle);
int twin_end(twin *t, kvk_batch handle, const kvk_batch_result *result);

/* Token places filled in a page. */
uint32_t twin_filled(const twin *t, uint32_t page);

/* What stats must say, without the fields about host memory. */
void twin_stats(const twin *t, kvk_stats *out);

/* Pages, for the other parts of the twin. */
uint32_t twin_available(const twin *t);
uint32_t twin_take(twin *t, uint32_t group);
void twin_share(twin *t, uint32_t page);
bool twin_starts_with(const twin_text *text, const twin_text *head);
void twin_unname(twin *t, twin_seq *s, uint32_t n_committed);
bool twin_is_shared(const twin *t, const twin_page *page);
bool twin_may_write(const twin *t, const twin_seq *s);
bool twin_release(twin *t, uint32_t page, uint64_t last_batch);
int twin_leave_limbo(twin *t);
uint32_t twin_pages_for(const twin *t, uint32_t n_tokens);
uint32_t twin_unit(const twin *t);
void twin_queue_move(twin *t, kvk_move move);

/* The reclaim order. */
uint32_t twin_due(twin *t);
void twin_note_published(twin *t, twin_page *page);
void twin_note_reclaimed(twin *t, const twin_page *page);

/* Sets a sequence's length. Places of a page count as filled until the one sequence that may write it says otherwise.
 * */
void twin_set_length(twin *t, twin_seq *s, uint32_t n_tokens);

#endif
