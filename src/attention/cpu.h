/* attention/cpu.h: how a call of kvk_attention_cpu is cut into work.
 *
 * A *block* is rows (a query's head each) of one entry whose softmax is computed together: some queries, times the
 * heads of a group, times some KV heads. Where an entry has few queries, a block holds all KV heads, so that a page
 * is read from its first byte to its last; where it has many, one KV head. A block's pages are cut into *parts*,
 * each an *item* of work; what the parts of a block found is merged in their order. All this depends on the
 * arguments alone, never on the number of threads. */
#ifndef KVK_ATTENTION_CPU_H
#define KVK_ATTENTION_CPU_H

#include "attention/entry.h"

#define TILE 64u       /* tokens that are worked on at a time */
#define BLOCK_ROWS 64u /* at most, of a block */
#define LANES 16u      /* floats of the widest vector: rows in memory are multiples of it */
#define COST_CLASSES 128u

typedef struct cpu_block {
    uint32_t entry;
    uint32_t head, n_heads; /* KV heads */
    uint32_t row, n_rows;   /* of each of them: query * group + head of the group */
    uint32_t page, n_pages; /* those of the entry's list that its queries see */
    uint32_t n_parts;
    uint64_t sums_at;  /* in `sums`: for each row of masses and page the sum and the largest mass over its rows */
    uint64_t state_at; /* in `states`, of more than one part: cpu_state of each */
} cpu_block;

typedef struct cpu_item {
    uint32_t block, part;
} cpu_item;

typedef struct cpu_entry {
    entry e;
    uint32_t block, n_blocks;
} cpu_entry;

/* What an unfinished softmax has found, row after row of a block, KV head after KV head. A page's sum is relative
 * to the largest score known when it was read. That one only grows, so what underflows is a mass below the smallest
 * float. */
typedef struct cpu_state {
    float *o;                   /* [rows][padded] sum of exp(s - max) v */
    float *max, *sum;           /* [BLOCK_ROWS] */
    float *page_max, *page_sum; /* [rows][page_stride] */
} cpu_state;

/* A thread's own memory. */
typedef struct cpu_scratch {
    cpu_state state;
    float *q, *u;         /* [BLOCK_ROWS][padded] */
    float *scores;        /* [BLOCK_ROWS][TILE], and room for three rows more */
    float *sums;          /* [BLOCK_ROWS][LANES] */
    float *keys, *values; /* [TILE][padded] rows that were converted */
} cpu_scratch;

/* A call; what lies in the workspace comes last. */
typedef struct cpu_job {
    const kvk_attention *a;
    const kvk_attention_out *out;
    uint32_t group, padded; /* heads of queries to a KV head; head_size rounded up */
    float scale;
    uint64_t n_blocks, n_items;
    uint64_t n_sums, n_states, n_page_sums; /* floats; page sums: of a thread */
    uint64_t scratch_bytes;                 /* of a thread */
    uint64_t of_class[COST_CLASSES];        /* items of a class of cost; then where the next one of it goes */
    cpu_entry *entries;
    cpu_block *blocks;
    cpu_item *items; /* the most work first */
    float *sums, *states;
    float *near; /* [queries][n_heads][2] value of the query's own page and of the one before it */
    char *scratch;
} cpu_job;

/* Cuts the work up. Returns the bytes of workspace that it takes with so many threads, or KVK_EINVAL if there is
 * no such number. O(pages + blocks). */
int64_t cpu_measure(cpu_job *job, const kvk_attention *a, const kvk_attention_out *out, uint32_t n_threads);

/* Puts a job that was measured into its workspace. */
void cpu_place(cpu_job *job, char *workspace);

cpu_scratch cpu_scratch_of(const cpu_job *job, uint32_t thread);
cpu_state cpu_state_of(const cpu_job *job, const cpu_block *b, uint32_t part);

/* ---- of a block */

static inline int cpu_wants_masses(const cpu_job *job)
{
    return job->out->mean || job->out->peak;
}

static inline uint32_t cpu_rows_of(const cpu_block *b)
{
    return b->n_heads * b->n_rows;
}

static inline uint32_t cpu_padded(uint32_t n)
{
    return (n + LANES - 1) / LANES * LANES;
}

static inline uint32_t cpu_page_stride(const cpu_block *b)
{
    return cpu_padded(b->n_pages);
}

/* The query of the entry's that a row belongs to. */
static inline uint32_t cpu_query_of(const cpu_job *job, const cpu_block *b, uint32_t row)
{
    return (b->row + row) / job->group;
}

/* The head of the queries', of a row of the block's n-th KV head. */
static inline uint32_t cpu_head_of(const cpu_job *job, const cpu_block *b, uint32_t n, uint32_t row)
{
    return (b->head + n) * job->group + (b->row + row) % job->group;
}

/* Rows of masses that a block adds to. */
static inline uint32_t cpu_mass_rows(const cpu_job *job, const entry *e, const cpu_block *b)
{
    return e->n_rows == 1 ? 1 : cpu_query_of(job, b, b->n_rows - 1) - cpu_query_of(job, b, 0) + 1;
}

/* ---- what there is for each instruction set */

typedef struct cpu_kernels {
    const char *name;
    void (*attend)(const cpu_job *job, const cpu_item *item, const cpu_scratch *scratch);
    void (*merge)(const cpu_job *job, const cpu_block *block, const cpu_scratch *scratch);
} cpu_kernels;

/* NULL where this processor lacks it. */
const cpu_kernels *cpu_kernels_avx512(void);
const cpu_kernels *cpu_kernels_avx2(void);
const cpu_kernels *cpu_kernels_base(void);

/* kvk_attention_cpu with given kernels. */
int cpu_attention(const cpu_kernels *kernels, const kvk_attention *a, const kvk_attention_out *out, void *workspace,
                  uint64_t workspace_bytes);

#endif
