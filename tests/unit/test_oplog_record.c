/* A recording is an op log, and a recording of its replay is the same bytes. */
#define _POSIX_C_SOURCE 200809L /* opendir */
#include "api.h"
#include "oplog_text.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

static char *read_whole(const char *folder, const char *name)
{
    char path[1024];
    sink s = {0};
    char block[4096];
    size_t n;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *in = fopen(path, "r");
    ck_assert_msg(in != NULL, "%s", path);
    while ((n = fread(block, 1, sizeof block, in)) > 0)
        sink_write(&s, block, n);
    fclose(in);
    return s.bytes;
}

/* Replays a recording and compares what that records. */
static void check_stable(const char *recorded, const char *of)
{
    sink again = oplog_text_record(recorded);
    ck_assert_msg(!strcmp(recorded, again.bytes), "%s\nrecorded\n%s\nand then\n%s", of, recorded, again.bytes);
    sink_free(&again);
}

START_TEST(every_log_of_the_tests_gives_a_stable_recording)
{
    const char *folder = KVK_TESTS_DIR "/oplog";
    DIR *logs = opendir(folder);
    int n = 0;
    ck_assert_ptr_nonnull(logs);
    for (struct dirent *e; (e = readdir(logs));) {
        if (!strstr(e->d_name, ".jsonl"))
            continue;
        char *text = read_whole(folder, e->d_name);
        sink recorded = oplog_text_record(text);
        check_stable(recorded.bytes, e->d_name);
        sink_free(&recorded);
        free(text);
        n++;
    }
    closedir(logs);
    ck_assert_int_gt(n, 30);
}
END_TEST

/* ---- Calls of a program, recorded as they come */

static sink recorded;

static void start(void (*change)(kvk_config *config))
{
    recorded = (sink){0};
    api_open(8, change);
    ck_assert_int_eq(kvk_record_start(cache, sink_write, &recorded), 0);
}

static void stop_and_check(const char *wanted)
{
    ck_assert_int_eq(kvk_record_stop(cache), 0);
    api_close();
    if (wanted)
        ck_assert_msg(strstr(recorded.bytes, wanted) != NULL, "no %s in\n%s", wanted, recorded.bytes);
    check_stable(recorded.bytes, "a program");
    sink_free(&recorded);
}

START_TEST(identities_of_any_size_are_recorded)
{
    const kvk_seq_params params = {.size = sizeof params,
                                   .priority = INT32_MIN,
                                   .salt = {0x0123456789abcdef, 0xf000000000000000},
                                   .adapter = UINT64_MAX};
    kvk_seq seq;
    start(NULL);
    ck_assert_int_eq(kvk_seq_open(cache, &params, &seq), 0);
    ck_assert_int_eq(kvk_reserve(cache, seq, 8, KVK_FREE_ONLY), 2);
    ck_assert_int_eq(api_commit(seq, UINT32_MAX - 5, 6), 1);
    stop_and_check("\"salt\":\"f0000000000000000123456789abcdef\"");
}
END_TEST

/* A replay has no such handle to give, so it gives 0, and a second recording says 0. */
START_TEST(handles_that_never_were_can_be_replayed)
{
    start(NULL);
    kvk_seq seq = api_text(1, 6);
    ck_assert_int_eq(kvk_seq_close(cache, 0), KVK_ESTALE);
    ck_assert_int_eq(kvk_seq_close(cache, UINT64_MAX), KVK_ESTALE);
    ck_assert_int_eq(kvk_reserve(cache, seq + 1, 1, KVK_RECLAIM), KVK_ESTALE);
    ck_assert_int_eq(kvk_batch_end(cache, UINT64_MAX, NULL), KVK_ESTALE);
    ck_assert_int_eq(kvk_seq_close(cache, seq), 2);
    ck_assert_int_eq(kvk_seq_close(cache, seq), KVK_ESTALE);
    ck_assert_int_eq(kvk_record_stop(cache), 0);
    api_close();
    sink again = oplog_text_record(recorded.bytes);
    check_stable(again.bytes, "a replay");
    sink_free(&again);
    sink_free(&recorded);
}
END_TEST

START_TEST(refused_calls_without_text_are_recorded_or_left_out)
{
    start(NULL);
    kvk_seq seq = api_seq();
    ck_assert_int_eq(kvk_seq_close(cache, seq), 0);
    ck_assert_int_lt(kvk_prefix_attach(cache, seq, NULL), 0);
    ck_assert_int_lt(kvk_commit(cache, seq, NULL), 0);
    ck_assert_int_lt(kvk_prefix_attach(cache, seq, &(kvk_text){.n_tokens = 9}), 0);
    stop_and_check(NULL);
}
END_TEST

