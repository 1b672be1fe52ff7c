/* attention/cpu_attend.h: an unfinished softmax over the pages of an item, tile after tile, KV head after KV head. */
#ifndef KVK_ATTENTION_CPU_ATTEND_H
#define KVK_ATTENTION_CPU_ATTEND_H

#include "attention/cpu_rows.h"
#include "attention/cpu_tile.h"

#define WIDEN_ROWS 8u /* more queries than this: a tile is converted to floats before it is worked on */

typedef struct work {
    const cpu_job *job;
    const cpu_block *b;
    const entry *e;
    const cpu_scratch *scratch;
    cpu_state state;
    const rows_kernels *kernels;
    uint32_t row, n_rows; /* of each KV head: those that are worked on */
    uint32_t size;        /* elements of a row that the kernels take */
    int widens;
    const char *wide_keys[TILE], *wide_values[TILE];
    float key_scales[TILE], value_scales[TILE];
} work;

static void open_wide(work *x)
{
    x->kernels = &kernels_of[KVK_F32];
    x->size = x->job->padded;
    for (uint32_t i = 0; i < TILE; i++) {
        x->wide_keys[i] = (const char *)(x->scratch->keys + (uint64_t)i * x->job->padded);
        x->wide_values[i] = (const char *)(x->scratch->values + (uint64_t)i * x->job->padded);
    }
}

static void work_open(work *x, const cpu_job *job, const cpu_block *b, const cpu_scratch *scratch)
{
    const kvk_kv *kv = job->a->kv;
    x->job = job;
    x->b = b;
    x->e = &job->entries[b->entry].e;
    x->scratch = scratch;
    x->kernels = &kernels_of[kv->dtype];
    x->row = 0;
    x->n_rows = b->n_rows;
    x->size = kv->head_size;
    x->widens = kv->head_size % LANES || b->n_rows > WIDEN_ROWS;
    if (x->widens)
        open_wide(x);
}

/* ---- rows as the kernels take them: floats, where these are many or no multiple of a vector */

/* Rows of any size, with zeroes up to the padded one. */
static void widen_odd(const cpu_rows *x, uint32_t dtype, float *to)
{
    for (uint32_t i = 0; i < x->n; i++, to += x->stride) {
        load_row_float(x->at[i] + x->shift, dtype, x->size, 1, to);
        memset(to + x->size, 0, (x->stride - x->size) * sizeof *to);
    }
}

static void widen_rows_of(const cpu_rows *rows, uint32_t dtype, float *to)
{
    if (rows->size % LANES)
        widen_odd(rows, dtype, to);
    else
        kernels_of[dtype].widen(rows, to);
}

static void load_queries(const work *x)
{
    const kvk_rows *q = &x->job->a->q;
    const char *at[BLOCK_ROWS];
    cpu_rows rows = {.at = at, .n = cpu_rows_of(x->b), .size = x->job->a->kv->head_size, .stride = x->job->padded};
    for (uint32_t i = 0; i < rows.n; i++) {
        uint32_t row = i % x->b->n_rows, head = cpu_head_of(x->job, x->b, i / x->b->n_rows, row);
        uint64_t query = x->e->first_query + (uint64_t)cpu_query_of(x->job, x->b, row);
        uint64_t element = query * q->token_stride + head * q->head_stride;
        at[i] = (const char *)q->data + element * layout_row_bytes(q->dtype, 1);
    }
    widen_rows_of(&rows, q->dtype, x->scratch->q);
}

/* ---- rows of a tile, of the block's n-th KV head */

static cpu_rows rows_of(const work *x, const char *const *at, const char *const *next, uint64_t shift,
                        uint64_t next_shift)
{
    const kvk_kv *kv = x->job->a->kv;
    return (cpu_rows){.at = at,
                      .next = next,
                      .shift = shift,
                      .next_shift = next_shift,
                      .bytes = (uint32_t)layout_row_bytes(kv->dtype, kv->head_size),
                      .size = kv->head_size,
                      .stride = x->job->padded};
}

static void widen_tile(const work *x, cpu_rows *rows, const char *const *wide, float *to)
{
    widen_rows_of(rows, x->job->a->kv->dtype, to);
    *rows = (cpu_rows){.at = wide, .n = rows->n, .bytes = 4 * x->size, .size = x->size, .stride = x->job->padded};
}

