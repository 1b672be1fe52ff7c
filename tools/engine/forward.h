/* engine/forward.h: one step of a model: a batch of sequences, each with any number of new tokens, through all layers.
 *
 * K and V live in kvkeep's pages and nowhere else: those of the new tokens are written to the slots of a kvkeep plan,
 * and attention reads through its page lists. Everything is single precision, and each number comes out the same
 * whatever the number of threads and whatever else is in the batch. */
#ifndef KVKEEP_ENGINE_FORWARD_H
#define KVKEEP_ENGINE_FORWARD_H

#include "engine/model.h"

#include <kvkeep/attention.h>
#include <kvkeep/kvkeep.h>

/* Where near peaks go (near_heads.h). */
typedef struct forward_near {
    kvk_near_kind kind;
    const int32_t *places; /* [n_layers][n_heads] */
    const kvk_group *groups;
} forward_near;

/* What attention gave the pages, as kvk_masses has it; zeroed by the caller. NULL arrays are left out. */
typedef struct forward_masses {
    float *mean, *peak;
    float *near;
    const uint32_t *rows; /* [entries] */
    uint64_t stride, near_stride;
} forward_masses;

typedef struct forward_batch {
    const kvk_plan *plan;   /* CSR of 32 bits with all its arrays */
    uint32_t n_groups;      /* 1, or the model's layers */
    uint32_t n;             /* entries planned */
    const uint32_t *tokens; /* [plan->n_slots] new ones, entry after entry; below n_vocabulary */
    const kvk_kv *kv;       /* of n_layers / n_groups layers; all groups share its pages */
    forward_near near;
    forward_masses masses;
} forward_batch;

/* Working memory for a model. It grows to what the largest batch needs and stays. */
typedef struct forward forward;

/* The model must outlive it. Returns 0 or TRACE_FAILED. */
int forward_open(const model *m, forward **out, trace_error *error);

/* NULL is ignored. */
void forward_close(forward *f);

/* Runs a batch whose moves have been run. Returns 0 or TRACE_FAILED. */
int forward_run(forward *f, const forward_batch *batch, trace_error *error);

/* The logits of `n` tokens of the batch that ran last, whose numbers among its new tokens are which[n], into
 * logits[n][n_vocabulary]. Returns 0 or TRACE_FAILED. */
int forward_logits(forward *f, const uint32_t *which, uint32_t n, float *logits, trace_error *error);

#endif
