/* eval/passkey.c: keys in a text, asked for at its end. passkey and niah differ in what they take where nothing is
 * said: repeated filler, or a text of the user's. */
#include "kvkeep/eval/needle.h"

static void set_defaults(eval_options *o)
{
    o->needle.depths = 5;
    o->needle.repeats = 8;
}

static void set_lists(eval_needle_options *o)
{
    if (o->wordings.n == 0 && !o->needle)
        o->wordings.list[o->wordings.n++] = "reported";
    if (o->stated.n == 0)
        for (uint32_t i = 1; i <= 2; i++)
            o->stated.list[o->stated.n++] = i;
}

void eval_needle_complete(eval_needle_options *o)
{
    if (o->lengths.n == 0)
        o->lengths.list[o->lengths.n++] = 1008;
    if (o->n_questions == 0)
        o->questions[o->n_questions++] = NEEDLE_HIDDEN;
}

static int run(eval_job *j)
{
    needle_cell *cells;
    uint32_t n;
    set_lists(&j->o.needle);
    eval_needle_complete(&j->o.needle);
    int rc = eval_set_usual(j) ? TRACE_BAD_INPUT : needle_cells_make(j, &cells, &n);
    return rc < 0 ? rc : eval_needle_run(j, cells, n);
}

static int run_passkey(eval_job *j)
{
    eval_names *haystacks = &j->o.needle.haystacks;
    if (haystacks->n == 0)
        haystacks->list[haystacks->n++] = "filler";
    return run(j);
}

const eval_task eval_task_passkey = {
    "passkey", "Recall of a key in repeated filler, or in a text", false, &eval_needle_argp, set_defaults, run_passkey};
const eval_task eval_task_niah = {
    "niah", "Recall of a needle in a text of your own", false, &eval_niah_argp, set_defaults, run};
