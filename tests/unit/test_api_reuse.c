/* Parts of pages, and what stands at a position besides its token. */
#include <check.h>
#include <string.h>

#include "kvkeep/kvkeep.h"
#include "run_tests.h"

static kvk_cache *cache;

static void open_cache(uint32_t page_tokens, uint32_t n_pages, uint32_t partial, uint32_t extra)
{
    kvk_config config;
    kvk_config_init(&config);
    config.page_tokens = page_tokens;
    config.n_pages = n_pages;
    config.partial_reuse = partial;
    config.extra_keys = extra;
    ck_assert_int_eq(kvk_cache_open(&config, &cache), 0);
}

static void close_cache(void)
{
    ck_assert_int_eq(kvk_audit(cache, NULL, NULL), 0);
    kvk_cache_close(cache);
}

/* A sequence of these tokens, all computed here or found. */
static kvk_seq compute(const kvk_text *text)
{
    kvk_seq seq;
    ck_assert_int_eq(kvk_seq_open(cache, NULL, &seq), 0);
    ck_assert_int_ge(kvk_reserve(cache, seq, text->n_tokens, KVK_RECLAIM), 0);
    ck_assert_int_ge(kvk_commit(cache, seq, text), 0);
    return seq;
}

static int attach(const kvk_text *prompt, kvk_seq *seq)
{
    ck_assert_int_eq(kvk_seq_open(cache, NULL, seq), 0);
    return kvk_prefix_attach(cache, *seq, prompt);
}

static kvk_move only_move(void)
{
    kvk_move move;
    ck_assert_int_eq(kvk_moves_take(cache, NULL, 0), 1);
    ck_assert_int_eq(kvk_moves_take(cache, &move, 1), 1);
    return move;
}

/* ---- heads of pages */

/* TensorRT-LLM: pages of 8, a prompt of 12 tokens of which 11 match copies 3 tokens of the second page. */
START_TEST(eleven_of_twelve_tokens_copy_three)
{
    uint32_t tokens[16];
    kvk_seq seq;
    open_cache(8, 4, 1, 0);
    for (uint32_t i = 0; i < 16; i++)
        tokens[i] = 100 + i;
    kvk_seq_close(cache, compute(&(kvk_text){.n_tokens = 16, .tokens = tokens}));
    tokens[11] = 7;
    kvk_text prompt = {.n_tokens = 12, .tokens = tokens};
    ck_assert_int_eq(kvk_prefix_lookup(cache, NULL, &prompt), 8);
    ck_assert_int_eq(attach(&prompt, &seq), 11);
    kvk_move move = only_move();
    ck_assert_uint_eq(move.kind, KVK_MOVE_COPY);
    ck_assert_uint_eq(move.src, 1);
    ck_assert_uint_eq(move.dst, 2);
    ck_assert_uint_eq(move.n_tokens, 3);
    ck_assert_int_eq(kvk_seq_table(cache, seq, 0, (uint32_t[]){0, 0}, 2), 2);
    /* The page is the sequence's own: it goes on in it, and is found by what it names. */
    kvk_text rest = {.n_tokens = 5, .tokens = (uint32_t[]){7, 8, 9, 10, 11}};
    ck_assert_int_eq(kvk_reserve(cache, seq, 5, KVK_RECLAIM), 0);
    ck_assert_int_eq(kvk_commit(cache, seq, &rest), 1);
    memcpy(tokens + 11, rest.tokens, sizeof(uint32_t[5]));
    kvk_text longer = {.n_tokens = 16, .tokens = tokens};
    ck_assert_int_eq(kvk_prefix_lookup(cache, NULL, &longer), 8);
    kvk_seq_close(cache, seq);
    ck_assert_int_eq(attach(&longer, &seq), 15); /* all but the last token, from its own page */
    ck_assert_uint_eq(only_move().src, 2);
    ck_assert_int_eq(kvk_seq_table(cache, seq, 0, NULL, 0), 2);
    close_cache();
}
END_TEST

