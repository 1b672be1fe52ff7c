/* kvkeep/eviction.h: sequences that keep the pages that matter within a budget. Included by nothing: a user of
 * kvkeep.h who sets no policy pays nothing for it.
 *
 * A sequence with a policy has a budget, in tokens of KV per group. When it is reached, kvk_reserve evicts before it
 * takes new pages: in decode, and between the chunks of a prefill. So a sequence holds at most its budget plus the
 * pages of the batch that runs. (A prefix hit may bring more, which others hold too; the next kvk_reserve gives it
 * back.) With KVK_EVICT a reservation that lacks pages takes them from all sequences that yield, cheapest first; a
 * sequence without a budget that alone needs more than the pool is told KVK_ENEVER as ever.
 *
 * Evicting is lossy: the block table is compact afterwards, a plan's `positions` tell where each page stood, and K/V
 * computed from then on is not what the text alone would give. Such a sequence is *tainted*: nothing it computed after
 * its first loss is ever found by others. Evicting a shared page drops this sequence's reference; the memory comes back
 * with the last one. Pages that a batch in flight reads go through limbo as always.
 *
 * What attention gave each page comes in through kvk_batch_result.masses. */
#ifndef KVKEEP_EVICTION_H
#define KVKEEP_EVICTION_H

#include <kvkeep/kvkeep.h>
#include <kvkeep/policy.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a sequence is evicted. */
typedef struct kvk_eviction {
    uint32_t size;     /* sizeof(kvk_eviction) */
    uint32_t budget;   /* tokens per group; 0 (default): what the policy's knobs stand for, if anything */
    uint32_t slack;    /* pages below the budget that an eviction goes down to; default 0 */
    uint32_t floor;    /* tokens per group that `target` and the pressure of others leave; default 0 */
    uint32_t yields;   /* 1 (default): other sequences' reservations with KVK_EVICT may take pages of this one */
    uint32_t n_prompt; /* tokens of the prompt, for policies that look at its last queries; 0 (default): not known */
    float slope;  /* 0 .. 1: budgets fall linearly from budget * (1 + slope) in the first group to budget * (1 - slope)
                     in the last (PyramidKV: 0.95); default 0: all alike */
    float target; /* above 0: the smallest budget, up to `budget`, that keeps this share of the mass observed, such as
                     0.99, once some was; only with policies whose score is mass; default 0 */
    const uint32_t *budgets;  /* [n_groups] tokens, 0: no limit; copied. NULL: by `budget` and `slope` */
    kvk_policy_choice choice; /* default: full */
} kvk_eviction;

/* Fills in `size` and the defaults. */
KVK_API void kvk_eviction_init(kvk_eviction *settings);

/* Sets how a sequence is evicted from now on. Scores begin anew; pages lost stay lost. NULL: no policy. Forks take it
 * over, scores included. KVK_ESTALE, KVK_ESTATE while it is swapped, KVK_EBUSY while a batch in flight holds it,
 * KVK_ENOMEM, KVK_EINVAL: a field or knob out of range, `target` with a policy whose score is no mass, or a budget too
 * small: of its whole pages at least one must be left besides `slack` and what the policy protects. While a recorder is
 * attached, a policy that is not the library's own gives KVK_ESTATE. */
KVK_API int kvk_seq_set_eviction(kvk_cache *cache, kvk_seq seq, const kvk_eviction *settings);

/* What attention gave the pages of a batch. For each group, entry after entry, `rows` times the pages that the plan
 * lists for it (in its order, whatever its form). Entries of sequences without a policy have their places too; what
 * stands there is not read. kvk_plan.needs says which arrays are needed; one that is not may be NULL. */
typedef struct kvk_masses {
    uint32_t size; /* sizeof(kvk_masses) */
    uint32_t reserved;
    uint64_t
        stride; /* floats from one group to the next in `mean` and `peak`: at least what each holds, else KVK_EINVAL */
    uint64_t near_stride; /* floats from one group to the next in `near` */
    const float *mean; /* [G][stride] mean over heads of a page's mass, summed over the row's queries; NULL: nothing is
                             observed */
    const float *peak; /* [G][stride] largest over heads and over the row's queries */
    /* [G][near_stride] entry after entry, row after row: near_layers * near_heads values for each listed page from page
     * number max(0, tokens_before / page_tokens - 1) of the text on: the largest removal error |m*o - u| / (1-m), or
     * the largest mass, over the row's queries that stand in the page or in the next one */
    const float *near;
    const uint32_t *rows; /* [n] 1: one row, a sum over the entry's queries; or n_query: a row per query, of which the
                             accepted ones count. NULL: 1 each */
    const uint32_t *n_summed; /* [n] queries in the sum of an entry with one row; NULL: all its queries */
} kvk_masses;

/* Drops the pages at these positions (of their first tokens, ascending) from a sequence's table in one group,
 * whatever its policy says. Returns the pages that no sequence refers to any more. KVK_ESTALE, KVK_ESTATE while it is
 * swapped, KVK_EINVAL (a position that is not held, or not ascending), KVK_ENOMEM, KVK_EBUSY (the partial last page, a
 * page with tokens whose batch has not ended, a pinned page). */
KVK_API int kvk_evict(kvk_cache *cache, kvk_seq seq, uint32_t group, const uint32_t *positions, uint32_t n);

typedef struct kvk_eviction_info {
    uint32_t size;          /* sizeof(kvk_eviction_info) */
    uint32_t tainted;       /* 1: it lost a page, and what it computes since is no one else's */
    uint32_t first_taint;   /* tokens before it are untainted; UINT32_MAX: all are */
    uint32_t policy_needs;  /* kvk_need bits */
    const char *policy;     /* its name; "full" without one */
    uint64_t pages_kept;    /* table entries that hold tokens, all groups */
    uint64_t tokens_kept;   /* tokens in them */
    uint64_t pages_evicted; /* since it was opened, all groups; a fork begins with its parent's figures */
    uint64_t tokens_evicted;
    uint64_t queries;     /* observed, summed over groups */
    double retained_last; /* mass reported per query in the last observation, mean over groups: the share that the
                                pages kept, where the masses are those of full attention */
    double retained_mean; /* the same over all observations */
    double evicted_mass;  /* sum over evicted pages of their share of the table's score; 0 where score is no mass */
    double churn_per_1k;  /* pages_evicted per 1,000 tokens of its present length, and group */
} kvk_eviction_info;

/* KVK_ESTALE, KVK_EINVAL. O(n_groups). */
KVK_API int kvk_eviction_info_get(const kvk_cache *cache, kvk_seq seq, kvk_eviction_info *out);

/* A page of a block table as its policy sees it. */
typedef struct kvk_page_score {
    uint32_t page;
    uint32_t position; /* of its first token */
    float score;
    uint8_t tier;
    uint8_t eligible; /* 1: may be evicted now */
    uint16_t reserved;
} kvk_page_score;

/* The pages of one group that hold tokens, by position, into scores[cap]. Returns how many; with cap 0 and scores NULL
 * it only returns the number. Without a policy scores are 0. KVK_ESTALE, KVK_ESTATE while it is swapped, KVK_EINVAL,
 * KVK_ESPACE. O(pages). */
KVK_API int kvk_seq_scores(const kvk_cache *cache, kvk_seq seq, uint32_t group, kvk_page_score *scores, uint32_t cap);

/* The positions of the first tokens of the table's entries, as kvk_seq_table. */
KVK_API int kvk_seq_positions(const kvk_cache *cache, kvk_seq seq, uint32_t group, uint32_t *positions, uint32_t cap);

#ifdef __cplusplus
}
#endif

#endif
