/* attention/cpu_finish.h: what a block's softmax gives once all its pages were read: o, lse, masses and near peaks. */
#ifndef KVK_ATTENTION_CPU_FINISH_H
#define KVK_ATTENTION_CPU_FINISH_H

#include "attention/cpu_attend.h"

/* ---- o and lse */

static void write_output(const work *x, uint32_t n, uint32_t row, float lse)
{
    const kvk_attention_out *out = x->job->out;
    uint64_t query = x->e->first_query + (uint64_t)cpu_query_of(x->job, x->b, row);
    uint32_t head = cpu_head_of(x->job, x->b, n, row);
    if (out->lse)
        out->lse[query * x->job->a->n_heads + head] = lse;
    if (!out->o)
        return;
    uint64_t at = query * out->o_token_stride + head * out->o_head_stride;
    const float *o = x->state.o + ((uint64_t)n * x->b->n_rows + row) * x->job->padded;
    store_row(o, x->job->a->kv->head_size, out->o_dtype, 1, (char *)out->o + at * layout_row_bytes(out->o_dtype, 1));
}

/* Makes o what it is, and of max and sum what weights are made relative to and multiplied by. */
static void finish_row(const work *x, uint32_t n, uint32_t row)
{
    uint32_t i = n * x->b->n_rows + row;
    float max = x->state.max[i], sum = x->state.sum[i], scale = 1;
    const kvk_kv *kv = x->job->a->kv;
    if (x->job->a->sinks) {
        float sink = x->job->a->sinks[cpu_head_of(x->job, x->b, n, row)], top = sink > max ? sink : max;
        scale = exp_of(all(max - top))[0];
        sum = sum * scale + exp_of(all(sink - top))[0];
        max = top;
    }
    x->state.max[i] = max;
    x->state.sum[i] = sum > 0 ? 1 / sum : 0; /* nothing was seen: o and the masses are 0 */
    scale *= x->state.sum[i] * (kv->dtype == KVK_F8_E4M3 ? kv->v_scale : 1);
    scale_row(x->state.o + (uint64_t)i * x->job->padded, x->job->padded, scale);
    write_output(x, n, row, sum > 0 ? max + logf(sum) : -INFINITY);
}

/* ---- masses */

static void add_row_masses(const work *x, uint32_t i, float *sum, float *most)
{
    uint32_t stride = cpu_page_stride(x->b);
    const float *page_max = x->state.page_max + (uint64_t)i * stride;
    const float *page_sum = x->state.page_sum + (uint64_t)i * stride;
    if (x->state.sum[i] == 0)
        return;
    for (uint32_t page = 0; page < x->b->n_pages; page += WIDTH) {
        floats mass = floats_at(page_sum + page) * exp_of(floats_at(page_max + page) - x->state.max[i]);
        mass *= x->state.sum[i];
        put_floats(sum + page, floats_at(sum + page) + mass);
        put_floats(most + page, larger(floats_at(most + page), mass));
    }
}

static void add_masses(const work *x)
{
    uint32_t n_rows = cpu_mass_rows(x->job, x->e, x->b), stride = cpu_page_stride(x->b);
    float *sums = x->job->sums + x->b->sums_at;
    memset(sums, 0, 2ull * n_rows * stride * sizeof *sums);
    for (uint32_t i = 0; i < cpu_rows_of(x->b); i++) {
        uint32_t query = cpu_query_of(x->job, x->b, i % x->b->n_rows) - cpu_query_of(x->job, x->b, 0);
        float *of_row = sums + 2ull * stride * (n_rows == 1 ? 0 : query);
        add_row_masses(x, i, of_row, of_row + stride);
    }
}

/* ---- near peaks: the pages right before the queries are looked at once more, now that o and lse are known */

/* Scores become shares of the attention. Returns their sum. */
static float share(const work *x, const cpu_tile *t, uint32_t i, float *scores)
{
    floats sum = {0};
    for (uint32_t k = 0; k < t->n; k += WIDTH) {
        floats shares = exp_of(floats_at(scores + k) - x->state.max[i]) * x->state.sum[i];
        put_floats(scores + k, shares);
        sum += shares;
    }
    return sum_of(sum);
}

static void look_at_tile(work *x, const cpu_tile *t, float *masses)
{
    const cpu_tile none = {0};
    cpu_rows kv_rows[2];
    for (uint32_t n = 0; n < x->b->n_heads; n++) {
        open_tile(x, t, &none, n, kv_rows);
        finish_scores(x, t, n);
        for (uint32_t r = 0; r < x->n_rows; r++) {
            uint32_t i = n * x->b->n_rows + x->row + r;
            if (x->state.sum[i] > 0)
                masses[i] += share(x, t, i, x->scratch->scores + r * TILE);
        }
        if (x->job->out->near_kind != KVK_NEAR_ERROR)
            continue;
        scale_weights(x, t);
        add_all(x, &kv_rows[1], n, x->scratch->u);
    }
}

/* |mass * o - u| / max(1 - mass, 1e-3) */
static float removal_error(const work *x, uint32_t i, float mass)
{
    const float *o = x->state.o + (uint64_t)i * x->job->padded, *u = x->scratch->u + (uint64_t)i * x->job->padded;
    float v_scale = x->job->a->kv->dtype == KVK_F8_E4M3 ? x->job->a->kv->v_scale : 1, left = 1 - mass;
    floats squares = {0};
    for (uint32_t d = 0; d < x->job->padded; d += WIDTH) {
        floats off = mass * floats_at(o + d) - v_scale * floats_at(u + d);
        squares += off * off;
    }
    return x->state.sum[i] > 0 ? sqrtf(sum_of(squares)) / (left > 1e-3f ? left : 1e-3f) : 0;
}

