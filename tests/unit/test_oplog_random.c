/* Calls by chance, recorded: the recording is replayed, takes the same pages, and records the same bytes. */
#include "api.h"
#include "oplog_text.h"

#include <stdlib.h>
#include <string.h>

enum { SEQS = 6, CALLS = 2500 };

static sink recorded;
static kvk_seq seqs[SEQS];
static kvk_batch batch;
static uint64_t state, now;

/* A number below n. */
static uint32_t dice(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

static kvk_text text_of(uint32_t n)
{
    static uint32_t tokens[API_MAX];
    static kvk_key keys[API_MAX];
    static kvk_extra extra;
    kvk_config config = {.size = sizeof config};
    ck_assert_int_eq(kvk_cache_config(cache, &config), 0);
    for (uint32_t i = 0; i < API_MAX; i++) {
        tokens[i] = dice(8) ? i : 7;
        keys[i] = (kvk_key){i, dice(9) == 0};
    }
    kvk_text text = {.n_tokens = n, .tokens = tokens, .keys = keys, .n_keys = n / 4};
    extra = (kvk_extra){.position = n ? dice(n) : 0, .key = {dice(2), 1}};
    if (config.extra_keys && n && dice(4) == 0) {
        text.extras = &extra;
        text.n_extras = 1;
    }
    return text;
}

/* What a sequence's next tokens make full, where the content is keys. */
static void commit(kvk_seq seq, uint32_t n)
{
    kvk_seq_info info = {.size = sizeof info};
    if (kvk_seq_info_get(cache, seq, &info) < 0)
        return;
    kvk_text text = text_of(n);
    text.n_keys = (info.n_committed + n) / 4 - info.n_committed / 4;
    kvk_commit(cache, seq, &text);
}

static void end_batch(void)
{
    kvk_batch_end(cache, batch, NULL);
    batch = 0;
}

static void plan(kvk_seq seq)
{
    const kvk_batch_entry entry = {.seq = seq, .n_query = dice(3)};
    kvk_plan arrays;
    kvk_plan_init(&arrays);
    if (batch)
        end_batch();
    if (kvk_batch_plan(cache, &entry, 1, &arrays, &batch) < 0)
        batch = 0;
}

static void open_or_fork(uint32_t i)
{
    const kvk_seq_params params = {.size = sizeof params, .priority = (int32_t)dice(3) - 1, .adapter = dice(5) == 0};
    kvk_seq_close(cache, seqs[i]);
    if (dice(2) == 0 || kvk_seq_fork(cache, seqs[dice(SEQS)], &seqs[i]) < 0)
        ck_assert_int_eq(kvk_seq_open(cache, &params, &seqs[i]), 0);
}

static void retain(kvk_seq seq)
{
    kvk_retention ranges[] = {{dice(4), 5 + dice(9), dice(101), 0, dice(50)}, {0, UINT32_MAX, dice(101), 0, 0}};
    kvk_retain(cache, seq, ranges, dice(3));
}

static void take_moves(void)
{
    kvk_move moves[API_MAX];
    kvk_moves_take(cache, moves, 1 + dice(API_MAX));
}

static void call_one(void)
{
    kvk_seq seq = seqs[dice(SEQS)];
    kvk_text text = text_of(dice(24));
    switch (dice(18)) {
    case 0:
        open_or_fork(dice(SEQS));
        break;
    case 1:
        kvk_prefix_attach(cache, seq, &text);
        break;
    case 2:
        plan(seq);
        break;
    case 3:
        end_batch();
        break;
    case 4:
        kvk_truncate(cache, seq, dice(20));
        break;
    case 5:
        kvk_preempt(cache, seq, (kvk_preempt_how)dice(2));
        break;
    case 6:
        kvk_swap_in(cache, seq, (kvk_effort)dice(3));
        break;
    case 7:
        kvk_pin(cache, seq, dice(12));
        break;
    case 8:
        kvk_unpin(cache, seq, dice(12));
        break;
    case 9:
        retain(seq);
        break;
    case 10:
        kvk_set_time(cache, now += dice(30));
        break;
    case 11:
        kvk_resize(cache, 12 + dice(20), (int)dice(2));
        break;
    case 12:
        take_moves();
        break;
    case 13:
        kvk_prefix_reset(cache, NULL);
        break;
    case 14:
        kvk_seq_set_priority(cache, seq, (int32_t)dice(5));
        break;
    case 15:
        kvk_reserve(cache, seq, dice(9), (kvk_effort)dice(3));
        break;
    default:
        if (kvk_reserve(cache, seq, 1 + dice(6), KVK_RECLAIM) >= 0)
            commit(seq, 1 + dice(6));
    }
}

static void any_configuration(kvk_config *config)
{
    static kvk_group groups[3];
    for (uint32_t g = 0; g < 3; g++)
        groups[g].window = dice(2) * (1 + dice(9));
    config->n_groups = 1 + dice(3);
    config->groups = dice(2) ? groups : NULL;
    config->content = dice(3);
    config->host_pages = dice(3) * 8;
    config->reclaim = dice(4);
    config->watermark = dice(3);
    config->zero_fill = dice(2);
    config->partial_reuse = config->content == KVK_CONTENT_TOKENS && dice(2);
    config->extra_keys = config->content == KVK_CONTENT_TOKENS && dice(2);
}

static void record_and_replay(uint64_t seed)
{
    state = seed;
    now = batch = 0;
    memset(seqs, 0, sizeof seqs);
    recorded = (sink){0};
    api_open(16 + dice(16), any_configuration);
    ck_assert_int_eq(kvk_record_start(cache, sink_write, &recorded), 0);
    for (uint32_t i = 0; i < CALLS; i++)
        call_one();
    ck_assert_int_eq(kvk_record_stop(cache), 0);
    api_close();
    sink again = oplog_text_record(recorded.bytes);
    sink third = oplog_text_record(again.bytes); /* handles that never were stand as 0 in the second */
    ck_assert_msg(!strcmp(again.bytes, third.bytes), "seed %lu", (unsigned long)seed);
    sink_free(&third);
    sink_free(&again);
    sink_free(&recorded);
}

START_TEST(recordings_of_any_calls_can_be_replayed)
{
    for (uint64_t seed = 1; seed <= 10; seed++)
        record_and_replay(seed);
}
END_TEST

int main(void)
{
    return RUN_TESTS("oplog_random", recordings_of_any_calls_can_be_replayed);
}
