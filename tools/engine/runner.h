/* engine/runner.h: a model that runs on a kvkeep cache: opens sequences, and computes a batch of them step by step.
 *
 * A step of a sequence takes its next tokens, any number of them: a chunk of a prompt, or one token. Before it computes
 * anything it makes room, which for a sequence with a policy is when pages are evicted; so token by token a score is
 * taken first and eviction comes after it, before the next page is begun. Its logits answer "what comes next?".
 *
 *     runner_config config = RUNNER_CONFIG(model);
 *     config.kv_tokens = 4096;
 *     runner_open(&config, &r, error);
 *     kvk_eviction eviction;
 *     runner_policy("h2o:sinks=4", 1024, &eviction, error);
 *     runner_sequence(r, &eviction, &seq, error);
 *     runner_entry entry = {.sequence = seq, .tokens = prompt, .n = n_prompt, .want = RUNNER_LAST};
 *     runner_step(r, &entry, 1, error);
 *     token = sample(sampler, entry.logits);
 *
 * Everything that is not about computing is asked of the cache itself, runner_cache: kvk_seq_info_get,
 * kvk_eviction_info_get, kvk_seq_scores, kvk_prefix_attach, kvk_set_events, and kvk_seq_close to end a sequence.
 *
 * One thread at a time for each runner; several runners may share a model. Functions return 0, TRACE_BAD_INPUT or
 * TRACE_FAILED with the error's line set. */
#ifndef KVKEEP_ENGINE_RUNNER_H
#define KVKEEP_ENGINE_RUNNER_H

#include "engine/forward.h"
#include "engine/near_heads.h"

#include <kvkeep/eviction.h>

typedef struct runner_config {
    const model *model;
    uint32_t page_tokens;
    uint32_t n_groups;     /* 1, or one per layer: RUNNER_PER_LAYER */
    uint32_t kv_type;      /* a kvk_dtype */
    uint32_t prefix_cache; /* 1: full pages are found again by later sequences (kvk_prefix_attach) */
    uint64_t kv_tokens;    /* tokens of KV that all sequences may hold together, in whole pages; memory is used as pages
                              are. A sequence within a budget holds the budget and the pages of its longest step */
    near_heads near;       /* near peaks that are kept for policies that ask for them (keep) */
    uint32_t watch;        /* kvk_need bits: masses that are computed even if no policy asks for them (runner_seen) */
} runner_config;

#define RUNNER_PER_LAYER UINT32_MAX

/* Pages of 16, one group, f32, near peaks of removal error of all heads. */
#define RUNNER_CONFIG(m)                                                                                               \
    ((runner_config){                                                                                                  \
        .model = (m), .page_tokens = 16, .n_groups = 1, .kv_type = KVK_F32, .near = {.kind = KVK_NEAR_ERROR}})

typedef struct runner runner;

/* The model must outlive the runner. Bad input: a number out of range. */
int runner_open(const runner_config *config, runner **out, trace_error *error);

/* Ends all its sequences. NULL is ignored. */
void runner_close(runner *r);

kvk_cache *runner_cache(runner *r);

/* Bytes of K and V, with scales, of one page of one group: kvk_stats' pages times this is what is held. */
uint64_t runner_page_bytes(const runner *r);

/* Reads a policy, "h2o:sinks=4", with a budget in tokens (0: the policy's own) into settings that may be changed
 * further. Bad input: the policy's text, in one line. */
int runner_policy(const char *text, uint32_t budget, kvk_eviction *out, trace_error *error);

/* Opens an empty sequence. `eviction` NULL: keeps everything. Bad input: a budget too small for its policy. */
int runner_sequence(runner *r, const kvk_eviction *eviction, kvk_seq *out, trace_error *error);

/* What a step gives for an entry. */
typedef enum runner_want {
    RUNNER_NOTHING = 0,
    RUNNER_LAST = 1,  /* the logits after its last token */
    RUNNER_ALL = 2,   /* the logits after each of its tokens */
    RUNNER_SCORES = 3 /* the score of each given next token, without keeping the logits */
} runner_want;

typedef struct runner_entry {
    kvk_seq sequence;
    const uint32_t *tokens; /* [n] the next ones of its text */
    uint32_t n;             /* at least 1 */
    uint32_t has_room; /* 1: the caller reserved room for them (kvk_reserve), so nothing is evicted before the step:
                               a prompt that is to be seen whole reserves all of it before its first chunk */
    runner_want want;
    const float *logits;  /* out: [1 or n][n_vocabulary], until the next step or the end of the runner */
    const uint32_t *next; /* RUNNER_SCORES: [n] what follows each token; UINT32_MAX: not known, scored as 0 */
    double *nll;          /* RUNNER_SCORES, out: [n] -log of the probability of next[i]; the caller's */
    uint32_t each;        /* 1: each of its tokens is an observation of its own, as if they came one by one. (If they
                             begin a page and do not pass its end, all is then as if they did.) 0: their sum is one */
} runner_entry;

/* Computes a step of several different sequences. Bad input: a token that the model does not know, more tokens than its
 * context. TRACE_FAILED: no pages or no memory; sequences may have lost pages to their budgets, but none has new
 * tokens. */
int runner_step(runner *r, runner_entry *entries, uint32_t n, trace_error *error);

/* What the last step told the cache of near peaks, in the form of kvk_masses.near. NULL if no policy asked for them. */
const float *runner_near(const runner *r);

/* What attention gave the pages of one table in the last step. */
typedef struct runner_masses {
    uint32_t n_pages, n_rows; /* a row for each token of an entry with `each`, else one: the sum */
    const int32_t *positions; /* [n_pages] of their first tokens */
    const float *mean;        /* [n_rows][n_pages] mean over the heads of the group's layers */
    const float *peak;        /* the same, the largest; NULL if nobody asked for it */
} runner_masses;

/* Of entry `entry`, until the next step. Masses that no policy asked for are there by runner_config.watch; else `mean`
 * is NULL. */
void runner_seen(const runner *r, uint32_t entry, uint32_t group, runner_masses *out);

#endif
