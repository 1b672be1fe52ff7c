#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, MAP_NORESERVE */
#include "attention/grid.h"

#include "attention/convert.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LAYERS 2u
#define FAR_STRIDE 65536u /* 70,000 pages: 4.6 GB */

static void *take(uint64_t n, uint64_t bytes)
{
    void *memory = calloc(n ? n : 1, bytes);
    ck_assert_ptr_nonnull(memory);
    return memory;
}

/* ---- random numbers: SplitMix64 */

static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static uint32_t below(uint64_t *state, uint32_t n)
{
    return (uint32_t)(next(state) % n);
}

/* ---- numbers that the types hold exactly: whole multiples of a power of 2 */

static int32_t most_of(kvk_dtype dtype)
{
    return dtype == KVK_F8_E4M3 ? 15 : dtype == KVK_I4 ? 7 : 127;
}

static float unit_of(kvk_dtype dtype)
{
    return dtype == KVK_F8_E4M3 ? 0.125f : dtype == KVK_I4 ? 0.25f : 0.015625f;
}

/* Rows with one element that is the largest there can be, so that a scale for the row is the unit. */
static void fill_rows(float *rows, uint64_t n, uint32_t size, kvk_dtype dtype, uint64_t *random)
{
    int32_t most = most_of(dtype);
    for (uint64_t i = 0; i < n * size; i++)
        rows[i] = (float)((int32_t)below(random, 2 * (uint32_t)most + 1) - most) * unit_of(dtype);
    for (uint64_t i = 0; i < n; i++)
        rows[i * size + below(random, size)] = (float)most * unit_of(dtype);
}

/* ---- which pages a text has */

static uint32_t queries_of(const grid_shape *s, uint32_t entry)
{
    return s->queries ? s->queries[entry] : s->lengths[entry] > 0;
}

static int is_missing(const grid_shape *s, uint32_t entry, uint32_t page, uint64_t *random)
{
    uint32_t length = s->lengths[entry], first_query = length - queries_of(s, entry);
    if ((s->features & GRID_MASKED) && page < (length - 1) / s->page_tokens)
        return 1;
    return (s->features & GRID_EVICTED) && page < first_query / s->page_tokens && below(random, 3) == 0;
}

static void list_pages(grid_case *c, uint32_t entry, uint64_t *random)
{
    const grid_shape *s = c->shape;
    for (uint32_t t = 0; t < s->lengths[entry]; t += s->page_tokens) {
        if (is_missing(s, entry, t / s->page_tokens, random))
            continue;
        uint32_t tokens = s->lengths[entry] - t < s->page_tokens ? s->lengths[entry] - t : s->page_tokens;
        memset(c->held + c->first_token[entry] + t, 1, tokens);
        c->positions[c->n_pages++] = (int32_t)t;
    }
}

/* Pages from the one before that of the first query on. */
static uint64_t near_pages(const grid_case *c, uint32_t entry)
{
    const grid_shape *s = c->shape;
    uint64_t first = (s->lengths[entry] - queries_of(s, entry)) / s->page_tokens, n = 0;
    for (int32_t i = c->indptr[entry]; i < c->indptr[entry + 1]; i++)
        n += (uint32_t)c->positions[i] / s->page_tokens + 1 >= first;
    return n;
}

/* Page ids to choose from. */
static uint32_t names(const grid_case *c)
{
    return (uint32_t)c->n_pages * 2 + 1;
}

/* Sizes, and lists without page ids yet. */
static void lay_out(grid_case *c, uint64_t *random)
{
    const grid_shape *s = c->shape;
    for (uint32_t i = 0; i < s->n; i++)
        c->first_token[i + 1] = c->first_token[i] + s->lengths[i];
    c->n_tokens = c->first_token[s->n];
    c->held = take(c->n_tokens, 1);
    c->positions = take(c->n_tokens, sizeof *c->positions);
    for (uint32_t i = 0; i < s->n; i++) {
        uint64_t before = c->n_pages, queries = queries_of(s, i);
        list_pages(c, i, random);
        c->indptr[i + 1] = (int32_t)c->n_pages;
        c->n_queries += queries;
        c->query_indptr[i + 1] = (int32_t)c->n_queries;
        c->seq_lens[i] = (int32_t)s->lengths[i];
        uint64_t n_rows = s->features & GRID_ROWS ? queries : 1;
        if (c->rows)
            c->rows[i] = (uint32_t)n_rows;
        c->n_mean += n_rows * (c->n_pages - before);
        c->n_near += n_rows * near_pages(c, i) * 2 * c->n_heads;
    }
}

