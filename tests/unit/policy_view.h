/* unit/policy_view.h: a block table of a few pages, as a policy sees it, to be written down by hand. */
#ifndef TESTS_UNIT_POLICY_VIEW_H
#define TESTS_UNIT_POLICY_VIEW_H

#include "policy/choose.h"

#define SMALL 24u /* pages at most */

typedef struct small_table {
    kvk_policy_choice choice;
    kvk_policy_view view; /* of all below */
    uint32_t index[SMALL];
    uint8_t eligible[SMALL];
    float scores[KVK_MAX_SCORES][SMALL];
    float *columns[KVK_MAX_SCORES];
    float shared[SMALL];
    uint32_t victims[SMALL];
    uint32_t n_victims;
} small_table;

/* n full pages from number 0 on, all of which may go, in the one group of a sequence with the policy of this text. */
void small_open(small_table *t, const char *policy, uint32_t page_tokens, uint32_t n);

/* Another page at the end, with page number `index`. */
void small_add(small_table *t, uint32_t index);

/* Takes page i of the table out, its scores with it. */
void small_remove(small_table *t, uint32_t i);

/* Queries first .. first + queries - 1 gave these masses, peaks too where they are not NULL. */
void small_observe(small_table *t, uint32_t first, uint32_t queries, const float *mean, const float *peak);

/* Asks for `want` pages into t->victims. */
void small_choose(small_table *t, uint32_t want);

/* Asks, and expects these page numbers, written "3 5 8". */
void small_expect(small_table *t, uint32_t want, const char *numbers);

/* The score of page i by rank. */
float small_score(const small_table *t, uint32_t i);
uint8_t small_tier(const small_table *t, uint32_t i);

#endif
