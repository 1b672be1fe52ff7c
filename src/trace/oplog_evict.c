/* The ops of eviction. */
#include "trace/oplog_run.h"

#include <math.h>
#include <stdlib.h>

int oplog_call_set_eviction(oplog_run *run)
{
    kvk_eviction *eviction = &run->args.eviction;
    const oplog_numbers *budgets = &run->args.budgets;
    if (budgets->items && budgets->n != run->config.n_groups)
        return trace_bad_input(run->error, lines_place(&run->lines, "budgets"), "%u numbers for %u groups", budgets->n,
                               run->config.n_groups);
    eviction->budgets = budgets->items;
    run->result = kvk_seq_set_eviction(run->cache, oplog_seq(run), run->args.has_policy ? eviction : NULL);
    return 0;
}

int oplog_call_evict(oplog_run *run)
{
    const oplog_numbers *positions = &run->args.positions;
    run->result = kvk_evict(run->cache, oplog_seq(run), run->args.group, positions->items, positions->n);
    return 0;
}

/* The shortest decimal that is read back as the same float, so that a log can say 0.1. What JSON can't write is a
 * string, as in an argument. */
static json_t *float_to_json(float value)
{
    char text[32];
    if (!isfinite(value))
        return json_string(isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)value);
        if (strtof(text, NULL) == value)
            break;
    }
    return json_real(strtod(text, NULL));
}

static void detail_scores(oplog_run *run, const kvk_page_score *scores, uint32_t n)
{
    json_t *pages = json_array(), *positions = json_array(), *values = json_array();
    json_t *tiers = json_array(), *eligible = json_array();
    for (uint32_t i = 0; i < n; i++) {
        json_array_append_new(pages, json_integer(scores[i].page));
        json_array_append_new(positions, json_integer(scores[i].position));
        json_array_append_new(values, float_to_json(scores[i].score));
        json_array_append_new(tiers, json_integer(scores[i].tier));
        json_array_append_new(eligible, json_integer(scores[i].eligible));
    }
    oplog_detail(run, "pages", pages);
    oplog_detail(run, "positions", positions);
    oplog_detail(run, "scores", values);
    oplog_detail(run, "tiers", tiers);
    oplog_detail(run, "eligible", eligible);
}

int oplog_call_scores(oplog_run *run)
{
    int n = kvk_seq_scores(run->cache, oplog_seq(run), run->args.group, NULL, 0);
    kvk_page_score *scores = oplog_buffer(run, BUFFER_SCORES, n < 0 ? 0 : (uint64_t)n);
    if (!scores)
        return TRACE_FAILED;
    run->result = n <= 0 ? n : kvk_seq_scores(run->cache, oplog_seq(run), run->args.group, scores, (uint32_t)n);
    if (run->detail && run->result >= 0)
        detail_scores(run, scores, (uint32_t)run->result);
    return 0;
}