/* Whole pages at its beginning that an entry has from the first one. */
static uint32_t shared_pages(const grid_case *c, uint32_t entry)
{
    const grid_shape *s = c->shape;
    uint32_t common = s->lengths[entry] < s->lengths[0] ? s->lengths[entry] : s->lengths[0];
    return s->features & GRID_SHARED ? common / s->page_tokens : 0;
}

/* A random half of the last ids, in random order; then those of pages that are shared again. */
static void name_pages(grid_case *c, uint64_t *random)
{
    uint32_t n = names(c);
    int32_t *ids = take(n, sizeof *ids);
    for (uint32_t i = 0; i < n; i++)
        ids[i] = (int32_t)(c->kv.n_pages - n + i);
    c->pages = take(c->n_pages, sizeof *c->pages);
    for (uint32_t i = 0; i < c->n_pages; i++) {
        uint32_t other = i + below(random, n - i);
        int32_t id = ids[other];
        ids[other] = ids[i];
        c->pages[i] = id;
    }
    free(ids);
    for (uint32_t i = 1; i < c->shape->n; i++)
        memcpy(c->pages + c->indptr[i], c->pages, shared_pages(c, i) * sizeof *c->pages);
}

/* ---- K and V */

static void set_strides(grid_case *c)
{
    kvk_kv *kv = &c->kv;
    uint64_t gap = c->shape->features & GRID_GAPS ? 16 : 0, row = layout_row_bytes(kv->dtype, kv->head_size);
    if (c->shape->features & GRID_NHD) {
        kv->head_stride = row + gap;
        kv->token_stride = kv->head_stride * kv->n_heads + gap;
        kv->value_stride = kv->token_stride * kv->page_tokens + gap;
    } else {
        kv->token_stride = row + gap;
        kv->head_stride = kv->token_stride * kv->page_tokens + gap;
        kv->value_stride = kv->head_stride * kv->n_heads + gap;
    }
    kv->layer_stride = kv->value_stride * 2 + gap;
    kv->page_stride = kv->layer_stride * kv->n_layers + gap;
    if (c->shape->features & GRID_FAR)
        kv->page_stride = FAR_STRIDE;
}

/* Memory of which only the last pages are ever touched. */
static void *map_sparse(uint64_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ck_assert_ptr_ne(memory, MAP_FAILED);
    return memory;
}

/* NaN in every type that has one, in all places that the ids to choose from can have. */
static void poison_kv(grid_case *c)
{
    uint64_t first = c->kv.n_pages - names(c), scales = c->n_scales / c->kv.n_pages;
    memset((char *)c->kv.base + first * c->kv.page_stride, 0xff, c->kv_bytes - first * c->kv.page_stride);
    if (c->n_scales)
        memset(c->kv.scales + first * scales, 0xff, (c->n_scales - first * scales) * sizeof(float));
}

static void make_kv(grid_case *c)
{
    const grid_shape *s = c->shape;
    kvk_kv_init(&c->kv, s->dtype, names(c) + (s->features & GRID_FAR ? 70000 : 0), s->page_tokens);
    ck_assert_int_eq(kvk_kv_shape(&c->kv, LAYERS, s->kv_heads, s->head_size), 0);
    set_strides(c);
    c->kv.k_scale = s->dtype == KVK_F8_E4M3 ? 0.5f : 1;
    c->kv.v_scale = s->dtype == KVK_F8_E4M3 ? 4.0f : 1;
    ck_assert_int_eq(kvk_kv_bytes(&c->kv, &c->kv_bytes, &c->n_scales), 0);
    c->kv.base = s->features & GRID_FAR ? map_sparse(c->kv_bytes) : take(c->kv_bytes, 1);
    c->kv.scales = c->n_scales ? take(c->n_scales, sizeof(float)) : NULL;
    poison_kv(c);
}

