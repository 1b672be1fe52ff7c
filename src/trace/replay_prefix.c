/* Prompts one after the other: each takes what the prefix cache has of it, computes the rest, and ends. */
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

/* What one prompt is to the cache: what it looks for, what it then holds, and what each page names. */
typedef struct prompt {
    kvk_text wanted;   /* passed to attach */
    uint32_t n_tokens; /* held at the end */
    uint32_t n_pages;  /* that can be found */
} prompt;

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

/* Where the trace names its partial last block too, the prompt is taken as whole pages. If pages end where the prompt
 * does, one more token is still to be computed, since attach leaves at least that. */
static int prompt_of_blocks(replay_run *run, const trace_request *request, prompt *out)
{
    prefix_state *s = run->state;
    uint32_t page = run->result->page_tokens;
    uint64_t n = repage_count(request, page), named = n * page;
    uint64_t n_tokens = named > request->n_input ? named : request->n_input, wanted = n_tokens + (n_tokens == named);
    if (wanted > KVK_MAX_TOKENS)
        return trace_bad_input(run->error, trace_where(run->trace, NULL), "%u tokens in whole pages are too many",
                               request->n_input);
    if (repage_keys_fill(&s->keys, request, page, (uint32_t)(wanted / page)) < 0)
        return run_out_of_memory(run);
    *out = (prompt){.n_tokens = (uint32_t)n_tokens, .n_pages = (uint32_t)n};
    out->wanted = (kvk_text){.n_tokens = (uint32_t)wanted, .n_keys = (uint32_t)(wanted / page), .keys = s->keys.keys};
    return 0;
}

static int prompt_of(replay_run *run, const trace_request *request, prompt *out)
{
    if (request->blocks)
        return prompt_of_blocks(run, request, out);
    *out = (prompt){.wanted = {.n_tokens = request->n_input, .tokens = request->tokens},
                    .n_tokens = request->n_input,
                    .n_pages = request->n_input / run->result->page_tokens};
    return 0;
}

/* The text of what attach did not find. */
static kvk_text rest_of(const prompt *p, uint32_t page_hits, uint32_t page_tokens)
{
    uint32_t done = page_hits * page_tokens;
    kvk_text rest = {.n_tokens = p->n_tokens - done};
    if (p->wanted.keys) {
        rest.n_keys = p->n_tokens / page_tokens - page_hits;
        rest.keys = p->wanted.keys + page_hits;
    } else {
        rest.tokens = p->wanted.tokens + done;
    }
    return rest;
}

/* What stands on page i of the prompt. */
static distinct_row row_of(const prompt *p, uint32_t i, uint32_t page_tokens)
{
    if (p->wanted.keys)
        return (distinct_row){&p->wanted.keys[i], sizeof(kvk_key)};
    return (distinct_row){p->wanted.tokens + (size_t)i * page_tokens, page_tokens * sizeof(uint32_t)};
}

static int keep_for_belady(replay_run *run, uint32_t page)
{
    prefix_state *s = run->state;
    int rc = belady_add(&s->belady, page);
    if (rc == KVK_ESPACE)
        return trace_failed(run->error, trace_where(run->trace, NULL), "more than %u pages for belady, which keeps all",
                            BELADY_MAX_REFS);
    return rc < 0 ? run_out_of_memory(run) : 0;
}

/* Numbers the prompt's pages by their content and counts those that no prompt had before. */
static int count_pages(replay_run *run, const trace_request *request, const prompt *p)
{
    prefix_state *s = run->state;
    const replay_options *o = run->options;
    distinct_chain chain = {0, 0};
    for (uint32_t i = 0; i < p->n_pages; i++) {
        uint32_t number;
        int fresh = distinct_add(&s->distinct, &chain, row_of(p, i, run->result->page_tokens), &number);
        if (fresh < 0)
            return run_out_of_memory(run);
        run->result->unique_pages += (uint64_t)fresh;
        if (o->on_page)
            o->on_page(o->ctx, request->arrival_us, number);
        if (o->belady && keep_for_belady(run, number) < 0)
            return TRACE_FAILED;
    }
    return 0;
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

static int one_request(replay_run *run, const trace_request *request, replay_request *seen)
{
    uint32_t page = run->result->page_tokens;
    prompt p;
    kvk_seq seq;
    int rc = prompt_of(run, request, &p);
    if (rc == 0)
        rc = run_open(run, &seq);
    if (rc < 0)
        return rc;
    int found = run_attach(run, seq, &p.wanted);
    if (found < 0)
        return found;
    seen->pages = p.n_pages;
    seen->page_hits = (uint32_t)found / page;
    seen->token_hits = min_u32((uint32_t)found, request->n_input);
    kvk_text rest = rest_of(&p, seen->page_hits, page);
    rc = run_extend(run, seq, &rest);
    if (rc >= 0)
        rc = run_close(run, seq);
    if (rc < 0)
        return rc;
    count(run, seen);
    return count_pages(run, request, &p);
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
