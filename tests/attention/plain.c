/* plain.c: softmax attention over contiguous K and V, as anybody would write it down. */
#include "attention/convert.h"
#include "attention/grid.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

static double rounded(grid_precision precision, double x)
{
    return precision == GRID_DOUBLE ? x : (double)(float)x;
}

static double rounded_weight(grid_precision precision, double weight)
{
    if (precision == GRID_HALF)
        return (double)float_of_f16(f16_of_float((float)weight));
    if (precision == GRID_BRAIN)
        return (double)float_of_bf16(bf16_of_float((float)weight));
    return weight;
}

plain_head *plain_open(const grid_case *c, uint32_t entry)
{
    plain_head *p = malloc(sizeof *p);
    ck_assert_ptr_nonnull(p);
    p->weight = malloc((c->shape->lengths[entry] + 1) * sizeof *p->weight);
    ck_assert_ptr_nonnull(p->weight);
    return p;
}

void plain_close(plain_head *p)
{
    free(p->weight);
    free(p);
}

static const float *row_of(const grid_case *c, const float *rows, uint64_t token, uint32_t head)
{
    const grid_shape *s = c->shape;
    return rows + (token * s->kv_heads + head / s->group) * s->head_size;
}

static double score(const grid_case *c, grid_precision precision, const float *q, const float *k)
{
    double s = 0, cap = (double)c->shape->soft_cap;
    double scale = rounded(precision, 1 / sqrt(c->shape->head_size));
    for (uint32_t d = 0; d < c->shape->head_size; d++)
        s = rounded(precision, s + rounded(precision, (double)q[d] * (double)k[d]));
    s = rounded(precision, s * (c->shape->scale != 0 ? (double)c->shape->scale : scale));
    return cap > 0 ? rounded(precision, cap * rounded(precision, tanh(rounded(precision, s / cap)))) : s;
}

void plain_attend(const grid_case *c, grid_precision precision, uint32_t entry, uint32_t query, uint32_t head,
                  plain_head *p)
{
    const grid_shape *s = c->shape;
    uint64_t first = c->first_token[entry], q = (uint64_t)c->query_indptr[entry] + query;
    int64_t n = c->seq_lens[entry], at = n - (c->query_indptr[entry + 1] - c->query_indptr[entry]) + query;
    const float *row = c->query + (q * c->n_heads + head) * s->head_size;
    double largest = c->attention.sinks ? (double)c->sinks[head] : -HUGE_VAL, sum;
    for (int64_t t = 0; t < n; t++) {
        p->weight[t] = -HUGE_VAL;
        if (t > at || !c->held[first + (uint64_t)t] || (s->window && t <= at - (int64_t)s->window))
            continue;
        p->weight[t] = score(c, precision, row, row_of(c, c->k, first + (uint64_t)t, head));
        if (c->attention.slopes)
            p->weight[t] = rounded(precision, p->weight[t] + (double)c->slopes[head] * (double)(t - at));
        largest = fmax(largest, p->weight[t]);
    }
    for (uint32_t d = 0; d < s->head_size; d++)
        p->o[d] = 0;
    sum = c->attention.sinks ? rounded(precision, exp((double)c->sinks[head] - largest)) : 0;
    for (int64_t t = 0; t < n; t++) {
        p->weight[t] = p->weight[t] == -HUGE_VAL ? 0 : rounded(precision, exp(p->weight[t] - largest));
        sum = rounded(precision, sum + p->weight[t]);
        const float *v = row_of(c, c->v, first + (uint64_t)t, head);
        for (uint32_t d = 0; p->weight[t] > 0 && d < s->head_size; d++)
            p->o[d] = rounded(precision, p->o[d] + rounded_weight(precision, p->weight[t]) * (double)v[d]);
    }
    p->lse = largest == -HUGE_VAL ? largest : rounded(precision, largest + log(sum));
    for (uint32_t d = 0; d < s->head_size && sum > 0; d++)
        p->o[d] = rounded(precision, p->o[d] / sum);
    for (int64_t t = 0; t < n && sum > 0; t++)
        p->weight[t] = rounded(precision, p->weight[t] / sum);
}

/* ---- all results of a case */

typedef struct walk {
    const grid_case *c;
    grid_precision precision;
    const kvk_attention_out *to;
    const plain_head *p;
    uint32_t entry, query, head;
    uint64_t mean_at, near_at; /* of the query's row */
} walk;

static uint32_t queries_of(const walk *w)
{
    return (uint32_t)(w->c->query_indptr[w->entry + 1] - w->c->query_indptr[w->entry]);
}

