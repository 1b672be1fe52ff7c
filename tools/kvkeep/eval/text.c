#include "kvkeep/eval/text.h"

#include "kvkeep/whole_file.h"

#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static int too_short(const char *path, const eval_options *o, size_t n, trace_error *error)
{
    const trace_place place = {path, 0, NULL};
    if (n >= 2)
        return trace_bad_input(error, place, "has %zu tokens, of which offset %u and tokens %u leave fewer than 2", n,
                               o->offset, o->tokens);
    return trace_bad_input(error, place, n ? "has one token, too few to measure on" : "is empty");
}

static int take(const eval_job *j, const char *path, const token_list *ids, eval_text *out)
{
    const eval_options *o = &j->o;
    size_t n = ids->n > o->offset ? ids->n - o->offset : 0, context = j->loaded.model->shape.context;
    n = n > context ? context : n;
    n = o->tokens && n > o->tokens ? o->tokens : n;
    if (n < 2)
        return too_short(path, o, ids->n, j->error);
    out->tokens = malloc(n * sizeof *out->tokens);
    if (!out->tokens)
        return trace_failed(j->error, (trace_place){path, 0, NULL}, "out of memory");
    for (size_t i = 0; i < n; i++)
        out->tokens[i] = (uint32_t)ids->ids[o->offset + i];
    out->n = (uint32_t)n;
    const model *m = j->loaded.model;
    out->digest = XXH3_64bits_withSeed(out->tokens, n * sizeof *out->tokens, XXH3_64bits(m->weights, m->weight_bytes));
    return 0;
}

int eval_text_read(const eval_job *j, const char *path, eval_text *out)
{
    char *bytes;
    size_t n;
    token_list ids = {0};
    *out = (eval_text){.n = 0};
    int rc = whole_file_read(path, &bytes, &n, j->error);
    if (rc < 0)
        return rc;
    rc = tokenizer_encode(j->loaded.tokenizer, bytes, n, TOKENIZER_BEGIN, &ids, j->error);
    free(bytes);
    if (rc == 0)
        rc = take(j, path, &ids, out);
    token_list_free(&ids);
    return rc;
}

void eval_text_free(eval_text *t)
{
    free(t->tokens);
    *t = (eval_text){.n = 0};
}
