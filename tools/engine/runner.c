#include "engine/runner_state.h"

#include <stdlib.h>
#include <string.h>

int runner_no_memory(trace_error *error)
{
    return trace_failed(error, (trace_place){"the cache", 0, NULL}, "out of memory");
}

int runner_failed(const char *call, int rc, trace_error *error)
{
    return trace_failed(error, (trace_place){"the cache", 0, NULL}, "%s: %s", call, kvk_strerror(rc));
}

/* ---- Opening ---------------------------------------------------------------------------------------------------- */

#define REFUSE(field, ...) trace_bad_input(error, (trace_place){"the cache", 0, field}, __VA_ARGS__)

static int check(const runner_config *c, trace_error *error)
{
    uint32_t layers = c->model->shape.n_layers;
    if (c->page_tokens < 1 || c->page_tokens > 4096)
        return REFUSE("page_tokens", "%u, not within 1 to 4096", c->page_tokens);
    if (c->n_groups != 1 && c->n_groups != layers && c->n_groups != RUNNER_PER_LAYER)
        return REFUSE("n_groups", "%u, neither 1 nor the model's %u layers", c->n_groups, layers);
    if (c->kv_type > KVK_I4)
        return REFUSE("kv_type", "%u is not known", c->kv_type);
    if (c->kv_tokens < 1 || c->kv_tokens / c->page_tokens >= KVK_MAX_PAGES / layers)
        return REFUSE("kv_tokens", "%ju are none, or more than a cache can hold", (uintmax_t)c->kv_tokens);
    return near_heads_check(&c->near, &c->model->shape, c->n_groups == 1 ? layers : 1, error);
}

/* Near peaks are the group's in which their layers are. */
static int describe_groups(runner *r, trace_error *error)
{
    const runner_config *c = &r->config;
    const model_shape *s = &c->model->shape;
    uint32_t group_layers = s->n_layers / c->n_groups;
    r->groups = calloc(c->n_groups, sizeof *r->groups);
    r->near_places = calloc((size_t)s->n_layers * s->n_heads, sizeof *r->near_places);
    if (!r->groups || !r->near_places)
        return runner_no_memory(error);
    near_heads_describe(&c->near, s, group_layers, r->groups);
    near_heads_place(&c->near, s, group_layers, r->near_places);
    for (uint32_t g = 0; g < c->n_groups; g++) {
        uint32_t values = (uint32_t)r->groups[g].near_layers * r->groups[g].near_heads;
        r->group_near = values > r->group_near ? values : r->group_near;
    }
    return 0;
}

static int open_cache(runner *r, uint32_t n_pages, trace_error *error)
{
    const runner_config *c = &r->config;
    kvk_config config;
    kvk_config_init(&config);
    config.page_tokens = c->page_tokens;
    config.n_pages = n_pages;
    config.n_groups = c->n_groups;
    config.content = c->prefix_cache ? KVK_CONTENT_TOKENS : KVK_CONTENT_NONE;
    config.groups = r->groups;
    int rc = kvk_cache_open(&config, &r->cache);
    return rc < 0 ? runner_failed("kvk_cache_open", rc, error) : 0;
}

/* All groups share the pages of one pool, each a group's layers wide. Memory that no page used yet is not taken. */
static int make_pages(runner *r, uint32_t n_pages, trace_error *error)
{
    const runner_config *c = &r->config;
    const model_shape *s = &c->model->shape;
    uint64_t bytes = 0, n_scales = 0;
    kvk_kv_init(&r->kv, (kvk_dtype)c->kv_type, n_pages, c->page_tokens);
    int rc = kvk_kv_shape(&r->kv, s->n_layers / c->n_groups, s->n_kv_heads, s->head_size);
    if (rc == 0)
        rc = kvk_kv_bytes(&r->kv, &bytes, &n_scales);
    if (rc < 0)
        return runner_failed("kvk_kv_shape", rc, error);
    r->kv.base = calloc(bytes, 1);
    r->kv.scales = n_scales ? calloc(n_scales, sizeof *r->kv.scales) : NULL;
    return r->kv.base && (r->kv.scales || !n_scales) ? 0 : runner_no_memory(error);
}

static int fill(runner *r, trace_error *error)
{
    runner_config *c = &r->config;
    c->n_groups = c->n_groups == RUNNER_PER_LAYER ? c->model->shape.n_layers : c->n_groups;
    uint32_t n_pages = (uint32_t)((c->kv_tokens + c->page_tokens - 1) / c->page_tokens) * c->n_groups;
    int rc = describe_groups(r, error);
    if (rc == 0)
        rc = open_cache(r, n_pages, error);
    if (rc == 0)
        rc = make_pages(r, n_pages, error);
    return rc < 0 ? rc : forward_open(c->model, &r->forward, error);
}

int runner_open(const runner_config *config, runner **out, trace_error *error)
{
    int rc = check(config, error);
    if (rc < 0)
        return rc;
    runner *r = calloc(1, sizeof *r);
    if (!r)
        return runner_no_memory(error);
    r->config = *config;
    rc = fill(r, error);
    if (rc < 0)
        runner_close(r);
    else
        *out = r;
    return rc;
}

void runner_close(runner *r)
{
    if (!r)
        return;
    kvk_cache_close(r->cache);
    forward_close(r->forward);
    runner_free_arrays(&r->arrays);
    free(r->kv.base);
    free(r->kv.scales);
    free(r->logits);
    free(r->groups);
    free(r->near_places);
    free(r);
}

kvk_cache *runner_cache(runner *r)
{
    return r->cache;
}

uint64_t runner_page_bytes(const runner *r)
{
    uint64_t scales = 2 * (uint64_t)r->kv.n_layers * r->kv.n_heads * r->kv.page_tokens * sizeof(float);
    return r->kv.page_stride + (r->kv.scales ? scales : 0);
}

/* ---- Sequences -------------------------------------------------------------------------------------------------- */

int runner_policy(const char *text, uint32_t budget, kvk_eviction *out, trace_error *error)
{
    char why[256];
    kvk_eviction_init(out);
    out->budget = budget;
    if (kvk_policy_parse(text, NULL, &out->choice, why, sizeof why) < 0)
        return trace_bad_input(error, (trace_place){"policy", 0, NULL}, "%s", why);
    return 0;
}

static int set_eviction(runner *r, kvk_seq seq, const kvk_eviction *eviction, trace_error *error)
{
    char text[KVK_MAX_POLICY_TEXT];
    int rc = eviction ? kvk_seq_set_eviction(r->cache, seq, eviction) : 0;
    if (rc == KVK_EINVAL && kvk_policy_print(&eviction->choice, text, sizeof text) >= 0)
        return trace_bad_input(error, (trace_place){"policy", 0, NULL},
                               "%s: a budget of %u tokens leaves no page besides those that stay, or a setting is out "
                               "of range",
                               text, eviction->budget);
    return rc < 0 ? runner_failed("kvk_seq_set_eviction", rc, error) : 0;
}

int runner_sequence(runner *r, const kvk_eviction *eviction, kvk_seq *out, trace_error *error)
{
    kvk_seq seq;
    int rc = kvk_seq_open(r->cache, NULL, &seq);
    if (rc < 0)
        return runner_failed("kvk_seq_open", rc, error);
    rc = set_eviction(r, seq, eviction, error);
    if (rc < 0)
        (void)kvk_seq_close(r->cache, seq);
    else
        *out = seq;
    return rc;
}
