/* The removal error of a page against attention computed again without it. */
#include "attention/grid.h"
#include "attention/reference.h"
#include "run_tests.h"

#include <math.h>
#include <string.h>

/* |o - o without the page|, o without it from contiguous K and V of which the page's tokens are left out. */
static double moved(grid_case *c, const entry *e, const reference_query *r, uint32_t page, plain_head *p)
{
    uint32_t from = entry_position(e, page), n = min_u32(e->page_tokens, e->n_tokens - from);
    uint8_t *held = c->held + c->first_token[e->index] + from;
    double squares = 0;
    memset(held, 0, n);
    plain_attend(c, GRID_DOUBLE, e->index, r->query, r->head, p);
    memset(held, 1, n);
    for (uint32_t d = 0; d < c->shape->head_size; d++)
        squares += (r->o[d] - p->o[d]) * (r->o[d] - p->o[d]);
    return sqrt(squares);
}

/* Checks all pages of a head; counts those with so much mass that the bound acts. */
static uint32_t check_head(grid_case *c, const entry *e, const reference_query *r, plain_head *p)
{
    uint32_t n_bounded = 0;
    for (uint32_t page = 0; page < e->n_pages; page++) {
        double left = 1 - reference_mass(r, page), error = reference_error(r, page);
        if (left > 1e-12)
            ck_assert_double_eq_tol(error, moved(c, e, r, page, p) * fmin(1, left / 1e-3), 1e-9);
        n_bounded += left < 1e-3;
    }
    return n_bounded;
}

static uint32_t check_case(const grid_shape *shape)
{
    grid_case *c = grid_open(shape);
    kvk_attention_out out;
    reference_query r;
    uint32_t n_bounded = 0;
    kvk_attention_out_init(&out);
    for (entry e = entry_first(&c->attention, &out); e.index < c->attention.n; entry_next(&e, &c->attention, &out)) {
        plain_head *p = plain_open(c, e.index);
        for (uint32_t i = 0; i < e.n_queries * c->n_heads; i++) {
            reference_attend(&r, &c->attention, &e, i / c->n_heads, i % c->n_heads);
            n_bounded += check_head(c, &e, &r, p);
        }
        plain_close(p);
    }
    grid_close(c);
    return n_bounded;
}

static const uint32_t lengths[] = {33, 97, 130}, queries[] = {1, 20, 3};

#define SHAPE                                                                                                          \
    .dtype = KVK_F16, .q_dtype = KVK_F32, .o_dtype = KVK_F32, .page_tokens = 16, .kv_heads = 2, .group = 2,            \
    .head_size = 32, .n = 3, .lengths = lengths, .queries = queries

START_TEST(it_is_how_far_the_output_moves)
{
    static const grid_shape shape = {SHAPE, .name = "removal", .seed = 1};
    check_case(&shape);
}
END_TEST

START_TEST(it_is_with_sinks_slopes_and_pages_lost_before)
{
    static const grid_shape shape = {SHAPE, .name = "removal", .seed = 2,
                                     .features = GRID_ALIBI | GRID_SINKS | GRID_EVICTED};
    check_case(&shape);
}
END_TEST

/* Scores far apart: some page has all but a thousandth of the mass. */
START_TEST(it_is_bounded_where_little_is_left)
{
    static const grid_shape shape = {SHAPE, .name = "removal", .seed = 3, .q_size = 16};
    ck_assert_uint_gt(check_case(&shape), 10);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("removal");
    tcase_add_test(tests, it_is_how_far_the_output_moves);
    tcase_add_test(tests, it_is_with_sinks_slopes_and_pages_lost_before);
    tcase_add_test(tests, it_is_bounded_where_little_is_left);
    return run_tests("removal", tests);
}
