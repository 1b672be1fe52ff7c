/* kvkeep/policy.h: eviction policies, those that come with the library and your own.
 *
 * A policy decides which pages of a sequence's block table matter least. It sees one table (one sequence, one group)
 * at a time through a view, keeps a few numbers per page (its scores) and ranks pages by them. What it can't do is
 * evict what must stay: the pages that hold sink or recent tokens (as its `protect` says), the partial last page,
 * pinned pages and pages with tokens whose batch hasn't ended are not eligible, whatever it answers.
 *
 * A policy of your own is a kvk_policy filled in: see docs/examples/own_policy.c. It must live as long as the caches
 * that use it, keep no state outside of the scores, and answer the same question in the same way every time. */
#ifndef KVKEEP_POLICY_H
#define KVKEEP_POLICY_H

#include <kvkeep/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KVK_MAX_KNOBS 12u
#define KVK_MAX_SCORES 16u       /* numbers that a policy keeps per page */
#define KVK_MAX_POLICY_TEXT 512u /* bytes of a written choice, its 0 included */

/* A parameter of a policy: a number within bounds. */
typedef struct kvk_knob {
    const char *name;
    double min, max, standard; /* the default */
    int whole;                 /* 1: whole numbers only */
    const char *text;          /* what it does, and its unit */
} kvk_knob;

/* What a policy wants to be told of a page: what a kernel has to compute. */
enum kvk_need {
    KVK_NEED_MEAN = 1, /* its mass, mean over heads */
    KVK_NEED_PEAK = 2, /* its largest mass over heads and queries; its mass comes along */
    KVK_NEED_NEAR = 4, /* its near peaks (kvk_group.near_layers, near_heads); its mass comes along */
    KVK_NEED_ASK = 8   /* `choose` is asked each time a page is full, not only past the budget */
};

/* The near peaks of a sequence in one group: how much each page changed the output of each head in the queries of its
 * own and the next page. Pages are those of the text, dropped ones included; what isn't known yet is 0. */
typedef struct kvk_near {
    const float *peaks; /* [n_pages] rows of [layers][heads], `stride` floats apart */
    uint64_t stride;
    uint32_t n_pages, layers, heads;
} kvk_near;

/* One block table as a policy sees it. Page i (0 .. n-1, by position) holds the tokens at positions
 * index[i] * page_tokens on; the last may be partial. */
typedef struct kvk_policy_view {
    const double *knobs; /* [n_knobs] */
    uint32_t group, n_groups;
    uint32_t page_tokens;
    uint32_t budget;         /* tokens that this table may hold; 0: any number */
    uint32_t n_tokens;       /* of the text so far, dropped ones included */
    uint32_t n_prompt;       /* tokens of the prompt; 0: not known */
    uint32_t n;              /* pages in the table */
    const uint32_t *index;   /* [n] ascending */
    const uint8_t *eligible; /* [n] 1: may go; NULL in `observe` */
    float *const *scores;    /* [n_scores] -> [n]: the policy's numbers; a page begins with 0 in each */
    float *shared;           /* a number per page of `near`, one for all groups; begins as 0. NULL without n_shared */
    const kvk_near *near;    /* [n_groups]; NULL if not asked for */
} kvk_policy_view;

/* What the queries of a step gave the pages of a table. A prefill chunk may come as one observation. A policy that asks
 * for nothing is told of none. */
typedef struct kvk_observation {
    uint32_t first_query; /* position of the first one */
    uint32_t n_queries;   /* that are summed up */
    const float *mean;    /* [n] mass, mean over heads, sum over the queries */
    const float *peak;    /* [n] largest mass over heads and queries; NULL unless asked for and told */
} kvk_observation;

/* Tokens that a policy puts out of reach at both ends of the text. */
typedef struct kvk_protection {
    uint32_t sinks;  /* the pages that hold the first so many tokens */
    uint32_t recent; /* the full pages that hold the last so many tokens */
} kvk_protection;

typedef struct kvk_policy {
    uint32_t size; /* sizeof(kvk_policy) */
    uint32_t n_knobs;
    const char *name; /* letters, digits, '_' */
    const char *text; /* one line: what it does and where it is from */
    const kvk_knob *knobs;
    uint32_t n_scores;      /* per page, 0 .. KVK_MAX_SCORES */
    uint32_t n_shared;      /* 1: with near peaks also a number per page of the text, for all groups at once */
    uint32_t score_is_mass; /* 1: what `rank` gives is a share or sum of attention, so shares of it can be compared */
    uint32_t reserved;

    /* A set of kvk_need bits. `has_near`: the cache's groups have near peaks. */
    uint32_t (*needs)(const double *knobs, int has_near);

    /* The budget that the knobs stand for, tokens; 0: none of its own. NULL: 0. */
    uint32_t (*budget)(const double *knobs);

    /* What is out of reach in a table of `budget` tokens (0: any number). NULL: nothing. */
    kvk_protection (*protect)(const double *knobs, uint32_t budget, uint32_t page_tokens);

    /* Takes a step into the scores. NULL: nothing is to be kept. */
    void (*observe)(const kvk_policy_view *view, const kvk_observation *seen);

    /* Sets score[n], and tier[n] (given as 0): pages go by lowest tier, then lowest score, then lowest position. Must
     * change nothing. NULL: the policy never evicts. */
    void (*rank)(const kvk_policy_view *view, float *score, uint8_t *tier);

    /* Names the pages to go, in any order, in victims[n]: at least `want` of the eligible ones if there are so many.
     * May change its scores (they are taken over only if the eviction takes place). Returns how many. NULL: the `want`
     * first by `rank`. */
    uint32_t (*choose)(const kvk_policy_view *view, uint32_t want, uint32_t *victims);
} kvk_policy;

/* A policy with its knobs. */
typedef struct kvk_policy_choice {
    const kvk_policy *policy;
    double knobs[KVK_MAX_KNOBS]; /* [policy->n_knobs] */
} kvk_policy_choice;

/* The policies of the library by number, from 0: full, lru, window, streaming, h2o, scissorhands, snapkv, tova,
 * random, keep. NULL past the last. */
KVK_API const kvk_policy *kvk_policy_at(uint32_t i);

/* A preset: a name for a policy with knobs, such as h2o-4-512-512. */
typedef struct kvk_preset {
    const char *name;
    const char *choice; /* as kvk_policy_parse takes it */
} kvk_preset;

/* The presets by number, from 0. NULL past the last. */
KVK_API const kvk_preset *kvk_preset_at(uint32_t i);

/* Reads NAME[:key=value...], a policy or a preset with knobs: "h2o:sinks=4:recent=64". `also` (may be NULL) is a
 * policy of the caller's that is known too. On failure `why[cap]` gets one line that names what is wrong. Returns 0 or
 * KVK_EINVAL. */
KVK_API int kvk_policy_parse(const char *text, const kvk_policy *also, kvk_policy_choice *out, char *why, size_t cap);

/* Writes a choice so that it reads back the same: the policy and each knob that is not at its default. Returns the
 * length, or KVK_ESPACE, KVK_EINVAL. KVK_MAX_POLICY_TEXT bytes are enough for every policy of the library. */
KVK_API int kvk_policy_print(const kvk_policy_choice *choice, char *text, size_t cap);

/* A policy at its defaults. */
KVK_API void kvk_policy_defaults(const kvk_policy *policy, kvk_policy_choice *out);

/* 0 if the policy is complete and each knob within its bounds, else KVK_EINVAL. */
KVK_API int kvk_policy_check(const kvk_policy_choice *choice);

#ifdef __cplusplus
}
#endif

#endif