START_TEST(moves_taken_in_pieces_are_recorded)
{
    kvk_move moves[2];
    kvk_seq forks[3];
    start(NULL);
    kvk_seq seq = api_text(1, 6);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(kvk_seq_fork(cache, seq, &forks[i]), 0);
        ck_assert_int_eq(kvk_reserve(cache, forks[i], 1, KVK_EVICT), 1);
    }
    ck_assert_int_eq(kvk_moves_take(cache, moves, 2), 2);
    ck_assert_int_eq(kvk_moves_take(cache, NULL, 0), 1);
    ck_assert_int_eq(kvk_moves_take(cache, moves, 2), 1);
    stop_and_check("{\"op\":\"moves\",");
}
END_TEST

static void two_groups_with_keys(kvk_config *config)
{
    config->n_groups = 2;
    config->content = KVK_CONTENT_KEYS;
    config->watermark = 1;
    config->zero_fill = 1;
    config->hash_seed = 42;
}

START_TEST(groups_keys_batches_and_failures_are_recorded)
{
    const kvk_key keys[2] = {{0xab, 0}, {1, UINT64_MAX}};
    const kvk_text text = {.n_tokens = 8, .n_keys = 2, .keys = keys};
    start(two_groups_with_keys);
    kvk_seq seq = api_seq(), other = api_seq(), child;
    ck_assert_int_eq(kvk_prefix_attach(cache, seq, &text), 0);
    ck_assert_int_eq(kvk_reserve(cache, seq, 12, KVK_RECLAIM), 6);
    ck_assert_int_eq(kvk_reserve(cache, other, 5, KVK_RECLAIM), KVK_ENOPAGE);
    ck_assert_int_eq(kvk_reserve(cache, other, 999, KVK_RECLAIM), KVK_ENEVER);
    kvk_batch first = api_plan(seq, 10), second = api_plan(seq, 2);
    ck_assert_int_eq(kvk_seq_fork(cache, seq, &child), KVK_EBUSY);
    ck_assert_int_eq(api_end(first, 9), KVK_EBUSY);
    ck_assert_int_eq(api_end(second, 1), 0);
    ck_assert_int_eq(api_end(first, 10), 0);
    ck_assert_int_gt(kvk_commit(cache, seq, &text), 0);
    ck_assert_int_eq(kvk_seq_fork(cache, seq, &child), 0);
    ck_assert_int_eq(kvk_reserve(cache, child, 1, KVK_RECLAIM), 2);
    ck_assert_int_eq(kvk_seq_set_priority(cache, child, -3), 0);
    ck_assert_int_eq(kvk_truncate(cache, child, 3), 2);
    ck_assert_int_eq(kvk_prefix_reset(cache, NULL), KVK_EBUSY);
    stop_and_check("\"keys\":[\"ab\",\"ffffffffffffffff0000000000000001\"]");
}
END_TEST

START_TEST(calls_that_only_look_leave_no_line)
{
    start(NULL);
    kvk_seq seq = api_text(1, 6);
    ck_assert_int_eq(kvk_can_reserve(cache, seq, 99, KVK_RECLAIM), KVK_NEVER);
    ck_assert_int_eq(kvk_seq_table(cache, seq, 0, NULL, 0), 2);
    api_info(seq);
    api_stats();
    api_page(0);
    ck_assert_int_eq(kvk_audit(cache, NULL, NULL), 0);
    ck_assert_int_eq(kvk_record_stop(cache), 0);
    int n = 0;
    for (size_t i = 0; i < recorded.n; i++)
        n += recorded.bytes[i] == '\n';
    ck_assert_int_eq(n, 4); /* the first line, open, reserve, commit */
    api_close();
    sink_free(&recorded);
}
END_TEST

int main(void)
{
    return RUN_TESTS("oplog_record", every_log_of_the_tests_gives_a_stable_recording,
                     identities_of_any_size_are_recorded, handles_that_never_were_can_be_replayed,
                     refused_calls_without_text_are_recorded_or_left_out, moves_taken_in_pieces_are_recorded,
                     groups_keys_batches_and_failures_are_recorded, calls_that_only_look_leave_no_line);
}
