/* trace/prompts.h: what a prompt is to the prefix cache: what it looks for, and what it then holds. */
#ifndef KVKEEP_TRACE_PROMPTS_H
#define KVKEEP_TRACE_PROMPTS_H

#include "trace/distinct.h"
#include "trace/repage.h"
#include "trace/replay_run.h"

typedef struct prompt {
    kvk_text wanted;   /* passed to attach */
    uint32_t n_tokens; /* held at the end */
    uint32_t n_pages;  /* that can be found */
} prompt;

/* The prompt of a request, in pages of the run's size; valid while `request` is and until the next one. 0 or an
 * error. */
int prompt_of(replay_run *run, repage_keys_buffer *keys, const trace_request *request, prompt *out);

/* The text of what attach did not find. */
kvk_text prompt_rest(const prompt *p, uint32_t page_hits, uint32_t page_tokens);

/* What stands on page i of the prompt. */
distinct_row prompt_row(const prompt *p, uint32_t i, uint32_t page_tokens);

#endif
