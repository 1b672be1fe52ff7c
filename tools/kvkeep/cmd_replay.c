/* kvkeep replay: a trace, an op log or the generated workload through a cache. */
#include "kvkeep/arguments.h"
#include "kvkeep/commands.h"
#include "kvkeep/outfile.h"
#include "kvkeep/progress.h"
#include "kvkeep/replay/evict.h"
#include "kvkeep/replay/many.h"
#include "kvkeep/replay/options.h"
#include "kvkeep/replay/pools.h"
#include "kvkeep/replay/report.h"
#include "trace/input.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* One run of the command. */
typedef struct job {
    replay_command c;
    outfile files[REPLAY_FILES];
    int record_errno; /* why the recording could not be written; 0: it could */
    progress progress;
    trace_error *error;
} job;

static int write_record(void *ctx, const char *bytes, size_t n)
{
    job *j = ctx;
    if (fwrite(bytes, 1, n, j->files[REPLAY_RECORD].stream) == n)
        return 0;
    j->record_errno = errno;
    return -1;
}

static void on_request(void *ctx, const replay_request *request)
{
    job *j = ctx;
    if (j->c.print)
        replay_print_request(j->c.replay.mode, request);
    progress_show(&j->progress, request->number);
}

static int print_line(void *ctx, const char *line, size_t n)
{
    (void)ctx;
    fwrite(line, 1, n, stdout);
    putchar('\n');
    return ferror(stdout);
}

/* libCacheSim counts seconds, and its objects best from 1. Of size 1, so that its cache sizes are pages. */
static void write_page(void *ctx, uint64_t arrival_us, uint64_t page)
{
    job *j = ctx;
    fprintf(j->files[REPLAY_LIBCACHESIM].stream, "%" PRIu64 ",%" PRIu64 ",1\n", arrival_us / 1000000, page + 1);
}

static void write_event(void *ctx, const kvk_event *event)
{
    job *j = ctx;
    replay_write_event(j->files[REPLAY_EVENTS].stream, event);
}

/* Two outputs of one path would leave one of them. */
static int open_file(job *j, int which)
{
    const char *path = j->c.paths[which];
    for (int i = 0; i < which && path; i++)
        if (j->c.paths[i] && strcmp(j->c.paths[i], path) == 0)
            return trace_bad_input(j->error, (trace_place){path, 0, NULL}, "is to hold two outputs");
    return path ? outfile_open(&j->files[which], path, j->error) : 0;
}

/* All files are opened before the work, so that a bad path is known at once. */
static int open_files(job *j)
{
    int rc = 0;
    for (int i = 0; i < REPLAY_FILES && rc == 0; i++)
        rc = open_file(j, i);
    return rc;
}

/* A full disk is noticed before results are shown. */
static int flush_files(job *j)
{
    for (int i = 0; i < REPLAY_FILES; i++)
        if (j->files[i].stream && (fflush(j->files[i].stream) != 0 || ferror(j->files[i].stream)))
            return trace_failed(j->error, (trace_place){j->c.paths[i], 0, NULL}, "cannot write: %s", strerror(errno));
    return 0;
}

/* Files get their names last, when nothing else can fail. */
static int commit_files(job *j)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        return trace_failed(j->error, (trace_place){"stdout", 0, NULL}, "cannot write");
    int rc = 0;
    for (int i = 0; i < REPLAY_FILES && rc == 0; i++)
        rc = j->files[i].stream ? outfile_commit(&j->files[i], j->error) : 0;
    return rc;
}

static int replay_and_report(job *j, trace *t)
{
    replay_options *o = &j->c.replay;
    replay_result result;
    int rc = replay_trace(t, o, &result, j->error);
    progress_end(&j->progress);
    if (rc == 0 && o->samples)
        rc = plot_draw(replay_plot(o->mode), o->samples, j->files[REPLAY_PLOT].stream, j->error);
    if (rc == 0)
        rc = flush_files(j);
    if (rc == 0 && !j->c.print)
        rc = replay_report(trace_format_name(t), o, &result, j->c.json, j->error);
    return rc;
}

