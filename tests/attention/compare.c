/* compare.c: how far results of attention are from the reference's. */
#include "attention/convert.h"
#include "attention/grid.h"

#include <check.h>
#include <math.h>
#include <string.h>

typedef struct compared {
    const grid_case *c;
    grid_result *found, *plain, *exact;
} compared;

/* The largest distance of n floats from the exact ones; infinite where one is no number, or only one is infinite. */
static double distance(const float *found, const float *exact, uint64_t n)
{
    double largest = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (found[i] == exact[i])
            continue;
        double off = fabs((double)found[i] - (double)exact[i]);
        largest = off >= 0 ? fmax(largest, off) : HUGE_VAL;
    }
    return largest;
}

static void compare(const compared *x, const char *what, uint64_t n, const float *const values[3], double unit)
{
    double found = distance(values[0], values[2], n), plain = distance(values[1], values[2], n);
    ck_assert_msg(plain < HUGE_VAL && found <= 3 * plain + 1e-5 * unit,
                  "%s: %s is off by %g, the plain implementation by %g", x->c->shape->name, what, found, plain);
}

/* ---- o, row after row, and the gaps between its rows */

static void load_output(const grid_case *c, const grid_result *r, uint64_t row, float *o)
{
    uint64_t at = row / c->n_heads * r->out.o_token_stride + row % c->n_heads * r->out.o_head_stride;
    const char *from = (const char *)r->out.o + at * layout_row_bytes(r->out.o_dtype, 1);
    load_row_float(from, r->out.o_dtype, c->shape->head_size, 1, o);
}

static void compare_output(const compared *x)
{
    float rows[3][1024];
    double found = 0, plain = 0;
    for (uint64_t row = 0; row < x->found->n_lse; row++) {
        load_output(x->c, x->found, row, rows[0]);
        load_output(x->c, x->plain, row, rows[1]);
        load_output(x->c, x->exact, row, rows[2]);
        found = fmax(found, distance(rows[0], rows[2], x->c->shape->head_size));
        plain = fmax(plain, distance(rows[1], rows[2], x->c->shape->head_size));
    }
    ck_assert_msg(plain < HUGE_VAL && found <= 3 * plain + 1e-5, "%s: o is off by %g, the plain implementation by %g",
                  x->c->shape->name, found, plain);
}

static void gaps_are_untouched(const compared *x)
{
    const grid_result *r = x->found;
    uint64_t unit = layout_row_bytes(r->out.o_dtype, 1), head_size = x->c->shape->head_size;
    for (uint64_t i = 0; i < r->o_elements; i++) {
        uint64_t in_token = i % r->out.o_token_stride, head = in_token / r->out.o_head_stride;
        if (head < x->c->n_heads && in_token % r->out.o_head_stride < head_size)
            continue;
        const char *gap = (const char *)r->out.o + i * unit;
        ck_assert_msg(memcmp(gap, "\xff\xff\xff\xff", unit) == 0, "%s: a gap of o was written", x->c->shape->name);
    }
}

/* ---- masses */

/* A query's masses sum up, over pages, to what its sink leaves; heads are averaged. */
static double expected_sum(const compared *x, uint64_t query)
{
    double sum = 0;
    for (uint32_t head = 0; head < x->c->n_heads; head++) {
        double lse = (double)x->exact->out.lse[query * x->c->n_heads + head];
        double sink = x->c->attention.sinks ? exp((double)x->c->sinks[head] - lse) : 0;
        sum += lse == -HUGE_VAL ? 0 : 1 - sink;
    }
    return sum / x->c->n_heads;
}

static void check_sum(const compared *x, const float *mean, uint32_t pages, uint64_t query, uint32_t n_queries)
{
    double sum = 0, expected = 0;
    for (uint32_t i = 0; i < pages; i++)
        sum += (double)mean[i];
    for (uint32_t i = 0; i < n_queries; i++)
        expected += (double)x->found->out.weight * expected_sum(x, query + i);
    ck_assert_msg(fabs(sum - expected) <= 1e-5 * (n_queries ? n_queries : 1), "%s: masses sum to %.9g, not to %.9g",
                  x->c->shape->name, sum, expected);
}

static void check_sums(const compared *x)
{
    const float *mean = x->found->out.mean;
    for (uint32_t i = 0; i < x->c->shape->n; i++) {
        uint32_t pages = (uint32_t)(x->c->indptr[i + 1] - x->c->indptr[i]);
        uint32_t first = (uint32_t)x->c->query_indptr[i], n = (uint32_t)x->c->query_indptr[i + 1] - first;
        uint32_t rows = x->c->rows ? n : 1;
        for (uint32_t row = 0; row < rows; row++, mean += pages)
            check_sum(x, mean, pages, first + row, x->c->rows ? 1 : n);
    }
}

static uint32_t most_queries(const grid_case *c)
{
    uint32_t most = 1;
    for (uint32_t i = 0; i < c->shape->n && !c->rows; i++) {
        uint32_t n = (uint32_t)(c->query_indptr[i + 1] - c->query_indptr[i]);
        most = n > most ? n : most;
    }
    return most;
}

static void compare_all(const compared *x)
{
    const kvk_attention_out *f = &x->found->out, *p = &x->plain->out, *e = &x->exact->out;
    compare_output(x);
    gaps_are_untouched(x);
    compare(x, "lse", x->found->n_lse, (const float *const[]){f->lse, p->lse, e->lse}, 1);
    compare(x, "mean", x->c->n_mean, (const float *const[]){f->mean, p->mean, e->mean}, most_queries(x->c));
    compare(x, "peak", x->c->n_mean, (const float *const[]){f->peak, p->peak, e->peak}, 1);
    compare(x, "near", x->c->n_near, (const float *const[]){f->near, p->near, e->near}, 1);
    check_sums(x);
}

void grid_check_by(grid_version exact, const grid_shape *shape, grid_precision precision, grid_version version,
                   void *ctx)
{
    grid_case *c = grid_open(shape);
    compared x = {c, grid_result_open(c, shape->o_dtype), grid_result_open(c, shape->o_dtype),
                  grid_result_open(c, KVK_F32)};
    ck_assert_int_eq(exact(ctx, c, &x.exact->out), 0);
    grid_plain(c, precision, &x.plain->out);
    ck_assert_msg(version(ctx, c, &x.found->out) == 0, "%s: refused", shape->name);
    compare_all(&x);
    grid_result_close(x.found);
    grid_result_close(x.plain);
    grid_result_close(x.exact);
    grid_close(c);
}

static int reference(void *ctx, const grid_case *c, const kvk_attention_out *out)
{
    (void)ctx;
    return kvk_attention_reference(&c->attention, out);
}

void grid_check(const grid_shape *shape, grid_precision precision, grid_version version, void *ctx)
{
    grid_check_by(reference, shape, precision, version, ctx);
}
