#include "attention/reference.h"

#include "attention/convert.h"

#include <math.h>

static uint32_t kv_head(const reference_query *r)
{
    return r->head / (r->a->n_heads / r->a->kv->n_heads);
}

static void load_query(reference_query *r)
{
    const kvk_rows *q = &r->a->q;
    uint64_t at = (r->e->first_query + (uint64_t)r->query) * q->token_stride + r->head * q->head_stride;
    const char *row = (const char *)q->data + at * layout_row_bytes(q->dtype, 1);
    load_row_double(row, q->dtype, r->a->kv->head_size, 1, r->q);
}

/* K (value 0) or V (value 1) of a token of a page of the entry's list. */
static void load_token(const reference_query *r, uint32_t value, uint32_t page, uint32_t token, double *row)
{
    const kvk_kv *kv = r->a->kv;
    uint32_t id = (uint32_t)r->e->pages[page], layer = r->a->layer, head = kv_head(r);
    float scale = 1;
    if (kv->dtype == KVK_F8_E4M3)
        scale = value ? kv->v_scale : kv->k_scale;
    else if (dtype_has_scales(kv->dtype))
        scale = kv->scales[layout_scale(kv, id, layer, value, head, token)];
    const char *from = (const char *)kv->base + layout_row(kv, id, layer, value, head, token);
    load_row_double(from, kv->dtype, kv->head_size, scale, row);
}

static double score(const reference_query *r, uint32_t page, uint32_t token)
{
    const kvk_attention *a = r->a;
    double k[MAX_HEAD_SIZE], s = 0, cap = (double)a->soft_cap;
    load_token(r, 0, page, token, k);
    for (uint32_t d = 0; d < a->kv->head_size; d++)
        s += r->q[d] * k[d];
    s *= a->scale != 0 ? (double)a->scale : 1 / sqrt(a->kv->head_size);
    if (cap > 0)
        s = cap * tanh(s / cap);
    if (a->slopes) {
        double ahead = (double)(entry_position(r->e, page) + token) - entry_query_position(r->e, r->query);
        s += (double)a->slopes[r->head] * ahead;
    }
    return s;
}

/* The largest score; what exponents are taken from, so that none overflows. */
static double largest_score(const reference_query *r)
{
    double largest = r->a->sinks ? (double)r->a->sinks[r->head] : -HUGE_VAL;
    for (uint32_t page = 0; page < r->e->n_pages; page++) {
        seen s = entry_seen(r->e, page, r->query, r->a->window);
        for (uint32_t token = s.from; token < s.to; token++)
            largest = fmax(largest, score(r, page, token));
    }
    return largest;
}

/* Adds weight * v to u for the tokens of a page, weight exp(score - base). Returns the sum of weights. */
static double add_page(const reference_query *r, uint32_t page, double base, double *u)
{
    double v[MAX_HEAD_SIZE], sum = 0;
    seen s = entry_seen(r->e, page, r->query, r->a->window);
    for (uint32_t token = s.from; token < s.to; token++) {
        double weight = exp(score(r, page, token) - base);
        load_token(r, 1, page, token, v);
        for (uint32_t d = 0; d < r->a->kv->head_size; d++)
            u[d] += weight * v[d];
        sum += weight;
    }
    return sum;
}

void reference_attend(reference_query *r, const kvk_attention *a, const entry *e, uint32_t query, uint32_t head)
{
    *r = (reference_query){.a = a, .e = e, .query = query, .head = head, .lse = -HUGE_VAL};
    load_query(r);
    double largest = largest_score(r);
    if (largest == -HUGE_VAL)
        return; /* o is 0 */
    double sum = a->sinks ? exp((double)a->sinks[head] - largest) : 0;
    for (uint32_t page = 0; page < e->n_pages; page++)
        sum += add_page(r, page, largest, r->o);
    for (uint32_t d = 0; d < a->kv->head_size; d++)
        r->o[d] /= sum;
    r->lse = largest + log(sum);
}

double reference_mass(const reference_query *r, uint32_t page)
{
    double mass = 0;
    seen s = entry_seen(r->e, page, r->query, r->a->window);
    for (uint32_t token = s.from; token < s.to; token++)
        mass += exp(score(r, page, token) - r->lse);
    return mass;
}