/* The head of a first page is shared too, but only within the same salt. */
START_TEST(a_first_page_is_copied_for_the_same_tenant_only)
{
    kvk_seq_params salted = {.size = sizeof salted, .salt = {1, 0}};
    kvk_text four = {.n_tokens = 4, .tokens = (uint32_t[]){1, 2, 3, 4}};
    kvk_text other = {.n_tokens = 4, .tokens = (uint32_t[]){1, 2, 9, 9}};
    kvk_seq seq;
    open_cache(4, 8, 1, 0);
    kvk_seq_close(cache, compute(&four));
    ck_assert_int_eq(attach(&other, &seq), 2);
    ck_assert_int_eq(kvk_seq_open(cache, &salted, &seq), 0);
    ck_assert_int_eq(kvk_prefix_attach(cache, seq, &other), 0);
    close_cache();
}
END_TEST

START_TEST(of_several_pages_the_best_is_copied)
{
    kvk_seq seq;
    kvk_stats stats = {.size = sizeof stats};
    open_cache(4, 8, 1, 0);
    kvk_seq_close(cache, compute(&(kvk_text){.n_tokens = 4, .tokens = (uint32_t[]){1, 9, 9, 9}}));
    kvk_seq_close(cache, compute(&(kvk_text){.n_tokens = 4, .tokens = (uint32_t[]){1, 2, 3, 9}}));
    kvk_seq_close(cache, compute(&(kvk_text){.n_tokens = 4, .tokens = (uint32_t[]){1, 2, 9, 9}}));
    ck_assert_int_eq(attach(&(kvk_text){.n_tokens = 5, .tokens = (uint32_t[]){1, 2, 3, 4, 5}}, &seq), 3);
    ck_assert_uint_eq(only_move().src, 1);
    ck_assert_int_eq(kvk_stats_get(cache, &stats), 0);
    ck_assert_uint_eq(stats.partial_hits, 3);
    ck_assert_uint_eq(stats.prefix_hits, 3);
    close_cache();
}
END_TEST

/* The only page that could be taken is the one that would be copied. */
START_TEST(a_page_is_not_reclaimed_to_hold_its_own_copy)
{
    kvk_seq seq;
    open_cache(4, 1, 1, 0);
    kvk_seq_close(cache, compute(&(kvk_text){.n_tokens = 4, .tokens = (uint32_t[]){1, 2, 3, 4}}));
    ck_assert_int_eq(attach(&(kvk_text){.n_tokens = 4, .tokens = (uint32_t[]){1, 2, 9, 9}}, &seq), 0);
    ck_assert_int_eq(kvk_moves_take(cache, NULL, 0), 0);
    ck_assert_int_eq(kvk_prefix_lookup(cache, NULL, &(kvk_text){.n_tokens = 5, .tokens = (uint32_t[]){1, 2, 3, 4, 5}}),
                     4);
    close_cache();
}
END_TEST

/* ---- extra keys */

enum { IMAGE = 7 }; /* the placeholder's token */

static kvk_text image_prompt(const kvk_extra *extra, uint32_t n_extras)
{
    static const uint32_t tokens[] = {1, 2, IMAGE, IMAGE, 3, 4, 5, 6, 8};
    return (kvk_text){.n_tokens = 9, .tokens = tokens, .extras = extra, .n_extras = n_extras};
}

START_TEST(two_images_do_not_share_pages)
{
    const kvk_extra cat = {.position = 2, .key = {11, 0}}, dog = {.position = 2, .key = {12, 0}};
    const kvk_extra later = {.position = 3, .key = {11, 0}};
    kvk_text with_cat = image_prompt(&cat, 1), with_dog = image_prompt(&dog, 1), with_none = image_prompt(NULL, 0);
    kvk_text moved = image_prompt(&later, 1);
    open_cache(4, 16, 0, 1);
    kvk_seq_close(cache, compute(&with_cat));
    ck_assert_int_eq(kvk_prefix_lookup(cache, NULL, &with_cat), 8);
    ck_assert_int_eq(kvk_prefix_lookup(cache, NULL, &with_dog), 0);
    ck_assert_int_eq(kvk_prefix_lookup(cache, NULL, &with_none), 0);
    ck_assert_int_eq(kvk_prefix_lookup(cache, NULL, &moved), 0);
    close_cache();
}
END_TEST

