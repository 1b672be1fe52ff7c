#include "trace/prompts.h"

/* Where the trace names its partial last block too, the prompt is taken as whole pages. If pages end where the prompt
 * does, one more token is still to be computed, since attach leaves at least that. */
static int prompt_of_blocks(replay_run *run, repage_keys_buffer *keys, const trace_request *request, prompt *out)
{
    uint32_t page = run->result->page_tokens;
    uint64_t n = repage_count(request, page), named = n * page;
    uint64_t n_tokens = named > request->n_input ? named : request->n_input, wanted = n_tokens + (n_tokens == named);
    if (wanted > KVK_MAX_TOKENS)
        return trace_bad_input(run->error, trace_where(run->trace, NULL), "%u tokens in whole pages are too many",
                               request->n_input);
    if (repage_keys_fill(keys, request, page, (uint32_t)(wanted / page)) < 0)
        return run_out_of_memory(run);
    *out = (prompt){.n_tokens = (uint32_t)n_tokens, .n_pages = (uint32_t)n};
    out->wanted = (kvk_text){.n_tokens = (uint32_t)wanted, .n_keys = (uint32_t)(wanted / page), .keys = keys->keys};
    return 0;
}

int prompt_of(replay_run *run, repage_keys_buffer *keys, const trace_request *request, prompt *out)
{
    if (request->blocks)
        return prompt_of_blocks(run, keys, request, out);
    *out = (prompt){.wanted = {.n_tokens = request->n_input, .tokens = request->tokens},
                    .n_tokens = request->n_input,
                    .n_pages = request->n_input / run->result->page_tokens};
    return 0;
}

kvk_text prompt_rest(const prompt *p, uint32_t page_hits, uint32_t page_tokens)
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

distinct_row prompt_row(const prompt *p, uint32_t i, uint32_t page_tokens)
{
    if (p->wanted.keys)
        return (distinct_row){&p->wanted.keys[i], sizeof(kvk_key)};
    return (distinct_row){p->wanted.tokens + (size_t)i * page_tokens, page_tokens * sizeof(uint32_t)};
}
