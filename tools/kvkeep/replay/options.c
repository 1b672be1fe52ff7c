#include "kvkeep/replay/options.h"

#include "kvkeep/arguments.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_MODE = 1,
    KEY_FORMAT,
    KEY_PAGES,
    KEY_PAGE_TOKENS,
    KEY_SPEED,
    KEY_TOKEN_MS,
    KEY_RATE,
    KEY_SEED,
    KEY_PLOT,
    KEY_RECLAIM,
    KEY_CURVE,
    KEY_WATERMARK,
    KEY_PREEMPT,
    KEY_HOST_PAGES,
    KEY_CHUNK,
    KEY_BELADY,
    KEY_LIBCACHESIM,
    KEY_EVENTS,
    FIRST_OF_ALL_INPUTS, /* options from here on go with op logs too */
    KEY_REQUESTS,
    KEY_MEMORY_LIMIT,
    KEY_AUDIT,
    KEY_RECORD,
    KEY_JSON,
    KEY_PRINT
};

static const struct argp_option options[] = {
    {"mode", KEY_MODE, "MODE", 0,
     "prefix, flat, timed, lengths or multi-turn (default: what the trace says most about), or evict, for masses", 1},
    {"format", KEY_FORMAT, "NAME", 0,
     "What the traces are, as docs/traces.md names it (default: found from the content)", 1},
    {"pages", KEY_PAGES, "N", 0, "Pages of the pool, or unlimited (the default)", 2},
    {"page-tokens", KEY_PAGE_TOKENS, "N", 0, "Tokens of a page (default: the trace's block, else 16)", 2},
    {"requests", KEY_REQUESTS, "N", 0, "Stop after N requests, or N calls of an op log; 0: all", 2},
    {"memory-limit", KEY_MEMORY_LIMIT, "MIB", 0, "Host memory that the cache may hold (default 8192)", 2},
    {"watermark", KEY_WATERMARK, "N|N%", 0, "timed, multi-turn: pages left free when a request is let in (default 1%)",
     3},
    {"preempt", KEY_PREEMPT, "HOW", 0, "timed, multi-turn: recompute (the default) or swap where pages lack", 3},
    {"host-pages", KEY_HOST_PAGES, "N", 0, "Pages to swap to (default: as many as the pool)", 3},
    {"chunk", KEY_CHUNK, "N", 0, "timed, multi-turn: N prompt tokens per --ms-per-token (default: all at once)", 3},
    {"speed", KEY_SPEED, "X", 0, "timed: requests arrive X times faster (default 1)", 3},
    {"ms-per-token", KEY_TOKEN_MS, "X", 0, "timed, multi-turn: a sequence gets a token every X ms (default 25)", 3},
    {"rate", KEY_RATE, "X", 0,
     "Requests per second where the trace has no times (default 10); multi-turn: sessions per second (default: all at "
     "once)",
     3},
    {"seed", KEY_SEED, "N", 0, "Of made times and of the generated workload (default 1)", 3},
    {"reclaim", KEY_RECLAIM, "ORDER", 0,
     "Which cached page goes first: lru (the default), fifo, lfu or s3fifo; all: prefix, flat: compare them", 2},
    {"curve", KEY_CURVE, "N", OPTION_ARG_OPTIONAL,
     "prefix, flat, timed: pools of N sizes instead of one (default 64; timed: 16)", 2},
    {"belady", KEY_BELADY, NULL, 0, "prefix, flat: count what the best cache of single pages would find", 4},
    {"audit", KEY_AUDIT, NULL, 0, "Check every invariant after every call", 4},
    {"record", KEY_RECORD, "FILE", 0, "Write an op log of all calls", 4},
    {"libcachesim", KEY_LIBCACHESIM, "FILE.csv", 0, "prefix, flat: write each page asked for, for that simulator", 4},
    {"events", KEY_EVENTS, "FILE", 0, "prefix, flat: write what the cache tells a router, as JSON Lines", 4},
    {"print", KEY_PRINT, NULL, 0, "One JSON line per request (or call of an op log) instead of the table", 5},
    {"json", KEY_JSON, NULL, 0, "One JSON object instead of the table", 5},
    {"plot", KEY_PLOT, "FILE.svg", 0, "Draw the run with gnuplot", 5},
    {0},
};

