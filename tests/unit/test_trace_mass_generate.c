/* Made masses: what they promise, and that well-known facts about eviction show on them. */
#include "run_tests.h"
#include "trace/mass_generate.h"
#include "trace/replay_evict.h"

#include <check.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

static mass_trace *generate(uint64_t seed, uint32_t steps, uint32_t page_tokens)
{
    mass_generate_options options = {.seed = seed, .steps = steps, .page_tokens = page_tokens, .groups = 2};
    mass_trace *t;
    trace_error error = {""};
    ck_assert_msg(mass_generate(&options, &t, &error) == 0, "%s", error.text);
    return t;
}

static uint64_t mix(uint64_t hash, const float *value)
{
    uint32_t bits;
    memcpy(&bits, value, sizeof bits);
    hash = (hash ^ bits) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 29;
}

/* One number for all masses of a pass. */
static uint64_t digest(mass_trace *t)
{
    mass_step step;
    trace_error error;
    uint64_t hash = 0;
    while (mass_next(t, &step, &error) == 1)
        for (uint32_t i = 0; i < t->shape.groups * t->shape.columns; i++)
            if (i % t->shape.columns <= mass_position(t) / t->shape.page_tokens)
                hash = mix(mix(hash, &step.mean[i]), &step.peak[i]);
    ck_assert_int_eq(mass_rewind(t, &error), 0);
    return hash;
}

START_TEST(the_seed_decides)
{
    mass_trace *a = generate(1, 300, 16), *b = generate(1, 300, 16), *c = generate(2, 300, 16);
    uint64_t first = digest(a);
    ck_assert_uint_eq(digest(a), first);
    ck_assert_uint_eq(digest(b), first);
    ck_assert_uint_ne(digest(c), first);
    mass_close(a);
    mass_close(b);
    mass_close(c);
}
END_TEST

/* The mean over heads is no more than the largest, and no less than that over the number of heads. */
static void check_pages(const float *mean, const float *peak, uint32_t n)
{
    double sum = 0;
    bool good = true;
    for (uint32_t p = 0; p < n; p++) {
        good = good && mean[p] >= 0 && peak[p] <= 1.0001F;
        good = good && peak[p] >= 0.9999F * mean[p] && mean[p] >= 0.9999F * peak[p] / MASS_HEADS;
        sum += (double)mean[p];
    }
    ck_assert(good);
    ck_assert_msg(fabs(sum - 1) < 1e-4, "%g", sum);
}

/* Near peaks are those of single heads. */
static void check_near(const float *near, float mean, float peak)
{
    float largest = 0, total = 0;
    for (uint32_t h = 0; h < MASS_HEADS; h++) {
        largest = near[h] > largest ? near[h] : largest;
        total += near[h];
    }
    ck_assert(largest == peak);
    ck_assert(fabsf(total / MASS_HEADS - mean) < 1e-5F);
}

static void check_group(const mass_trace *t, const mass_step *step, uint32_t g)
{
    const mass_shape *s = &t->shape;
    const float *mean = step->mean + (size_t)g * s->columns, *peak = step->peak + (size_t)g * s->columns;
    uint32_t own = mass_position(t) / s->page_tokens, first = own ? own - 1 : 0;
    check_pages(mean, peak, own + 1);
    for (uint32_t p = first; p <= own; p++)
        check_near(step->near + (g * 2 + p - first) * MASS_HEADS, mean[p], peak[p]);
}

START_TEST(masses_of_a_step_add_up_to_1)
{
    static const uint32_t page_tokens[] = {1, 7, 16, 64};
    mass_trace *t = generate(3, 400, page_tokens[_i]);
    mass_step step;
    trace_error error;
    while (mass_next(t, &step, &error) == 1)
        for (uint32_t g = 0; g < t->shape.groups; g++)
            check_group(t, &step, g);
    ck_assert_uint_eq(t->step, 400);
    mass_close(t);
}
END_TEST

typedef struct mean_mass {
    double sum;
    uint64_t n;
} mean_mass;

static void add_mass(mean_mass *m, float mass)
{
    m->sum += (double)mass;
    m->n++;
}

/* The masses of needles: at first, once they are written; after that; and when they are asked for. */
static void watch_needles(const mass_trace *t, const mass_step *step, mean_mass *at_first, mean_mass *between,
                          mean_mass *asked)
{
    uint32_t at = t->step - 1;
    for (uint32_t i = 0; i < t->n_needles; i++) {
        const mass_needle *x = &t->needles[i];
        float mass = step->mean[x->position / t->shape.page_tokens];
        if (at >= x->position + 8 && at < x->position + 32)
            add_mass(at_first, mass);
        else if (at >= x->position + 128 && at < x->asked)
            add_mass(between, mass);
        else if (at >= x->asked && at < x->asked + 8)
            add_mass(asked, mass);
    }
}

