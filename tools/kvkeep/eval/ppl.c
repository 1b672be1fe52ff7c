/* eval/ppl.c: perplexity under policies and budgets. */
#include "kvkeep/eval/measure.h"
#include "kvkeep/eval/table.h"

#include <stdlib.h>

static int run(eval_job *j)
{
    eval_text text;
    eval_table table = {.job = j};
    int rc = eval_text_read(j, j->o.text, &text);
    if (rc == 0)
        rc = eval_table_measure(&table, &text);
    progress_end(&j->progress);
    if (rc == 0 && j->drawing.stream)
        rc = eval_table_draw(&table, j->drawing.stream);
    if (rc == 0)
        rc = j->o.json ? eval_table_print_json(&table, NULL) : eval_table_print(&table);
    eval_table_close(&table);
    eval_text_free(&text);
    return rc;
}

const eval_task eval_task_ppl = {"ppl", "Perplexity of a text under policies and budgets", true, NULL, NULL, run};
