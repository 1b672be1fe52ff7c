/* attention/cpu_attend.h: a softmax over the pages of an item, tile after tile and KV head after KV head, which is not
 * finished until all parts of a block are known. */
#ifndef KVK_ATTENTION_CPU_ATTEND_H
#define KVK_ATTENTION_CPU_ATTEND_H

#include "attention/cpu_rows.h"
#include "attention/cpu_tile.h"

#define WIDEN_ROWS 8u /* more queries than this: a tile is converted to floats before it is worked on */

#define FETCH_AHEAD 2u /* KV heads of a tile: memory is that far behind */

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

static void scale_row(float *row, uint32_t n, float by)
{
    for (uint32_t i = 0; i < n; i += WIDTH)
        put_floats(row + i, floats_at(row + i) * by);
}

static void scale_row_by(float *row, uint32_t n, const float *by)
{
    for (uint32_t i = 0; i < n; i += WIDTH)
        put_floats(row + i, floats_at(row + i) * floats_at(by + i));
}

/* ---- rows as the kernels take them: floats, where these are many or no multiple of a vector */

/* Rows of any size, with zeroes up to the padded one. */
static void widen_odd(const cpu_rows *x, uint32_t dtype, float *to)
{
    for (uint32_t i = 0; i < x->n; i++, to += x->stride) {
        load_row_float(x->at[i] + x->shift, dtype, x->size, dtype == KVK_F8_E4M3 ? 1 / E4M3_UNIT : 1, to);
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

/* Where the scales of a segment begin. */
static const float *scales_of(const work *x, const cpu_segment *s, uint32_t value, uint32_t n)
{
    const kvk_kv *kv = x->job->a->kv;
    uint32_t page = (uint32_t)x->e->pages[s->page], layer = x->job->a->layer;
    return kv->scales + layout_scale(kv, page, layer, value, x->b->head + n, s->token);
}

static void load_scales(work *x, const cpu_tile *t, uint32_t n)
{
    for (uint32_t i = 0; i < t->n_segments; i++) {
        const cpu_segment *s = &t->segments[i];
        uint64_t bytes = (s->end - s->begin) * sizeof(float);
        memcpy(x->key_scales + s->begin, scales_of(x, s, 0, n), bytes);
        memcpy(x->value_scales + s->begin, scales_of(x, s, 1, n), bytes);
    }
    scale_row(x->key_scales, t->n, x->job->scale);
}

static void fetch_scales(const work *x, const cpu_tile *t, uint32_t n)
{
    for (uint32_t i = 0; i < t->n_segments; i++)
        for (uint32_t value = 0; value < 2; value++)
            __builtin_prefetch(scales_of(x, &t->segments[i], value, n));
}

/* What a type without scales for each row is multiplied by, as K (value 0) or V (1). */
static float unit_of(const work *x, uint32_t value)
{
    const kvk_kv *kv = x->job->a->kv;
    return kv->dtype == KVK_F8_E4M3 ? E4M3_UNIT * (value ? kv->v_scale : kv->k_scale) : 1;
}

/* ---- scores */

/* What the scores of a row go through after they were scaled. */
typedef struct adjustment {
    float soft_cap, slope;
    int is_masked;
    int32_t position, oldest; /* of the query, and of the oldest token that it sees */
} adjustment;

static adjustment adjustment_of(const work *x, const cpu_tile *t, uint32_t n, uint32_t row)
{
    const kvk_attention *a = x->job->a;
    uint32_t at = entry_query_position(x->e, cpu_query_of(x->job, x->b, row));
    adjustment j = {.soft_cap = a->soft_cap, .is_masked = t->is_masked};
    j.slope = a->slopes ? a->slopes[cpu_head_of(x->job, x->b, n, row)] : 0;
    j.position = (int32_t)at;
    j.oldest = a->window && at >= a->window ? (int32_t)(at - a->window + 1) : 0;
    return j;
}

INLINE floats adjust(const adjustment *j, floats s, ints position)
{
    if (j->soft_cap > 0)
        s = j->soft_cap * tanh_of(s / j->soft_cap);
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
        put_floats(scores + i, adjust(&j, floats_at(scores + i), ints_at(t->positions + i)));
}

/* The scores of the rows as they are defined, -inf past the tile's end. */
static void finish_scores(const work *x, const cpu_tile *t, uint32_t n)
{
    const kvk_attention *a = x->job->a;
    int adjusts = t->is_masked || a->soft_cap > 0 || a->slopes;
    float scale = x->job->scale * unit_of(x, 0);
    for (uint32_t r = 0; r < x->n_rows; r++) {
        float *scores = x->scratch->scores + r * TILE;
        if (dtype_has_scales(a->kv->dtype))
            scale_row_by(scores, t->n, x->key_scales);
        else
            scale_row(scores, t->n, scale);
        if (adjusts)
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
    max = x->state.max[row]; /* -inf if all are masked: then they are 0 as well */
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
static float sum_before(const work *x, uint32_t row, uint64_t at)
{
    float sum = x->state.page_sum[at];
    return sum > 0 ? sum * exp_of(all(x->state.page_max[at] - x->state.max[row]))[0] : 0;
}

/* Sums of GROUP rows and DOT_COLUMNS pages, which are folded together; what is not there gives anything. */
INLINE void fold_pages(const float *weights, float folded[GROUP][DOT_COLUMNS])
{
    floats sums[GROUP][DOT_COLUMNS];
    for (uint32_t r = 0; r < GROUP; r++)
        for (uint32_t c = 0; c < DOT_COLUMNS; c++)
            sums[r][c] = floats_at(weights + r * TILE + c * WIDTH);
    put_floats(folded, fold(sums));
}

/* The same where pages are not all of WIDTH tokens. */
static void fold_segments(const float *weights, const cpu_segment *segments, float folded[GROUP][DOT_COLUMNS])
{
    floats sums[GROUP][DOT_COLUMNS];
    for (uint32_t r = 0; r < GROUP; r++)
        for (uint32_t c = 0; c < DOT_COLUMNS; c++)
            sums[r][c] = sum_segment(weights + r * TILE, segments + c);
    put_floats(folded, fold(sums));
}

/* Puts n page sums of the block's row i, from place `at` on. */
INLINE void put_sums(const work *x, uint32_t i, uint64_t at, const float sums[DOT_COLUMNS], uint32_t n)
{
    float maxima[DOT_COLUMNS];
    for (uint32_t c = 0; c < DOT_COLUMNS; c++)
        maxima[c] = x->state.max[i];
    if (n >= DOT_COLUMNS) {
        memcpy(x->state.page_max + at, maxima, sizeof maxima);
        memcpy(x->state.page_sum + at, sums, sizeof maxima);
    } else {
        memcpy(x->state.page_max + at, maxima, n * sizeof *maxima);
        memcpy(x->state.page_sum + at, sums, n * sizeof *sums);
    }
}

/* Of up to GROUP rows from the block's row i on, whose weights these are, and of segments from the s-th on. */
static void sum_block(const work *x, const cpu_tile *t, const float *weights, uint32_t s, const uint32_t rows[2])
{
    const cpu_segment *segment = &t->segments[s];
    uint64_t stride = cpu_page_stride(x->b), at = rows[0] * stride + segment->page - x->b->page;
    float folded[GROUP][DOT_COLUMNS];
    if (x->e->page_tokens == WIDTH && t->n_segments * WIDTH == t->n)
        fold_pages(weights + s * WIDTH, folded);
    else
        fold_segments(weights, segment, folded);
    for (uint32_t r = 0; r < rows[1]; r++, at += stride) {
        if (segment->continues)
            folded[r][0] += sum_before(x, rows[0] + r, at);
        put_sums(x, rows[0] + r, at, folded[r], t->n_segments - s);
    }
}

/* What each page has of the weights. */
static void sum_pages(const work *x, const cpu_tile *t, uint32_t n)
{
    for (uint32_t r = 0; r < x->n_rows; r += GROUP)
        for (uint32_t s = 0; s < t->n_segments; s += DOT_COLUMNS) {
            uint32_t rows[2] = {n * x->b->n_rows + r, min_u32(GROUP, x->n_rows - r)};
            sum_block(x, t, x->scratch->scores + r * TILE, s, rows);
        }
}

/* ---- weights times values */

static void scale_weights(const work *x, const cpu_tile *t)
{
    for (uint32_t r = 0; dtype_has_scales(x->job->a->kv->dtype) && r < x->n_rows; r++)
        scale_row_by(x->scratch->scores + r * TILE, t->n, x->value_scales);
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

/* K and V of the n-th KV head of a tile, and scores. Meanwhile the rows of the head after the next are fetched; past
 * the last head those of the next tile, if there is one. */
static void open_tile(work *x, const cpu_tile *t, const cpu_tile *next, uint32_t n, cpu_rows kv_rows[2])
{
    uint32_t heads = x->b->n_heads, later = n + min_u32(heads, FETCH_AHEAD), fetched = later % heads;
    const cpu_tile *from = later < heads ? t : next;
    uint64_t stride = x->job->a->kv->head_stride;
    uint64_t shift = (x->b->head + n) * stride, next_shift = (x->b->head + fetched) * stride;
    kv_rows[0] = rows_of(x, t->k, from->n ? from->k : NULL, shift, next_shift);
    kv_rows[1] = rows_of(x, t->v, from->n ? from->v : NULL, shift, next_shift);
    kv_rows[0].n = kv_rows[1].n = t->n;
    if (dtype_has_scales(x->job->a->kv->dtype)) {
        load_scales(x, t, n);
        fetch_scales(x, from, fetched);
    }
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
