/* test_paper.c: H2O token by token, as its paper has it, and its variant with two pools. With pages of one token and a
 * budget of one more, the place of the token being written, the library keeps exactly these tokens. */
#include "lab.h"
#include "run_tests.h"

enum { STEPS = 400 };

/* Positions in the order in which they came. */
typedef struct token_list {
    uint32_t n, at[STEPS];
} token_list;

/* What is held, and what each position got since it came. */
typedef struct tokens {
    token_list recent, heavy;
    double score[STEPS];
} tokens;

static void append(token_list *list, uint32_t position)
{
    list->at[list->n++] = position;
}

static void take_out(token_list *list, uint32_t i)
{
    for (list->n--; i < list->n; i++)
        list->at[i] = list->at[i + 1];
}

/* Where the lowest score is; of equal ones the lowest position. */
static uint32_t lowest(const tokens *t, const token_list *list)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < list->n; i++) {
        double a = t->score[list->at[i]], b = t->score[list->at[best]];
        if (a < b || (a <= b && list->at[i] < list->at[best]))
            best = i;
    }
    return best;
}

/* The step's query attends to what is held and to itself. */
static void attend(tokens *t, const masses *m, uint32_t step)
{
    for (uint32_t i = 0; i < t->recent.n; i++)
        t->score[t->recent.at[i]] += mass_mean(m, 0, step, t->recent.at[i]);
    for (uint32_t i = 0; i < t->heavy.n; i++)
        t->score[t->heavy.at[i]] += mass_mean(m, 0, step, t->heavy.at[i]);
    t->score[step] = mass_mean(m, 0, step, step);
}

/* The paper: over the budget, the lowest outside the recent window goes; `heavy` is what is outside it. */
static void step_of_paper(tokens *t, uint32_t step, uint32_t budget, uint32_t recent)
{
    append(&t->recent, step);
    if (t->recent.n > recent) {
        append(&t->heavy, t->recent.at[0]);
        take_out(&t->recent, 0);
    }
    if (t->recent.n + t->heavy.n > budget)
        take_out(&t->heavy, lowest(t, &t->heavy));
}

/* Two pools: the lowest of the recent ones leaves them, whatever its age. */
static void step_of_pools(tokens *t, uint32_t step, uint32_t budget, uint32_t recent)
{
    const double threshold = 0.25;
    append(&t->recent, step);
    if (t->recent.n <= recent)
        return;
    uint32_t i = lowest(t, &t->recent), position = t->recent.at[i];
    take_out(&t->recent, i);
    if (t->score[position] <= threshold)
        return;
    append(&t->heavy, position);
    if (t->heavy.n > budget - recent)
        take_out(&t->heavy, lowest(t, &t->heavy));
}

static void check_held(const lab *l, const subject *s, const tokens *t, uint32_t step)
{
    uint8_t held[STEPS + 1] = {0};
    uint32_t numbers[TWIN_PAGES], n = lab_table(l, s, 0, numbers);
    ck_assert_uint_eq(n, t->recent.n + t->heavy.n + 1);
    for (uint32_t i = 0; i < n; i++)
        held[numbers[i]] = 1;
    for (uint32_t i = 0; i < t->recent.n; i++)
        LAB_CHECK(held[t->recent.at[i]], "step %u: recent token %u is gone", step, t->recent.at[i]);
    for (uint32_t i = 0; i < t->heavy.n; i++)
        LAB_CHECK(held[t->heavy.at[i]], "step %u: heavy token %u is gone", step, t->heavy.at[i]);
}

typedef void (*step_fn)(tokens *t, uint32_t step, uint32_t budget, uint32_t recent);

static void run(const char *policy, step_fn step_by_definition, masses m)
{
    tokens t = {0};
    lab l;
    m.page_tokens = 1;
    lab_open(&l, &(lab_setup){.page_tokens = 1, .n_groups = 1});
    subject s = lab_driven(&l, (twin_setup){.policy = policy, .budget = 33}, m);
    for (uint32_t step = 0; step < STEPS; step++) {
        ck_assert_int_ge(kvk_reserve(l.cache, s.seq, 1, KVK_RECLAIM), 0);
        check_held(&l, &s, &t, step);
        lab_run(&l, &s, 1);
        attend(&t, &m, step);
        step_by_definition(&t, step, 32, 12);
    }
    lab_end_subject(&l, &s);
    lab_close(&l);
}

START_TEST(oldest_leaves_the_window)
{
    for (uint32_t seed = 0; seed < 10; seed++)
        run("h2o:sinks=0:recent=12", step_of_paper, (masses){(mass_kind)_i, seed, 1});
}
END_TEST

START_TEST(lowest_leaves_the_window)
{
    for (uint32_t seed = 0; seed < 10; seed++)
        run("h2o:exit=1:threshold=0.25:sinks=0:recent=12", step_of_pools, (masses){(mass_kind)_i, seed, 1});
}
END_TEST

/* EMA without decay is a plain sum; without a reserve `keep` is then the paper's H2O. */
START_TEST(keep_without_decay_is_h2o)
{
    run("keep:half_life=0:reserve=0:sinks=0:recent_share=0.37", step_of_paper, (masses){(mass_kind)_i, 1, 1});
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("paper");
    tcase_add_loop_test(tests, oldest_leaves_the_window, 0, MASS_KINDS);
    tcase_add_loop_test(tests, lowest_leaves_the_window, 0, MASS_KINDS);
    tcase_add_loop_test(tests, keep_without_decay_is_h2o, 0, MASS_KINDS);
    return run_tests("paper", tests);
}
