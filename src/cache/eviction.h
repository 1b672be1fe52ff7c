/* cache/eviction.h: what is kept of a sequence that may be evicted, and what the files of eviction share.
 *
 * eviction.c  settings, budgets, memory
 * figures.c   what is told of it
 * trim.c      which pages are to go: eligibility, and trimming to the budget
 * evict.c     dropping pages, and what follows from it
 * observe.c   masses into scores
 * near.c      near peaks, of sequences and of pages that can be found
 * pressure.c  taking pages from all sequences that yield */
#ifndef KVK_CACHE_EVICTION_H
#define KVK_CACHE_EVICTION_H

#include "cache/cache.h"
#include "policy/choose.h"

#include <kvkeep/eviction.h>

/* A sequence's tables under a policy, one of these for each group. */
typedef struct group_eviction {
    uint32_t budget; /* tokens; 0: no limit */
    uint32_t limit;  /* pages of the budget; UINT32_MAX: no limit */
    uint64_t pages_evicted, tokens_evicted;
    uint64_t queries; /* observed */
    double mass;      /* of them, in all */
    double last;      /* mass a query of the last observation */
    double share;     /* evicted pages' shares of the score, in all */
    double lost;      /* evicted score, fading, where there is a target */
} group_eviction;

struct eviction {
    int is_on;             /* a policy is set; else only pages lost are counted */
    kvk_eviction settings; /* budgets NULL: they stand in the groups */
    uint32_t needs;
    uint32_t asked_at;      /* n_tokens when a KVK_NEED_ASK policy was asked last */
    group_eviction *groups; /* [n_groups] */
    float *lanes;           /* [n_scores][n_groups][lane_cap] the policy's numbers by table entry */
    uint32_t lane_cap, lane_floats;
    kvk_near *near; /* [n_groups] the near peaks as views show them */
    float *peaks;   /* [peaks_cap][near_row] of the text's pages, dropped ones too; all groups side by side,
                               since a step looks at the newest two in turn */
    float *shared;  /* [shared_cap] the policy's number of each page that has near peaks */
    uint32_t peaks_cap, shared_cap, n_peaks;
};

/* The text as a decision sees it. */
typedef struct moment {
    uint32_t n_tokens;
    uint32_t settled; /* tokens whose batch has ended */
} moment;

static inline const kvk_policy *eviction_policy(const eviction *e)
{
    return e->settings.choice.policy;
}

/* The eviction of a sequence with a policy, or NULL. */
static inline eviction *eviction_of(const sequence *s)
{
    return s->eviction && s->eviction->is_on ? s->eviction : NULL;
}

/* Numbers that the policy keeps per page. */
static inline uint32_t eviction_lanes(const eviction *e)
{
    return e->is_on ? eviction_policy(e)->n_scores : 0;
}

/* The k-th number of each page of a table. One of all groups lies together, since a step goes through them in turn. */
static inline float *eviction_lane(const kvk_cache *c, const eviction *e, uint32_t group, uint32_t k)
{
    return e->lanes ? e->lanes + ((size_t)k * c->config.n_groups + group) * e->lane_cap : NULL;
}

/* ---- eviction.c */

/* Gives the sequence's memory back. */
void eviction_close(kvk_cache *c, sequence *s);

/* A sequence in this slot begins anew, without a policy. */
void eviction_forget(kvk_cache *c, sequence *s);

/* A sequence's whole text is gone, and what was known of it. */
void eviction_restart(kvk_cache *c, sequence *s);

/* Makes room for n entries in each group, and for what choosing among them needs. KVK_ENOMEM. */
int eviction_prepare(kvk_cache *c, sequence *s, uint64_t n);

/* Zeroes the numbers of entries from `from` on. */
void eviction_begin_entries(const kvk_cache *c, sequence *s, uint32_t group, uint32_t from);

/* Keeps the numbers of all tables' pages from now on, since some may go. KVK_ENOMEM. */
int eviction_keep_index(kvk_cache *c, sequence *s);

/* A fork takes over its parent's eviction; room first, which can fail, once its tables have theirs. */
int eviction_prepare_fork(kvk_cache *c, sequence *child, const sequence *parent);
void eviction_fork(kvk_cache *c, sequence *child, const sequence *parent);

/* Entries of a table (ascending) are gone: the others move up, with their pages and their numbers. */
void eviction_compact(const kvk_cache *c, sequence *s, uint32_t group, const uint32_t *gone, uint32_t n_gone);

/* The first `gone` entries of a table, which has let their pages go, are no more: the others' numbers move up. */
void eviction_slide(const kvk_cache *c, sequence *s, uint32_t group, uint32_t gone);

/* A sequence's own struct, for one without a policy too. KVK_ENOMEM. */
int eviction_furnish(kvk_cache *c, sequence *s);

/* The caller's settings, defaults where it knows no field. KVK_EINVAL. */
int eviction_read_settings(const kvk_eviction *from, kvk_eviction *to);

/* Sets a policy, with room for the near peaks of n_near pages of text; what it keeps is to be set after. KVK_EINVAL,
 * KVK_ENOMEM. */
int eviction_take_settings(kvk_cache *c, sequence *s, const kvk_eviction *settings, uint32_t n_near);

/* ---- trim.c */

