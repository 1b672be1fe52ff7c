#define _POSIX_C_SOURCE 200809L /* access */
#include "golden/golden.h"

#include <check.h>
#include <stdio.h>
#include <unistd.h>

#ifndef KVK_SHARED_DIR
#define KVK_SHARED_DIR "../../../shared"
#endif

static const char expected_path[] = KVK_SHARED_DIR "/traces/EXPECTED.json";

int golden_is_here(void)
{
    if (access(expected_path, R_OK) == 0)
        return 1;
    printf("skipped: the real traces are not at %s\n", KVK_SHARED_DIR);
    return 0;
}

json_t *golden_expected(void)
{
    json_error_t error;
    json_t *expected = json_load_file(expected_path, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(expected != NULL, "%s:%d: %s", expected_path, error.line, error.text);
    return expected;
}

uint64_t golden_count(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    ck_assert_msg(json_is_integer(value), "%s is expected to be there", name);
    return (uint64_t)json_integer_value(value);
}

void golden_path(const char *file, char *path, size_t cap)
{
    int n = snprintf(path, cap, "%s/traces/%s", KVK_SHARED_DIR, file);
    ck_assert(n > 0 && (size_t)n < cap);
}

replay_result golden_replay_all(const char *folder, const char *const *files, size_t n, const replay_options *options)
{
    static char names[64][4096];
    const char *paths[64];
    trace *t;
    trace_error error;
    replay_result result;
    ck_assert_uint_le(n, 64);
    for (size_t i = 0; i < n; i++) {
        char file[512];
        snprintf(file, sizeof file, "%s%s%s", folder ? folder : "", folder ? "/" : "", files[i]);
        golden_path(file, names[i], sizeof names[i]);
        paths[i] = names[i];
    }
    ck_assert_msg(trace_open_files(paths, n, &TRACE_OPTIONS_DEFAULT, &t, &error) == 0, "%s", error.text);
    ck_assert_msg(replay_trace(t, options, &result, &error) == 0, "%s", error.text);
    trace_close(t);
    return result;
}

replay_result golden_replay(const char *file, const replay_options *options)
{
    return golden_replay_all(NULL, &file, 1, options);
}
