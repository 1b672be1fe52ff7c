/* eval/measure.h: configurations measured on a text, as few of them anew as --resume leaves. */
#ifndef KVKEEP_TOOLS_EVAL_MEASURE_H
#define KVKEEP_TOOLS_EVAL_MEASURE_H

#include "kvkeep/eval/pass.h"
#include "kvkeep/eval/stats.h"

typedef struct eval_measured {
    const eval_config *config;
    double *nll;        /* [n] of the text's tokens from the second on */
    const double *full; /* [n] the same without eviction and with the first type of KV */
    uint32_t n;
    double retained_mass; /* over active queries; NAN of none */
    double kept_share, churn_per_1k;
    uint64_t kv_bytes_peak;
    double tokens_per_s;
} eval_measured;

/* Measures all, each type of KV in passes of its own, into out[c->n]; the first policy must be full
 * (eval_put_full_first). 0 or an error; eval_measured_free in both cases. */
int eval_measure(eval_job *j, const eval_text *text, const eval_configs *c, eval_measured *out);
void eval_measured_free(eval_measured *m, uint32_t n);

/* Targets from the budget on, where eviction was active: how many of the first values are before them. */
uint32_t eval_first_active(const eval_measured *m);

#endif
