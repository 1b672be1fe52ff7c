/* eval/needle.h: what passkey, niah and multi-turn have in common: cells of prompts of one kind, each asked
 * under every configuration. */
#ifndef KVKEEP_TOOLS_EVAL_NEEDLE_H
#define KVKEEP_TOOLS_EVAL_NEEDLE_H

#include "engine/chat.h"
#include "kvkeep/eval/eval.h"

/* Prompts of one kind. */
typedef struct needle_cell {
    const char *haystack, *wording; /* names */
    uint32_t length, stated;
    needle_prompt *prompts; /* [n] repeat after repeat, depth after depth */
    uint32_t n, depths;
    uint64_t digest; /* of all their tokens and the model's weights */
} needle_cell;

/* The cell's result under a configuration. */
typedef struct needle_row {
    const needle_cell *cell;
    const eval_config *config;
    needle_question question;
    const json_t *result;
} needle_row;

typedef struct needle_table {
    eval_job *job;
    needle_cell *cells;
    uint32_t n_cells;
    eval_configs *configs; /* [n_cells] budgets in percent are of a cell's length */
    needle_row *rows;      /* cell after cell, question after question, configuration after configuration */
    uint32_t n_rows;
} needle_table;

/* Asks all, into a table whose job and cells are set. needle_table_close in any case, which leaves the cells. */
int needle_table_ask(needle_table *t);
void needle_table_close(needle_table *t);

/* The same, then prints the results and draws them. Takes over the cells. */
int eval_needle_run(eval_job *j, needle_cell *cells, uint32_t n);

/* The share of a row's answers with all of the key right. */
double needle_row_recall(const needle_row *row);

void needle_cells_free(needle_cell *cells, uint32_t n);

/* Sets what was not given. */
void eval_needle_complete(eval_needle_options *o);

/* Sets a cell's digest. */
void needle_cell_seal(const eval_job *j, needle_cell *cell);

/* The cells of passkey and niah into *out[*n]. */
int needle_cells_make(const eval_job *j, needle_cell **out, uint32_t *n);

/* Conversations into *out[*n]: of each length, those that ask for the fact once, and again. */
int needle_dialogs_make(const eval_job *j, const chat_format *format, needle_cell **out, uint32_t *n);

/* The depth of a cell's prompts, by number. */
double needle_depth(uint32_t i, uint32_t depths);

/* ---- Results (needle_report.c) ------------------------------------------------------------------------------ */

int needle_table_print(const needle_table *t);

/* The recall at each depth, or of each kind of prompts where they stand at one: a line for each policy, budget,
 * question and length. */
int needle_table_draw(const needle_table *t, FILE *drawing);

#endif
