/* Each allocation of the GGUF reader fails in turn: one line says so, and nothing is kept. The linker puts the two
 * functions below in the place of calloc and strdup. */
#include "engine/gguf.h"
#include "engine/gguf_writer.h"
#include "run_tests.h"

#include <check.h>
#include <string.h>

void *__real_calloc(size_t n, size_t bytes);
char *__real_strdup(const char *text);
void *__wrap_calloc(size_t n, size_t bytes);
char *__wrap_strdup(const char *text);

static int made, fails_at;

void *__wrap_calloc(size_t n, size_t bytes)
{
    return ++made == fails_at ? NULL : __real_calloc(n, bytes);
}

char *__wrap_strdup(const char *text)
{
    return ++made == fails_at ? NULL : __real_strdup(text);
}

static int read_lists(const gguf *g, trace_error *error)
{
    gguf_text *texts = NULL;
    int32_t *wholes = NULL;
    float *floats = NULL;
    uint64_t n;
    int rc = gguf_strings(g, "texts", &texts, &n, error);
    if (rc == 0)
        rc = gguf_i32s(g, "wholes", &wholes, &n, error);
    if (rc == 0)
        rc = gguf_f32s(g, "floats", &floats, &n, error);
    free(texts);
    free(wholes);
    free(floats);
    return rc;
}

static int read_all(const gguf_out *sample, trace_error *error)
{
    gguf *g = NULL;
    int rc = gguf_open_bytes(sample->bytes, sample->n, "m.gguf", &g, error);
    if (rc == 0)
        rc = read_lists(g, error);
    gguf_close(g);
    return rc;
}

/* Check's own assertions allocate too, hence none between a reset of `made` and what it counts. */
START_TEST(each_fails_in_turn)
{
    static gguf_out sample;
    trace_error error;
    gguf_write_sample(&sample);
    made = fails_at = 0;
    int rc = read_all(&sample, &error), n = made;
    ck_assert_int_eq(rc, 0);
    ck_assert_int_eq(n, 4 + 3); /* the file, its path, its keys, its tensors; three lists */
    for (int k = 1; k <= n; k++) {
        fails_at = k;
        made = 0;
        rc = read_all(&sample, &error);
        fails_at = 0;
        ck_assert_int_eq(rc, TRACE_FAILED);
        ck_assert_str_eq(error.text, "m.gguf: out of memory");
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("gguf_memory");
    tcase_add_test(t, each_fails_in_turn);
    return run_tests("gguf_memory", t);
}
