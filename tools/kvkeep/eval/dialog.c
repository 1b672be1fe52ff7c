/* eval/dialog.c: long conversations with a customer service, at whose end an early fact is asked for. */
#include "kvkeep/eval/needle.h"
#include "kvkeep/eval/needle_dialog.h"

#include <stdlib.h>

enum { N_CASES = 2 }; /* the fact is asked for once, or for the second time */

static const char *const cases[N_CASES] = {"early fact", "asked again"};

static void set_defaults(eval_options *o)
{
    o->needle.depths = 1;
    o->needle.repeats = 8;
}

static int make_cell(const eval_job *j, const chat_format *format, uint32_t length, int again, needle_cell *out)
{
    const uint64_t far = 0x9e3779b97f4a7c15;
    uint32_t n = j->o.needle.repeats;
    *out = (needle_cell){.haystack = "customer service", .wording = cases[again], .length = length, .depths = 1};
    out->stated = 1 + (uint32_t)again;
    out->prompts = calloc(n, sizeof *out->prompts);
    if (!out->prompts)
        return trace_failed(j->error, (trace_place){"kvkeep eval", 0, NULL}, "out of memory");
    int rc = 0;
    for (; rc == 0 && out->n < n; out->n += rc == 0) {
        needle_dialog d = {format, length, again, j->o.needle.keys, j->o.seed * far + out->n};
        rc = needle_dialog_make(j->loaded.tokenizer, &d, &out->prompts[out->n], j->error);
    }
    needle_cell_seal(j, out);
    return rc;
}

int needle_dialogs_make(const eval_job *j, const chat_format *format, needle_cell **out, uint32_t *n)
{
    const eval_numbers *lengths = &j->o.needle.lengths;
    int rc = 0;
    *n = 0;
    *out = calloc((size_t)N_CASES * lengths->n, sizeof **out);
    if (!*out)
        return trace_failed(j->error, (trace_place){"kvkeep eval", 0, NULL}, "out of memory");
    for (uint32_t l = 0; l < lengths->n; l++)
        for (int again = 0; rc == 0 && again < N_CASES; again++)
            rc = make_cell(j, format, lengths->list[l], again, &(*out)[(*n)++]);
    if (rc < 0) {
        needle_cells_free(*out, *n);
        *out = NULL;
        *n = 0;
    }
    return rc;
}

static int run(eval_job *j)
{
    chat_format format;
    needle_cell *cells;
    uint32_t n;
    eval_needle_complete(&j->o.needle);
    int rc = eval_set_usual(j) ? TRACE_BAD_INPUT : chat_format_open(j->loaded.file, &format, j->error);
    if (rc == 0)
        rc = needle_dialogs_make(j, &format, &cells, &n);
    return rc < 0 ? rc : eval_needle_run(j, cells, n);
}

const eval_task eval_task_multi_turn = {
    "multi-turn", "Recall of an early fact after a long conversation", false, &eval_dialog_argp, set_defaults, run};