/* Named token by token or at once, the same pages come of it. */
START_TEST(extra_keys_may_come_in_pieces)
{
    const kvk_extra both[] = {{.position = 2, .key = {11, 5}}, {.position = 5, .key = {13, 0}}};
    kvk_text whole = image_prompt(both, 2);
    kvk_seq seq;
    open_cache(4, 16, 0, 1);
    ck_assert_int_eq(kvk_seq_open(cache, NULL, &seq), 0);
    ck_assert_int_ge(kvk_reserve(cache, seq, 9, KVK_RECLAIM), 0);
    for (uint32_t i = 0; i < 9; i++) {
        kvk_extra here = {.position = 0, .key = i == 2 ? both[0].key : both[1].key};
        kvk_text one = {.n_tokens = 1, .tokens = whole.tokens + i, .extras = &here, .n_extras = i == 2 || i == 5};
        ck_assert_int_eq(kvk_commit(cache, seq, &one), i % 4 == 3);
    }
    ck_assert_int_eq(kvk_prefix_lookup(cache, NULL, &whole), 8);
    close_cache();
}
END_TEST

/* A row does not tell which of its extra keys stood before a position, so what follows is not findable. */
START_TEST(truncating_into_a_page_with_an_image_ends_the_chain)
{
    const kvk_extra cat = {.position = 2, .key = {11, 0}};
    kvk_text text = image_prompt(&cat, 1), rest = {.n_tokens = 2, .tokens = (uint32_t[]){IMAGE, 3}};
    open_cache(4, 16, 0, 1);
    kvk_seq seq = compute(&text);
    ck_assert_int_ge(kvk_truncate(cache, seq, 3), 0);
    ck_assert_int_ge(kvk_reserve(cache, seq, 2, KVK_RECLAIM), 0);
    ck_assert_int_eq(kvk_commit(cache, seq, &rest), 1);
    ck_assert_int_eq(kvk_prefix_lookup(cache, NULL, &text), 0);
    close_cache();
}
END_TEST

START_TEST(extra_keys_are_checked)
{
    const kvk_extra twice[] = {{.position = 2, .key = {1, 0}}, {.position = 2, .key = {2, 0}}};
    const kvk_extra far = {.position = 9, .key = {1, 0}};
    kvk_text a = image_prompt(twice, 2), b = image_prompt(&far, 1), c = image_prompt(NULL, 1),
             d = image_prompt(twice, 1);
    open_cache(4, 16, 0, 1);
    ck_assert_int_eq(kvk_prefix_lookup(cache, NULL, &a), KVK_EINVAL);
    ck_assert_int_eq(kvk_prefix_lookup(cache, NULL, &b), KVK_EINVAL);
    ck_assert_int_eq(kvk_prefix_lookup(cache, NULL, &c), KVK_EINVAL);
    ck_assert_int_eq(kvk_prefix_lookup(cache, NULL, &d), 0);
    close_cache();
    open_cache(4, 16, 0, 0);
    ck_assert_int_eq(kvk_prefix_lookup(cache, NULL, &d), KVK_EINVAL);
    close_cache();
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("api_reuse");
    tcase_add_test(t, eleven_of_twelve_tokens_copy_three);
    tcase_add_test(t, a_first_page_is_copied_for_the_same_tenant_only);
    tcase_add_test(t, of_several_pages_the_best_is_copied);
    tcase_add_test(t, a_page_is_not_reclaimed_to_hold_its_own_copy);
    tcase_add_test(t, two_images_do_not_share_pages);
    tcase_add_test(t, extra_keys_may_come_in_pieces);
    tcase_add_test(t, truncating_into_a_page_with_an_image_ends_the_chain);
    tcase_add_test(t, extra_keys_are_checked);
    return run_tests("api_reuse", t);
}
