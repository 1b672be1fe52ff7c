/* Merges against a search that always tells the truth: all pairs are looked at before each step. The vocabularies are
 * random, so that merges come in any order, which no training gives. */
#include "engine/tokenizer.h"
#include "run_tests.h"

#include <stdio.h>
#include <string.h>

enum { LETTERS = 3, MAX_TOKENS = 40, MAX_TEXT = 60, MAX_WORD = 48, ROUNDS = 400, WORDS = 30 };

typedef struct random_vocabulary {
    char text[MAX_TOKENS][MAX_WORD + 1], merge[MAX_TOKENS][MAX_WORD + 2];
    int n, n_merges;
    struct {
        int left, right, both;
    } merges[MAX_TOKENS]; /* best first */
} random_vocabulary;

static uint64_t state = 11;

static int draw(int n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)n);
}

static int is_token(const random_vocabulary *v, const char *text)
{
    for (int i = 0; i < v->n; i++)
        if (strcmp(v->text[i], text) == 0)
            return 1;
    return 0;
}

static void draw_vocabulary(random_vocabulary *v)
{
    char both[2 * MAX_WORD + 1];
    int want = LETTERS + 1 + draw(MAX_TOKENS - LETTERS);
    *v = (random_vocabulary){.text = {"a", "b", "c"}, .n = LETTERS};
    for (int tries = 0; v->n < want && tries < 200; tries++) {
        int left = draw(v->n), right = draw(v->n);
        snprintf(both, sizeof both, "%s%s", v->text[left], v->text[right]);
        if (strlen(both) > MAX_WORD || is_token(v, both))
            continue;
        strcpy(v->text[v->n], both);
        int at = draw(v->n_merges + 1); /* before some that it is made of */
        memmove(&v->merges[at + 1], &v->merges[at], (size_t)(v->n_merges - at) * sizeof v->merges[0]);
        v->merges[at].left = left;
        v->merges[at].right = right;
        v->merges[at].both = v->n++;
        v->n_merges++;
    }
}

static tokenizer *open_vocabulary(random_vocabulary *v)
{
    gguf_text tokens[MAX_TOKENS], merges[MAX_TOKENS];
    tokenizer *t = NULL;
    trace_error error = {""};
    for (int i = 0; i < v->n; i++)
        tokens[i] = (gguf_text){v->text[i], strlen(v->text[i])};
    for (int i = 0; i < v->n_merges; i++) {
        snprintf(v->merge[i], sizeof v->merge[i], "%s %s", v->text[v->merges[i].left], v->text[v->merges[i].right]);
        merges[i] = (gguf_text){v->merge[i], strlen(v->merge[i])};
    }
    tokenizer_source source = {.path = "m.gguf", .tokens = tokens, .merges = merges, .pre = {"gpt2", 4}};
    source.n_tokens = (uint64_t)v->n;
    source.n_merges = (uint64_t)v->n_merges;
    source.begin = source.end = -1;
    ck_assert_msg(tokenizer_open_source(&source, &t, &error) == 0, "%s", error.text);
    return t;
}

/* The first place in ids[n] of a merge's pair, or n. */
static int find_pair(const random_vocabulary *v, int merge, const int32_t *ids, int n)
{
    for (int i = 0; i + 1 < n; i++)
        if (ids[i] == v->merges[merge].left && ids[i + 1] == v->merges[merge].right)
            return i;
    return n;
}

/* Joins the best pair until there is none. Returns how many ids are left. */
static int join_all(const random_vocabulary *v, int32_t *ids, int n)
{
    for (int merge = 0; merge < v->n_merges; merge++) {
        int at = find_pair(v, merge, ids, n);
        if (at == n)
            continue;
        ids[at] = v->merges[merge].both;
        memmove(&ids[at + 1], &ids[at + 2], (size_t)(n - at - 2) * sizeof *ids);
        n--;
        merge = -1;
    }
    return n;
}

static void check_word(const random_vocabulary *v, const tokenizer *t)
{
    char text[MAX_TEXT];
    int32_t want[MAX_TEXT];
    token_list ids = {0};
    trace_error error = {""};
    int n = 1 + draw(MAX_TEXT);
    for (int i = 0; i < n; i++) {
        want[i] = draw(LETTERS);
        text[i] = (char)('a' + want[i]);
    }
    ck_assert_msg(tokenizer_encode(t, text, (size_t)n, 0, &ids, &error) == 0, "%s", error.text);
    ck_assert_msg(ids.n == (size_t)join_all(v, want, n) && memcmp(ids.ids, want, ids.n * sizeof *want) == 0,
                  "'%.*s' comes out otherwise", n, text);
    token_list_free(&ids);
}

START_TEST(merges_are_those_of_a_naive_search)
{
    static random_vocabulary v;
    for (int round = 0; round < ROUNDS; round++) {
        draw_vocabulary(&v);
        tokenizer *t = open_vocabulary(&v);
        for (int i = 0; i < WORDS; i++)
            check_word(&v, t);
        tokenizer_close(t);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("merger");
    tcase_add_test(tests, merges_are_those_of_a_naive_search);
    return run_tests("merger", tests);
}