moment eviction_now(const sequence *s);

/* The same when its text had n_tokens. */
moment eviction_moment(const sequence *s, uint32_t n_tokens);

/* One table as its policy sees it; lanes[KVK_MAX_SCORES] gets the addresses of its numbers. */
kvk_policy_view eviction_view(const kvk_cache *c, const sequence *s, uint32_t group, uint32_t n_tokens, float **lanes);

/* Table entries that held tokens when the text had n_tokens. */
uint32_t eviction_held(const kvk_cache *c, const sequence *s, uint32_t group, uint32_t n_tokens);

/* Sets c->evict.eligible for the pages held. Returns how many are held. */
uint32_t eviction_eligible(const kvk_cache *c, const sequence *s, uint32_t group, moment at);

/* Ranks the pages held now into c->evict: eligible, score and tier. Returns how many are held. */
uint32_t eviction_rank(const kvk_cache *c, const sequence *s, uint32_t group);

/* The pages of n in the order in which they go, by c->evict's eligible, tier and score; lies in c->evict.order. */
policy_queue eviction_queue(const kvk_cache *c, uint32_t n);

typedef struct trim {
    uint32_t victims; /* in all groups */
    uint32_t frees;   /* of these, pages that are available at once */
    int asked;        /* policies that keep count of it were asked */
} trim;

/* Plans what a sequence has to give up by its own budget: c->evict.counts and victims say what. Changes nothing. */
trim trim_plan(const kvk_cache *c, const sequence *s, moment at);
void trim_apply(kvk_cache *c, sequence *s, const trim *t, moment at);

/* True if the page comes free at once when this sequence lets it go. */
int eviction_frees(const kvk_cache *c, const sequence *s, uint32_t page);

/* ---- evict.c */

/* The sum of the first n scores in c->evict. */
double eviction_total(const kvk_cache *c, uint32_t n);

/* What entries of a table are worth by the scores in c->evict. */
weight evict_weight(const kvk_cache *c, const uint32_t *entries, uint32_t n, uint32_t n_table);

/* Drops entries (ascending) of a table, which are worth `w`. Returns the pages that nobody refers to any more. */
int evict_entries(kvk_cache *c, sequence *s, uint32_t group, const uint32_t *entries, uint32_t n, weight w);

/* The same for entries that were not weighed yet. */
int evict_unweighed(kvk_cache *c, sequence *s, uint32_t group, const uint32_t *entries, uint32_t n);

/* ---- pressure.c */

/* Pages that all sequences that yield could give to one, up to `missing`. */
uint64_t pressure_count(const kvk_cache *c, const sequence *s, uint64_t missing);

/* Chooses `missing` pages to take. KVK_ENOMEM, KVK_ENOPAGE. */
int pressure_plan(kvk_cache *c, const sequence *s, uint32_t missing);
void pressure_apply(kvk_cache *c);

/* ---- observe.c */

/* 0 if the masses of a batch may be taken in. KVK_EINVAL. */
int observe_check(kvk_cache *c, const flight *b, const kvk_batch_result *result);
void observe(kvk_cache *c, const flight *b, const kvk_batch_result *result);

/* Remembers what a plan lists; room first, for what its masses may bring too. KVK_ENOMEM. */
int observe_prepare_plan(kvk_cache *c, flight *b, const kvk_batch_entry *entries, uint32_t n);
void observe_plan(kvk_cache *c, flight *b, const kvk_batch_entry *entries, uint32_t n);

/* ---- near.c */

/* True if near peaks are kept of a sequence; `e` may be NULL. */
static inline int near_is_kept(const eviction *e)
{
    return e && e->is_on && (e->needs & KVK_NEED_NEAR);
}

/* Values per page in a group. */
static inline uint32_t near_channels(const kvk_cache *c, uint32_t group)
{
    return (uint32_t)c->groups[group].near_layers * c->groups[group].near_heads;
}

/* The values of a page that can be found. */
static inline float *near_of_page(const kvk_cache *c, uint32_t page)
{
    return c->page_near + (size_t)page * c->near_stride;
}

/* Room for n pages of text in a sequence that keeps near peaks. KVK_ENOMEM. */
int near_prepare(kvk_cache *c, sequence *s, uint64_t n);

/* The same whatever its policy. */
int near_prepare_all(kvk_cache *c, sequence *s, uint64_t n);

/* The views of near peaks as they are now. */
void near_show(const kvk_cache *c, eviction *e);

/* Takes values of the page with this number in. */
void near_take(kvk_cache *c, sequence *s, uint32_t group, uint32_t number, const float *values);

/* Where the page can be found it gets what is known of it by now; `end` tokens of the text were seen: once they reach
 * past the next page that is all there will be. */
void near_settle(kvk_cache *c, const sequence *s, uint32_t group, uint32_t number, uint32_t end);

/* The text from this page number on is gone. */
void near_cut(kvk_cache *c, sequence *s, uint32_t number);

/* A page came to be found: what is known of it goes with it. A sequence attached one: it gets it. */
void near_publish(kvk_cache *c, const sequence *s, uint32_t group, uint32_t number, uint32_t page);
void near_attach(kvk_cache *c, sequence *s, uint32_t group, uint32_t number, uint32_t page);

#endif
