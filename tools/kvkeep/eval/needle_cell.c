/* eval/needle_cell.c: the prompts that passkey and niah ask. */
#include "kvkeep/eval/needle.h"
#include "kvkeep/whole_file.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

double needle_depth(uint32_t i, uint32_t depths)
{
    return depths == 1 ? 0.5 : 0.1 + 0.8 * i / (depths - 1);
}

void needle_cells_free(needle_cell *cells, uint32_t n)
{
    for (uint32_t i = 0; cells && i < n; i++) {
        for (uint32_t k = 0; k < cells[i].n; k++)
            needle_prompt_free(&cells[i].prompts[k]);
        free(cells[i].prompts);
    }
    free(cells);
}

void needle_cell_seal(const eval_job *j, needle_cell *cell)
{
    const model *m = j->loaded.model;
    cell->digest = XXH3_64bits(m->weights, m->weight_bytes);
    for (uint32_t i = 0; i < cell->n; i++) {
        const needle_prompt *p = &cell->prompts[i];
        uint32_t n = p->n_text + p->n_question + p->n_answer, ends[2] = {p->n_text, p->n_question};
        cell->digest = XXH3_64bits_withSeed(p->tokens, n * sizeof *p->tokens, cell->digest);
        cell->digest = XXH3_64bits_withSeed(ends, sizeof ends, cell->digest);
    }
}

/* ---- One cell --------------------------------------------------------------------------------------------------- */

/* What a cell is made of. `set`: -1: the one wording, else all of the set for tuning (1) or reporting (0). */
typedef struct cell_plan {
    const needle_haystack *haystack;
    const needle_wording *wording;
    int set;
    uint32_t length, stated;
} cell_plan;

static const needle_wording *wording_of(const cell_plan *plan, uint32_t i)
{
    uint32_t n = 0;
    if (plan->set < 0)
        return plan->wording;
    while (needle_wording_of(plan->set, n))
        n++;
    return needle_wording_of(plan->set, i % n);
}

/* Neighbours have other wordings, keys and parts of the haystack; sets have keys of their own. */
static needle_spec spec_of(const eval_job *j, const cell_plan *plan, uint32_t i)
{
    const uint64_t far = 0x9e3779b97f4a7c15; /* so that seeds and numbers do not meet */
    uint32_t depths = j->o.needle.depths, depth = i % depths, repeat = i / depths;
    const needle_wording *wording = wording_of(plan, depth + repeat);
    return (needle_spec){.haystack = plan->haystack,
                         .wording = wording,
                         .length = plan->length,
                         .depth = needle_depth(depth, depths),
                         .stated = plan->stated,
                         .keys = j->o.needle.keys,
                         .seed = (j->o.seed * far + i) * far + (uint64_t)wording->tuning};
}

static int make_cell(const eval_job *j, const cell_plan *plan, needle_cell *out)
{
    uint32_t n = j->o.needle.depths * j->o.needle.repeats;
    *out = (needle_cell){.haystack = plan->haystack->name, .length = plan->length, .stated = plan->stated};
    out->wording = plan->set < 0 ? plan->wording->name : plan->set ? "tuning" : "reported";
    out->depths = j->o.needle.depths;
    out->prompts = calloc(n, sizeof *out->prompts);
    if (!out->prompts)
        return trace_failed(j->error, (trace_place){"kvkeep eval", 0, NULL}, "out of memory");
    int rc = 0;
    for (; rc == 0 && out->n < n; out->n += rc == 0) {
        needle_spec spec = spec_of(j, plan, out->n);
        rc = needle_prompt_make(j->loaded.tokenizer, &spec, &out->prompts[out->n], j->error);
    }
    needle_cell_seal(j, out);
    return rc;
}

/* ---- All of a haystack ------------------------------------------------------------------------------------------ */

static void choose_wording(const eval_needle_options *o, const needle_wording *own, uint32_t i, cell_plan *plan)
{
    plan->set = -1;
    plan->wording = own;
    if (i == o->wordings.n) /* the user's own comes last */
        return;
    const char *name = o->wordings.list[i];
    plan->wording = needle_wording_find(name);
    if (!plan->wording)
        plan->set = strcmp(name, "tuning") == 0;
}

static int make_cells(const eval_job *j, const needle_haystack *haystack, const needle_wording *own, needle_cell *out,
                      uint32_t *n)
{
    const eval_needle_options *o = &j->o.needle;
    cell_plan plan = {.haystack = haystack};
    int rc = 0;
    for (uint32_t w = 0; w < o->wordings.n + (own != NULL); w++)
        for (uint32_t l = 0; l < o->lengths.n; l++)
            for (uint32_t s = 0; rc == 0 && s < o->stated.n; s++) {
                choose_wording(o, own, w, &plan);
                plan.length = o->lengths.list[l];
                plan.stated = o->stated.list[s];
                rc = make_cell(j, &plan, &out[(*n)++]);
            }
    return rc;
}

static uint32_t longest(const eval_needle_options *o)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < o->lengths.n; i++)
        most = o->lengths.list[i] > most ? o->lengths.list[i] : most;
    return most;
}

static int open_haystack(const eval_job *j, const char *name, needle_haystack *out)
{
    char *text;
    size_t n;
    if (strcmp(name, "filler") == 0)
        return needle_haystack_fill(j->loaded.tokenizer, longest(&j->o.needle), out, j->error);
    int rc = whole_file_read(name, &text, &n, j->error);
    if (rc < 0)
        return rc;
    rc = needle_haystack_open(j->loaded.tokenizer, name, text, n, out, j->error);
    free(text);
    return rc;
}

int needle_cells_make(const eval_job *j, needle_cell **out, uint32_t *n)
{
    const eval_needle_options *o = &j->o.needle;
    needle_wording own = {"own", o->needle, o->needle, o->question, 0};
    uint32_t most = o->haystacks.n * (o->wordings.n + 1) * o->lengths.n * o->stated.n;
    int rc = 0;
    *n = 0;
    *out = calloc(most, sizeof **out);
    if (!*out)
        return trace_failed(j->error, (trace_place){"kvkeep eval", 0, NULL}, "out of memory");
    for (uint32_t i = 0; i < o->haystacks.n && rc == 0; i++) {
        needle_haystack h;
        rc = open_haystack(j, o->haystacks.list[i], &h);
        if (rc < 0)
            break;
        rc = make_cells(j, &h, o->needle ? &own : NULL, *out, n);
        needle_haystack_close(&h);
    }
    if (rc < 0) {
        needle_cells_free(*out, *n);
        *out = NULL;
        *n = 0;
    }
    return rc;
}
