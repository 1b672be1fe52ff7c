/* eval/calibrate.c: the heads and knobs of keep that serve a model best, as its profile. */
#include "kvkeep/eval/calibrate.h"
#include "kvkeep/eval/needle_dialog.h"
#include "kvkeep/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- Options ---------------------------------------------------------------------------------------------------- */

enum { KEY_WRITE = 0x500, KEY_HAYSTACK, KEY_LOSS, KEY_LENGTH, KEY_REPEATS, KEY_QUICK };

static const struct argp_option options[] = {
    {"write", KEY_WRITE, "FILE.json", 0, "Where the profile goes", 11},
    {"haystack", KEY_HAYSTACK, "FILE", 0,
     "What needles are put into (default: TEXT, and filler). Texts full of numbers tell heads apart best. May be given "
     "several times",
     11},
    {"loss", KEY_LOSS, "N", 0,
     "Percent of perplexity that better recall may cost, against the best of what is tried (default 0.5)", 11},
    {"length", KEY_LENGTH, "N", 0, "Tokens of the prompts (default 1008)", 11},
    {"repeats", KEY_REPEATS, "N", 0, "Prompts at each of five depths (default 2)", 11},
    {"quick", KEY_QUICK, NULL, 0, "Find the heads, and how importance is reckoned; leave the other knobs", 11},
    {0},
};