static int run_trace(job *j, trace *t)
{
    replay_options *o = &j->c.replay;
    if (!j->c.mode_given)
        o->mode = replay_default_mode(t);
    if (o->mode == REPLAY_TIMED && j->c.n_files > 1)
        return trace_bad_input(j->error, (trace_place){j->c.files[1], 0, NULL}, "a second trace: timed mode takes one");
    o->on_request = on_request;
    o->ctx = j;
    o->on_page = j->files[REPLAY_LIBCACHESIM].stream ? write_page : NULL;
    o->on_event = j->files[REPLAY_EVENTS].stream ? write_event : NULL;
    o->record = j->files[REPLAY_RECORD].stream ? write_record : NULL;
    o->record_ctx = j;
    if (j->c.all_reclaims || j->c.curve) {
        bool on_a_clock = o->mode == REPLAY_TIMED && j->c.curve;
        int rc = (on_a_clock ? replay_pools : replay_many)(t, &j->c, j->files[REPLAY_PLOT].stream, j->error);
        progress_end(&j->progress);
        return rc < 0 ? rc : flush_files(j);
    }
    if (j->files[REPLAY_PLOT].stream) {
        o->samples = calloc(1, sizeof *o->samples);
        if (!o->samples)
            return trace_failed(j->error, (trace_place){"kvkeep replay", 0, NULL}, "out of memory");
    }
    int rc = replay_and_report(j, t);
    free(o->samples);
    return rc;
}

static int run_oplog(job *j, FILE *in)
{
    if (j->c.traces_only)
        return trace_bad_input(j->error, (trace_place){j->c.files[0], 1, j->c.traces_only},
                               "means nothing for an op log");
    oplog_options options = {.audit = j->c.replay.audit,
                             .memory_limit = j->c.replay.memory_limit,
                             .record = j->files[REPLAY_RECORD].stream ? write_record : NULL,
                             .record_ctx = j,
                             .print = j->c.print ? print_line : NULL,
                             .max_ops = j->c.replay.max_requests};
    oplog_summary summary;
    int rc = oplog_replay(in, j->c.files[0], &options, &summary, j->error);
    if (rc == 0 && !j->c.print)
        rc = oplog_report(&summary, j->c.json, j->error);
    return rc;
}

/* One file may also be an op log; its first line tells. */
static int run_one_file(job *j)
{
    FILE *in = NULL;
    trace *t = NULL;
    int rc = input_open(j->c.files[0], &in, j->error);
    if (rc == 0)
        rc = input_begins_with_line_of(&in, j->c.files[0], "\"kvkeep_oplog\"", j->error);
    if (rc == 1)
        rc = run_oplog(j, in);
    else if (rc == 0) {
        rc = trace_open(in, j->c.files[0], &j->c.trace, &t, j->error);
        if (rc == 0)
            rc = run_trace(j, t);
        trace_close(t);
    }
    if (in)
        fclose(in);
    return rc;
}

static int run_evict(job *j)
{
    int rc = replay_evict_all(&j->c, j->files[REPLAY_PLOT].stream, j->error);
    return rc < 0 ? rc : flush_files(j);
}

static int run_stream(job *j)
{
    trace *t = NULL;
    int rc = j->c.n_files ? trace_open_files((const char *const *)j->c.files, j->c.n_files, &j->c.trace, &t, j->error)
                          : trace_open_generated(&j->c.trace, &t, j->error);
    if (rc == 0)
        rc = run_trace(j, t);
    trace_close(t);
    return rc;
}

int cmd_replay(int argc, char **argv)
{
    trace_error error;
    job j = {.error = &error};
    int rc = replay_command_parse(&j.c, argc, argv, &error);
    if (rc == 1)
        return arguments_finish_stdout();
    if (rc == 0)
        rc = open_files(&j);
    if (rc == 0)
        rc = j.c.evict.on ? run_evict(&j) : j.c.n_files == 1 ? run_one_file(&j) : run_stream(&j);
    if (rc == 0)
        rc = commit_files(&j);
    else if (j.record_errno)
        rc = trace_failed(&error, (trace_place){j.c.paths[REPLAY_RECORD], 0, NULL}, "cannot write: %s",
                          strerror(j.record_errno));
    for (int i = 0; i < REPLAY_FILES; i++)
        outfile_discard(&j.files[i]);
    return rc < 0 ? arguments_report(&error, rc) : EXIT_OK;
}
