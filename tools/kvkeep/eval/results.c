#include "kvkeep/eval/results.h"

#include "kvkeep/outfile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int out_of_memory(trace_error *error)
{
    return trace_failed(error, (trace_place){"kvkeep eval", 0, NULL}, "out of memory");
}

/* {"kvkeep_eval": 1, "results": {KEY: {...}, ...}} */
static int take(eval_results *r, const json_t *whole, trace_error *error)
{
    json_t *results = json_object_get(whole, "results");
    const char *key;
    json_t *value;
    if (json_integer_value(json_object_get(whole, "kvkeep_eval")) != 1 || !json_is_object(results))
        return trace_bad_input(error, (trace_place){r->path, 0, "kvkeep_eval"}, "holds no results of kvkeep eval");
    json_object_foreach(results, key, value) if (!json_is_object(value)) return trace_bad_input(
        error, (trace_place){r->path, 0, key}, "is no object");
    r->by_key = json_incref(results);
    return 0;
}

static int read_file(eval_results *r, trace_error *error)
{
    json_error_t wrong;
    FILE *in = fopen(r->path, "rb");
    if (!in && errno == ENOENT)
        return 0;
    if (!in)
        return trace_bad_input(error, (trace_place){r->path, 0, NULL}, "cannot open: %s", strerror(errno));
    json_t *whole = json_loadf(in, JSON_REJECT_DUPLICATES, &wrong);
    fclose(in);
    if (!whole)
        return trace_bad_input(error, (trace_place){r->path, wrong.line > 0 ? (uint64_t)wrong.line : 0, NULL}, "%s",
                               wrong.text);
    int rc = take(r, whole, error);
    json_decref(whole);
    return rc;
}

int eval_results_open(eval_results *r, const char *path, trace_error *error)
{
    *r = (eval_results){.path = path};
    int rc = path ? read_file(r, error) : 0;
    if (rc == 0 && !r->by_key)
        r->by_key = json_object();
    return rc < 0 ? rc : r->by_key ? 0 : out_of_memory(error);
}

void eval_results_close(eval_results *r)
{
    json_decref(r->by_key);
    *r = (eval_results){.path = NULL};
}

json_t *eval_results_find(const eval_results *r, const char *key)
{
    return json_object_get(r->by_key, key);
}

int eval_results_put(eval_results *r, const char *key, json_t *result, trace_error *error)
{
    return result && json_object_set_new(r->by_key, key, result) == 0 ? 0 : out_of_memory(error);
}

int eval_results_save(const eval_results *r, trace_error *error)
{
    outfile file;
    if (!r->path)
        return 0;
    json_t *whole = json_pack("{s:i, s:O}", "kvkeep_eval", 1, "results", r->by_key);
    if (!whole)
        return out_of_memory(error);
    int rc = outfile_open(&file, r->path, error);
    if (rc == 0) {
        json_dumpf(whole, file.stream, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
        rc = outfile_commit(&file, error);
    }
    json_decref(whole);
    return rc;
}