static const char doc[] =
    "Runs a trace through a cache and reports what it did.\v"
    "Several traces run one after the other as one stream. `-` is the standard input. Without a TRACE a generated chat "
    "workload runs (2,000 requests unless --requests says otherwise). An op log is recognised by its first line, and "
    "is "
    "run alone. Mode evict takes one FILE.npy of attention masses, or makes masses up. docs/traces.md defines the "
    "formats and every number.";

static const char *name_of(int key)
{
    const struct argp_option *o = options;
    while (o->key != key)
        o++;
    return o->name;
}

static error_t parse_pages(const arguments *a, const char *text, uint32_t *out)
{
    uint64_t n = REPLAY_UNLIMITED;
    error_t rc =
        strcmp(text, "unlimited") == 0 ? 0 : arguments_whole(a, "--pages", text, (whole_range){1, KVK_MAX_PAGES}, &n);
    *out = (uint32_t)n;
    return rc;
}

static error_t parse_token_ms(const arguments *a, const char *text, uint64_t *out)
{
    const double longest_us = 1e12; /* 11 days for a token */
    double ms = 0;
    error_t rc = arguments_positive(a, "--ms-per-token", text, &ms);
    if (rc)
        return rc;
    *out = ms * 1000 < longest_us ? (uint64_t)llround(ms * 1000) : 0;
    if (*out > 0)
        return 0;
    trace_bad_input(a->error, (trace_place){a->command, 0, "--ms-per-token"}, "'%.64s' is not within 0.001 .. 1e9",
                    text);
    return EINVAL;
}

static error_t parse_rate(const arguments *a, const char *text, replay_command *c)
{
    error_t rc = arguments_positive(a, "--rate", text, &c->trace.rate);
    c->replay.session_rate = c->trace.rate;
    return rc;
}

/* Pages, or a share of the pool. */
static error_t parse_watermark(const arguments *a, const char *text, replay_options *out)
{
    char *end;
    double n = strtod(text, &end);
    bool is_number = end != text && n >= 0, is_share = is_number && strcmp(end, "%") == 0;
    out->watermark = is_share ? n / 100 : n;
    out->watermark_is_share = is_share;
    if (is_share ? n < 100 : is_number && *end == '\0' && n <= KVK_MAX_PAGES && n == floor(n))
        return 0;
    trace_bad_input(a->error, (trace_place){a->command, 0, "--watermark"},
                    "'%.64s' is neither a number of pages nor a share from 0 to below 100 percent", text);
    return EINVAL;
}

static error_t parse_preempt(const arguments *a, const char *text, kvk_preempt_how *out)
{
    *out = strcmp(text, "swap") == 0 ? KVK_PREEMPT_SWAP : KVK_PREEMPT_RECOMPUTE;
    if (*out == KVK_PREEMPT_SWAP || strcmp(text, "recompute") == 0)
        return 0;
    trace_bad_input(a->error, (trace_place){a->command, 0, "--preempt"}, "'%.32s' is neither recompute nor swap", text);
    return EINVAL;
}

