/* fuzz_profile.c: the input is a model's profile. One that is taken reads the same after it was written. */
#include "kvkeep/profile.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_heads(const profile *p)
{
    if (p->near.n < 1 || p->near.n > NEAR_MAX_CHOSEN)
        abort();
    for (uint32_t i = 0; i < p->near.n; i++)
        if (p->near.chosen[i].layer >= p->layers || p->near.chosen[i].head >= p->heads)
            abort();
}

static int is_same(const profile *a, const profile *b)
{
    return strcmp(a->model, b->model) == 0 && a->layers == b->layers && a->heads == b->heads &&
           a->near.n == b->near.n && a->near.kind == b->near.kind &&
           memcmp(a->near.chosen, b->near.chosen, a->near.n * sizeof *a->near.chosen) == 0 &&
           memcmp(a->choice.knobs, b->choice.knobs, a->choice.policy->n_knobs * sizeof *a->choice.knobs) == 0;
}

static void check_again(const profile *p)
{
    trace_error error;
    profile q;
    json_t *fields = profile_json(p, NULL);
    char *text = fields ? json_dumps(fields, 0) : NULL;
    if (!text || profile_parse(text, strlen(text), "again", &q, &error) < 0 || !is_same(p, &q))
        abort();
    free(text);
    json_decref(fields);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    profile p;
    trace_error error = {""};
    int rc = profile_parse((const char *)data, size, "profile.json", &p, &error);
    if (rc < 0 && (error.text[0] == '\0' || strchr(error.text, '\n')))
        abort();
    if (rc == 0) {
        check_heads(&p);
        check_again(&p);
    }
    return 0;
}
