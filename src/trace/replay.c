#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include "trace/replay_run.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEFAULT_PAGE_TOKENS = 16, N_MODES = 5 };

static const replay_ops *const modes[N_MODES] = {
    [REPLAY_PREFIX] = &replay_prefix, [REPLAY_TIMED] = &replay_timed, [REPLAY_LENGTHS] = &replay_lengths,
    [REPLAY_TURNS] = &replay_turns,   [REPLAY_FLAT] = &replay_flat,
};

replay_mode replay_default_mode(const trace *t)
{
    if (trace_content_of(t) != TRACE_LENGTHS)
        return REPLAY_PREFIX;
    return trace_has_arrivals(t) ? REPLAY_TIMED : REPLAY_LENGTHS;
}

const char *replay_mode_name(replay_mode mode)
{
    return modes[mode]->name;
}

int replay_mode_named(const char *name, replay_mode *out, trace_error *error)
{
    for (int i = 0; i < N_MODES; i++)
        if (strcmp(modes[i]->name, name) == 0) {
            *out = (replay_mode)i;
            return 0;
        }
    return trace_bad_input(error, (trace_place){"kvkeep", 0, "mode"},
                           "'%.32s' is none of prefix, timed, lengths, multi-turn, flat, evict", name);
}

static const char *const reclaims[REPLAY_RECLAIMS] = {
    [KVK_RECLAIM_LRU] = "lru",
    [KVK_RECLAIM_FIFO] = "fifo",
    [KVK_RECLAIM_LFU] = "lfu",
    [KVK_RECLAIM_S3FIFO] = "s3fifo",
};

const char *replay_reclaim_name(kvk_reclaim reclaim)
{
    return reclaims[reclaim];
}

