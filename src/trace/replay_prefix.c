/* Prompts one after the other: each takes what the prefix cache has of it, computes the rest, and ends. Or, in flat
 * mode, each page of a prompt does so by itself. */
#include "trace/prompt_list.h"
#include "trace/prompts.h"
#include "trace/replay_run.h"

#include "base/checked.h"
#include "trace/belady.h"
#include "trace/distinct.h"
#include "trace/repage.h"

typedef struct prefix_state {
    repage_keys_buffer keys;
    distinct distinct;
    belady belady; /* if it was asked for */
} prefix_state;

static int content(replay_run *run, kvk_content *out)
{
    trace_place place = {trace_where(run->trace, NULL).file, 0, NULL};
    if (trace_content_of(run->trace) == TRACE_LENGTHS)
        return trace_bad_input(run->error, place, "%s traces name no content: use mode timed or lengths",
                               trace_format_name(run->trace));
    if (run_needs_fitting_pages(run) < 0)
        return TRACE_BAD_INPUT;
    if (run->options->belady && run->result->n_pages == REPLAY_UNLIMITED)
        return trace_bad_input(run->error, (trace_place){place.file, 0, "belady"},
                               "needs a pool of a size: in an unlimited one nothing is given up");
    *out = trace_block_tokens(run->trace) ? KVK_CONTENT_KEYS : KVK_CONTENT_TOKENS;
    return 0;
}

static int keep_reference(replay_run *run, belady *refs, uint32_t page)
{
    int rc = belady_add(refs, page);
    if (rc == KVK_ESPACE)
        return trace_failed(run->error, trace_where(run->trace, NULL), "more than %u pages to keep", BELADY_MAX_REFS);
    return rc < 0 ? run_out_of_memory(run) : 0;
}

/* Page i of a prompt, whose pages before it `chain` has. */
typedef struct page_in_turn {
    const trace_request *request;
    const prompt *prompt;
    distinct_chain chain;
    uint32_t i, number; /* number: of its content and all before */
} page_in_turn;

/* Numbers a page by its content and counts it if no prompt had it before. */
static int count_page(replay_run *run, page_in_turn *at)
{
    prefix_state *s = run->state;
    const replay_options *o = run->options;
    distinct_row row = prompt_row(at->prompt, at->i, run->result->page_tokens);
    int fresh = distinct_add(&s->distinct, &at->chain, row, &at->number);
    if (fresh < 0)
        return run_out_of_memory(run);
    run->result->unique_pages += (uint64_t)fresh;
    if (o->on_page)
        o->on_page(o->ctx, at->request->arrival_us, at->number);
    if (o->belady && keep_reference(run, &s->belady, at->number) < 0)
        return TRACE_FAILED;
    return o->prompts ? keep_reference(run, &o->prompts->refs, at->number) : 0;
}

static int count_pages(replay_run *run, const trace_request *request, const prompt *p)
{
    page_in_turn at = {.request = request, .prompt = p};
    int rc = 0;
    for (; at.i < p->n_pages && rc == 0; at.i++)
        rc = count_page(run, &at);
    return rc;
}

static void count(replay_run *run, const replay_request *seen)
{
    replay_result *r = run->result;
    r->page_refs += seen->pages;
    r->page_hits += seen->page_hits;
    r->token_hits += seen->token_hits;
    if (samples_due(run->options->samples))
        samples_add(run->options->samples,
                    (sample){.x = (double)seen->number,
                             .a = r->page_refs ? (double)r->page_hits / (double)r->page_refs : 0,
                             .b = (double)r->token_hits / (double)(r->input_tokens + seen->n_input)});
}

static int list_prompt(replay_run *run, const listed_prompt *p)
{
    run->options->prompts->page_tokens = run->result->page_tokens;
    return prompt_list_add(run->options->prompts, p) < 0 ? run_out_of_memory(run) : 0;
}