static void load_scales(work *x, const cpu_tile *t, uint32_t n)
{
    const kvk_kv *kv = x->job->a->kv;
    for (uint32_t i = 0; i < t->n_segments; i++) {
        const cpu_segment *s = &t->segments[i];
        uint32_t page = (uint32_t)x->e->pages[s->page], layer = x->job->a->layer, head = x->b->head + n;
        uint64_t bytes = (s->end - s->begin) * sizeof(float);
        memcpy(x->key_scales + s->begin, kv->scales + layout_scale(kv, page, layer, 0, head, s->token), bytes);
        memcpy(x->value_scales + s->begin, kv->scales + layout_scale(kv, page, layer, 1, head, s->token), bytes);
    }
}

/* ---- scores */

static void scale_row(float *row, uint32_t n, float by)
{
    for (uint32_t i = 0; i < n; i += WIDTH)
        put_floats(row + i, floats_at(row + i) * by);
}

/* What the scores of a tile go through; all of it the same for a row. */
typedef struct adjustment {
    const float *key_scales; /* NULL: none */
    float scale, soft_cap, slope;
    int is_masked;
    int32_t position, oldest; /* of the query, and of the oldest token that it sees */
} adjustment;

static float scale_of(const work *x)
{
    const kvk_kv *kv = x->job->a->kv;
    return x->job->scale * (kv->dtype == KVK_F8_E4M3 ? kv->k_scale : 1);
}

/* Whether scores are products times a scale, and nothing else. */
static int is_plain(const work *x, const cpu_tile *t)
{
    const kvk_attention *a = x->job->a;
    return !t->is_masked && !dtype_has_scales(a->kv->dtype) && a->soft_cap == 0 && !a->slopes;
}

static adjustment adjustment_of(const work *x, const cpu_tile *t, uint32_t n, uint32_t row)
{
    const kvk_attention *a = x->job->a;
    uint32_t at = entry_query_position(x->e, cpu_query_of(x->job, x->b, row));
    adjustment j = {.scale = scale_of(x), .soft_cap = a->soft_cap, .is_masked = t->is_masked};
    j.key_scales = dtype_has_scales(a->kv->dtype) ? x->key_scales : NULL;
    j.slope = a->slopes ? a->slopes[cpu_head_of(x->job, x->b, n, row)] : 0;
    j.position = (int32_t)at;
    j.oldest = a->window && at >= a->window ? (int32_t)(at - a->window + 1) : 0;
    return j;
}

INLINE floats adjust(const adjustment *j, floats s, const cpu_tile *t, uint32_t i)
{
    s *= j->scale;
    if (j->key_scales)
        s *= floats_at(j->key_scales + i);
    if (j->soft_cap > 0)
        s = j->soft_cap * tanh_of(s / j->soft_cap);
    ints position = ints_at(t->positions + i);
    if (j->slope != 0)
        s += j->slope * __builtin_convertvector(position - j->position, floats);
    if (j->is_masked)
        s = choose((position <= j->position) & (position >= j->oldest), s, all(-INFINITY));
    return s;
}

static void adjust_row(const work *x, const cpu_tile *t, uint32_t n, uint32_t row, float *scores)
{
    adjustment j = adjustment_of(x, t, n, row);
    for (uint32_t i = 0; i < t->n; i += WIDTH)
        put_floats(scores + i, adjust(&j, floats_at(scores + i), t, i));
}

/* The scores of the rows as they are defined, -inf past the tile's end. */
static void finish_scores(const work *x, const cpu_tile *t, uint32_t n)
{
    int plain = is_plain(x, t);
    for (uint32_t r = 0; r < x->n_rows; r++) {
        float *scores = x->scratch->scores + r * TILE;
        if (plain)
            scale_row(scores, t->n, scale_of(x));
        else
            adjust_row(x, t, n, x->row + r, scores);
        for (uint32_t i = t->n; i % WIDTH; i++)
            scores[i] = -INFINITY;
    }
}

/* The n-th KV head's scores, before they are adjusted. */
static void dot_all(const work *x, cpu_rows *keys, uint32_t n)
{
    const float *q = x->scratch->q + ((uint64_t)n * x->b->n_rows + x->row) * x->job->padded;
    for (uint32_t i = 0, rows; i < x->n_rows; i += rows) {
        rows = next_rows(x->n_rows - i);
        x->kernels->dot[rows - 1](keys, q + (uint64_t)i * x->job->padded, x->scratch->scores + i * TILE);
        keys->next = NULL;
    }
}

