/* eval/needle_report.c: recall as a table, as JSON and as a map. */
#include "kvkeep/eval/interval.h"
#include "kvkeep/eval/needle.h"
#include "kvkeep/plot.h"
#include "kvkeep/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Numbers ---------------------------------------------------------------------------------------------------- */

/* Prompts, and of these the ones with the whole answer right. */
typedef struct counts {
    uint32_t prompts, exact;
    double digits; /* sum over prompts of the share of the answer that is right */
} counts;

static void count(const needle_row *row, uint32_t prompt, counts *c)
{
    uint32_t n = row->cell->prompts[prompt].n_answer;
    json_int_t right = json_integer_value(json_array_get(json_object_get(row->result, "right"), prompt));
    c->prompts++;
    c->exact += right == (json_int_t)n;
    c->digits += (double)right / n;
}

static counts count_all(const needle_row *row)
{
    counts c = {0};
    for (uint32_t i = 0; i < row->cell->n; i++)
        count(row, i, &c);
    return c;
}

double needle_row_recall(const needle_row *row)
{
    counts c = count_all(row);
    return (double)c.exact / c.prompts;
}

static double kept_share(const needle_row *row)
{
    uint32_t budget = row->config->budget, length = row->cell->length;
    return eval_never_evicts(row->config) || budget > length ? 1 : (double)budget / length;
}

