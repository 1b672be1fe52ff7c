/* trace/prompt_list.h: the prompts of a trace, kept to be replayed many times: as numbers of their pages' contents.
 *
 * Takes 4 bytes for each page and 16 for each prompt. A replay of the list finds what a replay of the trace finds. */
#ifndef KVKEEP_TRACE_PROMPT_LIST_H
#define KVKEEP_TRACE_PROMPT_LIST_H

#include "trace/belady.h"

#include <kvkeep/kvkeep.h>

typedef struct listed_prompt {
    uint32_t n_input;  /* tokens that the trace says */
    uint32_t n_wanted; /* tokens passed to attach */
    uint32_t n_tokens; /* held at the end */
    uint32_t n_pages;  /* that can be found: of so many references */
} listed_prompt;

typedef struct prompt_list {
    belady refs; /* pages of all prompts, by the numbers of their contents */
    listed_prompt *prompts;
    uint32_t n, cap;
    uint32_t page_tokens;
    uint64_t input_tokens;
} prompt_list;

/* KVK_ENOMEM. */
int prompt_list_open(prompt_list *list);

/* One that is all zeroes, or closed, is ignored. */
void prompt_list_close(prompt_list *list);

/* Adds a prompt, whose pages follow by belady_add. KVK_ENOMEM. */
int prompt_list_add(prompt_list *list, const listed_prompt *prompt);

/* Full pages of all prompts, in which one that cannot be found counts each time; and the pages of the longest one. */
uint64_t prompt_list_full_pages(const prompt_list *list);
uint32_t prompt_list_longest(const prompt_list *list);

typedef struct prompt_list_run {
    uint32_t n_pages; /* of the pool */
    kvk_reclaim reclaim;
    uint64_t memory_limit;
    uint64_t page_hits, token_hits, reclaimed_pages; /* set by the replay */
} prompt_list_run;

/* Replays the list in a cache of its own. KVK_ENOMEM; KVK_ENEVER if a prompt does not fit into the pool. */
int prompt_list_replay(const prompt_list *list, prompt_list_run *run);

#endif