/* ---- the softmax so far */

/* Makes what was summed up relative to a larger score. */
static void raise_max(const work *x, uint32_t row, float max)
{
    float by = exp_of(all(x->state.max[row] - max))[0]; /* 0 at first */
    scale_row(x->state.o + (uint64_t)row * x->job->padded, x->job->padded, by);
    scale_row(x->scratch->sums + row * LANES, LANES, by);
    x->state.max[row] = max;
}

/* Scores become weights. */
static void weigh(const work *x, const cpu_tile *t, uint32_t row, float *scores)
{
    floats top = all(-INFINITY);
    for (uint32_t i = 0; i < t->n; i += WIDTH)
        top = larger(top, floats_at(scores + i));
    float max = largest(top);
    if (max > x->state.max[row])
        raise_max(x, row, max);
    max = x->state.max[row] == -INFINITY ? 0 : x->state.max[row]; /* all are masked: their weights are 0 */
    float *to = x->scratch->sums + row * LANES;
    floats sums = floats_at(to);
    for (uint32_t i = 0; i < t->n; i += WIDTH) {
        floats weights = exp_of(floats_at(scores + i) - max);
        put_floats(scores + i, weights);
        sums += weights;
    }
    put_floats(to, sums);
}

/* ---- page sums */

/* The lanes' sums of a row's weights in one page. */
INLINE floats sum_segment(const float *weights, const cpu_segment *s)
{
    floats sum = {0};
    uint32_t i = s->begin;
    for (; i + WIDTH <= s->end; i += WIDTH)
        sum += floats_at(weights + i);
    return i < s->end ? sum + choose(lanes() < (int32_t)(s->end - i), floats_at(weights + i), all(0)) : sum;
}

/* What a row has of a page from tiles before, relative to the largest score known now. */
static float sum_before(const work *x, uint32_t row, uint32_t page)
{
    uint64_t at = (uint64_t)row * cpu_page_stride(x->b) + page - x->b->page;
    float sum = x->state.page_sum[at];
    return sum > 0 ? sum * exp_of(all(x->state.page_max[at] - x->state.max[row]))[0] : 0;
}

/* Page sums of a row, from a segment of the tile on. */
static void put_sums(const work *x, const cpu_segment *s, uint32_t row, const float *sums, uint32_t n)
{
    uint64_t at = (uint64_t)row * cpu_page_stride(x->b) + s->page - x->b->page;
    float max = x->state.max[row], before = s->continues ? sum_before(x, row, s->page) : 0;
    for (uint32_t i = 0; i < n; i++) {
        x->state.page_max[at + i] = max;
        x->state.page_sum[at + i] = sums[i];
    }
    x->state.page_sum[at] += before;
}

/* Of up to GROUP rows and DOT_COLUMNS pages, which are folded together. Segments are of one page after the other. */
static void sum_pages_of(const work *x, const cpu_tile *t, uint32_t n, uint32_t first_row, uint32_t first_segment)
{
    floats sums[GROUP][DOT_COLUMNS] = {{{0}}};
    uint32_t rows = min_u32(GROUP, x->n_rows - first_row),
             columns = min_u32(DOT_COLUMNS, t->n_segments - first_segment);
    const cpu_segment *first = &t->segments[first_segment];
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t c = 0; c < columns; c++)
            sums[r][c] = sum_segment(x->scratch->scores + (first_row + r) * TILE, first + c);
    float folded[WIDTH];
    put_floats(folded, fold(sums));
    for (uint32_t r = 0; r < rows; r++)
        put_sums(x, first, n * x->b->n_rows + first_row + r, folded + r * DOT_COLUMNS, columns);
}

static void sum_pages(const work *x, const cpu_tile *t, uint32_t n)
{
    for (uint32_t r = 0; r < x->n_rows; r += GROUP)
        for (uint32_t s = 0; s < t->n_segments; s += DOT_COLUMNS)
            sum_pages_of(x, t, n, r, s);
}

/* ---- weights times values */

