/* eval/table.h: what the tasks on perplexity measure and show: a row for each configuration. */
#ifndef KVKEEP_TOOLS_EVAL_TABLE_H
#define KVKEEP_TOOLS_EVAL_TABLE_H

#include "kvkeep/eval/measure.h"

typedef struct eval_table {
    eval_job *job;
    const eval_text *text;
    eval_configs configs;
    eval_measured *rows; /* [configs.n] */
    double *recall;      /* [configs.n] NaN: not measured; NULL: of none */
} eval_table;

/* Puts full first; adds budgets of 20 and 36 % and the usual policies where none were given. 0 or bad input. */
int eval_table_choose(eval_job *j);

/* Does that, and measures every policy at every budget. 0 or an error; eval_table_close in both cases. */
int eval_table_measure(eval_table *t, const eval_text *text);
void eval_table_close(eval_table *t);

/* One object, with what a task adds to each row (NULL: nothing): a function that does so. */
typedef int (*eval_table_more)(const eval_table *t, uint32_t row, json_t *object);
int eval_table_print_json(const eval_table *t, eval_table_more more);

/* A table for people. */
int eval_table_print(const eval_table *t);

/* The share kept against perplexity, and against recall where there is any: a curve for each policy. */
int eval_table_draw(const eval_table *t, FILE *out);

/* For tables: a number, or - where there is none; a change with its error, in percent. */
void eval_print_number(int width, int digits, double x);
void eval_print_change(eval_estimate e);

/* The same for JSON: null where there is none. */
json_t *eval_json_number(double x);

/* Numbers of a row. */
eval_estimate eval_row_change(const eval_measured *m);        /* against full, over the whole text */
eval_estimate eval_row_change_active(const eval_measured *m); /* over active targets */

#endif