/* What an entry has from the first one. */
static void share_tokens(const grid_case *c, float *rows, uint32_t entry)
{
    uint64_t token = (uint64_t)c->shape->kv_heads * c->shape->head_size;
    uint64_t n = (uint64_t)shared_pages(c, entry) * c->shape->page_tokens;
    memcpy(rows + c->first_token[entry] * token, rows, n * token * sizeof *rows);
}

static void append_entry(grid_case *c, uint32_t entry)
{
    uint32_t n = c->shape->lengths[entry];
    uint64_t first = c->first_token[entry], token = (uint64_t)c->shape->kv_heads * c->shape->head_size;
    int64_t *slots = take(n, sizeof *slots);
    int32_t page = c->indptr[entry];
    for (uint32_t t = 0; t < n; t++) {
        slots[t] = -1;
        if (!c->held[first + t])
            continue;
        page += t >= (uint32_t)c->positions[page] + c->kv.page_tokens;
        slots[t] = (int64_t)c->pages[page] * c->kv.page_tokens + t % c->kv.page_tokens;
    }
    kvk_rows k = {c->k + first * token, KVK_F32, 0, token, c->shape->head_size}, v = k;
    v.data = c->v + first * token;
    ck_assert_int_eq(kvk_append(&c->kv, LAYERS - 1, slots, n, &k, &v), 0);
    free(slots);
}

static void fill_kv(grid_case *c, uint64_t *random)
{
    const grid_shape *s = c->shape;
    uint64_t rows = c->n_tokens * s->kv_heads;
    c->k = take(rows * s->head_size, sizeof(float));
    c->v = take(rows * s->head_size, sizeof(float));
    fill_rows(c->k, rows, s->head_size, s->dtype, random);
    fill_rows(c->v, rows, s->head_size, s->dtype, random);
    for (uint32_t i = 0; i < s->n; i++) {
        if (i > 0) {
            share_tokens(c, c->k, i);
            share_tokens(c, c->v, i);
        }
        append_entry(c, i);
    }
}

/* ---- queries */

static void fill_queries(grid_case *c, uint64_t *random)
{
    const grid_shape *s = c->shape;
    uint64_t gap = s->features & GRID_GAPS ? 8 : 0, rows = c->n_queries * c->n_heads;
    kvk_rows *q = &c->attention.q;
    *q = (kvk_rows){.dtype = s->q_dtype, .head_stride = s->head_size + gap};
    q->token_stride = q->head_stride * c->n_heads + gap;
    c->query = take(rows * s->head_size, sizeof(float));
    fill_rows(c->query, rows, s->head_size, KVK_F32, random);
    c->q = take(c->n_queries * q->token_stride, sizeof(float));
    memset(c->q, 0xff, c->n_queries * q->token_stride * sizeof(float));
    for (uint64_t i = 0; i < rows; i++) {
        float *row = c->query + i * s->head_size;
        for (uint32_t d = 0; d < s->head_size; d++)
            row[d] *= s->q_size != 0 ? s->q_size : 1;
        uint64_t at = i / c->n_heads * q->token_stride + i % c->n_heads * q->head_stride;
        store_row(row, s->head_size, s->q_dtype, 1, (char *)c->q + at * layout_row_bytes(s->q_dtype, 1));
    }
    q->data = c->q;
}

static void fill_heads(grid_case *c, uint64_t *random)
{
    c->slopes = take(c->n_heads, sizeof(float));
    c->sinks = take(c->n_heads, sizeof(float));
    for (uint32_t h = 0; h < c->n_heads; h++) {
        c->slopes[h] = 1.0f / (float)(2u << (h % 8));
        c->sinks[h] = (float)below(random, 64) / 16 - 1;
    }
    c->attention.slopes = c->shape->features & GRID_ALIBI ? c->slopes : NULL;
    c->attention.sinks = c->shape->features & GRID_SINKS ? c->sinks : NULL;
}

