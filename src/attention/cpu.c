/* cpu.c: kvk_attention_cpu: items of work to threads, what they found merged, and masses summed up over blocks. */
#include "attention/cpu.h"
#include "attention/layout.h"

#ifdef _OPENMP
#include <omp.h>
#endif

static const cpu_kernels *best_kernels(void)
{
    const cpu_kernels *kernels = cpu_kernels_avx512();
    kernels = kernels ? kernels : cpu_kernels_avx2();
    return kernels ? kernels : cpu_kernels_base();
}

static uint32_t most_threads(void)
{
#ifdef _OPENMP
    return (uint32_t)omp_get_max_threads();
#else
    return 1;
#endif
}

static uint32_t this_thread(void)
{
#ifdef _OPENMP
    return (uint32_t)omp_get_thread_num();
#else
    return 0;
#endif
}

/* ---- results that several blocks add to, in the order of the blocks */

static void add_sums(const cpu_job *job, const entry *e, const cpu_block *b)
{
    const kvk_attention_out *out = job->out;
    uint32_t n_rows = cpu_mass_rows(job, e, b), stride = cpu_page_stride(b);
    float share = out->weight / (float)job->a->n_heads;
    for (uint32_t row = 0; row < n_rows; row++) {
        const float *sum = job->sums + b->sums_at + 2ull * row * stride, *largest = sum + stride;
        uint64_t to = e->mean_at + b->page;
        to += (uint64_t)(e->n_rows == 1 ? 0 : cpu_query_of(job, b, 0) + row) * e->n_pages;
        for (uint32_t i = 0; out->mean && i < b->n_pages; i++)
            out->mean[to + i] += share * sum[i];
        for (uint32_t i = 0; out->peak && i < b->n_pages; i++)
            out->peak[to + i] = out->peak[to + i] < largest[i] ? largest[i] : out->peak[to + i];
    }
}

static void raise_near(const cpu_job *job, const entry *e, uint32_t query, uint32_t page)
{
    const kvk_attention_out *out = job->out;
    uint32_t is_before = entry_query_position(e, query) / e->page_tokens > entry_position(e, page) / e->page_tokens;
    uint64_t row = e->near_at + (uint64_t)entry_row(e, query) * (e->n_pages - e->near_from) + page - e->near_from;
    float *to = out->near + row * out->near_values;
    const float *from = job->near + (e->first_query + (uint64_t)query) * 2 * job->a->n_heads + is_before;
    for (uint32_t head = 0; head < job->a->n_heads; head++) {
        int32_t at = layout_near(out, head);
        if (at >= 0)
            to[at] = to[at] < from[2 * head] ? from[2 * head] : to[at];
    }
}

static void sum_entry(const cpu_job *job, const cpu_entry *x)
{
    const entry *e = &x->e;
    for (uint32_t i = 0; cpu_wants_masses(job) && i < x->n_blocks; i++)
        add_sums(job, e, &job->blocks[x->block + i]);
    for (uint32_t query = 0; job->out->near && query < e->n_queries; query++)
        for (uint32_t page = e->near_from; page < e->n_pages; page++)
            if (entry_is_near(e, page, query))
                raise_near(job, e, query, page);
}

/* ---- a call */

static void run(const cpu_job *job, const cpu_kernels *kernels, uint32_t n_threads)
{
    int64_t n_items = (int64_t)job->n_items, n_blocks = (int64_t)job->n_blocks, n_entries = job->a->n;
    (void)n_threads;
#pragma omp parallel num_threads(n_threads)
    {
        cpu_scratch scratch = cpu_scratch_of(job, this_thread());
#pragma omp for schedule(dynamic, 1)
        for (int64_t i = 0; i < n_items; i++)
            kernels->attend(job, &job->items[i], &scratch);
#pragma omp for schedule(dynamic, 16)
        for (int64_t i = 0; i < n_blocks; i++)
            if (job->blocks[i].n_parts > 1)
                kernels->merge(job, &job->blocks[i], &scratch);
#pragma omp for schedule(dynamic, 1)
        for (int64_t i = 0; i < n_entries; i++)
            sum_entry(job, &job->entries[i]);
    }
}

int cpu_attention(const cpu_kernels *kernels, const kvk_attention *a, const kvk_attention_out *out, void *workspace,
                  uint64_t workspace_bytes)
{
    cpu_job job;
    int64_t least = cpu_measure(&job, a, out, 1);
    if (least < 0 || (uintptr_t)workspace % 64)
        return KVK_EINVAL;
    if (!workspace || workspace_bytes < (uint64_t)least)
        return KVK_ESPACE;
    uint64_t n_threads = 1 + (workspace_bytes - (uint64_t)least) / job.scratch_bytes; /* that there is scratch for */
    cpu_place(&job, workspace);
    run(&job, kernels, n_threads < most_threads() ? (uint32_t)n_threads : most_threads());
    return 0;
}

int kvk_attention_cpu(const kvk_attention *attention, const kvk_attention_out *out, void *workspace,
                      uint64_t workspace_bytes)
{
    return cpu_attention(best_kernels(), attention, out, workspace, workspace_bytes);
}

int64_t kvk_attention_workspace(const kvk_attention *attention, const kvk_attention_out *out)
{
    cpu_job job;
    return cpu_measure(&job, attention, out, most_threads());
}