static error_t parse_number(int key, const char *text, const arguments *a, eval_options *o)
{
    uint64_t n = 0;
    bool is_length = key == KEY_LENGTH;
    error_t rc = arguments_whole(a, is_length ? "--length" : "--repeats", text,
                                 (whole_range){1, is_length ? MODEL_MAX_CONTEXT : 1000}, &n);
    if (is_length)
        o->needle.lengths = (eval_numbers){{(uint32_t)n}, 1};
    else
        o->needle.repeats = (uint32_t)n;
    return rc;
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    const arguments *a = state->input;
    eval_options *o = a ? a->options : NULL;
    error_t rc;
    switch (o ? key : 0) {
    case KEY_WRITE:
        o->calibrate.path = text;
        return 0;
    case KEY_HAYSTACK:
        return eval_names_add(a, "--haystack", text, &o->needle.haystacks);
    case KEY_LOSS:
        rc = arguments_positive(a, "--loss", text, &o->calibrate.loss);
        o->calibrate.loss /= 100;
        return rc;
    case KEY_QUICK:
        o->calibrate.quick = true;
        return 0;
    case KEY_LENGTH:
    case KEY_REPEATS:
        return parse_number(key, text, a, o);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {options, parse, NULL, NULL, NULL, NULL, NULL};

static void set_defaults(eval_options *o)
{
    o->tokens = 1024;
    o->calibrate.loss = 0.005;
    o->needle.depths = 5;
    o->needle.repeats = 2;
}

static int check(const eval_job *j)
{
    const eval_options *o = &j->o;
    const char *idle = o->policies.n ? "--policy" : o->plot ? "--plot" : o->profile ? "--profile" : NULL;
    return idle ? trace_bad_input(j->error, (trace_place){"kvkeep eval calibrate", 0, idle}, "means nothing here") : 0;
}

/* ---- Prompts ---------------------------------------------------------------------------------------------------- */

/* Keys stated once, by the wordings that are there for tuning. */
static int make_needles(calibration *c, needle_keys keys, uint32_t kind)
{
    eval_needle_options *o = &c->job->o.needle;
    if (o->haystacks.n == 0)
        o->haystacks = (eval_names){{c->job->o.text, "filler"}, 2};
    o->wordings = (eval_names){{"tuning"}, 1};
    o->stated = (eval_numbers){{1}, 1};
    o->keys = keys;
    return needle_cells_make(c->job, &c->cells[kind], &c->n_cells[kind]);
}

/* Models without a known chat template have no conversations. */
static int make_dialogs(calibration *c, uint32_t kind)
{
    chat_format format;
    trace_error unknown;
    if (chat_format_open(c->job->loaded.file, &format, &unknown) < 0)
        return 0;
    c->job->o.needle.keys = NEEDLE_DIGITS;
    return needle_dialogs_make(c->job, &format, &c->cells[kind], &c->n_cells[kind]);
}

static int make_prompts(calibration *c)
{
    eval_needle_complete(&c->job->o.needle);
    int rc = make_needles(c, NEEDLE_DIGITS, 0);
    if (rc == 0)
        rc = make_needles(c, NEEDLE_WORDS, 1);
    return rc < 0 ? rc : make_dialogs(c, 2);
}

/* ---- The profile ------------------------------------------------------------------------------------------------ */

static void begin_profile(calibration *c)
{
    const double half = 0.5, quarter = 0.25; /* what the heads are looked for with */
    c->best = c->job->profile;
    snprintf(c->best.model, sizeof c->best.model, "%.100s", loaded_model_name(&c->job->loaded));
    c->best.choice.knobs[calibrate_knob("reserve")] = half;
    c->best.choice.knobs[calibrate_knob("recent_share")] = quarter;
}

static json_t *notes_of(const calibration *c)
{
    return json_pack("{s:s, s:O}", "found_by", "kvkeep eval calibrate", "steps", c->steps);
}

static int write_profile(const calibration *c, json_t *fields)
{
    outfile f = {0};
    int rc = outfile_open(&f, c->job->o.calibrate.path, c->job->error);
    if (rc == 0 && json_dumpf(fields, f.stream, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) < 0)
        rc = trace_failed(c->job->error, (trace_place){f.path, 0, NULL}, "cannot write: %s", strerror(errno));
    if (rc == 0) {
        fputc('\n', f.stream);
        rc = outfile_commit(&f, c->job->error);
    }
    outfile_discard(&f);
    return rc;
}

static void print_step(json_t *step)
{
    const char *name;
    json_t *value;
    json_object_foreach(step, name, value)
    {
        if (json_is_string(value))
            printf("%-13s", json_string_value(value));
        else if (json_is_boolean(value))
            printf("%s", json_is_true(value) ? "  <-" : "");
        else if (json_is_array(value))
            printf("  of %zu", json_array_size(value));
        else
            printf("  %s %.4g", name, json_number_value(value));
    }
    putchar('\n');
}

static json_t *print_heads(const near_heads *h)
{
    json_t *list = profile_heads_json(h);
    char *text = json_dumps(list, 0);
    json_t *line = text ? json_string(text) : NULL;
    free(text);
    json_decref(list);
    return line;
}

static int print(const calibration *c, json_t *fields)
{
    size_t i;
    json_t *step;
    report r;
    report_open(&r);
    if (c->job->o.json) {
        json_object_update(r.fields, fields);
        return report_print(&r, true, c->job->error);
    }
    json_array_foreach(c->steps, i, step) print_step(step);
    report_add(&r, "near_heads", print_heads(&c->best.near));
    report_add(&r, "policy", json_incref(json_object_get(fields, "policy")));
    return report_print(&r, false, c->job->error);
}

static int give(const calibration *c)
{
    json_t *notes = notes_of(c), *fields = notes ? profile_json(&c->best, notes) : NULL;
    int rc = fields ? 0 : trace_failed(c->job->error, (trace_place){"kvkeep eval", 0, NULL}, "out of memory");
    progress_end(&c->job->progress);
    if (rc == 0 && c->job->o.calibrate.path)
        rc = write_profile(c, fields);
    if (rc == 0)
        rc = print(c, fields);
    json_decref(fields);
    json_decref(notes);
    return rc;
}

/* ---- The task --------------------------------------------------------------------------------------------------- */

static int calibrate(calibration *c)
{
    begin_profile(c);
    int rc = make_prompts(c);
    if (rc == 0)
        rc = calibrate_heads(c);
    if (rc == 0 && !c->job->o.calibrate.quick)
        rc = calibrate_knobs(c);
    return rc < 0 ? rc : give(c);
}

static int run(eval_job *j)
{
    calibration c = {.job = j, .steps = json_array()};
    int rc = check(j);
    if (rc == 0)
        rc = eval_set_usual(j) ? TRACE_BAD_INPUT : eval_text_read(j, j->o.text, &c.text);
    if (rc == 0)
        rc = calibrate(&c);
    for (uint32_t k = 0; k < CALIBRATE_KINDS; k++)
        needle_cells_free(c.cells[k], c.n_cells[k]);
    eval_text_free(&c.text);
    json_decref(c.steps);
    return rc;
}

const eval_task eval_task_calibrate = {
    "calibrate", "Find the heads and knobs of keep that serve a model best", true, &argp, set_defaults, run};
