#include "kvkeep/replay/report.h"

#include "kvkeep/report.h"

#include <inttypes.h>

static void add_ratio(report *r, const char *name, double part, double whole)
{
    report_add(r, name, json_real(whole > 0 ? part / whole : 0));
}

static void add_pages(report *r, uint32_t n_pages)
{
    report_add(r, "pages", n_pages == REPLAY_UNLIMITED ? json_string("unlimited") : json_integer(n_pages));
}

static void add_prefix(report *r, const replay_result *x)
{
    report_count(r, "page_refs", x->page_refs);
    report_count(r, "page_hits", x->page_hits);
    report_count(r, "token_hits", x->token_hits);
    report_add(r, "unique_pages", json_integer((json_int_t)x->unique_pages));
    report_count(r, "reclaimed_pages", x->stats.pages_reclaimed);
    add_ratio(r, "hit_ratio_pages", (double)x->page_hits, (double)x->page_refs);
    add_ratio(r, "hit_ratio_tokens", (double)x->token_hits, (double)x->input_tokens);
    report_add(r, "elapsed_s", json_real(x->elapsed_s));
    add_ratio(r, "refs_per_s", (double)x->page_refs, x->elapsed_s);
}

/* What a server on a clock has. */
static void add_pressure(report *r, const replay_result *x)
{
    double room_us = x->n_pages == REPLAY_UNLIMITED ? 0 : (double)x->n_pages * (double)x->makespan_us;
    report_count(r, "rejected", x->rejected);
    report_count(r, "preemptions", x->stats.preemptions);
    report_count(r, "recomputed_tokens", x->recomputed_tokens);
    report_count(r, "swapped_pages", x->stats.swapped_out_pages);
    report_add(r, "admission_wait_s_p50", json_real((double)x->wait_us_p50 * 1e-6));
    report_add(r, "admission_wait_s_p99", json_real((double)x->wait_us_p99 * 1e-6));
    report_add(r, "makespan_s", json_real((double)x->makespan_us * 1e-6));
    add_ratio(r, "waste_reserved", x->withheld_page_us, room_us);
    report_add(r, "usage_when_reclaiming_p50", json_real(x->usage_when_reclaiming_p50));
    report_add(r, "elapsed_s", json_real(x->elapsed_s));
}

static void add_timed(report *r, const replay_result *x)
{
    double room = (double)x->page_us * x->page_tokens, waste = room - (double)x->token_us;
    report_count(r, "peak_pages", x->stats.peak_pages_used);
    report_count(r, "peak_sequences", x->peak_running);
    report_count(r, "page_allocations", x->stats.pages_taken);
    add_ratio(r, "mean_utilisation", (double)x->token_us, room);
    add_ratio(r, "waste_internal", waste, room);
    add_pressure(r, x);
}

static void add_lengths(report *r, const replay_result *x)
{
    report_count(r, "pages_total", x->pages_total);
    report_count(r, "waste_tokens", x->waste_tokens);
    add_ratio(r, "waste_fraction", (double)x->waste_tokens, (double)x->pages_total * x->page_tokens);
    report_add(r, "elapsed_s", json_real(x->elapsed_s));
}

static void add_turns(report *r, const replay_result *x)
{
    report_count(r, "page_refs", x->page_refs);
    report_count(r, "page_hits", x->page_hits);
    report_count(r, "token_hits", x->token_hits);
    add_ratio(r, "hit_ratio_pages", (double)x->page_hits, (double)x->page_refs);
    report_count(r, "peak_pages", x->stats.peak_pages_used);
    report_count(r, "peak_sequences", x->peak_running);
    report_count(r, "page_allocations", x->stats.pages_taken);
    report_count(r, "reclaimed_pages", x->stats.pages_reclaimed);
    add_pressure(r, x);
}

int replay_report(const char *format, const replay_options *options, const replay_result *result, bool as_json,
                  trace_error *error)
{
    static void (*const add[])(report *, const replay_result *) = {[REPLAY_PREFIX] = add_prefix,
                                                                   [REPLAY_TIMED] = add_timed,
                                                                   [REPLAY_LENGTHS] = add_lengths,
                                                                   [REPLAY_TURNS] = add_turns,
                                                                   [REPLAY_FLAT] = add_prefix};
    report r;
    report_open(&r);
    report_add(&r, "format", json_string(format));
    report_add(&r, "mode", json_string(replay_mode_name(options->mode)));
    report_count(&r, "requests", result->requests);
    report_count(&r, "failed_requests", result->failed_requests);
    report_count(&r, "page_tokens", result->page_tokens);
    add_pages(&r, result->n_pages);
    if (options->mode == REPLAY_PREFIX || options->mode == REPLAY_FLAT)
        report_add(&r, "reclaim", json_string(replay_reclaim_name(options->reclaim)));
    add[options->mode](&r, result);
    if (options->belady)
        report_count(&r, "belady_hits", result->belady_hits);
    return report_print(&r, as_json, error);
}

