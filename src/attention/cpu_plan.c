/* cpu_plan.c: cuts a call into blocks and items, and its workspace into arrays. */
#include "attention/check.h"
#include "attention/cpu.h"

#include <math.h>

#define PART_TOKENS 2048u /* that a part has about */
#define ALIGNMENT 64u

/* ---- sizes, of which those beyond 64 bits become UINT64_MAX */

static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product;
    return checked_mul(a, b, &product) < 0 ? UINT64_MAX : product;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return checked_add(a, b, &sum) < 0 ? UINT64_MAX : sum;
}

static uint64_t aligned(uint64_t bytes)
{
    return plus(bytes, ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static uint64_t floats_of_part(const cpu_job *job, const cpu_block *b)
{
    return (uint64_t)cpu_rows_of(b) * job->padded + 2 * BLOCK_ROWS;
}

static uint64_t floats_of_pages(const cpu_job *job, const cpu_block *b)
{
    return cpu_wants_masses(job) ? (uint64_t)cpu_rows_of(b) * cpu_page_stride(b) : 0;
}

/* ---- cutting */

/* Two classes for each doubling, the most work first. */
static uint32_t class_of(uint64_t cost)
{
    uint32_t log = 63 - (uint32_t)__builtin_clzll(cost | 2);
    return COST_CLASSES - 1 - (2 * log + (uint32_t)(cost >> (log - 1) & 1));
}

static void add_items(cpu_job *job, const cpu_block *b)
{
    uint64_t cost = (uint64_t)b->n_pages * job->a->kv->page_tokens / b->n_parts * cpu_rows_of(b);
    uint64_t *class = &job->of_class[class_of(cost)];
    for (uint32_t part = 0; part < b->n_parts; part++) {
        if (job->items)
            job->items[*class] = (cpu_item){(uint32_t)job->n_blocks, part};
        ++*class;
    }
    job->n_items += b->n_parts;
}

static void add_block(cpu_job *job, cpu_block *b, const entry *e)
{
    b->sums_at = job->n_sums;
    b->state_at = job->n_states;
    if (cpu_wants_masses(job))
        job->n_sums = plus(job->n_sums, times(cpu_mass_rows(job, e, b), 2ull * cpu_page_stride(b)));
    if (b->n_parts > 1)
        job->n_states = plus(job->n_states, b->n_parts * floats_of_part(job, b) + 2 * floats_of_pages(job, b));
    else if (floats_of_pages(job, b) > job->n_page_sums)
        job->n_page_sums = floats_of_pages(job, b);
    if (job->blocks)
        job->blocks[job->n_blocks] = *b;
    add_items(job, b);
    job->n_blocks++;
}

/* The pages that any of a block's queries sees. */
static void find_pages(const cpu_job *job, cpu_block *b, const entry *e)
{
    uint32_t first = cpu_query_of(job, b, 0), last = cpu_query_of(job, b, b->n_rows - 1), end = e->n_pages;
    seen s;
    while (b->page < end && (s = entry_seen(e, b->page, first, job->a->window)).from >= e->page_tokens)
        b->page++;
    while (end > b->page && entry_position(e, end - 1) > entry_query_position(e, last))
        end--;
    b->n_pages = end - b->page;
}

/* Blocks of the same queries, for one set of KV heads after the other. */
static void cut_heads(cpu_job *job, cpu_block *b, const entry *e, int is_split)
{
    uint32_t kv_heads = job->a->kv->n_heads, at_once = BLOCK_ROWS / b->n_rows;
    find_pages(job, b, e);
    if (is_split)
        b->n_parts = (uint32_t)(((uint64_t)b->n_pages * e->page_tokens + PART_TOKENS / 2) / PART_TOKENS);
    b->n_parts = max_u32(1, min_u32(b->n_parts, b->n_pages));
    for (b->head = 0; b->head < kv_heads; b->head += b->n_heads) {
        b->n_heads = min_u32(at_once, kv_heads - b->head);
        add_block(job, b, e);
    }
}

/* Only entries with one block of queries are split: others give enough items as they are. */
static void cut_entry(cpu_job *job, const entry *e)
{
    uint64_t rows = (uint64_t)e->n_queries * job->group, first = job->n_blocks;
    for (uint64_t row = 0; row < rows; row += BLOCK_ROWS) {
        uint64_t left = rows - row;
        cpu_block b = {.entry = e->index, .row = (uint32_t)row, .n_parts = 1};
        b.n_rows = left < BLOCK_ROWS ? (uint32_t)left : BLOCK_ROWS;
        cut_heads(job, &b, e, rows <= BLOCK_ROWS);
    }
    if (job->entries)
        job->entries[e->index] =
            (cpu_entry){.e = *e, .block = (uint32_t)first, .n_blocks = (uint32_t)(job->n_blocks - first)};
}

static void cut(cpu_job *job)
{
    job->n_blocks = job->n_items = job->n_sums = job->n_states = job->n_page_sums = 0;
    for (entry e = entry_first(job->a, job->out); e.index < job->a->n; entry_next(&e, job->a, job->out))
        cut_entry(job, &e);
}

/* ---- the workspace */

static void set_scratch(cpu_job *job)
{
    uint64_t floats = (3ull * BLOCK_ROWS + 2 * TILE) * job->padded;
    floats += BLOCK_ROWS * (TILE + LANES) + 2 * BLOCK_ROWS;
    job->scratch_bytes = aligned(times(plus(floats, times(2, job->n_page_sums)), sizeof(float)));
}

static uint64_t near_floats(const cpu_job *job)
{
    return job->out->near ? times((uint64_t)job->a->query_indptr[job->a->n], 2ull * job->a->n_heads) : 0;
}

static char *part_of(char **workspace, uint64_t bytes)
{
    char *part = *workspace;
    *workspace += aligned(bytes);
    return part;
}

int64_t cpu_measure(cpu_job *job, const kvk_attention *a, const kvk_attention_out *out, uint32_t n_threads)
{
    *job = (cpu_job){.a = a, .out = out};
    if (check_attention(a, out) < 0)
        return KVK_EINVAL;
    job->group = a->n_heads / a->kv->n_heads;
    job->padded = cpu_padded(a->kv->head_size);
    job->scale = a->scale != 0 ? a->scale : 1 / sqrtf((float)a->kv->head_size);
    cut(job);
    set_scratch(job);
    uint64_t floats = plus(plus(job->n_sums, job->n_states), near_floats(job));
    uint64_t bytes =
        plus(aligned(times(a->n, sizeof *job->entries)), aligned(times(job->n_blocks, sizeof *job->blocks)));
    bytes = plus(bytes, aligned(times(job->n_items, sizeof *job->items)));
    bytes = plus(bytes, plus(times(floats, sizeof(float)), 3 * ALIGNMENT));
    bytes = plus(bytes, times(job->scratch_bytes, n_threads));
    return bytes <= INT64_MAX && job->n_blocks <= UINT32_MAX ? (int64_t)bytes : KVK_EINVAL;
}

/* The class with the most work comes first: each count becomes where its first item goes. */
static void place_classes(cpu_job *job)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < COST_CLASSES; i++) {
        uint64_t n = job->of_class[i];
        job->of_class[i] = at;
        at += n;
    }
}

