/* twin.h: a naive cache that always tells the truth.
 *
 * It promises what kvkeep.h promises, and predicts every result, page id and number of it, with plain arrays, linear
 * scans and whole token prefixes compared byte by byte: no hashing, no links, nothing clever. It knows the library by
 * its headers alone. Calls are named as there; a call that fails has changed nothing.
 */
#ifndef TWIN_H
#define TWIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kvkeep/eviction.h"

enum {
    TWIN_PAGES = 48,
    TWIN_GROUPS = 3,
    TWIN_PAGE_TOKENS = 5,
    TWIN_ENTRIES = 64, /* of a sequence, those that a window has let go included */
    TWIN_TOKENS = TWIN_ENTRIES * TWIN_PAGE_TOKENS,
    TWIN_SEQS = 10,
    TWIN_BATCHES = 4,
    TWIN_HOST_PAGES = 40,
    TWIN_NUMBERS = 3, /* that a policy keeps per page */
    TWIN_NEAR = 4,    /* near peaks of a page in a group */
    TWIN_DROPS = TWIN_SEQS * TWIN_GROUPS * TWIN_ENTRIES,
    TWIN_MOVES = 8192,
    TWIN_EVENTS = 4096
};

#define TWIN_NEVER UINT64_MAX

/* What names a prefix: `bytes` of tokens (4 each) or page keys (16 each), and who may share it. */
typedef struct {
    kvk_key salt;
    uint64_t adapter;
    uint32_t n_bytes;
    unsigned char bytes[TWIN_TOKENS * sizeof(uint32_t)];
    unsigned char extras[TWIN_TOKENS]; /* the extra key at each token: its `lo`; 0: there is none */
} twin_text;

typedef struct {
    enum kvk_page_state state;
    uint32_t group; /* of the last owner */
    uint32_t refs, generation, n_tokens;
    uint64_t last_batch;   /* that may read it */
    uint64_t published_at; /* when its content became findable; 0: it is not */
    uint64_t found_at;     /* FIFO: when its content became findable, in this page or one that it was moved from */
    uint32_t uses;         /* attached since then */
    bool in_main;          /* S3-FIFO: in the main queue */
    uint64_t queued_at;    /* S3-FIFO: when it entered its queue */
    twin_text content;     /* from the sequence's first token on */
    uint64_t born[TWIN_ENTRIES]; /* when the content of each length became known */
    uint32_t pins, level;
    uint64_t deadline; /* when its level falls back, or TWIN_NEVER */
    float near[TWIN_NEAR];
    bool is_seen; /* by all queries that its near peaks are of */
} twin_page;

/* Page ids in order. */
typedef struct {
    uint32_t n;
    uint32_t ids[TWIN_PAGES];
} twin_list;

/* How a sequence is evicted, and what is known of its pages; by entry, whether it is held or lost. */
typedef struct {
    const kvk_policy *policy; /* the twin's own version of it; NULL: none is set */
    double knobs[KVK_MAX_KNOBS];
    uint32_t budget[TWIN_GROUPS]; /* tokens, 0: no limit */
    uint32_t slack, floor, n_prompt, yields;
    double target;
    float numbers[TWIN_GROUPS][TWIN_NUMBERS][TWIN_ENTRIES];
    float shared[TWIN_ENTRIES];
    float near[TWIN_GROUPS][TWIN_ENTRIES * TWIN_NEAR];
    double lost[TWIN_GROUPS]; /* scores of what was evicted, fading */
    uint32_t asked_at;        /* the length at which its policy was asked last */
} twin_eviction;

/* What is told of a sequence's eviction. */
typedef struct {
    uint64_t pages;                              /* evicted */
    uint64_t queries;                            /* observed, in all groups */
    double mass[TWIN_GROUPS], last[TWIN_GROUPS]; /* of them in all; a query of the last observation */
    double share;                                /* of the score, of evicted pages, in all */
} twin_figures;

typedef struct {
    kvk_seq handle; /* 0: this place is empty */
    int32_t priority;
    uint32_t slot;   /* its place among the open ones: the last one left, or a new one */
    uint64_t number; /* in order of opening */
    uint32_t n_tokens, n_committed, n_in_flight;
    uint64_t last_batch;         /* that it took part in */
    bool mute;                   /* its text contradicts a page it shares: it publishes nothing more */
    bool swapped;                /* its tables name host pages */
    twin_text text;              /* committed */
    uint64_t born[TWIN_ENTRIES]; /* when the content of each full page became known */
    uint32_t first[TWIN_GROUPS]; /* the first entry that each table holds */
    uint32_t end;                /* the entry after the last, in all tables */
    uint32_t table[TWIN_GROUPS][TWIN_ENTRIES];
    bool lost[TWIN_GROUPS][TWIN_ENTRIES]; /* evicted */
    kvk_retention ranges[KVK_MAX_RETENTIONS];
    uint32_t n_ranges;
    uint32_t first_taint; /* UINT32_MAX: it is untainted */
    twin_figures figures;
    twin_eviction eviction;
} twin_seq;