START_TEST(needles_matter_at_first_and_when_asked_for)
{
    mass_trace *t = generate(1, 2048, 8);
    mass_step step;
    trace_error error;
    mean_mass at_first = {0, 0}, between = {0, 0}, asked = {0, 0};
    ck_assert_uint_ge(t->n_needles, 4);
    for (uint32_t i = 0; i < t->n_needles; i++) {
        const mass_needle *x = &t->needles[i];
        ck_assert_uint_eq((x->position + x->n_tokens - 1) / 8, x->position / 8);
        ck_assert_uint_ge(x->asked, x->position + 2048 / 4);
    }
    while (mass_next(t, &step, &error) == 1)
        watch_needles(t, &step, &at_first, &between, &asked);
    double neglect = between.sum / (double)between.n;
    ck_assert(at_first.sum / (double)at_first.n > 3 * neglect);
    ck_assert(asked.sum / (double)asked.n > 3 * neglect);
    mass_close(t);
}
END_TEST

/* ---- Facts ------------------------------------------------------------------------------------------------------- */

typedef struct run_at {
    mass_trace *t;
    uint32_t budget;
} run_at;

static evict_result run(run_at at, const char *policy)
{
    evict_options options = {.budget = at.budget};
    evict_result result;
    trace_error error = {""};
    ck_assert_int_eq(kvk_policy_parse(policy, NULL, &options.choice, NULL, 0), 0);
    ck_assert_msg(replay_evict(at.t, &options, &result, &error) == 0, "%s", error.text);
    return result;
}

static double optimum(run_at at)
{
    evict_futures futures;
    evict_result result;
    trace_error error = {""};
    ck_assert_int_eq(evict_futures_read(&futures, at.t, 0, &error), 0);
    ck_assert_int_eq(replay_evict_bound(at.t, &futures, evict_optimum, at.budget, &result, &error), 0);
    evict_futures_close(&futures);
    return result.active.mean;
}

/* What is known of real attention (docs/policies.md): a good score comes near the optimum, the window alone loses the
 * sinks, the sum of masses is better than chance, and only the reserve keeps what is not looked at for long. */
static void check_facts(run_at at)
{
    double most = optimum(at), best = 0, recall = 0;
    evict_result keep = run(at, "keep"), h2o = run(at, "h2o"), window = run(at, "window");
    for (uint32_t i = 1; kvk_policy_at(i); i++) {
        evict_result r = run(at, kvk_policy_at(i)->name);
        ck_assert(r.active.mean <= most + 1e-6);
        best = r.active.mean > best ? r.active.mean : best;
        if (strcmp(kvk_policy_at(i)->name, "keep") != 0 && r.needle_recall > recall)
            recall = r.needle_recall;
    }
    ck_assert_msg(best >= 0.95 * most, "best %g of %g", best, most);
    ck_assert_msg(keep.active.mean >= 0.92 * most, "keep %g of %g", keep.active.mean, most);
    ck_assert_msg(keep.needle_recall > recall, "recall %g, others up to %g", keep.needle_recall, recall);
    ck_assert(h2o.active.mean > window.active.mean);
    ck_assert(h2o.active.mean > run(at, "random").active.mean);
    ck_assert(window.active.mean < run(at, "streaming").active.mean - 0.3); /* what the sinks get */
}

START_TEST(known_facts_show)
{
    mass_generate_options options = MASS_GENERATE_DEFAULT;
    mass_trace *t;
    trace_error error = {""};
    options.seed = (uint64_t)_i;
    ck_assert_int_eq(mass_generate(&options, &t, &error), 0);
    check_facts((run_at){t, 2048 * 20 / 100});
    check_facts((run_at){t, 2048 * 36 / 100});
    mass_close(t);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("generate");
    tcase_set_timeout(t, 300);
    tcase_add_test(t, the_seed_decides);
    tcase_add_loop_test(t, masses_of_a_step_add_up_to_1, 0, 4);
    tcase_add_test(t, needles_matter_at_first_and_when_asked_for);
    tcase_add_loop_test(t, known_facts_show, 1, 5);
    return run_tests("trace_mass_generate", t);
}