static double mass_of(const walk *w, uint32_t from, uint32_t to)
{
    double mass = 0;
    for (uint32_t t = from; t < to; t++)
        mass = rounded(w->precision, mass + w->p->weight[t]);
    return mass;
}

static double error_of(const walk *w, uint32_t from, uint32_t to)
{
    double mass = mass_of(w, from, to), squares = 0;
    for (uint32_t d = 0; d < w->c->shape->head_size; d++) {
        double u = 0;
        for (uint32_t t = from; t < to; t++)
            if (w->p->weight[t] > 0)
                u = rounded(w->precision,
                            u + w->p->weight[t] *
                                    (double)row_of(w->c, w->c->v, w->c->first_token[w->entry] + t, w->head)[d]);
        double off = rounded(w->precision, rounded(w->precision, mass * w->p->o[d]) - u);
        squares = rounded(w->precision, squares + off * off);
    }
    return rounded(w->precision, sqrt(squares) / fmax(1 - mass, 1e-3));
}

static void write_output(const walk *w)
{
    const kvk_attention_out *out = w->to;
    uint64_t query = (uint64_t)w->c->query_indptr[w->entry] + w->query;
    char *row = (char *)out->o +
                (query * out->o_token_stride + w->head * out->o_head_stride) * layout_row_bytes(out->o_dtype, 1);
    for (uint32_t d = 0; d < w->c->shape->head_size; d++)
        store_element(row, out->o_dtype, d, (float)w->p->o[d]);
    out->lse[query * w->c->n_heads + w->head] = (float)w->p->lse;
}

/* The masses of the listed pages; where the query is near, their peaks. */
static void add_masses(const walk *w)
{
    const grid_case *c = w->c;
    const kvk_attention_out *out = w->to;
    uint32_t size = c->shape->page_tokens, length = c->shape->lengths[w->entry];
    uint32_t first = (length - queries_of(w)) / size, own = (length - queries_of(w) + w->query) / size;
    uint64_t near = w->near_at;
    for (int32_t i = c->indptr[w->entry]; i < c->indptr[w->entry + 1]; i++) {
        uint32_t from = (uint32_t)c->positions[i], to = length - from < size ? length : from + size;
        uint64_t at = w->mean_at + (uint64_t)(i - c->indptr[w->entry]);
        float mass = (float)mass_of(w, from, to);
        out->mean[at] += out->weight * mass / (float)c->n_heads;
        out->peak[at] = fmaxf(out->peak[at], mass);
        if (from / size + 1 < first)
            continue;
        float *peaks = out->near + near++ * 2 * c->n_heads; /* of two layers, or where places say */
        int64_t place = c->near_places ? c->near_places[w->head] : (int64_t)c->n_heads + w->head;
        if (place >= 0 && (own == from / size || own == from / size + 1))
            peaks[place] = fmaxf(peaks[place], out->near_kind == KVK_NEAR_ERROR ? (float)error_of(w, from, to) : mass);
    }
}

static uint64_t near_pages(const walk *w)
{
    uint32_t size = w->c->shape->page_tokens, first = (w->c->shape->lengths[w->entry] - queries_of(w)) / size;
    uint64_t n = 0;
    for (int32_t i = w->c->indptr[w->entry]; i < w->c->indptr[w->entry + 1]; i++)
        n += (uint32_t)w->c->positions[i] / size + 1 >= first;
    return n;
}

static void run_entry(walk *w)
{
    plain_head *p = plain_open(w->c, w->entry);
    uint64_t pages = (uint64_t)(w->c->indptr[w->entry + 1] - w->c->indptr[w->entry]), near = near_pages(w);
    for (w->query = 0; w->query < queries_of(w); w->query++) {
        for (w->head = 0; w->head < w->c->n_heads; w->head++) {
            plain_attend(w->c, w->precision, w->entry, w->query, w->head, p);
            w->p = p;
            write_output(w);
            add_masses(w);
        }
        w->mean_at += w->c->rows ? pages : 0;
        w->near_at += w->c->rows ? near : 0;
    }
    w->mean_at += w->c->rows ? 0 : pages;
    w->near_at += w->c->rows ? 0 : near;
    plain_close(p);
}

void grid_plain(const grid_case *c, grid_precision precision, const kvk_attention_out *out)
{
    walk w = {.c = c, .precision = precision, .to = out};
    for (w.entry = 0; w.entry < c->shape->n; w.entry++)
        run_entry(&w);
}
