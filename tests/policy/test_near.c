/* test_near.c: near peaks belong to the text: who attaches a prefix knows them, though its scores begin at 0; they stay
 * through forks, swapping and the loss of the page. */
#include "lab.h"
#include "run_tests.h"

#include <string.h>

enum { PT = 4, SHARED = 40 };

static const masses text_masses = {MASS_RANDOM, 3, PT};

static twin_setup setup_of(const char *policy)
{
    return (twin_setup){.policy = policy, .budget = 80, .max_tokens = 260};
}

/* As if it had seen nothing but the near peaks of the pages that it attached. */
static void know_only_near(twin *t)
{
    size_t n = (size_t)t->setup.n_groups * t->n_pages;
    for (uint32_t i = 0; i < t->n_seen; i++) {
        memset(t->seen[i].mean, 0, n * sizeof *t->seen[i].mean);
        memset(t->seen[i].peak, 0, n * sizeof *t->seen[i].peak);
        for (uint32_t g = 0; g < t->setup.n_groups; g++)
            memset(t->seen[i].near + g * t->n_pages + SHARED / PT, 0,
                   (t->n_pages - SHARED / PT) * sizeof *t->seen[i].near);
    }
    twin_cut(t, SHARED);
}

static void attach(lab *l, const subject *s)
{
    uint32_t tokens[SHARED + 1];
    const kvk_text prompt = {.n_tokens = SHARED + 1, .tokens = tokens};
    for (uint32_t i = 0; i <= SHARED; i++)
        tokens[i] = lab_token(i);
    ck_assert_int_eq(kvk_prefix_attach(l->cache, s->seq, &prompt), SHARED);
}

/* The settings come before what is attached, or after it. */
static subject attach_to(lab *l, const subject *parent, int set_first)
{
    subject s = {.masses = text_masses, .twin = twin_copy(parent->twin)};
    kvk_eviction e;
    kvk_eviction_init(&e);
    ck_assert_int_eq(kvk_policy_parse(parent->twin->setup.policy, NULL, &e.choice, NULL, 0), 0);
    e.budget = parent->twin->setup.budget;
    ck_assert_int_eq(kvk_seq_open(l->cache, NULL, &s.seq), 0);
    if (set_first)
        ck_assert_int_eq(kvk_seq_set_eviction(l->cache, s.seq, &e), 0);
    attach(l, &s);
    if (!set_first)
        ck_assert_int_eq(kvk_seq_set_eviction(l->cache, s.seq, &e), 0);
    know_only_near(s.twin);
    return s;
}

static const char *const policies[] = {"keep:reserve=0.4", "keep:reserve=0.4:layers=0"};

/* Both orders; the parent computes token by token, or in chunks that end inside a page. */
START_TEST(a_prefix_brings_its_near_peaks)
{
    for (uint32_t chunk = 1; chunk <= 7; chunk += 6) {
        lab l;
        lab_open(&l, &(lab_setup){.page_tokens = PT, .n_groups = 2, .near = 2, .has_text = 1});
        subject parent = lab_subject(&l, setup_of(policies[_i / 2]), text_masses);
        for (uint32_t n = 0; n < 49; n += chunk)
            lab_run(&l, &parent, chunk);
        subject s = attach_to(&l, &parent, _i % 2);
        lab_decode(&l, &s, 150);
        lab_decode(&l, &parent, 150);
        lab_end_subject(&l, &s);
        lab_end_subject(&l, &parent);
        lab_close(&l);
    }
}
END_TEST

/* The parent is closed and its pages are only cached; drafts that are rejected leave no peaks behind. */
START_TEST(cached_pages_know_them_too)
{
    lab l;
    lab_open(&l, &(lab_setup){.page_tokens = PT, .n_groups = 2, .near = 2, .has_text = 1});
    subject parent = lab_subject(&l, setup_of(policies[_i]), text_masses);
    while (parent.twin->n_tokens < 52) {
        const lab_entry kept = {&parent, 5, 5, 1}, rejected = {&parent, 3, 0, 1};
        lab_step(&l, &rejected, 1);
        lab_step(&l, &kept, 1);
    }
    ck_assert_int_ge(kvk_seq_close(l.cache, parent.seq), 0);
    subject s = attach_to(&l, &parent, 1);
    twin_close(parent.twin);
    lab_decode(&l, &s, 150);
    subject fork = lab_fork(&l, &s, (masses){MASS_RANDOM, 4, PT});
    lab_decode(&l, &s, 180);
    lab_end_subject(&l, &s);
    lab_end_subject(&l, &fork);
    lab_close(&l);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("near");
    tcase_add_loop_test(tests, a_prefix_brings_its_near_peaks, 0, 4);
    tcase_add_loop_test(tests, cached_pages_know_them_too, 0, 2);
    return run_tests("near", tests);
}