static float *near_of(const work *x, uint32_t n, uint32_t row)
{
    uint64_t query = x->e->first_query + (uint64_t)cpu_query_of(x->job, x->b, row);
    return x->job->near + 2 * (query * x->job->a->n_heads + cpu_head_of(x->job, x->b, n, row));
}

static void put_near(const work *x, uint32_t page, const float *masses)
{
    uint32_t number = entry_position(x->e, page) / x->e->page_tokens;
    for (uint32_t n = 0; n < x->b->n_heads; n++)
        for (uint32_t row = x->row; row < x->row + x->n_rows; row++) {
            uint32_t i = n * x->b->n_rows + row;
            uint32_t at = entry_query_position(x->e, cpu_query_of(x->job, x->b, row));
            int is_error = x->job->out->near_kind == KVK_NEAR_ERROR;
            near_of(x, n, row)[at / x->e->page_tokens > number] = is_error ? removal_error(x, i, masses[i]) : masses[i];
        }
}

/* Chooses the rows whose queries stand in a page or in the next one. */
static void choose_rows(work *x, uint32_t page)
{
    uint32_t end = x->b->n_rows;
    x->row = 0;
    while (x->row < end && !entry_is_near(x->e, page, cpu_query_of(x->job, x->b, x->row)))
        x->row++;
    while (end > x->row && !entry_is_near(x->e, page, cpu_query_of(x->job, x->b, end - 1)))
        end--;
    x->n_rows = end - x->row;
}

static void look_at_page(work *x, uint32_t page)
{
    float masses[BLOCK_ROWS] = {0};
    cpu_tile t;
    cpu_cursor cursor = cursor_of(x, page, page + 1);
    memset(x->scratch->u, 0, (uint64_t)cpu_rows_of(x->b) * x->job->padded * sizeof(float));
    for (tile_next(&t, &cursor); t.n; tile_next(&t, &cursor))
        look_at_tile(x, &t, masses);
    put_near(x, page, masses);
}

static void find_near(work *x)
{
    uint32_t first = max_u32(x->b->page, x->e->near_from), end = x->b->page + x->b->n_pages;
    for (uint32_t n = 0; n < x->b->n_heads; n++)
        for (uint32_t row = 0; row < x->b->n_rows; row++)
            near_of(x, n, row)[0] = near_of(x, n, row)[1] = 0;
    for (uint32_t page = first; page < end; page++) {
        choose_rows(x, page);
        if (x->n_rows)
            look_at_page(x, page);
    }
}

/* ---- a block */

static void finish(work *x)
{
    for (uint32_t n = 0; n < x->b->n_heads; n++)
        for (uint32_t row = 0; row < x->b->n_rows; row++)
            finish_row(x, n, row);
    if (cpu_wants_masses(x->job))
        add_masses(x);
    if (x->job->out->near)
        find_near(x);
}

static void attend_item(const cpu_job *job, const cpu_item *item, const cpu_scratch *scratch)
{
    work x;
    const cpu_block *b = &job->blocks[item->block];
    work_open(&x, job, b, scratch);
    x.state = b->n_parts > 1 ? cpu_state_of(job, b, item->part) : scratch->state;
    attend_pages(&x, item->part);
    if (b->n_parts == 1)
        finish(&x);
}

/* A part's share of a row. */
static void merge_row(const work *x, const cpu_state *part, uint32_t i)
{
    uint32_t padded = x->job->padded;
    float *o = x->state.o + (uint64_t)i * padded, by = exp_of(all(part->max[i] - x->state.max[i]))[0];
    const float *of_part = part->o + (uint64_t)i * padded;
    if (part->max[i] == -INFINITY)
        return;
    x->state.sum[i] += part->sum[i] * by;
    for (uint32_t d = 0; d < padded; d += WIDTH)
        put_floats(o + d, floats_at(o + d) + floats_at(of_part + d) * by);
}

static void merge_parts(const work *x)
{
    uint32_t rows = cpu_rows_of(x->b);
    open_state(x);
    memset(x->state.sum, 0, rows * sizeof *x->state.sum);
    for (uint32_t part = 0; part < x->b->n_parts; part++) {
        cpu_state s = cpu_state_of(x->job, x->b, part);
        for (uint32_t i = 0; i < rows; i++)
            x->state.max[i] = x->state.max[i] < s.max[i] ? s.max[i] : x->state.max[i];
    }
    for (uint32_t part = 0; part < x->b->n_parts; part++) {
        cpu_state s = cpu_state_of(x->job, x->b, part);
        for (uint32_t i = 0; i < rows; i++)
            merge_row(x, &s, i);
    }
}

static void merge_block(const cpu_job *job, const cpu_block *b, const cpu_scratch *scratch)
{
    work x;
    cpu_state first = cpu_state_of(job, b, 0);
    work_open(&x, job, b, scratch);
    x.state = scratch->state;
    x.state.page_max = first.page_max;
    x.state.page_sum = first.page_sum;
    merge_parts(&x);
    if (job->out->near)
        load_queries(&x);
    finish(&x);
}

#endif
