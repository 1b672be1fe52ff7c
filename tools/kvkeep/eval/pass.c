#include "kvkeep/eval/pass.h"

#include <stdlib.h>

/* What a pass works with. */
typedef struct pass_run {
    const eval_pass *p;
    trace_error *error;
    runner *runner;
    uint32_t n_groups;
    kvk_seq *seqs;         /* [n] */
    runner_entry *entries; /* [n] */
} pass_run;

static int out_of_memory(trace_error *error)
{
    return trace_failed(error, (trace_place){"kvkeep eval", 0, NULL}, "out of memory");
}

/* ---- One step --------------------------------------------------------------------------------------------------- */

static void fill_entries(pass_run *r, uint32_t from, uint32_t n)
{
    const eval_text *t = r->p->text;
    for (uint32_t i = 0; i < r->p->n; i++)
        r->entries[i] = (runner_entry){.sequence = r->seqs[i],
                                       .tokens = t->tokens + from,
                                       .n = n,
                                       .want = RUNNER_SCORES,
                                       .next = t->tokens + from + 1,
                                       .nll = r->p->scores[i].nll + from,
                                       .each = r->p->job->o.chunk == 1};
}

/* The share of full attention, of a row's, that went to pages which a table still holds. */
static double share_held(const runner_masses *full, uint32_t row, const runner_masses *held, uint32_t page_tokens)
{
    const float *mass = full->mean + (size_t)row * full->n_pages;
    double sum = 0;
    for (uint32_t i = 0; i < held->n_pages; i++)
        sum += (double)mass[(uint32_t)held->positions[i] / page_tokens];
    return sum;
}

/* Queries count whose targets are at or past the budget. */
static void add_retained(pass_run *r, uint32_t config, uint32_t from, uint32_t n)
{
    const eval_pass *p = r->p;
    eval_score *s = &p->scores[config];
    uint32_t budget = p->configs[config]->budget, page_tokens = p->job->o.page_tokens;
    for (uint32_t g = 0; g < r->n_groups; g++) {
        runner_masses full, held;
        runner_seen(r->runner, 0, g, &full);
        runner_seen(r->runner, config, g, &held);
        for (uint32_t row = 0; row < full.n_rows; row++)
            if (from + row + 1 >= budget)
                s->retained += share_held(&full, row, &held, page_tokens) / r->n_groups;
    }
    for (uint32_t row = 0, each = p->job->o.chunk == 1; row < (each ? n : 1); row++)
        s->n_retained += from + row + 1 >= budget ? (each ? 1 : n) : 0;
}

/* What is held most is held after a step, before the next one evicts; it must not pass the promise. */
static int add_held(pass_run *r, uint32_t config)
{
    const eval_pass *p = r->p;
    eval_score *s = &p->scores[config];
    kvk_eviction_info info = {.size = sizeof info};
    int rc = kvk_eviction_info_get(runner_cache(r->runner), r->seqs[config], &info);
    if (rc < 0)
        return trace_failed(r->error, (trace_place){"kvkeep eval", 0, NULL}, "%s", kvk_strerror(rc));
    s->pages_kept = info.pages_kept;
    s->pages_evicted = info.pages_evicted;
    s->pages_peak = s->pages_kept > s->pages_peak ? s->pages_kept : s->pages_peak;
    uint64_t page = p->job->o.page_tokens, most = eval_config_holds(p->job, p->configs[config], p->text->n) / page;
    if (s->pages_peak <= most * r->n_groups)
        return 0;
    return trace_failed(r->error, (trace_place){p->configs[config]->name, 0, NULL},
                        "held %ju pages, more than the %ju that its budget and a step are", (uintmax_t)s->pages_peak,
                        (uintmax_t)most * r->n_groups);
}

/* The cache's own count of pages must be the sum of the sequences'. */
static int check_cache(pass_run *r)
{
    kvk_stats stats = {.size = sizeof stats};
    uint64_t sum = 0;
    for (uint32_t i = 0; i < r->p->n; i++)
        sum += r->p->scores[i].pages_kept;
    int rc = kvk_stats_get(runner_cache(r->runner), &stats);
    if (rc == 0 && stats.pages_used == sum)
        return 0;
    return trace_failed(r->error, (trace_place){"kvkeep eval", 0, NULL}, "the cache counts %u pages in use, not %ju",
                        stats.pages_used, (uintmax_t)sum);
}

static int run_step(pass_run *r, uint32_t from, uint32_t n)
{
    const eval_pass *p = r->p;
    fill_entries(r, from, n);
    int rc = runner_step(r->runner, r->entries, p->n, r->error);
    for (uint32_t i = 0; i < p->n && rc == 0; i++) {
        add_retained(r, i, from, n);
        rc = add_held(r, i);
    }
    return rc < 0 ? rc : check_cache(r);
}

/* ---- The text --------------------------------------------------------------------------------------------------- */

/* The last token has no next one to score. */
static int run_text(pass_run *r)
{
    const eval_pass *p = r->p;
    uint32_t end = p->text->n - 1, step = p->job->o.chunk == 1 ? p->job->o.page_tokens : p->job->o.chunk;
    double start_s = progress_now_s();
    int rc = 0;
    for (uint32_t at = 0; at < end && rc == 0; at += step) {
        rc = run_step(r, at, end - at < step ? end - at : step);
        progress_show_part(&p->job->progress, p->done + p->part * at / end);
    }
    for (uint32_t i = 0; i < p->n; i++)
        p->scores[i].tokens_per_s = (double)end * p->n / (progress_now_s() - start_s);
    return rc;
}

static int open_sequences(pass_run *r)
{
    const eval_pass *p = r->p;
    int rc = 0;
    for (uint32_t i = 0; i < p->n && rc == 0; i++) {
        eval_score *s = &p->scores[i];
        uint64_t pages = (p->text->n + p->job->o.page_tokens - 2) / p->job->o.page_tokens;
        s->pages_text = pages * r->n_groups;
        s->nll = calloc(p->text->n, sizeof *s->nll);
        rc = s->nll ? eval_sequence_open(p->job, r->runner, p->configs[i], 0, &r->seqs[i]) : out_of_memory(r->error);
    }
    return rc;
}

static int open_runner(pass_run *r)
{
    const eval_pass *p = r->p;
    uint64_t tokens = 0, page = p->job->o.page_tokens;
    for (uint32_t i = 0; i < p->n; i++)
        tokens += eval_config_holds(p->job, p->configs[i], p->text->n) + page; /* each has a page in work */
    r->n_groups = p->job->o.n_groups == 1 ? 1 : p->job->loaded.model->shape.n_layers;
    return eval_runner_open(p->job, p->configs[0]->kv_type, tokens, KVK_NEED_MEAN, &r->runner);
}

int eval_pass_run(eval_pass *p)
{
    pass_run r = {.p = p, .error = p->job->error};
    r.seqs = calloc(p->n, sizeof *r.seqs);
    r.entries = calloc(p->n, sizeof *r.entries);
    int rc = r.seqs && r.entries ? open_runner(&r) : out_of_memory(r.error);
    if (rc == 0)
        rc = open_sequences(&r);
    if (rc == 0) {
        p->page_bytes = runner_page_bytes(r.runner);
        rc = run_text(&r);
    }
    runner_close(r.runner);
    free(r.seqs);
    free(r.entries);
    return rc;
}

void eval_scores_free(eval_score *scores, uint32_t n)
{
    for (uint32_t i = 0; scores && i < n; i++)
        free(scores[i].nll);
    free(scores);
}
