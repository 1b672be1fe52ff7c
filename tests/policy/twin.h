/* twin.h: eviction as its definition says, from the whole history of masses, in double precision: what the library has
 * to do. Slow and obvious on purpose; it shares nothing with src/policy. */
#ifndef TWIN_H
#define TWIN_H

#include "masses.h"

enum { TWIN_GROUPS = 3, TWIN_HEADS = 4, TWIN_PAGES = 1024 };

typedef struct twin_setup {
    const char *policy; /* as kvk_policy_parse takes it */
    uint32_t page_tokens, n_groups;
    uint32_t near_layers, near_heads; /* of each group, at most TWIN_HEADS together */
    uint32_t max_tokens;              /* that a test will reach */
    uint32_t budget, slack, n_prompt;
    double slope;
    uint32_t floor;
    double target;           /* share of the mass that is kept; 0: not asked for */
    const uint32_t *budgets; /* [n_groups] or NULL */
} twin_setup;

/* One observation. Arrays by group and page number of the text. */
typedef struct twin_seen {
    uint32_t first, n;                 /* queries */
    uint32_t tokens_held[TWIN_GROUPS]; /* in the pages of each table then */
    uint32_t n_tokens;                 /* of the text then */
    double *mean, *peak;               /* [n_groups][n_pages] */
    double (*near)[TWIN_HEADS];        /* [n_groups][n_pages] */
} twin_seen;

enum twin_pool { TWIN_NO_POOL, TWIN_RECENT, TWIN_HEAVY };

typedef struct twin {
    twin_setup setup;
    uint32_t n_pages;  /* page numbers that the arrays have room for */
    uint32_t n_tokens; /* accepted ones */
    uint32_t asked;    /* n_tokens at the last page border at which `choose` was asked */
    uint64_t evicted;
    double lost[TWIN_GROUPS]; /* score of what was evicted, fading; only with a target */
    uint8_t held[TWIN_GROUPS][TWIN_PAGES];
    uint8_t pool[TWIN_GROUPS][TWIN_PAGES]; /* H2O with two pools */
    uint8_t pinned[TWIN_PAGES];
    twin_seen *seen;
    uint32_t n_seen;
} twin;

/* One table at one moment, ranked, by position. */
typedef struct ranking {
    uint32_t n;
    uint32_t number[TWIN_PAGES]; /* page number of the text */
    double score[TWIN_PAGES], importance[TWIN_PAGES];
    uint8_t tier[TWIN_PAGES], eligible[TWIN_PAGES];
    uint8_t gone[TWIN_PAGES]; /* set by twin_choose */
} ranking;

twin *twin_open(const twin_setup *setup);
twin *twin_copy(const twin *t);
void twin_close(twin *t);

/* A knob, read from the policy's text. */
double twin_knob(const twin *t, const char *name, double standard);
int twin_is(const twin *t, const char *policy);

/* Tokens that the table of a group may hold; 0: any number. */
uint32_t twin_budget(const twin *t, uint32_t group);

/* The table of a group as of n_tokens: who may go, what each page is worth. */
void twin_rank(const twin *t, uint32_t group, uint32_t n_tokens, ranking *out);

/* True if a reservation made now may evict: at a page border, or where a chunk went past a budget. */
int twin_is_due(const twin *t);

/* Sets r->gone to what a reservation made at n_tokens evicts. */
void twin_choose(twin *t, uint32_t group, uint32_t n_tokens, ranking *r);

/* Takes the pages that are gone out of the table. */
void twin_apply(twin *t, uint32_t group, const ranking *r);

/* Trims all tables as of n_tokens, by its own decisions. */
void twin_trim(twin *t, uint32_t n_tokens);

/* The tables get the pages of new tokens, up to `end` tokens; or lose those past `n_tokens`. */
void twin_extend(twin *t, uint32_t end);
void twin_cut(twin *t, uint32_t n_tokens);

/* Takes an observation of n queries from `first` on into the history. */
void twin_observe(twin *t, const masses *m, uint32_t first, uint32_t n);

/* The share of a page's tokens that are in the text. */
uint32_t twin_tokens_in(const twin *t, uint32_t page, uint32_t n_tokens);

/* Sets score, importance and tier of a table whose pages and eligibility are known. */
void twin_value(const twin *t, uint32_t group, ranking *r);

#endif