static void fill_attention(grid_case *c)
{
    kvk_attention *a = &c->attention;
    a->n = c->shape->n;
    a->kv = &c->kv;
    a->layer = LAYERS - 1;
    a->n_heads = c->n_heads;
    a->indptr = c->indptr;
    a->pages = c->pages;
    a->positions = c->shape->features & (GRID_EVICTED | GRID_MASKED) ? c->positions : NULL;
    a->seq_lens = c->seq_lens;
    a->query_indptr = c->query_indptr;
    a->scale = c->shape->scale;
    a->soft_cap = c->shape->soft_cap;
    a->window = c->shape->window;
}

static void place_near(grid_case *c)
{
    c->near_places = take(c->n_heads, sizeof *c->near_places);
    for (uint32_t head = 0; head < c->n_heads; head++)
        c->near_places[head] = head % 3 == 2 ? -1 : (int32_t)(2 * c->n_heads - 1 - head);
}

grid_case *grid_open(const grid_shape *shape)
{
    grid_case *c = take(1, sizeof *c);
    uint64_t random = shape->seed;
    c->shape = shape;
    c->n_heads = shape->kv_heads * shape->group;
    c->first_token = take(shape->n + 1, sizeof *c->first_token);
    c->indptr = take(shape->n + 1, sizeof *c->indptr);
    c->query_indptr = take(shape->n + 1, sizeof *c->query_indptr);
    c->seq_lens = take(shape->n, sizeof *c->seq_lens);
    c->rows = shape->features & GRID_ROWS ? take(shape->n, sizeof *c->rows) : NULL;
    lay_out(c, &random);
    make_kv(c);
    name_pages(c, &random);
    fill_kv(c, &random);
    kvk_attention_init(&c->attention);
    fill_queries(c, &random);
    fill_heads(c, &random);
    fill_attention(c);
    if (shape->features & GRID_NEAR_ERROR)
        place_near(c);
    return c;
}

void grid_close(grid_case *c)
{
    void *arrays[] = {c->first_token, c->held,  c->positions, c->indptr,     c->query_indptr, c->seq_lens,
                      c->rows,        c->pages, c->k,         c->v,          c->query,        c->q,
                      c->slopes,      c->sinks, c->kv.scales, c->near_places};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free(arrays[i]);
    if (c->shape->features & GRID_FAR)
        munmap(c->kv.base, c->kv_bytes);
    else
        free(c->kv.base);
    free(c);
}

/* ---- results */

static void *take_poisoned(uint64_t bytes)
{
    return memset(take(bytes, 1), 0xff, bytes ? bytes : 1);
}

grid_result *grid_result_open(const grid_case *c, kvk_dtype o_dtype)
{
    grid_result *r = take(1, sizeof *r);
    uint64_t gap = c->shape->features & GRID_GAPS ? 8 : 0;
    kvk_attention_out_init(&r->out);
    r->out.o_dtype = o_dtype;
    r->out.o_head_stride = c->shape->head_size + gap;
    r->out.o_token_stride = r->out.o_head_stride * c->n_heads + gap;
    r->o_elements = c->n_queries * r->out.o_token_stride;
    r->n_lse = c->n_queries * c->n_heads;
    r->out.o = take_poisoned(r->o_elements * layout_row_bytes(o_dtype, 1));
    r->out.lse = take_poisoned(r->n_lse * sizeof(float));
    r->out.rows = c->rows;
    r->out.mean = take(c->n_mean, sizeof(float));
    r->out.peak = take(c->n_mean, sizeof(float));
    r->out.near = take(c->n_near, sizeof(float));
    r->out.weight = 0.5f; /* as one of two layers */
    r->out.near_kind = c->shape->features & GRID_NEAR_ERROR ? KVK_NEAR_ERROR : KVK_NEAR_MASS;
    r->out.near_values = 2 * c->n_heads;
    r->out.near_first = c->n_heads;
    r->out.near_places = c->near_places;
    return r;
}

void grid_result_close(grid_result *r)
{
    free(r->out.o);
    free(r->out.lse);
    free(r->out.mean);
    free(r->out.peak);
    free(r->out.near);
    free(r);
}
