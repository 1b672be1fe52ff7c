#include "kvkeep/eval/recall.h"

#include "kvkeep/eval/needle.h"

#include <math.h>
#include <stdlib.h>

static void choose(eval_needle_options *o, uint32_t length, uint32_t repeats)
{
    o->haystacks = (eval_names){.list = {"filler"}, .n = 1};
    o->wordings = (eval_names){.list = {"reported"}, .n = 1};
    o->lengths = (eval_numbers){.list = {length}, .n = 1};
    o->stated = (eval_numbers){.list = {1}, .n = 1};
    o->depths = 5;
    o->repeats = repeats;
    eval_needle_complete(o);
}

static int out_of_memory(const eval_job *j)
{
    return trace_failed(j->error, (trace_place){"kvkeep eval", 0, NULL}, "out of memory");
}

static int ask(eval_job *j, double *out)
{
    needle_table t = {.job = j};
    needle_cell *cells;
    int rc = needle_cells_make(j, &cells, &t.n_cells);
    if (rc < 0)
        return rc;
    t.cells = cells;
    rc = needle_table_ask(&t);
    for (uint32_t i = 0; i < t.n_rows && rc == 0; i++)
        out[i] = needle_row_recall(&t.rows[i]);
    needle_table_close(&t);
    needle_cells_free(cells, t.n_cells);
    return rc;
}

int eval_recall_measure(eval_job *j, uint32_t length, double **out)
{
    size_t n = (size_t)j->o.n_kv_types * j->o.budgets.n * j->o.policies.n;
    double *recall = malloc(n * sizeof *recall);
    if (!recall)
        return out_of_memory(j);
    for (size_t i = 0; i < n; i++)
        recall[i] = (double)NAN;
    choose(&j->o.needle, length, j->o.compare.recall);
    int rc = j->o.compare.recall ? ask(j, recall) : 0;
    if (rc < 0)
        free(recall);
    else
        *out = recall;
    return rc;
}
