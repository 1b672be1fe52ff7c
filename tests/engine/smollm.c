#define _POSIX_C_SOURCE 200809L /* access */
#include "engine/smollm.h"
#include "engine/real_model.h"
#include "engine/tokenizer.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef KVK_SHARED_DIR
#define KVK_SHARED_DIR "../../../shared"
#endif

enum { TEXT_BYTES = 20000 }; /* some 4 a token */

static const char golden_path[] = KVK_SHARED_DIR "/golden/smollm2.json";
static const char text_path[] = KVK_SHARED_DIR "/text/moby_dick.txt";

int smollm_is_here(void)
{
    if (!model_path())
        return 0;
    if (access(golden_path, R_OK) == 0 && access(text_path, R_OK) == 0)
        return 1;
    printf("skipped: the golden values are not at %s\n", KVK_SHARED_DIR);
    return 0;
}

static void read_text(smollm *s)
{
    static char bytes[TEXT_BYTES];
    tokenizer *t;
    trace_error error;
    token_list ids = {0};
    FILE *file = fopen(text_path, "rb");
    ck_assert(file != NULL);
    ck_assert_uint_eq(fread(bytes, 1, sizeof bytes, file), sizeof bytes);
    fclose(file);
    ck_assert_msg(tokenizer_open(s->file, &t, &error) == 0, "%s", error.text);
    ck_assert_msg(tokenizer_encode(t, bytes, sizeof bytes, 0, &ids, &error) == 0, "%s", error.text);
    ck_assert_uint_gt(ids.n, TEXT_TOKENS);
    for (uint32_t i = 0; i <= TEXT_TOKENS; i++)
        s->text[i] = (uint32_t)ids.ids[i];
    token_list_free(&ids);
    tokenizer_close(t);
}

/* The golden values are of the same tokens. */
static void check_text(const smollm *s)
{
    const json_t *first = json_object_get(json_object_get(s->golden, "moby_dick"), "first64");
    ck_assert_uint_eq(json_array_size(first), 64);
    for (uint32_t i = 0; i < 64; i++)
        ck_assert_uint_eq(s->text[i], (uint32_t)json_integer_value(json_array_get(first, i)));
}

void smollm_open(smollm *s)
{
    trace_error error;
    json_error_t wrong;
    ck_assert_msg(gguf_open(model_path(), &s->file, &error) == 0, "%s", error.text);
    ck_assert_msg(model_open(s->file, &s->model, &error) == 0, "%s", error.text);
    s->golden = json_load_file(golden_path, 0, &wrong);
    ck_assert_msg(s->golden != NULL, "%s:%d: %s", golden_path, wrong.line, wrong.text);
    read_text(s);
    check_text(s);
}

void smollm_close(smollm *s)
{
    model_close(s->model);
    gguf_close(s->file);
    json_decref(s->golden);
}

runner *smollm_runner(const smollm *s, uint32_t n_groups, uint64_t kv_tokens, kvk_near_kind kind)
{
    runner *r;
    trace_error error;
    runner_config config = RUNNER_CONFIG(s->model);
    config.n_groups = n_groups;
    config.kv_tokens = kv_tokens;
    config.near.kind = kind;
    ck_assert_msg(runner_open(&config, &r, &error) == 0, "%s", error.text);
    return r;
}

kvk_seq smollm_sequence(runner *r, const char *policy, uint32_t budget)
{
    kvk_seq seq;
    kvk_eviction eviction;
    trace_error error;
    if (policy)
        ck_assert_msg(runner_policy(policy, budget, &eviction, &error) == 0, "%s", error.text);
    ck_assert_msg(runner_sequence(r, policy ? &eviction : NULL, &seq, &error) == 0, "%s", error.text);
    return seq;
}

void smollm_step(runner *r, runner_entry *entries, uint32_t n)
{
    trace_error error;
    ck_assert_msg(runner_step(r, entries, n, &error) == 0, "%s", error.text);
}

double golden_number(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    ck_assert_msg(json_is_number(value), "%s is expected to be there", name);
    return json_number_value(value);
}

double mean_of(const double *nll, uint32_t from, uint32_t end)
{
    double sum = 0;
    for (uint32_t i = from; i < end; i++)
        sum += nll[i];
    return sum / (end - from);
}
