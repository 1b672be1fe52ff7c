/* eval/results.h: results by configuration, so that an evaluation that was stopped goes on where it was, and one
 * with more configurations computes only the new ones.
 *
 * A result is a JSON object. Its key is a text with all that it depends on, so a file may hold results of several
 * models and texts. The file of --resume is written anew, whole, each time results are saved. */
#ifndef KVKEEP_TOOLS_EVAL_RESULTS_H
#define KVKEEP_TOOLS_EVAL_RESULTS_H

#include "trace/error.h"

#include <jansson.h>

typedef struct eval_results {
    const char *path; /* NULL: kept in memory only */
    json_t *by_key;
} eval_results;

/* Reads the file, if there is one. 0 or an error (it is no such file). */
int eval_results_open(eval_results *r, const char *path, trace_error *error);
void eval_results_close(eval_results *r);

/* The result, which the list keeps; NULL: there is none. */
json_t *eval_results_find(const eval_results *r, const char *key);

/* Adds a result and takes the reference to it (NULL: no memory for it). 0 or TRACE_FAILED. */
int eval_results_put(eval_results *r, const char *key, json_t *result, trace_error *error);

/* Writes the file, if there is to be one. 0 or TRACE_FAILED. */
int eval_results_save(const eval_results *r, trace_error *error);

#endif
