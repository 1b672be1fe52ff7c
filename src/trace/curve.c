#include "trace/curve.h"

#include "base/checked.h"
#include "trace/cores.h"

#include <math.h>

/* Pages that can be found are counted by their contents, others each time. */
static uint64_t everything(const prompt_list *list)
{
    return prompt_list_full_pages(list) + (uint64_t)list->refs.n_pages - list->refs.n + 1;
}

uint32_t curve_sizes(const prompt_list *list, prompt_list_run *runs, uint32_t n)
{
    double first = prompt_list_longest(list), all = (double)everything(list);
    uint32_t kept = 0;
    double last = fmax(first, fmin(all, KVK_MAX_PAGES));
    for (uint32_t i = 0; i < n && list->n > 0; i++) {
        double part = n > 1 ? (double)i / (n - 1) : 1;
        uint32_t size = (uint32_t)llround(first * pow(last / first, part));
        if (kept == 0 || size > runs[kept - 1].n_pages)
            runs[kept++] = (prompt_list_run){.n_pages = size};
    }
    return kept;
}

/* ---- One pass ---------------------------------------------------------------------------------------------------- */

#define NOWHERE UINT32_MAX

/* The list of all pages, last released last, as marks in the order of release; their sums are in a Fenwick tree. */
typedef struct stack {
    uint32_t *sums;  /* [n_slots + 1] */
    uint32_t *slot;  /* by content: where it stands, from 1; NOWHERE */
    uint32_t *depth; /* [longest prompt] of the prompt's pages, from 1 at the top; NOWHERE */
    uint32_t *held;  /* [n] first pages of the list that each pool holds */
    uint32_t n_slots, top, live;
} stack;

static void mark(stack *s, uint32_t slot, int change)
{
    for (uint32_t i = slot; i <= s->n_slots; i += i & -i)
        s->sums[i] += (uint32_t)change;
    s->live += (uint32_t)change;
}

static uint32_t depth_of(const stack *s, uint32_t slot)
{
    uint32_t below = 0;
    if (slot == NOWHERE)
        return NOWHERE;
    for (uint32_t i = slot - 1; i > 0; i -= i & -i)
        below += s->sums[i];
    return s->live - below;
}

/* The prompt's pages come to the top, its first one last. */
static void release(stack *s, const listed_prompt *p, const uint32_t *pages, uint32_t full)
{
    for (uint32_t i = full; i-- > 0;) {
        uint32_t *slot = i < p->n_pages ? &s->slot[pages[i]] : NULL;
        if (slot && *slot != NOWHERE)
            mark(s, *slot, -1);
        mark(s, ++s->top, 1);
        if (slot)
            *slot = s->top;
    }
}

/* A page stands above those that hang on it, so the pages that a pool holds are the prompt's first ones; and larger
 * pools hold more. */
static void count(stack *s, const prompt_list *list, const listed_prompt *p, prompt_list_run *runs, uint32_t n)
{
    uint32_t page = list->page_tokens, full = p->n_tokens / page, partial = p->n_tokens % page > 0, hits = 0;
    for (uint32_t i = 0; i < n; i++) {
        while (hits < p->n_pages && s->depth[hits] <= s->held[i])
            hits++;
        runs[i].page_hits += hits;
        runs[i].token_hits += min_u32(hits * page, p->n_input);
        uint32_t wanted = s->held[i] + full - hits;
        s->held[i] = min_u32(wanted, runs[i].n_pages - partial);
        runs[i].reclaimed_pages += wanted - s->held[i];
    }
}

static void run_pass(stack *s, const prompt_list *list, prompt_list_run *runs, uint32_t n)
{
    const uint32_t *pages = list->refs.refs;
    for (uint32_t i = 0; i < list->n; i++) {
        const listed_prompt *p = &list->prompts[i];
        for (uint32_t k = 0; k < p->n_pages; k++)
            s->depth[k] = depth_of(s, s->slot[pages[k]]);
        count(s, list, p, runs, n);
        release(s, p, pages, p->n_tokens / list->page_tokens);
        pages += p->n_pages;
    }
}

static uint32_t *numbers(memory *m, uint64_t n, uint32_t value)
{
    uint32_t *x = memory_take(m, n * sizeof *x);
    for (uint64_t i = 0; x && i < n; i++)
        x[i] = value;
    return x;
}

static int one_pass(prompt_list *list, prompt_list_run *runs, uint32_t n)
{
    memory *m = &list->refs.memory;
    uint64_t n_slots = prompt_list_full_pages(list), n_contents = list->refs.n_pages;
    uint32_t longest = prompt_list_longest(list);
    if (n_slots >= NOWHERE)
        return KVK_ENOMEM;
    stack s = {.sums = numbers(m, n_slots + 1, 0),
               .slot = numbers(m, n_contents, NOWHERE),
               .depth = numbers(m, longest, NOWHERE),
               .held = numbers(m, n, 0),
               .n_slots = (uint32_t)n_slots};
    int rc = s.sums && s.slot && s.depth && s.held ? 0 : KVK_ENOMEM;
    if (rc == 0)
        run_pass(&s, list, runs, n);
    memory_give(m, s.sums, (n_slots + 1) * sizeof(uint32_t));
    memory_give(m, s.slot, n_contents * sizeof(uint32_t));
    memory_give(m, s.depth, longest * sizeof(uint32_t));
    memory_give(m, s.held, n * sizeof(uint32_t));
    return rc;
}

/* ---- A replay for each ------------------------------------------------------------------------------------------- */

typedef struct sweep {
    const prompt_list *list;
    prompt_list_run *runs;
} sweep;

static int replay_size(void *ctx, uint32_t i)
{
    const sweep *s = ctx;
    return prompt_list_replay(s->list, &s->runs[i]);
}

int curve_sweep(const prompt_list *list, prompt_list_run *runs, uint32_t n)
{
    sweep s = {list, runs};
    return cores_run(replay_size, &s, n);
}

/* ---- Either ------------------------------------------------------------------------------------------------------ */

int curve_is_stack(const prompt_list *list, kvk_reclaim reclaim)
{
    if (reclaim != KVK_RECLAIM_LRU)
        return 0;
    for (uint32_t i = 0; i < list->n; i++)
        if ((list->prompts[i].n_wanted - 1) / list->page_tokens < list->prompts[i].n_pages)
            return 0;
    return 1;
}

int curve_run(prompt_list *list, prompt_list_run *runs, uint32_t n)
{
    if (n == 0)
        return 0;
    if (!curve_is_stack(list, runs[0].reclaim))
        return curve_sweep(list, runs, n);
    for (uint32_t i = 0; i < n; i++)
        runs[i].page_hits = runs[i].token_hits = runs[i].reclaimed_pages = 0;
    return runs[0].n_pages < prompt_list_longest(list) ? KVK_ENEVER : one_pass(list, runs, n);
}