static uint64_t bytes_peak(const needle_row *row)
{
    return (uint64_t)json_integer_value(json_object_get(row->result, "kv_bytes_peak"));
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

static json_t *depths_of(const needle_row *row)
{
    json_t *list = json_array();
    uint32_t depths = row->cell->depths;
    for (uint32_t d = 0; d < depths; d++) {
        counts c = {0};
        for (uint32_t i = d; i < row->cell->n; i += depths)
            count(row, i, &c);
        report_add_row(&list, json_pack("{s:f, s:i, s:i}", "depth", needle_depth(d, depths), "prompts", (int)c.prompts,
                                        "exact", (int)c.exact));
    }
    return list;
}

static json_t *object_of(const needle_row *row)
{
    const needle_cell *cell = row->cell;
    counts c = count_all(row);
    interval ci = interval_wilson(c.exact, c.prompts);
    json_t *object = json_pack(
        "{s:s, s:I, s:s, s:f, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:I}", "policy", row->config->name,
        "budget_tokens", (json_int_t)row->config->budget, "kv_type", eval_kv_type_name(row->config->kv_type),
        "kept_share", kept_share(row), "question", eval_question_name(row->question), "haystack", cell->haystack,
        "wording", cell->wording, "stated", (int)cell->stated, "length", (int)cell->length, "prompts", (int)c.prompts,
        "exact", (int)c.exact, "digits_mean", c.digits / c.prompts, "recall", (double)c.exact / c.prompts, "ci95_low",
        ci.low, "ci95_high", ci.high, "kv_bytes_peak", (json_int_t)bytes_peak(row));
    if (object && json_object_set_new(object, "depths", depths_of(row)) < 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static int print_json(const needle_table *t)
{
    json_t *rows = json_array();
    report r;
    report_open(&r);
    report_add(&r, "model", json_string(loaded_model_name(&t->job->loaded)));
    report_add(&r, "keys", json_string(t->job->o.needle.keys == NEEDLE_WORDS ? "words" : "digits"));
    report_count(&r, "page_tokens", t->job->o.page_tokens);
    for (uint32_t i = 0; i < t->n_rows; i++)
        report_add_row(&rows, object_of(&t->rows[i]));
    report_add(&r, "results", rows);
    return report_print(&r, true, t->job->error);
}

/* ---- Table ------------------------------------------------------------------------------------------------------ */

/* A path's last part: where a text lies is of no interest in a table. */
static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void print_row(const needle_row *row)
{
    const needle_cell *cell = row->cell;
    counts c = count_all(row);
    interval ci = interval_wilson(c.exact, c.prompts);
    printf("%-24s %-4s %7u %6.3f %-8s %-24.24s %-9.9s %6u %7u", row->config->name,
           eval_kv_type_name(row->config->kv_type), row->config->budget, kept_share(row),
           eval_question_name(row->question), name_of(cell->haystack), cell->wording, cell->stated, cell->length);
    printf(" %4u/%-4u %6.3f %6.3f..%.3f %6.3f %8.2f\n", c.exact, c.prompts, (double)c.exact / c.prompts, ci.low,
           ci.high, c.digits / c.prompts, (double)bytes_peak(row) / (1 << 20));
}

int needle_table_print(const needle_table *t)
{
    if (t->job->o.json)
        return print_json(t);
    printf("%-24s %-4s %7s %6s %-8s %-24s %-9s %6s %7s %9s %6s %13s %6s %8s\n", "policy", "kv", "budget", "kept",
           "question", "haystack", "wording", "stated", "length", "right", "recall", "95 %", "digits", "KV MiB");
    for (uint32_t i = 0; i < t->n_rows; i++)
        print_row(&t->rows[i]);
    return 0;
}

/* ---- Map -------------------------------------------------------------------------------------------------------- */

/* Haystacks, wordings and numbers of statements are put together. */
static bool is_same_line(const needle_row *a, const needle_row *b)
{
    return a->question == b->question && a->cell->length == b->cell->length && a->config->budget == b->config->budget &&
           a->config->kv_type == b->config->kv_type && strcmp(a->config->name, b->config->name) == 0;
}

static uint32_t list_lines(const needle_table *t, const needle_row **lines)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->n_rows; i++) {
        uint32_t k = 0;
        while (k < n && !is_same_line(lines[k], &t->rows[i]))
            k++;
        if (k == n)
            lines[n++] = &t->rows[i];
    }
    return n;
}

/* A column is a depth or, where all prompts stand at one, a kind of prompts. */
typedef char column_label[32];

typedef struct map_columns {
    column_label *labels; /* [n] */
    uint32_t n;
    bool are_kinds;
} map_columns;

static bool is_in_column(const map_columns *columns, uint32_t column, const needle_row *row, uint32_t prompt)
{
    return columns->are_kinds ? strcmp(columns->labels[column], row->cell->wording) == 0
                              : prompt % columns->n == column;
}

static double recall_at(const needle_table *t, const map_columns *columns, const needle_row *line, uint32_t column)
{
    counts c = {0};
    for (uint32_t i = 0; i < t->n_rows; i++)
        for (uint32_t k = 0; is_same_line(line, &t->rows[i]) && k < t->rows[i].cell->n; k++)
            if (is_in_column(columns, column, &t->rows[i], k))
                count(&t->rows[i], k, &c);
    return (double)c.exact / c.prompts;
}

static void name_column(map_columns *columns, const char *name)
{
    for (uint32_t i = 0; i < columns->n; i++)
        if (strcmp(columns->labels[i], name) == 0)
            return;
    snprintf(columns->labels[columns->n++], sizeof(column_label), "%.31s", name);
}

static int name_columns(const needle_table *t, map_columns *columns)
{
    uint32_t depths = t->cells[0].depths;
    columns->are_kinds = depths == 1;
    columns->labels = calloc(columns->are_kinds ? t->n_cells : depths, sizeof *columns->labels);
    if (!columns->labels)
        return -1;
    for (uint32_t i = 0; columns->are_kinds && i < t->n_cells; i++)
        name_column(columns, t->cells[i].wording);
    for (uint32_t d = 0; !columns->are_kinds && d < depths; d++)
        snprintf(columns->labels[columns->n++], sizeof(column_label), "%.3g", needle_depth(d, depths));
    return 0;
}

typedef char line_label[KVK_MAX_POLICY_TEXT];

/* What all lines have in common is left out. */
static void name_line(const needle_row *const *lines, uint32_t n, uint32_t i, line_label label)
{
    const needle_row *line = lines[i];
    bool lengths = false, questions = false;
    for (uint32_t k = 0; k < n; k++) {
        lengths |= lines[k]->cell->length != line->cell->length;
        questions |= lines[k]->question != line->question;
    }
    int at = snprintf(label, sizeof(line_label), "%.400s %.0f%%", line->config->name, 100 * kept_share(line));
    if (lengths)
        at += snprintf(label + at, sizeof(line_label) - (size_t)at, " of %u", line->cell->length);
    if (questions)
        snprintf(label + at, sizeof(line_label) - (size_t)at, " %s", eval_question_name(line->question));
}

/* A map's texts and numbers. */
typedef struct map_parts {
    const needle_row **lines;
    line_label *labels;
    map_columns columns;
    const char **rows, **below;
    double *values;
    uint32_t n;
} map_parts;

static void free_parts(map_parts *m)
{
    free(m->lines);
    free(m->labels);
    free(m->columns.labels);
    free(m->rows);
    free(m->below);
    free(m->values);
}

static int make_parts(const needle_table *t, map_parts *m)
{
    m->lines = calloc(t->n_rows, sizeof *m->lines);
    if (!m->lines || name_columns(t, &m->columns) < 0)
        return -1;
    m->n = list_lines(t, m->lines);
    m->labels = calloc(m->n, sizeof *m->labels);
    m->rows = calloc(m->n, sizeof *m->rows);
    m->below = calloc(m->columns.n, sizeof *m->below);
    m->values = calloc((size_t)m->n * m->columns.n, sizeof *m->values);
    return m->labels && m->rows && m->below && m->values ? 0 : -1;
}

static void fill_parts(const needle_table *t, map_parts *m)
{
    for (uint32_t c = 0; c < m->columns.n; c++)
        m->below[c] = m->columns.labels[c];
    for (uint32_t i = 0; i < m->n; i++) {
        name_line(m->lines, m->n, i, m->labels[i]);
        m->rows[i] = m->labels[i];
        for (uint32_t c = 0; c < m->columns.n; c++)
            m->values[i * m->columns.n + c] = recall_at(t, &m->columns, m->lines[i], c);
    }
}

int needle_table_draw(const needle_table *t, FILE *drawing)
{
    map_parts m = {0};
    int rc = make_parts(t, &m);
    if (rc < 0) {
        rc = trace_failed(t->job->error, (trace_place){"plot", 0, NULL}, "out of memory");
    } else {
        fill_parts(t, &m);
        plot_map map = {"Share of answers with all of the key right",
                        m.columns.are_kinds ? "" : "where the needle stands in the text",
                        m.below,
                        m.rows,
                        m.values,
                        m.columns.n,
                        m.n};
        rc = plot_draw_map(&map, drawing, t->job->error);
    }
    free_parts(&m);
    return rc;
}