typedef struct {
    kvk_seq seq;
    uint32_t start; /* tokens before it */
    uint32_t n_query;
    bool left_alone;             /* its sequence was closed or shortened meanwhile */
    uint32_t first[TWIN_GROUPS]; /* as planned, and the tables too */
    uint32_t table[TWIN_GROUPS][TWIN_ENTRIES];
    bool lost[TWIN_GROUPS][TWIN_ENTRIES];
} twin_entry;

typedef struct {
    kvk_batch handle; /* 0: this place is empty */
    uint64_t number;  /* in order of planning, from 1 */
    uint32_t n;
    bool is_observed; /* one of its sequences has a policy; else masses are not looked at */
    twin_entry entries[TWIN_SEQS];
    uint32_t lists[TWIN_PAGES]; /* generation of each page that the plan lists; 0: not listed */
} twin_batch;

typedef struct {
    enum kvk_event_kind kind;
    uint32_t group, page, position;
    kvk_seq seq;
    twin_text content;
} twin_event;

typedef struct {
    kvk_config config; /* n_pages and watermark as kvk_resize left them */
    uint32_t windows[TWIN_GROUPS];
    uint32_t n_near[TWIN_GROUPS], near_layers[TWIN_GROUPS]; /* near peaks of a page */
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
    } gone[TWIN_PAGES]; /* S3-FIFO: left the small queue, oldest first, since the pool has this size */
    uint32_t n_gone;
    twin_list left_slots; /* of closed sequences */
    uint32_t n_slots;
    uint64_t n_opened;
    twin_list host_given; /* host pages given back: the last one is taken first */
    uint32_t n_host_touched;
    uint64_t now;
    bool listening; /* to events */
    twin_event events[TWIN_EVENTS];
    uint32_t n_events;
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

/* The state was saved and loaded: what is not part of it is as in the beginning. */
void twin_reload(twin *t);

/* Room. */
int twin_can_reserve(twin *t, kvk_seq handle, uint32_t n_tokens, kvk_effort effort);
int twin_reserve(twin *t, kvk_seq handle, uint32_t n_tokens, kvk_effort effort);

/* Pages out of a policy's reach in a group, at both ends of the text. */
typedef struct {
    uint32_t sinks, recent;
} twin_reach;

twin_reach twin_protection(const twin *t, const twin_eviction *e, uint32_t group);

/* Eviction. */
int twin_set_eviction(twin *t, kvk_seq handle, const kvk_eviction *eviction);
bool twin_settings_fit(const twin *t, const kvk_eviction *settings);
int twin_evict(twin *t, kvk_seq handle, uint32_t group, const uint32_t *positions, uint32_t n);
uint32_t twin_scores(const twin *t, const twin_seq *s, uint32_t group, kvk_page_score *scores);
void twin_info(const twin *t, const twin_seq *s, kvk_eviction_info *out);
uint32_t twin_needs(const twin *t, const twin_seq *s);
/* Pages that a plan lists for an entry in a group; those that near peaks are told of alone if so asked. */
uint32_t twin_listed(const twin *t, const twin_entry *e, uint32_t group, bool near);
int twin_check_masses(twin *t, const twin_batch *b, const kvk_batch_result *result);
void twin_observe(twin *t, const twin_batch *b, const kvk_batch_result *result);