static void scale_weights(const work *x, const cpu_tile *t)
{
    for (uint32_t r = 0; dtype_has_scales(x->job->a->kv->dtype) && r < x->n_rows; r++)
        for (uint32_t i = 0; i < t->n; i += WIDTH) {
            float *at = x->scratch->scores + r * TILE + i;
            put_floats(at, floats_at(at) * floats_at(x->value_scales + i));
        }
}

/* Adds weights times values to rows of `to`, which has the form of the state's o. */
static void add_all(const work *x, cpu_rows *values, uint32_t n, float *to)
{
    to += ((uint64_t)n * x->b->n_rows + x->row) * x->job->padded;
    for (uint32_t i = 0, rows; i < x->n_rows; i += rows) {
        rows = next_rows(x->n_rows - i);
        x->kernels->add[rows - 1](values, x->scratch->scores + i * TILE, to + (uint64_t)i * x->job->padded);
        values->next = NULL;
    }
}

/* ---- tiles */

/* K and V of the n-th KV head of a tile, and scores. `next` is the tile to fetch from after the last head, if any. */
static void open_tile(work *x, const cpu_tile *t, const cpu_tile *next, uint32_t n, cpu_rows kv_rows[2])
{
    uint64_t stride = x->job->a->kv->head_stride, shift = (x->b->head + n) * stride;
    int is_last = n + 1 == x->b->n_heads, fetches = !is_last || next->n > 0;
    uint64_t next_shift = is_last ? x->b->head * stride : shift + stride;
    const cpu_tile *from = is_last ? next : t;
    kv_rows[0] = rows_of(x, t->k, fetches ? from->k : NULL, shift, next_shift);
    kv_rows[1] = rows_of(x, t->v, fetches ? from->v : NULL, shift, next_shift);
    kv_rows[0].n = kv_rows[1].n = t->n;
    if (dtype_has_scales(x->job->a->kv->dtype))
        load_scales(x, t, n);
    if (x->widens) {
        widen_tile(x, &kv_rows[0], x->wide_keys, x->scratch->keys);
        widen_tile(x, &kv_rows[1], x->wide_values, x->scratch->values);
    }
    dot_all(x, &kv_rows[0], n);
}

static void attend_tile(work *x, const cpu_tile *t, const cpu_tile *next)
{
    cpu_rows kv_rows[2];
    for (uint32_t n = 0; n < x->b->n_heads; n++) {
        open_tile(x, t, next, n, kv_rows);
        finish_scores(x, t, n);
        for (uint32_t r = 0; r < x->n_rows; r++)
            weigh(x, t, n * x->b->n_rows + r, x->scratch->scores + r * TILE);
        if (cpu_wants_masses(x->job))
            sum_pages(x, t, n);
        scale_weights(x, t);
        add_all(x, &kv_rows[1], n, x->state.o);
    }
}

static void open_state(const work *x)
{
    uint32_t rows = cpu_rows_of(x->b);
    memset(x->state.o, 0, (uint64_t)rows * x->job->padded * sizeof(float));
    memset(x->scratch->sums, 0, (uint64_t)rows * LANES * sizeof(float));
    for (uint32_t i = 0; i < rows; i++)
        x->state.max[i] = -INFINITY;
}

static cpu_cursor cursor_of(const work *x, uint32_t page, uint32_t end)
{
    return (cpu_cursor){.job = x->job,
                        .e = x->e,
                        .first_query = cpu_query_of(x->job, x->b, x->row),
                        .last_query = cpu_query_of(x->job, x->b, x->row + x->n_rows - 1),
                        .page = page,
                        .end = end};
}

static void attend_pages(work *x, uint32_t part)
{
    uint32_t first = x->b->page + (uint32_t)((uint64_t)x->b->n_pages * part / x->b->n_parts);
    uint32_t end = x->b->page + (uint32_t)((uint64_t)x->b->n_pages * (part + 1) / x->b->n_parts);
    cpu_cursor cursor = cursor_of(x, first, end);
    cpu_tile tiles[2];
    load_queries(x);
    open_state(x);
    tile_next(&tiles[0], &cursor);
    for (uint32_t i = 0; tiles[i].n; i = !i) {
        tile_next(&tiles[!i], &cursor);
        attend_tile(x, &tiles[i], &tiles[!i]);
    }
    for (uint32_t i = 0; i < cpu_rows_of(x->b); i++)
        x->state.sum[i] = sum_of(floats_at(x->scratch->sums + i * LANES));
}

#endif
