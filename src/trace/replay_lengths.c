/* Each request at its final length, one at a time, without a clock: what whole pages waste. */
#include "trace/replay_run.h"

static int content(replay_run *run, kvk_content *out)
{
    (void)run;
    *out = KVK_CONTENT_NONE;
    return 0;
}

static void count(replay_run *run, replay_request *seen)
{
    replay_result *r = run->result;
    r->pages_total += seen->pages;
    r->waste_tokens += seen->waste_tokens;
    if (samples_due(run->options->samples))
        samples_add(run->options->samples,
                    (sample){.x = (double)seen->number,
                             .a = (double)r->waste_tokens / ((double)r->pages_total * r->page_tokens)});
}

static int one_request(replay_run *run, const trace_request *request, replay_request *seen)
{
    kvk_text text = {.n_tokens = request->n_input + request->n_output};
    kvk_seq seq;
    int rc = run_open(run, &seq);
    if (rc < 0)
        return rc;
    int pages = run_extend(run, seq, &text);
    if (pages < 0)
        return pages;
    rc = run_close(run, seq);
    if (rc < 0)
        return rc;
    seen->pages = (uint32_t)pages;
    seen->waste_tokens = (uint64_t)pages * run->result->page_tokens - text.n_tokens;
    count(run, seen);
    return 0;
}

const replay_ops replay_lengths = {
    .name = "lengths",
    .content = content,
    .request = one_request,
};