/* How a server runs that lacks pages. */
static error_t parse_serving(int key, const char *text, const arguments *a)
{
    replay_command *c = a->options;
    switch (key) {
    case KEY_WATERMARK:
        return parse_watermark(a, text, &c->replay);
    case KEY_PREEMPT:
        return parse_preempt(a, text, &c->replay.preempt);
    case KEY_HOST_PAGES:
        return arguments_u32(a, "--host-pages", text, (whole_range){1, KVK_MAX_PAGES}, &c->replay.host_pages);
    case KEY_CHUNK:
        return arguments_u32(a, "--chunk", text, (whole_range){1, KVK_MAX_PAGES}, &c->replay.chunk);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* Options that take a number. */
static error_t parse_number(int key, const char *text, const arguments *a)
{
    replay_command *c = a->options;
    const whole_range any = {0, UINT64_MAX};
    switch (key) {
    case KEY_PAGES:
        return parse_pages(a, text, &c->replay.n_pages);
    case KEY_PAGE_TOKENS:
        return arguments_u32(a, "--page-tokens", text, (whole_range){1, KVK_MAX_PAGE_TOKENS}, &c->replay.page_tokens);
    case KEY_REQUESTS:
        return arguments_whole(a, "--requests", text, any, &c->replay.max_requests);
    case KEY_MEMORY_LIMIT:
        return arguments_mib(a, "--memory-limit", text, &c->replay.memory_limit);
    case KEY_SPEED:
        return arguments_positive(a, "--speed", text, &c->replay.speed);
    case KEY_TOKEN_MS:
        return parse_token_ms(a, text, &c->replay.token_us);
    case KEY_RATE:
        return parse_rate(a, text, c);
    case KEY_SEED:
        c->seed_given = true;
        return arguments_whole(a, "--seed", text, any, &c->trace.seed);
    default:
        return parse_serving(key, text, a);
    }
}

static error_t parse_reclaim(const arguments *a, const char *text, replay_command *c)
{
    c->all_reclaims = strcmp(text, "all") == 0;
    return c->all_reclaims || replay_reclaim_named(text, &c->replay.reclaim, a->error) == 0 ? 0 : EINVAL;
}

static error_t parse_curve(const arguments *a, const char *text, replay_command *c)
{
    uint64_t n = 0;
    error_t rc = text ? arguments_whole(a, "--curve", text, (whole_range){2, 10000}, &n) : 0;
    c->curve = true;
    c->curve_points = (uint32_t)n;
    return rc;
}

static error_t parse_mode(const arguments *a, const char *text, replay_command *c)
{
    c->mode_given = true;
    c->evict.on = strcmp(text, "evict") == 0;
    return c->evict.on || replay_mode_named(text, &c->replay.mode, a->error) == 0 ? 0 : EINVAL;
}

/* All others. */
static error_t parse_word(int key, char *text, const arguments *a)
{
    replay_command *c = a->options;
    switch (key) {
    case KEY_MODE:
        return parse_mode(a, text, c);
    case KEY_FORMAT:
        c->trace.format = text;
        return 0;
    case KEY_AUDIT:
        c->replay.audit = true;
        return 0;
    case KEY_RECORD:
        c->paths[REPLAY_RECORD] = text;
        return 0;
    case KEY_PLOT:
        c->paths[REPLAY_PLOT] = text;
        return 0;
    case KEY_LIBCACHESIM:
        c->paths[REPLAY_LIBCACHESIM] = text;
        return 0;
    case KEY_EVENTS:
        c->paths[REPLAY_EVENTS] = text;
        return 0;
    case KEY_RECLAIM:
        return parse_reclaim(a, text, c);
    case KEY_CURVE:
        return parse_curve(a, text, c);
    case KEY_BELADY:
        c->replay.belady = true;
        return 0;
    case KEY_JSON:
        c->json = true;
        return 0;
    case KEY_PRINT:
        c->print = true;
        return 0;
    default:
        return parse_number(key, text, a);
    }
}

static error_t refuse_together(const arguments *a, const char *option, const char *why)
{
    trace_bad_input(a->error, (trace_place){a->command, 0, option}, "%s", why);
    return EINVAL;
}

/* Many runs in one: what belongs to a single one does not go with it. */
static error_t check_many(const arguments *a)
{
    const replay_command *c = a->options;
    if (c->all_reclaims && c->curve)
        return refuse_together(a, "--curve", "does not go with --reclaim all");
    if (c->print)
        return refuse_together(a, "--print", "does not go with many pools");
    if (c->paths[REPLAY_RECORD])
        return refuse_together(a, "--record", "does not go with many pools");
    if (c->paths[REPLAY_EVENTS])
        return refuse_together(a, "--events", "does not go with many pools");
    if (c->replay.audit)
        return refuse_together(a, "--audit", "does not go with many pools");
    if (c->curve && c->replay.n_pages != REPLAY_UNLIMITED)
        return refuse_together(a, "--pages", "does not go with --curve, which chooses the sizes");
    if (c->curve && c->replay.belady)
        return refuse_together(a, "--belady", "does not go with --curve");
    if (c->all_reclaims && c->replay.n_pages == REPLAY_UNLIMITED)
        return refuse_together(a, "--reclaim", "all needs --pages: in an unlimited pool nothing is given up");
    return 0;
}

static error_t check_evict(const arguments *a)
{
    replay_command *c = a->options;
    if (!c->evict.on)
        return c->evict.given ? refuse_together(a, c->evict.given, "goes with mode evict only") : 0;
    if (c->not_evict) {
        char option[32];
        snprintf(option, sizeof option, "--%s", c->not_evict);
        return refuse_together(a, option, "means nothing in mode evict");
    }
    if (c->n_files > 1)
        return refuse_together(a, c->files[1], "a second file: mode evict takes one");
    if (c->n_files && c->evict.generated_only)
        return refuse_together(a, c->evict.generated_only, "means nothing for a file of masses");
    if (c->n_files && c->seed_given)
        return refuse_together(a, "--seed", "means nothing for a file of masses");
    if (c->n_files && c->replay.page_tokens)
        return refuse_together(a, "--page-tokens", "means nothing for a file of masses");
    return replay_evict_complete(a);
}

static error_t check_together(const arguments *a)
{
    const replay_command *c = a->options;
    if (c->evict.on || c->evict.given)
        return check_evict(a);
    if (c->json && c->print)
        return refuse_together(a, "--print", "does not go with --json, which prints one object");
    return c->all_reclaims || c->curve ? check_many(a) : 0;
}

static bool goes_with_evict(int key)
{
    static const int keys[] = {KEY_MODE, KEY_PAGE_TOKENS, KEY_MEMORY_LIMIT, KEY_SEED, KEY_AUDIT, KEY_JSON, KEY_PLOT};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (key == keys[i])
            return true;
    return false;
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    arguments *a = state->input;
    replay_command *c = a->options;
    if (key == ARGP_KEY_INIT) {
        state->child_inputs[0] = a;
        return 0;
    }
    if (key == ARGP_KEY_ARGS) {
        c->files = state->argv + state->next;
        c->n_files = (size_t)(state->argc - state->next);
        return 0;
    }
    if (key == ARGP_KEY_END)
        return check_together(a);
    if (key < FIRST_OF_ALL_INPUTS && key >= KEY_MODE)
        c->traces_only = name_of(key);
    if (key >= KEY_MODE && key <= KEY_PRINT && !goes_with_evict(key))
        c->not_evict = name_of(key);
    return parse_word(key, text, a);
}

int replay_command_parse(replay_command *c, int argc, char **argv, trace_error *error)
{
    static const struct argp_child children[] = {{&replay_evict_argp, 0, "Mode evict:", 6}, {0}};
    static const struct argp argp = {options, parse, "[TRACE...]", doc, children, NULL, NULL};
    *c = (replay_command){
        .trace = TRACE_OPTIONS_DEFAULT, .replay = REPLAY_OPTIONS_DEFAULT, .evict = {.generate = MASS_GENERATE_DEFAULT}};
    arguments a = {"kvkeep replay", c, error};
    int rc = arguments_parse(&argp, argc, argv, &a);
    c->replay.seed = c->trace.seed;
    if (c->replay.max_requests)
        c->trace.requests = c->replay.max_requests;
    return rc;
}
