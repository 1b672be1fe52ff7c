#define _POSIX_C_SOURCE 200809L /* access */
#include "golden/golden.h"

#include <check.h>
#include <stdio.h>
#include <unistd.h>

enum { MAX_FILES = 64 };

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

static replay_result replay_files(const char *const *files, size_t n, const replay_options *options)
{
    static char names[MAX_FILES][4096];
    const char *paths[MAX_FILES];
    trace *t;
    trace_error error;
    replay_result result;
    ck_assert_uint_le(n, MAX_FILES);
    for (size_t i = 0; i < n; i++) {
        golden_path(files[i], names[i], sizeof names[i]);
        paths[i] = names[i];
    }
    ck_assert_msg(trace_open_files(paths, n, &TRACE_OPTIONS_DEFAULT, &t, &error) == 0, "%s", error.text);
    ck_assert_msg(replay_trace(t, options, &result, &error) == 0, "%s", error.text);
    trace_close(t);
    return result;
}

replay_result golden_replay(const char *file, const replay_options *options)
{
    return replay_files(&file, 1, options);
}

replay_result golden_replay_sessions(const replay_options *options)
{
    static char names[MAX_FILES][256];
    const char *files[MAX_FILES], *name;
    size_t n = 0;
    json_t *all = golden_expected(), *row;
    json_object_foreach(json_object_get(json_object_get(all, SESSIONS), "files"), name, row)
    {
        ck_assert_uint_lt(n, MAX_FILES);
        snprintf(names[n], sizeof names[n], SESSIONS "/%s", name);
        files[n] = names[n];
        n++;
    }
    json_decref(all);
    return replay_files(files, n, options);
}