int replay_reclaim_named(const char *name, kvk_reclaim *out, trace_error *error)
{
    for (int i = 0; i < REPLAY_RECLAIMS; i++)
        if (strcmp(reclaims[i], name) == 0) {
            *out = (kvk_reclaim)i;
            return 0;
        }
    return trace_bad_input(error, (trace_place){"kvkeep", 0, "reclaim"},
                           "'%.32s' is none of lru, fifo, lfu, s3fifo, all", name);
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint32_t page_tokens(const replay_run *run)
{
    if (run->options->page_tokens)
        return run->options->page_tokens;
    uint32_t block = trace_block_tokens(run->trace);
    return block ? block : DEFAULT_PAGE_TOKENS;
}

static uint32_t host_pages(const replay_options *o)
{
    if (o->preempt != KVK_PREEMPT_SWAP)
        return 0;
    return o->host_pages || o->n_pages == REPLAY_UNLIMITED ? o->host_pages : o->n_pages;
}

/* Who does not wait for pages needs none beside. */
static int find_watermark(replay_run *run)
{
    const replay_options *o = run->options;
    bool waits = o->mode == REPLAY_TIMED || o->mode == REPLAY_TURNS;
    double share = o->n_pages == REPLAY_UNLIMITED ? 0 : o->watermark * o->n_pages;
    double pages = !waits ? 0 : o->watermark_is_share ? share : o->watermark;
    if (!(pages >= 0 && pages < o->n_pages))
        return trace_bad_input(run->error, (trace_place){trace_where(run->trace, NULL).file, 0, "watermark"},
                               "leaves nothing of %u pages", o->n_pages);
    run->result->watermark = (uint32_t)pages;
    return 0;
}

static int open_cache(replay_run *run, kvk_content content)
{
    kvk_config config;
    kvk_config_init(&config);
    config.page_tokens = run->result->page_tokens;
    config.n_pages = run->result->n_pages;
    config.content = content;
    config.reclaim = run->options->reclaim;
    config.watermark = run->result->watermark;
    config.host_pages = host_pages(run->options);
    config.memory_limit = run->options->memory_limit;
    int rc = kvk_cache_open(&config, &run->cache);
    if (rc == 0 && run->options->record)
        rc = kvk_record_start(run->cache, run->options->record, run->options->record_ctx);
    if (rc == 0 && run->options->on_event)
        rc = kvk_set_events(run->cache, run->options->on_event, run->options->ctx);
    if (rc < 0)
        return trace_failed(run->error, trace_where(run->trace, NULL), "cannot open a cache: %s", kvk_strerror(rc));
    return 0;
}

static int one_request(replay_run *run, const replay_ops *mode, const trace_request *request)
{
    replay_result *result = run->result;
    replay_request seen = {.number = result->requests + 1,
                           .line = trace_where(run->trace, NULL).line,
                           .arrival_us = request->arrival_us,
                           .n_input = request->n_input,
                           .n_output = request->n_output};
    int rc = mode->request(run, request, &seen);
    if (rc < 0)
        return rc;
    result->requests++;
    result->input_tokens += request->n_input;
    result->output_tokens += request->n_output;
    if (run->options->on_request && !mode->shows_requests)
        run->options->on_request(run->options->ctx, &seen);
    return 0;
}

static int all_requests(replay_run *run, const replay_ops *mode)
{
    uint64_t most = run->options->max_requests ? run->options->max_requests : UINT64_MAX;
    trace_request request;
    int rc = 1;
    while (run->result->requests < most && (rc = trace_next(run->trace, &request, run->error)) == 1) {
        rc = one_request(run, mode, &request);
        if (rc < 0)
            return rc;
    }
    if (rc < 0)
        return rc;
    return mode->finish ? mode->finish(run) : 0;
}

static int finish_recording(replay_run *run)
{
    if (!run->options->record || kvk_record_stop(run->cache) == 0)
        return 0;
    return trace_failed(run->error, (trace_place){"record", 0, NULL}, "%s", kvk_strerror(KVK_EIO));
}

static int run_mode(replay_run *run, const replay_ops *mode)
{
    int rc = mode->open ? mode->open(run) : 0;
    if (rc == 0)
        rc = all_requests(run, mode);
    run->result->stats.size = sizeof run->result->stats;
    kvk_stats_get(run->cache, &run->result->stats);
    if (rc == 0)
        rc = finish_recording(run);
    if (mode->close)
        mode->close(run);
    return rc;
}

/* What only prompts one after the other have. */
static int check_options(replay_run *run)
{
    const replay_options *o = run->options;
    if (o->mode == REPLAY_PREFIX || o->mode == REPLAY_FLAT ||
        (!o->belady && !o->on_page && !o->prompts && !o->on_event))
        return 0;
    const char *what = o->prompts ? "prompts" : o->belady ? "belady" : o->on_event ? "events" : "libcachesim";
    return trace_bad_input(run->error, (trace_place){trace_where(run->trace, NULL).file, 0, what},
                           "goes with mode prefix or flat only");
}

static int run_opened(replay_run *run, const replay_ops *mode)
{
    kvk_content content = KVK_CONTENT_NONE;
    int rc = check_options(run);
    if (rc == 0)
        rc = find_watermark(run);
    if (rc == 0)
        rc = mode->content(run, &content);
    if (rc < 0)
        return rc;
    run->state = calloc(1, mode->state_bytes ? mode->state_bytes : 1);
    if (!run->state)
        return run_out_of_memory(run);
    rc = open_cache(run, content);
    if (rc == 0)
        rc = run_mode(run, mode);
    kvk_cache_close(run->cache);
    free(run->state);
    return rc;
}

int replay_trace(trace *t, const replay_options *options, replay_result *result, trace_error *error)
{
    double start = now_s();
    *result = (replay_result){.n_pages = options->n_pages};
    replay_run run = {.options = options, .trace = t, .result = result, .error = error};
    result->page_tokens = page_tokens(&run);
    int rc = run_opened(&run, modes[options->mode]);
    result->failed_requests = trace_failed_requests(t);
    result->elapsed_s = now_s() - start;
    return rc;
}
