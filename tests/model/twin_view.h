/* twin_view.h: what a policy is shown of a table and what it answers, for the parts of the twin that evict. */
#ifndef TWIN_VIEW_H
#define TWIN_VIEW_H

#include "twin.h"

/* The text as a decision sees it. */
typedef struct {
    uint32_t n_tokens;
    uint32_t settled; /* tokens whose batch has ended */
} twin_moment;

typedef struct {
    kvk_policy_view view;
    uint32_t index[TWIN_ENTRIES];
    uint8_t eligible[TWIN_ENTRIES];
    float numbers[TWIN_NUMBERS][TWIN_ENTRIES];
    float *columns[TWIN_NUMBERS];
    kvk_near near[TWIN_GROUPS];
    float score[TWIN_ENTRIES];
    uint8_t tier[TWIN_ENTRIES];
} twin_view;

/* The twin's own version of a policy of the library, from its definition; one of the tests' own as it is. The knobs are
 * put into the order that it has them in. */
const kvk_policy *twin_policy(const kvk_policy_choice *choice, double knobs[KVK_MAX_KNOBS]);

twin_moment twin_now(const twin *t, const twin_seq *s);

/* One table at a moment: the pages that hold tokens then. */
void twin_look(const twin *t, twin_seq *s, uint32_t group, twin_moment at, twin_view *v);

/* The policy may have changed its numbers. */
void twin_keep_numbers(twin_seq *s, const twin_view *v);

/* Ranks the view's pages. Without a policy all are alike. Returns the sum of the scores. */
double twin_rank(const twin_seq *s, twin_view *v);

/* Of the pages that may go and do not go yet the one that goes first; n: there is none. */
uint32_t twin_lowest(const twin_view *v, const bool goes[TWIN_ENTRIES]);

/* Marks what a sequence gives up by its own budget as lost, and changes its policy's numbers as asking it does: on a
 * copy of the sequence, which shares nothing with it. */
void twin_trim(const twin *t, twin_seq *copy, twin_moment at);

/* Lets go what the copy has lost. */
void twin_apply_trim(twin *t, twin_seq *s, const twin_seq *copy, twin_moment at);

/* Drops pages of a table, as marked. Returns those that nobody refers to any more. */
int twin_drop(twin *t, twin_seq *s, uint32_t group, twin_moment at, const bool goes[TWIN_ENTRIES]);

/* Would the page of an entry come free at once? */
bool twin_frees(const twin *t, const twin_seq *s, uint32_t group, uint32_t entry);

/* Pages of others (or its own) that a sequence takes under pressure, marked by place in `seqs`, group and entry.
 * `copy` is the requester as its own trimming leaves it. Returns how many there are, at most `missing`. */
typedef struct {
    bool goes[TWIN_SEQS][TWIN_GROUPS][TWIN_ENTRIES];
} twin_taken;

uint32_t twin_press(const twin *t, const twin_seq *requester, const twin_seq *copy, uint32_t missing, twin_taken *out);
void twin_apply_press(twin *t, const twin_taken *taken);

#endif