int oplog_report(const oplog_summary *summary, bool as_json, trace_error *error)
{
    const kvk_stats *s = &summary->stats;
    report r;
    report_open(&r);
    report_add(&r, "format", json_string("oplog"));
    report_count(&r, "ops", summary->ops);
    report_count(&r, "failed_ops", summary->failed_ops);
    report_count(&r, "page_tokens", summary->config.page_tokens);
    add_pages(&r, summary->config.n_pages);
    report_count(&r, "pages_taken", s->pages_taken);
    report_count(&r, "pages_reclaimed", s->pages_reclaimed);
    report_count(&r, "cow_copies", s->cow_copies);
    report_count(&r, "pages_evicted", s->pages_evicted);
    report_count(&r, "prefix_page_queries", s->prefix_page_queries);
    report_count(&r, "prefix_page_hits", s->prefix_page_hits);
    report_count(&r, "peak_pages", s->peak_pages_used);
    report_count(&r, "peak_sequences", s->peak_sequences);
    return report_print(&r, as_json, error);
}

void replay_print_request(replay_mode mode, const replay_request *q)
{
    printf("{\"request\":%" PRIu64 ",\"line\":%" PRIu64 ",\"input_tokens\":%u,\"output_tokens\":%u,\"pages\":%u",
           q->number, q->line, q->n_input, q->n_output, q->pages);
    switch (mode) {
    case REPLAY_PREFIX:
    case REPLAY_FLAT:
        printf(",\"page_hits\":%u,\"token_hits\":%u}\n", q->page_hits, q->token_hits);
        break;
    case REPLAY_TIMED:
        printf(",\"arrival_us\":%" PRIu64 "}\n", q->arrival_us);
        break;
    case REPLAY_TURNS:
        printf(",\"page_hits\":%u,\"token_hits\":%u,\"start_us\":%" PRIu64 "}\n", q->page_hits, q->token_hits,
               q->arrival_us);
        break;
    case REPLAY_LENGTHS:
        printf(",\"waste_tokens\":%" PRIu64 "}\n", q->waste_tokens);
        break;
    }
}

static void write_tokens(FILE *out, const uint32_t *tokens, uint32_t n)
{
    fputs(",\"tokens\":", out);
    for (uint32_t i = 0; i < n; i++)
        fprintf(out, "%c%u", i ? ',' : '[', tokens[i]);
    fputc(']', out);
}

void replay_write_event(FILE *out, const kvk_event *e)
{
    static const char *const kinds[] = {
        [KVK_EVENT_STORED] = "stored", [KVK_EVENT_REMOVED] = "removed", [KVK_EVENT_CLEARED] = "cleared"};
    fprintf(out, "{\"kind\":\"%s\"", kinds[e->kind]);
    if (e->kind != KVK_EVENT_CLEARED)
        fprintf(out,
                ",\"key\":\"%016" PRIx64 "%016" PRIx64 "\",\"parent\":\"%016" PRIx64 "%016" PRIx64
                "\",\"page_tokens\":%u,\"group\":%u,\"adapter\":%" PRIu64,
                e->key.hi, e->key.lo, e->parent.hi, e->parent.lo, e->page_tokens, e->group, e->adapter);
    if (e->kind == KVK_EVENT_STORED)
        fprintf(out, ",\"page\":%u", e->page);
    if (e->tokens)
        write_tokens(out, e->tokens, e->page_tokens);
    if (e->page_key)
        fprintf(out, ",\"page_key\":\"%016" PRIx64 "%016" PRIx64 "\"", e->page_key->hi, e->page_key->lo);
    fputs("}\n", out);
}

const plot *replay_plot(replay_mode mode)
{
    static const plot plots[] = {
        [REPLAY_PREFIX] = {"Prefix cache hits so far", "requests", "share found", "of pages", "of tokens", false},
        [REPLAY_TIMED] = {"KV memory over time", "time in s", "tokens", "room of the pages in use", "tokens held",
                          false},
        [REPLAY_TURNS] = {"KV memory over time", "time in s", "tokens", "room of the pages in use", NULL, false},
        [REPLAY_FLAT] = {"Hits of single pages so far", "requests", "share found", "of pages", "of tokens", false},
        [REPLAY_LENGTHS] = {"Waste of whole pages so far", "requests", "share of all room", "waste", NULL, false},
    };
    return &plots[mode];
}