void cpu_place(cpu_job *job, char *workspace)
{
    job->entries = (cpu_entry *)(void *)part_of(&workspace, job->a->n * sizeof *job->entries);
    job->blocks = (cpu_block *)(void *)part_of(&workspace, job->n_blocks * sizeof *job->blocks);
    job->items = (cpu_item *)(void *)part_of(&workspace, job->n_items * sizeof *job->items);
    job->sums = (float *)(void *)part_of(&workspace, job->n_sums * sizeof(float));
    job->states = (float *)(void *)part_of(&workspace, job->n_states * sizeof(float));
    job->near = (float *)(void *)part_of(&workspace, near_floats(job) * sizeof(float));
    job->scratch = workspace;
    place_classes(job);
    cut(job);
}

static float *take(float **from, uint64_t n)
{
    float *taken = *from;
    *from += n;
    return taken;
}

cpu_scratch cpu_scratch_of(const cpu_job *job, uint32_t thread)
{
    float *at = (float *)(void *)(job->scratch + thread * job->scratch_bytes);
    cpu_scratch s;
    s.state.o = take(&at, (uint64_t)BLOCK_ROWS * job->padded);
    s.q = take(&at, (uint64_t)BLOCK_ROWS * job->padded);
    s.u = take(&at, (uint64_t)BLOCK_ROWS * job->padded);
    s.keys = take(&at, (uint64_t)TILE * job->padded);
    s.values = take(&at, (uint64_t)TILE * job->padded);
    s.scores = take(&at, BLOCK_ROWS * TILE);
    s.sums = take(&at, BLOCK_ROWS * LANES);
    s.state.max = take(&at, BLOCK_ROWS);
    s.state.sum = take(&at, BLOCK_ROWS);
    s.state.page_max = take(&at, job->n_page_sums);
    s.state.page_sum = take(&at, job->n_page_sums);
    return s;
}

cpu_state cpu_state_of(const cpu_job *job, const cpu_block *b, uint32_t part)
{
    float *first = job->states + b->state_at, *at = first + part * floats_of_part(job, b);
    float *pages = first + b->n_parts * floats_of_part(job, b);
    cpu_state s;
    s.o = take(&at, (uint64_t)cpu_rows_of(b) * job->padded);
    s.max = take(&at, BLOCK_ROWS);
    s.sum = take(&at, BLOCK_ROWS);
    s.page_max = take(&pages, floats_of_pages(job, b));
    s.page_sum = take(&pages, floats_of_pages(job, b));
    return s;
}
