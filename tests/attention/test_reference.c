/* The reference against plain attention over contiguous K and V, both in double precision. */
#include "attention/grid.h"
#include "attention/reference.h"
#include "run_tests.h"

#include <math.h>

static int plain_in_double(void *ctx, const grid_case *c, const kvk_attention_out *out)
{
    (void)ctx;
    grid_plain(c, GRID_DOUBLE, out);
    return 0;
}

static int reference(void *ctx, const grid_case *c, const kvk_attention_out *out)
{
    (void)ctx;
    return kvk_attention_reference(&c->attention, out);
}

START_TEST(a_shape_of_the_grid_agrees)
{
    uint32_t n;
    grid_check_by(plain_in_double, &grid_shapes(&n)[_i], GRID_FLOAT, reference, NULL);
}
END_TEST

/* ---- to 1e-9, before anything is rounded to float */

static double mass_of(const grid_case *c, const entry *e, const plain_head *p, uint32_t page)
{
    double mass = 0;
    uint32_t from = (uint32_t)c->positions[c->indptr[e->index] + (int32_t)page];
    for (uint32_t t = from; t < from + e->page_tokens && t < e->n_tokens; t++)
        mass += p->weight[t];
    return mass;
}

static void head_agrees(const grid_case *c, const entry *e, const reference_query *r, plain_head *p)
{
    plain_attend(c, GRID_DOUBLE, e->index, r->query, r->head, p);
    ck_assert(r->lse == p->lse || fabs(r->lse - p->lse) <= 1e-9 * fmax(1, fabs(p->lse)));
    for (uint32_t d = 0; d < c->shape->head_size; d++)
        ck_assert_double_eq_tol(r->o[d], p->o[d], 1e-9);
    double sum = c->attention.sinks ? exp((double)c->sinks[r->head] - r->lse) : 0;
    for (uint32_t page = 0; page < e->n_pages; page++) {
        double mass = reference_mass(r, page);
        ck_assert_double_eq_tol(mass, mass_of(c, e, p, page), 1e-9);
        sum += mass;
    }
    ck_assert(r->lse == -HUGE_VAL ? sum == 0 : fabs(sum - 1) <= 1e-9);
}

static void entry_agrees(const grid_case *c, const entry *e)
{
    reference_query r;
    plain_head *p = plain_open(c, e->index);
    for (uint32_t query = 0; query < e->n_queries; query++)
        for (uint32_t head = 0; head < c->n_heads; head += 1 + e->n_queries / 8) {
            reference_attend(&r, &c->attention, e, query, head);
            head_agrees(c, e, &r, p);
        }
    plain_close(p);
}

START_TEST(heads_agree_to_1e_9_and_masses_sum_to_1)
{
    uint32_t n;
    grid_case *c = grid_open(&grid_shapes(&n)[_i]);
    kvk_attention_out out;
    kvk_attention_out_init(&out);
    for (entry e = entry_first(&c->attention, &out); e.index < c->attention.n; entry_next(&e, &c->attention, &out))
        entry_agrees(c, &e);
    grid_close(c);
}
END_TEST

int main(void)
{
    uint32_t n;
    TCase *tests = tcase_create("reference");
    grid_shapes(&n);
    tcase_add_loop_test(tests, a_shape_of_the_grid_agrees, 0, (int)n);
    tcase_add_loop_test(tests, heads_agree_to_1e_9_and_masses_sum_to_1, 0, (int)n);
    return run_tests("reference", tests);
}