/* Pressure. */
int twin_preempt(twin *t, kvk_seq handle, kvk_preempt_how how);
int twin_swap_in(twin *t, kvk_seq handle, kvk_effort effort);
int twin_victim(const twin *t, kvk_seq *out);
int twin_change_pins(twin *t, kvk_seq handle, uint32_t n_tokens, int by);
int twin_retain(twin *t, kvk_seq handle, const kvk_retention *ranges, uint32_t n);
int twin_set_time(twin *t, uint64_t now);
int twin_resize(twin *t, uint32_t n_pages, bool move);

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
uint32_t twin_draining(const twin *t);
uint32_t twin_take(twin *t, uint32_t group);       /* for tokens to be computed */
uint32_t twin_take_as_is(twin *t, uint32_t group); /* for what is moved there: neither counted nor zeroed */
void twin_count_used(twin *t);
void twin_share(twin *t, uint32_t page);
bool twin_is_quiet(const twin *t);
uint32_t twin_host_used(const twin *t);
uint32_t twin_find_copy(const twin *t, const twin_text *text, uint32_t n, uint32_t group);
uint64_t twin_next_child(const twin *t, const twin_text *head, uint64_t after, twin_text *out);
int twin_check_text(const twin *t, const kvk_text *text);
void twin_copy_tokens(twin_text *to, const twin_text *from, uint32_t first, uint32_t n);
void twin_near_show(twin *t, const twin_seq *s, uint32_t group, uint32_t entry); /* its page can be found now */
void twin_near_attach(const twin *t, twin_seq *s, uint32_t group, uint32_t entry);
void twin_near_cut(const twin *t, twin_seq *s, uint32_t entry); /* forgets it of the text from there on */
void twin_near_take(twin *t, twin_seq *s, uint32_t group, uint32_t entry, const float *values);
/* So many tokens of the text were seen: what was taken goes into the page. */
void twin_near_settle(twin *t, const twin_seq *s, uint32_t group, uint32_t entry, uint32_t n_tokens);
bool twin_is_in_flight(const twin *t, uint64_t last_batch); /* this one or one planned before it */
bool twin_is_shared(const twin *t, const twin_page *page);
bool twin_release(twin *t, uint32_t page, uint64_t last_batch);
int twin_leave_limbo(twin *t);
void twin_forget(twin *t, uint32_t page); /* it can be found no more */
void twin_drop_gone(twin *t);             /* after a change of n_pages, which was `was` before */
void twin_bring_back(twin *t, uint32_t was);
uint32_t twin_pages_for(const twin *t, uint32_t n_tokens);
void twin_queue_move(twin *t, kvk_move move);

/* Content, for the other parts of the twin. */
uint32_t twin_unit(const twin *t);
bool twin_starts_with(const twin_text *text, const twin_text *head);
uint32_t twin_full_bytes(const twin *t, const twin_seq *s); /* of the pages that the sequence goes on from */
uint64_t twin_known_since(const twin *t, const twin_text *content, uint32_t n_bytes);
uint32_t twin_attach_head(twin *t, twin_seq *s, const kvk_text *prompt);
void twin_hold(twin *t, uint32_t page);
bool twin_is_known(const twin *t, const twin_text *content);
bool twin_is_continued(const twin *t, const twin_text *content);
void twin_name_page(twin *t, const twin_seq *s, uint32_t group, uint32_t entry);
void twin_show(twin *t, uint32_t page, const twin_page *like); /* it can be found by what `like` was named */
void twin_unname(twin *t, twin_seq *s, uint32_t n_committed);
void twin_tell(twin *t, enum kvk_event_kind kind, uint32_t page);

/* Sequences, for the other parts of the twin. */
bool twin_holds(const twin_seq *s, uint32_t group, uint32_t entry);
uint32_t twin_count_held(const twin_seq *s, uint32_t group, uint32_t before); /* of a table, entries before this one */
int twin_use(twin *t, kvk_seq handle, twin_seq **out); /* KVK_ESTALE, KVK_ESTATE while it is swapped */
bool twin_may_write(const twin *t, const twin_seq *s);
uint32_t twin_needs_from(const twin *t, uint32_t group, uint32_t n_tokens);
uint32_t twin_held(const twin *t, const twin_seq *s); /* entries of all its tables */
void twin_forget_entry(twin_seq *s, uint32_t entry);  /* all that is known of it but the page */
void twin_shorten(twin *t, twin_seq *s, uint32_t n_tokens);
bool twin_let_go(twin *t, twin_seq *s, uint32_t group, uint32_t entry);
int twin_give_back(twin *t, twin_seq *s, uint32_t keep);
void twin_leave_alone(twin *t, kvk_seq handle);
void twin_drop_host(twin *t, twin_seq *s);

/* `frees` pages come free before `need` are taken. */
int twin_judge(const twin *t, uint64_t need, uint64_t frees, uint64_t pages_after, kvk_effort effort);

/* The reclaim order. */
uint32_t twin_due(twin *t);
void twin_note_published(twin *t, twin_page *page);
void twin_note_reclaimed(twin *t, const twin_page *page);
void twin_set_level(twin *t, uint32_t page, uint32_t level);

/* Sets a sequence's length. Places of a page count as filled until the one sequence that may write it says otherwise.
 * */
void twin_set_length(twin *t, twin_seq *s, uint32_t n_tokens);

#endif