/* The prompt in a sequence of its own. */
static int run_prompt(replay_run *run, const prompt *p, replay_request *seen)
{
    uint32_t page = run->result->page_tokens;
    kvk_seq seq;
    int rc = run_open(run, &seq);
    int found = rc < 0 ? rc : run_attach(run, seq, &p->wanted);
    if (found < 0)
        return found;
    seen->page_hits = (uint32_t)found / page;
    seen->token_hits = min_u32((uint32_t)found, seen->n_input);
    kvk_text rest = prompt_rest(p, seen->page_hits, page);
    rc = run_extend(run, seq, &rest);
    return rc < 0 ? rc : run_close(run, seq);
}

static int one_request(replay_run *run, const trace_request *request, replay_request *seen)
{
    prefix_state *s = run->state;
    prompt p;
    int rc = prompt_of(run, &s->keys, request, &p);
    if (rc < 0)
        return rc;
    seen->pages = p.n_pages;
    if (run->options->prompts)
        rc = list_prompt(run, &(listed_prompt){request->n_input, p.wanted.n_tokens, p.n_tokens, p.n_pages});
    else
        rc = run_prompt(run, &p, seen);
    if (rc < 0)
        return rc;
    count(run, seen);
    return count_pages(run, request, &p);
}

/* Its number is the page's key, so that nothing need come before it. Returns 1 if it was found. */
static int one_page(replay_run *run, uint32_t number)
{
    kvk_key key = {number, 0};
    uint32_t page = run->result->page_tokens;
    kvk_text text = {.n_tokens = page + 1, .n_keys = 1, .keys = &key}; /* attach leaves a token to compute */
    kvk_seq seq;
    int rc = run_open(run, &seq);
    int found = rc < 0 ? rc : run_attach(run, seq, &text);
    if (found < 0)
        return found;
    text.n_tokens = page;
    rc = found > 0 ? 0 : run_extend(run, seq, &text);
    if (rc >= 0)
        rc = run_close(run, seq);
    return rc < 0 ? rc : found > 0;
}

static int pages_alone(replay_run *run, const trace_request *request, replay_request *seen)
{
    prefix_state *s = run->state;
    uint32_t page = run->result->page_tokens;
    prompt p;
    int rc = prompt_of(run, &s->keys, request, &p);
    page_in_turn at = {.request = request, .prompt = &p};
    seen->pages = rc < 0 ? 0 : p.n_pages;
    for (; at.i < seen->pages && rc >= 0; at.i++) {
        uint32_t tokens = min_u32(page, request->n_input - at.i * page);
        rc = count_page(run, &at);
        if (rc == 0)
            rc = run->options->prompts ? list_prompt(run, &(listed_prompt){tokens, page + 1, page, 1})
                                       : one_page(run, at.number);
        if (rc < 0)
            return rc;
        seen->page_hits += (uint32_t)rc;
        seen->token_hits += (uint32_t)rc * tokens;
    }
    if (rc >= 0)
        count(run, seen);
    return rc < 0 ? rc : 0;
}

static int content_of_pages(replay_run *run, kvk_content *out)
{
    int rc = content(run, out);
    *out = KVK_CONTENT_KEYS;
    return rc;
}

static int open_prefix(replay_run *run)
{
    prefix_state *s = run->state;
    if (distinct_open(&s->distinct) < 0 || (run->options->belady && belady_open(&s->belady) < 0))
        return run_out_of_memory(run);
    return 0;
}

static int finish(replay_run *run)
{
    prefix_state *s = run->state;
    if (!run->options->belady)
        return 0;
    int rc = belady_hits(&s->belady, run->result->n_pages, &run->result->belady_hits);
    return rc < 0 ? run_out_of_memory(run) : 0;
}

static void close_prefix(replay_run *run)
{
    prefix_state *s = run->state;
    distinct_close(&s->distinct);
    belady_close(&s->belady);
    repage_keys_close(&s->keys);
}

const replay_ops replay_prefix = {
    .name = "prefix",
    .state_bytes = sizeof(prefix_state),
    .content = content,
    .open = open_prefix,
    .request = one_request,
    .finish = finish,
    .close = close_prefix,
};

const replay_ops replay_flat = {
    .name = "flat",
    .state_bytes = sizeof(prefix_state),
    .content = content_of_pages,
    .open = open_prefix,
    .request = pages_alone,
    .finish = finish,
    .close = close_prefix,
};
