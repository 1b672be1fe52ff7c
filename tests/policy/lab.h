/* lab.h: a cache and sequences that are driven step by step and compared with their twins after each. */
#ifndef LAB_H
#define LAB_H

#include <check.h>

#include "kvkeep/eviction.h"
#include "twin.h"

/* As ck_assert_msg, which writes a file each time: too slow for what is checked millions of times. */
#define LAB_CHECK(holds, ...)                                                                                          \
    do {                                                                                                               \
        if (!(holds))                                                                                                  \
            ck_abort_msg(__VA_ARGS__);                                                                                 \
    } while (0)
#define LAB_HOLDS(holds) LAB_CHECK(holds, "%s", #holds)

enum { LAB_ENTRIES = 8, LAB_LISTED = 1u << 15 };

typedef struct lab_setup {
    uint32_t page_tokens, n_groups;
    uint32_t near;    /* heads of near peaks, in each of two layers of a group */
    uint32_t n_pages; /* 0: more than a test needs */
    int has_text;     /* 1: steps commit what they computed, token after token of one text (lab_token) */
} lab_setup;

typedef struct lab {
    kvk_cache *cache;
    lab_setup setup;
    uint32_t page_tokens, n_groups, near_layers, near_heads;
    uint64_t evictions; /* that were compared */
    uint64_t near_ties; /* of these, decided by differences that rounding may make */
} lab;

void lab_open(lab *l, const lab_setup *setup);
void lab_close(lab *l); /* audits */
void lab_audit(const lab *l);

typedef struct subject {
    kvk_seq seq;
    twin *twin; /* NULL: only driven, not compared */
    masses masses;
} subject;

/* A sequence that is evicted as the setup says, with its twin. The cache's shape is filled into the setup. */
subject lab_subject(lab *l, twin_setup setup, masses m);

/* The same without a twin: driven only. */
subject lab_driven(lab *l, twin_setup setup, masses m);
subject lab_fork(lab *l, const subject *parent, masses m);
void lab_end_subject(lab *l, subject *s);

typedef struct lab_entry {
    subject *who;
    uint32_t n_query, accepted;
    int per_query; /* 1: masses query by query */
} lab_entry;

/* Makes room and compares what goes with the twin. */
void lab_reserve(lab *l, subject *s, uint32_t n_tokens);

/* The tables must be the twin's. */
void lab_compare(const lab *l, const subject *s);

/* Reserves, plans, makes masses up, ends and compares. */
void lab_step(lab *l, const lab_entry *entries, uint32_t n);

/* The same for one sequence whose tokens are all kept, with sums. */
void lab_run(lab *l, subject *s, uint32_t n_query);

/* Decodes token by token up to n_tokens. */
void lab_decode(lab *l, subject *s, uint32_t n_tokens);

/* The token at a position. */
uint32_t lab_token(uint32_t position);

/* The page numbers of a table's entries. */
uint32_t lab_table(const lab *l, const subject *s, uint32_t group, uint32_t *numbers);
kvk_eviction_info lab_info(const lab *l, const subject *s);
uint32_t lab_scores(const lab *l, const subject *s, uint32_t group, kvk_page_score *scores);

/* Tables and scores of two sequences of two caches must be the same, bit for bit. */
void lab_same(const lab *l, const subject *s, const lab *other, const subject *o);

/* What a batch of entries is told; kept for tests that spoil it. */
typedef struct lab_batch {
    kvk_batch id;
    uint32_t n, accepted[LAB_ENTRIES], rows[LAB_ENTRIES], start[LAB_ENTRIES];
    uint32_t indptr[TWIN_GROUPS][LAB_ENTRIES + 1], positions[TWIN_GROUPS][LAB_LISTED];
    float mean[TWIN_GROUPS][LAB_LISTED], peak[TWIN_GROUPS][LAB_LISTED], near[TWIN_GROUPS][LAB_LISTED];
    kvk_masses masses;
    kvk_batch_result result;
} lab_batch;

/* Plans a batch and fills in what its end will be told. The tokens must have been reserved. */
void lab_plan(lab *l, const lab_entry *entries, uint32_t n, lab_batch *out);

#endif
