/* eval/config.c: configurations, and the runners and sequences that they need. */
#include "kvkeep/eval/eval.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int out_of_memory(trace_error *error)
{
    return trace_failed(error, (trace_place){"kvkeep eval", 0, NULL}, "out of memory");
}

int eval_runner_open(const eval_job *j, kvk_dtype kv_type, uint64_t kv_tokens, uint32_t watch, runner **out)
{
    runner_config config = RUNNER_CONFIG(j->loaded.model);
    config.page_tokens = j->o.page_tokens;
    config.n_groups = j->o.n_groups;
    config.kv_type = kv_type;
    config.kv_tokens = kv_tokens;
    config.watch = watch;
    config.near = j->profile.near;
    return runner_open(&config, out, j->error);
}

int eval_sequence_open(const eval_job *j, runner *r, const eval_config *c, uint32_t n_prompt, kvk_seq *out)
{
    kvk_eviction eviction;
    kvk_eviction_init(&eviction);
    eviction.choice = c->choice;
    eviction.budget = c->budget;
    eviction.n_prompt = n_prompt;
    return runner_sequence(r, &eviction, out, j->error);
}

bool eval_never_evicts(const eval_config *c)
{
    return c->choice.policy->rank == NULL && c->choice.policy->choose == NULL;
}

uint64_t eval_config_holds(const eval_job *j, const eval_config *c, uint64_t text_tokens)
{
    uint64_t page = j->o.page_tokens, most = (text_tokens + page - 1) / page;
    uint64_t held = c->budget / page + (j->o.chunk + page - 1) / page;
    return page * (eval_never_evicts(c) || held > most ? most : held);
}

uint64_t eval_page_bytes(const eval_job *j, kvk_dtype kv_type)
{
    const model_shape *s = &j->loaded.model->shape;
    uint64_t bytes = 0, n_scales = 0;
    kvk_kv kv;
    kvk_kv_init(&kv, kv_type, 1, j->o.page_tokens);
    if (kvk_kv_shape(&kv, s->n_layers, s->n_kv_heads, s->head_size) == 0)
        (void)kvk_kv_bytes(&kv, &bytes, &n_scales); /* a runner was opened with the same */
    return bytes + n_scales * sizeof(float);
}

/* Of the heads that are kept; 0 for a policy to which that is all the same. */
static uint64_t near_digest(const eval_job *j, const eval_config *c)
{
    const kvk_policy *p = c->choice.policy;
    const near_heads *h = &j->profile.near;
    bool asks = p->needs && (p->needs(c->choice.knobs, 1) & KVK_NEED_NEAR);
    return asks ? XXH3_64bits_withSeed(h->chosen, h->n * sizeof *h->chosen, 1 + (uint64_t)h->kind) : 0;
}

int eval_config_key(const eval_job *j, const char *what, uint64_t text_digest, const eval_config *c, char key[EVAL_KEY])
{
    const eval_options *o = &j->o;
    int n = snprintf(key, EVAL_KEY, "%s %016jx groups=%s page_tokens=%u chunk=%u kv=%s near=%016jx policy=%s budget=%u",
                     what, (uintmax_t)text_digest, o->n_groups == 1 ? "1" : "layers", o->page_tokens, o->chunk,
                     eval_kv_type_name(c->kv_type), (uintmax_t)near_digest(j, c), c->name,
                     eval_never_evicts(c) ? 0 : c->budget);
    return n < EVAL_KEY ? 0 : trace_failed(j->error, (trace_place){"kvkeep eval", 0, NULL}, "a key is too long");
}

/* ---- All of them ------------------------------------------------------------------------------------------------ */

/* A sequence of the cache's says whether a policy can work with a budget. */
static int check(const eval_job *j, const eval_configs *c)
{
    runner *r;
    int rc = eval_runner_open(j, KVK_F32, j->o.page_tokens, 0, &r);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; rc == 0 && i < c->n; i++) {
        kvk_seq seq;
        rc = eval_sequence_open(j, r, &c->list[i], 0, &seq);
        if (rc == 0)
            (void)kvk_seq_close(runner_cache(r), seq);
    }
    runner_close(r);
    return rc;
}

error_t eval_set_usual(eval_job *j)
{
    static const char *const policies[] = {"full", "window", "streaming", "snapkv", "h2o", "keep"};
    const arguments a = {"kvkeep eval", &j->o, j->error};
    error_t rc = 0;
    if (j->o.policies.n == 0)
        for (size_t i = 0; i < sizeof policies / sizeof policies[0] && rc == 0; i++)
            rc = policy_list_add(&a, &j->o.policies, policies[i]);
    if (j->o.budgets.n)
        return rc;
    rc = rc ? rc : budget_list_add(&a, &j->o.budgets, "20%");
    return rc ? rc : budget_list_add(&a, &j->o.budgets, "36%");
}

/* The first policy is one that keeps everything: what the others are compared with. */
int eval_put_full_first(eval_job *j)
{
    policy_list *p = &j->o.policies;
    uint32_t at = 0;
    while (at < p->n && p->choices[at].policy != kvk_policy_at(0))
        at++;
    if (at == POLICY_LIST_MAX)
        return trace_bad_input(j->error, (trace_place){"kvkeep eval", 0, "--policy"}, "too many with full");
    p->n += at == p->n;
    memmove(p->choices + 1, p->choices, at * sizeof *p->choices);
    kvk_policy_defaults(kvk_policy_at(0), &p->choices[0]);
    return 0;
}

static void add_all(const eval_job *j, double text_tokens, eval_configs *out)
{
    const eval_options *o = &j->o;
    for (uint32_t t = 0; t < o->n_kv_types; t++)
        for (uint32_t b = 0; b < o->budgets.n; b++)
            for (uint32_t p = 0; p < o->policies.n; p++) {
                eval_config *c = &out->list[out->n++];
                c->choice = o->policies.choices[p];
                c->choice = profile_choice(&j->profile, &c->choice);
                c->budget = budget_tokens(o->budgets.budgets[b], text_tokens);
                c->kv_type = o->kv_types[t];
                (void)kvk_policy_print(&c->choice, c->name, sizeof c->name);
            }
}

int eval_configs_make(const eval_job *j, double text_tokens, eval_configs *out)
{
    const eval_options *o = &j->o;
    *out = (eval_configs){.list = calloc((size_t)o->n_kv_types * o->budgets.n * o->policies.n, sizeof *out->list)};
    if (!out->list)
        return out_of_memory(j->error);
    add_all(j, text_tokens, out);
    int rc = check(j, out);
    if (rc < 0)
        eval_configs_free(out);
    return rc;
}

void eval_configs_free(eval_configs *c)
{
    free(c->list);
    *c = (eval_configs){.n = 0};
}
