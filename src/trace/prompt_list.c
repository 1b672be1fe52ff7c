#include "trace/prompt_list.h"

#include "base/checked.h"
#include "trace/repage.h"

int prompt_list_open(prompt_list *list)
{
    *list = (prompt_list){.n = 0};
    return belady_open(&list->refs);
}

void prompt_list_close(prompt_list *list)
{
    if (list->refs.memory.own_arena)
        memory_give(&list->refs.memory, list->prompts, list->cap * sizeof *list->prompts);
    belady_close(&list->refs);
    *list = (prompt_list){.n = 0};
}

int prompt_list_add(prompt_list *list, const listed_prompt *prompt)
{
    int rc = memory_grow(&list->refs.memory, &list->prompts, &list->cap, (uint64_t)list->n + 1, sizeof *list->prompts);
    if (rc < 0)
        return rc;
    list->prompts[list->n++] = *prompt;
    list->input_tokens += prompt->n_input;
    return 0;
}

uint64_t prompt_list_full_pages(const prompt_list *list)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < list->n; i++)
        n += list->prompts[i].n_tokens / list->page_tokens;
    return n;
}

uint32_t prompt_list_longest(const prompt_list *list)
{
    uint32_t longest = 0;
    for (uint32_t i = 0; i < list->n; i++)
        longest = max_u32(longest, (uint32_t)ceil_div(list->prompts[i].n_tokens, list->page_tokens));
    return longest;
}

typedef struct player {
    const prompt_list *list;
    kvk_cache *cache;
    memory memory;
    kvk_key *keys;
    uint32_t cap;
    uint64_t unnamed;
    uint32_t next; /* reference */
} player;

/* The keys of the prompt's pages: named ones by their numbers. */
static int fill_keys(player *x, const listed_prompt *p)
{
    uint32_t n = max_u32(p->n_wanted, p->n_tokens) / x->list->page_tokens;
    if (memory_grow(&x->memory, &x->keys, &x->cap, (uint64_t)n + 1, sizeof *x->keys) < 0)
        return KVK_ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        x->keys[i] = i < p->n_pages ? (kvk_key){x->list->refs.refs[x->next + i], 0} : repage_unnamed(x->unnamed++);
    x->next += p->n_pages;
    return 0;
}

/* Returns the tokens found. */
static int play(player *x, const listed_prompt *p)
{
    uint32_t page = x->list->page_tokens;
    kvk_seq seq;
    int rc = fill_keys(x, p);
    if (rc == 0)
        rc = kvk_seq_open(x->cache, NULL, &seq);
    if (rc < 0)
        return rc;
    kvk_text wanted = {.n_tokens = p->n_wanted, .n_keys = p->n_wanted / page, .keys = x->keys};
    int found = kvk_prefix_attach(x->cache, seq, &wanted);
    if (found < 0)
        return found;
    uint32_t done = (uint32_t)found;
    kvk_text rest = {
        .n_tokens = p->n_tokens - done, .n_keys = (p->n_tokens - done) / page, .keys = x->keys + done / page};
    rc = kvk_reserve(x->cache, seq, rest.n_tokens, KVK_RECLAIM);
    if (rc >= 0 && rest.n_tokens > 0)
        rc = kvk_commit(x->cache, seq, &rest);
    if (rc >= 0)
        rc = kvk_seq_close(x->cache, seq);
    return rc < 0 ? rc : found;
}

static int play_all(player *x, prompt_list_run *run)
{
    uint32_t page = x->list->page_tokens;
    for (uint32_t i = 0; i < x->list->n; i++) {
        const listed_prompt *p = &x->list->prompts[i];
        int found = play(x, p);
        if (found < 0)
            return found;
        run->page_hits += (uint32_t)found / page;
        run->token_hits += min_u32((uint32_t)found, p->n_input);
    }
    kvk_stats stats = {.size = sizeof stats};
    int rc = kvk_stats_get(x->cache, &stats);
    run->reclaimed_pages = stats.pages_reclaimed;
    return rc;
}

int prompt_list_replay(const prompt_list *list, prompt_list_run *run)
{
    player x = {.list = list};
    kvk_config config;
    kvk_config_init(&config);
    config.page_tokens = list->page_tokens;
    config.n_pages = run->n_pages;
    config.content = KVK_CONTENT_KEYS;
    config.reclaim = run->reclaim;
    config.memory_limit = run->memory_limit;
    run->page_hits = run->token_hits = run->reclaimed_pages = 0;
    int rc = memory_open(&x.memory, NULL);
    if (rc < 0)
        return rc;
    rc = kvk_cache_open(&config, &x.cache);
    if (rc == 0)
        rc = play_all(&x, run);
    kvk_cache_close(x.cache);
    memory_give(&x.memory, x.keys, x.cap * sizeof *x.keys);
    memory_close(&x.memory);
    return rc;
}
