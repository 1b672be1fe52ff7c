/* engine/runner_state.h: a runner from inside. */
#ifndef KVKEEP_ENGINE_RUNNER_STATE_H
#define KVKEEP_ENGINE_RUNNER_STATE_H

#include "engine/runner.h"

/* The arrays of a plan and of the masses; they grow and stay. G groups. */
typedef struct runner_arrays {
    kvk_batch_entry *entries;
    uint32_t *none;                                            /* zeroes, by entries */
    uint32_t *rows;                                            /* of masses, by entries */
    int32_t *indptr, *last_page_len, *seq_lens, *query_indptr; /* by entries */
    int32_t *pages, *positions;                                /* [G][pages_cap] */
    int64_t *slots;                                            /* [G][slots_cap] */
    uint32_t *tokens, *which;                                  /* [slots_cap] */
    float *mean, *peak;                                        /* [masses_cap] */
    float *near;                                               /* [near_cap] */
    uint32_t entries_cap;
    uint64_t pages_cap, slots_cap, masses_cap, near_cap;
} runner_arrays;

struct runner {
    runner_config config; /* n_groups as it is */
    kvk_cache *cache;
    forward *forward;
    kvk_kv kv;
    float *logits; /* of the last step */
    uint64_t logits_cap;
    kvk_group *groups;    /* [n_groups] */
    int32_t *near_places; /* [n_layers][n_heads] among the near peaks of the layer's group */
    uint32_t group_near;  /* floats of near peaks for a page in the group that has most */
    runner_arrays arrays;
    forward_masses seen; /* in the last step */
};

/* Room for a batch of `n` entries and as many pages and tokens as given. Returns 0 or -1. */
int runner_grow(runner *r, uint32_t n, uint64_t pages, uint64_t slots);

/* Room for so many floats of masses, and of near peaks. Returns 0 or -1. */
int runner_grow_masses(runner_arrays *a, uint64_t masses, uint64_t near);

void runner_free_arrays(runner_arrays *a);

/* Errors of calls of kvkeep's. */
int runner_failed(const char *call, int rc, trace_error *error);
int runner_no_memory(trace_error *error);

/* Makes room for the masses of a planned batch, and says where they go, zeroed: those that `needs` names. Returns 0 or
 * -1. */
int runner_make_masses(runner *r, const runner_entry *entries, uint32_t n, uint32_t needs);

/* Runs the moves that wait. */
int runner_run_moves(runner *r, trace_error *error);

#endif
