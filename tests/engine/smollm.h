/* The real model on the real text, and what an independent program computed (../shared/golden). */
#ifndef TESTS_ENGINE_SMOLLM_H
#define TESTS_ENGINE_SMOLLM_H

#include "engine/runner.h"

#include <jansson.h>

enum { TEXT_TOKENS = 2048 };

/* Where the model or the golden values are not, says so and returns 0. */
int smollm_is_here(void);

typedef struct smollm {
    gguf *file;
    model *model;
    json_t *golden;
    uint32_t text[TEXT_TOKENS + 1];
} smollm;

/* Opens all of it; the text is the beginning of the novel. */
void smollm_open(smollm *s);
void smollm_close(smollm *s);

/* A runner on the model, of 30 groups or one. */
runner *smollm_runner(const smollm *s, uint32_t n_groups, uint64_t kv_tokens, kvk_near_kind kind);

/* A sequence with a policy as text (NULL: none) and a budget. */
kvk_seq smollm_sequence(runner *r, const char *policy, uint32_t budget);

void smollm_step(runner *r, runner_entry *entries, uint32_t n);

/* A number of an object, or of one in it, that must be there. */
double golden_number(const json_t *object, const char *name);

/* The mean of nll[from .. end-1]. */
double mean_of(const double *nll, uint32_t from, uint32_t end);

#endif
