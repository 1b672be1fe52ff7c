/* trace/curve.h: what the prefix cache finds in pools of many sizes.
 *
 * Reclaiming the least recently used page is a stack algorithm (Mattson et al., 1970) for chains too: a prompt is
 * released tail first, so a page always stands above those that hang on it, what a pool holds are the first pages of
 * one list that is the same for pools of all sizes, and one pass over the prompts serves them all. How many of these
 * pages a pool holds is kept for each of them, since a partial page of a prompt drives out one and leaves room free.
 *
 * There is no such list where a prompt may end with a full page that attach leaves to compute: pools that have it then
 * have it twice, and the copy that comes up at the next hit is another one in a larger pool. After the prompts of pages
 * x, z, y, x, b, xc a pool of 5 has x c b x y, one of 4 has x c b y. So such lists, and other orders, are replayed for
 * each size, on all cores.
 */
#ifndef KVKEEP_TRACE_CURVE_H
#define KVKEEP_TRACE_CURVE_H

#include "trace/prompt_list.h"

/* Sets up to `n` sizes, from the longest prompt to what holds everything, at equal ratios. Returns how many: sizes are
 * all different. */
uint32_t curve_sizes(const prompt_list *list, prompt_list_run *runs, uint32_t n);

/* Whether one pass serves all sizes. */
int curve_is_stack(const prompt_list *list, kvk_reclaim reclaim);

/* The hits of n pools, in ascending order of size, all of one order. KVK_ENOMEM; KVK_ENEVER if a prompt is longer than
 * a pool. O(pages log pages + prompts n) where one pass will do. */
int curve_run(prompt_list *list, prompt_list_run *runs, uint32_t n);

/* The same by a replay for each. */
int curve_sweep(const prompt_list *list, prompt_list_run *runs, uint32_t n);

#endif
