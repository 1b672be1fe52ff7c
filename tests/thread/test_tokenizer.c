/* test_tokenizer.c: several threads read text with one tokenizer. Run it under ThreadSanitizer. */
#include <pthread.h>

#include "engine/small_texts.h"
#include "engine/small_tokenizer.h"
#include "run_tests.h"

enum { THREADS = 4, ROUNDS = 50, N_TEXTS = sizeof small_texts / sizeof small_texts[0] };

/* Returns the argument if every text came out right, else NULL. */
static void *read_texts(void *with)
{
    const tokenizer *t = with;
    token_list ids = {0};
    trace_error error;
    int good = 1;
    for (size_t i = 0; i < (size_t)ROUNDS * N_TEXTS; i++) {
        const small_text *text = &small_texts[i % N_TEXTS];
        size_t had = ids.n;
        good &= tokenizer_encode(t, text->text, text->n, TOKENIZER_MARKS, &ids, &error) == 0;
        good &= small_spells(t, &ids, had, text->text, text->n);
    }
    token_list_free(&ids);
    return good ? with : NULL;
}

START_TEST(threads_share_a_tokenizer)
{
    pthread_t threads[THREADS];
    tokenizer *t = small_tokenizer_open("llama-bpe");
    ck_assert_ptr_nonnull(t);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, read_texts, t), 0);
    for (int i = 0; i < THREADS; i++) {
        void *good = NULL;
        ck_assert_int_eq(pthread_join(threads[i], &good), 0);
        ck_assert_ptr_nonnull(good);
    }
    tokenizer_close(t);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("tokenizer");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, threads_share_a_tokenizer);
    return run_tests("tokenizer", tests);
}