double reference_error(const reference_query *r, uint32_t page)
{
    double u[MAX_HEAD_SIZE] = {0}, squares = 0, mass = add_page(r, page, r->lse, u);
    for (uint32_t d = 0; d < r->a->kv->head_size; d++)
        squares += (mass * r->o[d] - u[d]) * (mass * r->o[d] - u[d]);
    return sqrt(squares) / fmax(1 - mass, 1e-3);
}

/* ---- the results of a call */

static void write_head(const reference_query *r, const kvk_attention_out *out)
{
    uint64_t query = r->e->first_query + (uint64_t)r->query;
    if (out->lse)
        out->lse[query * r->a->n_heads + r->head] = (float)r->lse;
    if (!out->o)
        return;
    uint64_t at = query * out->o_token_stride + r->head * out->o_head_stride;
    char *row = (char *)out->o + at * layout_row_bytes(out->o_dtype, 1);
    for (uint32_t d = 0; d < r->a->kv->head_size; d++)
        store_element(row, out->o_dtype, d, (float)r->o[d]);
}

static void raise(float *peak, double value)
{
    if ((float)value > *peak)
        *peak = (float)value;
}

static void raise_near(const reference_query *r, const kvk_attention_out *out)
{
    const entry *e = r->e;
    uint64_t row = e->near_at + (uint64_t)entry_row(e, r->query) * (e->n_pages - e->near_from);
    int32_t place = layout_near(out, r->head);
    for (uint32_t page = e->near_from; place >= 0 && page < e->n_pages; page++) {
        uint64_t at = (row + page - e->near_from) * out->near_values + (uint64_t)place;
        if (entry_is_near(e, page, r->query))
            raise(&out->near[at],
                  out->near_kind == KVK_NEAR_ERROR ? reference_error(r, page) : reference_mass(r, page));
    }
}

/* Queries of a row and heads, of which as many at once as the stack holds: their masses are summed in double precision
 * before they are added to what is there. */
#define BLOCK 256u

typedef struct block {
    const entry *e;
    uint32_t row;
    uint64_t begin, end; /* query * n_heads + head */
    double lse[BLOCK];
} block;

static void attend_block(block *b, const kvk_attention *a, const kvk_attention_out *out)
{
    reference_query r;
    for (uint64_t i = b->begin; i < b->end; i++) {
        reference_attend(&r, a, b->e, (uint32_t)(i / a->n_heads), (uint32_t)(i % a->n_heads));
        b->lse[i - b->begin] = r.lse;
        write_head(&r, out);
        if (out->near)
            raise_near(&r, out);
    }
}

static void sum_page(const block *b, const kvk_attention *a, const kvk_attention_out *out, uint32_t page)
{
    double sum = 0, largest = 0;
    for (uint64_t i = b->begin; i < b->end; i++) {
        reference_query r = {.a = a,
                             .e = b->e,
                             .query = (uint32_t)(i / a->n_heads),
                             .head = (uint32_t)(i % a->n_heads),
                             .lse = b->lse[i - b->begin]};
        load_query(&r);
        double mass = reference_mass(&r, page);
        sum += mass;
        largest = fmax(largest, mass);
    }
    uint64_t at = b->e->mean_at + (uint64_t)b->row * b->e->n_pages + page;
    if (out->mean)
        out->mean[at] += (float)((double)out->weight * sum / a->n_heads);
    if (out->peak)
        raise(&out->peak[at], largest);
}

static void attend_row(const entry *e, uint32_t row, const kvk_attention *a, const kvk_attention_out *out)
{
    uint64_t begin = (uint64_t)row * a->n_heads, end = begin + a->n_heads;
    if (e->n_rows == 1)
        end = (uint64_t)e->n_queries * a->n_heads;
    while (begin < end) {
        block b = {.e = e, .row = row, .begin = begin, .end = end - begin < BLOCK ? end : begin + BLOCK};
        attend_block(&b, a, out);
        for (uint32_t page = 0; (out->mean || out->peak) && page < e->n_pages; page++)
            sum_page(&b, a, out, page);
        begin = b.end;
    }
}

int kvk_attention_reference(const kvk_attention *attention, const kvk_attention_out *out)
{
    if (check_attention(attention, out) < 0)
        return KVK_EINVAL;
    for (entry e = entry_first(attention, out); e.index < attention->n; entry_next(&e, attention, out))
        for (uint32_t row = 0; row < e.n_rows; row++)
            attend_row(&e, row, attention, out);
    return 0;
}
