#include "kvkeep/replay/evict.h"

#include "kvkeep/replay/evict_report.h"
#include "trace/mass_file.h"
#include "trace/replay_evict.h"

#include <stdlib.h>
#include <string.h>

/* Everything of one run of the command. */
typedef struct comparison {
    const replay_command *c;
    trace_error *error;
    mass_trace *trace;
    evict_table table;
} comparison;

static int out_of_memory(trace_error *error)
{
    return trace_failed(error, (trace_place){"kvkeep replay", 0, NULL}, "out of memory");
}

static int open_masses(comparison *x)
{
    const replay_command *c = x->c;
    mass_generate_options options = c->evict.generate;
    if (c->n_files)
        return mass_open(c->files[0], c->replay.memory_limit, &x->trace, x->error);
    options.seed = c->trace.seed;
    if (c->replay.page_tokens)
        options.page_tokens = c->replay.page_tokens;
    return mass_generate(&options, &x->trace, x->error);
}

static uint32_t tokens_of(const comparison *x, uint32_t i)
{
    const mass_shape *s = &x->trace->shape;
    return budget_tokens(x->c->evict.budgets.budgets[i], (double)s->first + s->steps);
}

static evict_options options_of(const comparison *x, uint32_t budget, uint32_t choice)
{
    return (evict_options){.choice = x->c->evict.policies.choices[choice],
                           .budget = tokens_of(x, budget),
                           .audit = x->c->replay.audit,
                           .memory_limit = x->c->replay.memory_limit};
}

/* All that cannot work is known before the first run. */
static int check_all(const comparison *x)
{
    int rc = 0;
    for (uint32_t b = 0; b < x->c->evict.budgets.n; b++)
        for (uint32_t i = 0; i < x->c->evict.policies.n && rc == 0; i++) {
            evict_options options = options_of(x, b, i);
            rc = replay_evict_check(x->trace, &options, x->error);
        }
    return rc;
}

static evict_row *add_row(comparison *x, const char *name)
{
    evict_row *row = &x->table.rows[x->table.n++];
    snprintf(row->name, sizeof row->name, "%s", name);
    return row;
}

/* The optimum and the greedy bound at one budget. */
static int run_bounds(comparison *x, const evict_futures *futures, uint32_t budget)
{
    evict_row *best = add_row(x, "optimum"), *greedy = add_row(x, "greedy");
    int rc = replay_evict_bound(x->trace, futures, evict_optimum, budget, &best->result, x->error);
    if (rc == 0)
        rc = replay_evict_bound(x->trace, futures, evict_greedy, budget, &greedy->result, x->error);
    best->optimum = greedy->optimum = best->result.active.mean;
    return rc;
}

static int run_policy(comparison *x, uint32_t budget, uint32_t choice, double optimum)
{
    evict_options options = options_of(x, budget, choice);
    char name[KVK_MAX_POLICY_TEXT] = "";
    kvk_policy_print(&options.choice, name, sizeof name);
    evict_row *row = add_row(x, name);
    row->optimum = optimum;
    return replay_evict(x->trace, &options, &row->result, x->error);
}

static int run_budget(comparison *x, const evict_futures *futures, uint32_t budget)
{
    const evict_row *best = &x->table.rows[x->table.n];
    int rc = run_bounds(x, futures, tokens_of(x, budget));
    for (uint32_t i = 0; i < x->c->evict.policies.n && rc == 0; i++)
        rc = run_policy(x, budget, i, best->optimum);
    return rc;
}

static int run_all(comparison *x)
{
    const evict_command *e = &x->c->evict;
    evict_futures futures;
    int rc = check_all(x);
    if (rc < 0)
        return rc;
    x->table = (evict_table){.trace = x->trace, .per_budget = e->policies.n + EVICT_BOUNDS};
    x->table.rows = calloc((size_t)x->table.per_budget * e->budgets.n, sizeof *x->table.rows);
    if (!x->table.rows)
        return out_of_memory(x->error);
    rc = evict_futures_read(&futures, x->trace, x->c->replay.memory_limit, x->error);
    if (rc < 0)
        return rc;
    for (uint32_t b = 0; b < e->budgets.n && rc == 0; b++)
        rc = run_budget(x, &futures, b);
    evict_futures_close(&futures);
    return rc;
}

int replay_evict_all(const replay_command *c, FILE *drawing, trace_error *error)
{
    comparison x = {.c = c, .error = error};
    int rc = open_masses(&x);
    if (rc == 0)
        rc = run_all(&x);
    if (rc == 0 && drawing)
        rc = evict_table_draw(&x.table, drawing, error);
    if (rc == 0)
        rc = evict_table_print(&x.table, c->json, error);
    free(x.table.rows);
    mass_close(x.trace);
    return rc;
}
