#include "kvkeep/eval/needle_run.h"

#include "engine/sample.h"

#include <stdlib.h>
#include <string.h>

/* A job on its way. */
typedef struct lane {
    needle_job *job; /* NULL: free */
    kvk_seq seq;
    uint32_t fed;    /* tokens of the prompt that the model saw */
    uint32_t said;   /* tokens of the answer */
    uint32_t token;  /* said last, to be fed next */
    uint64_t tokens; /* of KV that are set aside for it */
} lane;

typedef struct run {
    const needle_options *o;
    needle_job *jobs;
    uint32_t n, next, done; /* jobs; the one to begin next; how many are through */
    uint64_t held;          /* tokens set aside */
    lane *lanes;            /* [o->batch] */
    runner_entry *entries;  /* [o->batch] */
    lane **at;              /* [o->batch] of each entry */
    trace_error *error;
} run;

static uint32_t prompt_tokens(const needle_prompt *p)
{
    return p->n_text + p->n_question;
}

static uint64_t whole_pages(uint64_t tokens, uint32_t page_tokens)
{
    return (tokens + page_tokens - 1) / page_tokens * page_tokens;
}

uint64_t needle_job_tokens(const needle_job *job, uint32_t page_tokens, uint32_t chunk)
{
    uint64_t all = whole_pages((uint64_t)prompt_tokens(job->prompt) + job->prompt->n_answer, page_tokens);
    uint64_t budget = job->eviction ? job->eviction->budget : 0;
    uint64_t most = whole_pages(budget + chunk, page_tokens) + page_tokens;
    return budget == 0 || job->question == NEEDLE_VISIBLE || most > all ? all : most;
}

/* ---- Beginning and ending --------------------------------------------------------------------------------------- */

static int failed(run *x, const char *call, int rc)
{
    return trace_failed(x->error, (trace_place){"the cache", 0, NULL}, "%s: %s", call, kvk_strerror(rc));
}

/* The length is told only where there is one: a text that goes on has none. */
static int begin(run *x, lane *l)
{
    needle_job *job = l->job;
    kvk_eviction settings;
    if (job->eviction)
        settings = *job->eviction;
    if (job->eviction && job->question != NEEDLE_HIDDEN)
        settings.n_prompt = prompt_tokens(job->prompt);
    int rc = runner_sequence(x->o->runner, job->eviction ? &settings : NULL, &l->seq, x->error);
    if (rc < 0 || job->question != NEEDLE_VISIBLE)
        return rc;
    rc = kvk_reserve(runner_cache(x->o->runner), l->seq, prompt_tokens(job->prompt), KVK_RECLAIM);
    return rc < 0 ? failed(x, "kvk_reserve", rc) : 0;
}

/* As many as there is room for. */
static int begin_jobs(run *x)
{
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < x->o->batch && x->next < x->n; i++) {
        lane *l = &x->lanes[i];
        if (l->job)
            continue;
        uint64_t tokens = needle_job_tokens(&x->jobs[x->next], x->o->page_tokens, x->o->chunk);
        if (x->held > 0 && x->held + tokens > x->o->kv_tokens)
            return 0;
        *l = (lane){.job = &x->jobs[x->next++], .tokens = tokens};
        l->job->right = 0;
        l->job->pages_peak = 0;
        x->held += tokens;
        rc = begin(x, l);
    }
    return rc;
}

static void end_job(run *x, lane *l)
{
    (void)kvk_seq_close(runner_cache(x->o->runner), l->seq);
    x->held -= l->tokens;
    l->job = NULL;
    x->done++;
    if (x->o->told)
        x->o->told(x->o->ctx, x->done, x->n);
}

/* ---- Steps ------------------------------------------------------------------------------------------------------ */

/* The next piece of a prompt ends with a chunk, and a hidden question is not of the text's last one. */
static uint32_t piece(const run *x, const lane *l)
{
    const needle_prompt *p = l->job->prompt;
    uint32_t end = prompt_tokens(p), n = x->o->chunk - l->fed % x->o->chunk;
    if (l->job->question == NEEDLE_HIDDEN && l->fed < p->n_text)
        end = p->n_text;
    return n < end - l->fed ? n : end - l->fed;
}

static runner_entry entry_of(const run *x, const lane *l)
{
    const needle_prompt *p = l->job->prompt;
    if (l->fed == prompt_tokens(p))
        return (runner_entry){.sequence = l->seq, .tokens = &l->token, .n = 1, .each = x->o->each, .want = RUNNER_LAST};
    uint32_t n = piece(x, l);
    return (runner_entry){.sequence = l->seq,
                          .tokens = p->tokens + l->fed,
                          .n = n,
                          .each = x->o->each,
                          .has_room = l->job->question == NEEDLE_VISIBLE,
                          .want = l->fed + n == prompt_tokens(p) ? RUNNER_LAST : RUNNER_NOTHING};
}

static uint32_t list_entries(run *x)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->o->batch; i++)
        if (x->lanes[i].job) {
            x->at[n] = &x->lanes[i];
            x->entries[n++] = entry_of(x, &x->lanes[i]);
        }
    return n;
}

static int note_pages(run *x, const lane *l)
{
    kvk_eviction_info info = {.size = sizeof info};
    int rc = kvk_eviction_info_get(runner_cache(x->o->runner), l->seq, &info);
    if (rc < 0)
        return failed(x, "kvk_eviction_info_get", rc);
    l->job->pages_peak = info.pages_kept > l->job->pages_peak ? info.pages_kept : l->job->pages_peak;
    return 0;
}

static void say(const run *x, lane *l, const float *logits)
{
    const needle_prompt *p = l->job->prompt;
    l->token = sample_greedy(logits, x->o->vocabulary);
    l->job->right += l->token == p->tokens[prompt_tokens(p) + l->said];
    l->said++;
}

static int take(run *x, lane *l, const runner_entry *e)
{
    int rc = note_pages(x, l);
    if (l->fed < prompt_tokens(l->job->prompt))
        l->fed += e->n;
    if (rc == 0 && e->logits)
        say(x, l, e->logits);
    if (rc == 0 && l->said == l->job->prompt->n_answer)
        end_job(x, l);
    return rc;
}

static int step(run *x)
{
    uint32_t n = list_entries(x);
    int rc = runner_step(x->o->runner, x->entries, n, x->error);
    for (uint32_t i = 0; rc == 0 && i < n; i++)
        rc = take(x, x->at[i], &x->entries[i]);
    return rc;
}

static int run_all(run *x)
{
    int rc = 0;
    while (rc == 0 && x->done < x->n) {
        rc = begin_jobs(x);
        if (rc == 0)
            rc = step(x);
    }
    return rc;
}

int needle_run(const needle_options *options, needle_job *jobs, uint32_t n, trace_error *error)
{
    run x = {.o = options, .jobs = jobs, .n = n, .error = error};
    x.lanes = calloc(options->batch, sizeof *x.lanes);
    x.entries = calloc(options->batch, sizeof *x.entries);
    x.at = calloc(options->batch, sizeof *x.at);
    int rc = x.lanes && x.entries && x.at ? run_all(&x)
                                          : trace_failed(error, (trace_place){"the needles", 0, NULL}, "out of memory");
    for (uint32_t i = 0; x.lanes && i < options->batch; i++)
        if (x.lanes[i].job)
            (void)kvk_seq_close(runner_cache(options->runner), x.lanes[i].seq);
    free(x.lanes);
    free(x.entries);
    free(x.at);
    return rc;
}
