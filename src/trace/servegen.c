/* ServeGen's client models: FILE-trace.csv says when requests come, in windows of 600 s (start, rate, CV and law of
 * the gaps between requests), and FILE-dataset.json how long they are, in windows of 6 h. They make requests up from
 * a seed.
 *
 * A gap is drawn with mean 1 from the family and shape of the window that its first request is in, and then passes as
 * fast as each window's rate says: so windows without requests are crossed, and every window has the file's rate. The
 * files' scale is not used, as the fitted mean is not always the measured one. */
#include "trace/format.h"
#include "trace/input.h"
#include "trace/json.h"
#include "trace/length_law.h"
#include "trace/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW_S = 600, N_COLUMNS = 6 };

static const char *const names[N_COLUMNS] = {"start", "rate", "cv", "pattern", "shape", "scale"};
static const char trace_end[] = "-trace.csv", dataset_end[] = "-dataset.json";

typedef double (*gap_law)(random_state *random, double shape); /* with mean 1 */

/* Lengths of the requests from `start_us` on. */
typedef struct length_window {
    uint64_t start_us;
    length_law input, output;
} length_window;

typedef struct servegen_state {
    random_state random;
    char *dataset; /* its path */
    length_window *lengths;
    size_t n_lengths, at; /* lengths[at] is in force */
    double now, end;      /* s; the window in hand lasts until `end` */
    double rate, shape;   /* of this window */
    gap_law draw;
} servegen_state;

static bool detect(const char *line, size_t length)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", digits[] = "0123456789.eE+-";
    const char *at = line;
    for (int column = 0; column < N_COLUMNS; column++) {
        bool word = column == 3; /* or nothing, in a window without requests */
        size_t n = strcspn(at, ",");
        if (strspn(at, word ? letters : digits) != n || (n == 0 && !word))
            return false;
        at += n;
        if (column + 1 < N_COLUMNS && *at++ != ',')
            return false;
    }
    return at == line + length;
}

static double draw_gamma(random_state *random, double shape)
{
    return random_gamma(random, shape) / shape;
}

static double draw_weibull(random_state *random, double shape)
{
    return pow(random_exponential(random), 1 / shape) / tgamma(1 + 1 / shape);
}

static int find_law(trace_reader *r, const char *pattern, gap_law *out, trace_error *error)
{
    *out = strcmp(pattern, "Gamma") == 0 ? draw_gamma : strcmp(pattern, "Weibull") == 0 ? draw_weibull : NULL;
    if (*out)
        return 0;
    return trace_bad_input(error, lines_place(&r->lines, names[3]), "'%.32s' is none of Gamma, Weibull", pattern);
}

static int read_number(trace_reader *r, char *const *fields, int column, double *out, trace_error *error)
{
    const double most = 1e6;
    const char *wrong = number_decimal(fields[column], out);
    if (!wrong && *out > most)
        wrong = "is too large";
    if (wrong)
        return trace_bad_input(error, lines_place(&r->lines, names[column]), "'%.64s' %s", fields[column], wrong);
    return 0;
}

/* How gaps are spread; only where there are requests. */
static int read_law(trace_reader *r, char *const *fields, trace_error *error)
{
    const double least = 0.01; /* below, the mean of Weibull's law nears the end of the numbers */
    servegen_state *s = r->state;
    int rc = find_law(r, fields[3], &s->draw, error);
    if (rc == 0)
        rc = read_number(r, fields, 4, &s->shape, error);
    if (rc == 0 && s->shape < least)
        rc = trace_bad_input(error, lines_place(&r->lines, names[4]), "'%.64s' is below %g", fields[4], least);
    return rc;
}

/* Goes to the next window. Returns 1, 0 at the end, or an error. */
static int next_window(trace_reader *r, trace_error *error)
{
    servegen_state *s = r->state;
    char *fields[N_COLUMNS];
    uint64_t start_us;
    double unused;
    int rc = csv_row(&r->lines, (csv_columns){names, N_COLUMNS}, fields, error);
    if (rc != 1)
        return rc;
    rc = csv_seconds(&r->lines, names[0], fields[0], &start_us, error);
    if (rc == 0 && (double)start_us * 1e-6 < s->end)
        rc = trace_bad_input(error, lines_place(&r->lines, names[0]),
                             "'%.64s' is before the end of the last window, %g", fields[0], s->end);
    if (rc == 0)
        rc = read_number(r, fields, 1, &s->rate, error);
    if (rc == 0)
        rc = read_number(r, fields, 2, &unused, error);
    if (rc == 0 && s->rate > 0)
        rc = read_law(r, fields, error);
    s->now = (double)start_us * 1e-6;
    s->end = s->now + WINDOW_S;
    return rc < 0 ? rc : 1;
}

/* Sets the clock to the next request. Returns 1, 0 at the end, or an error. */
static int pass_gap(trace_reader *r, trace_error *error)
{
    servegen_state *s = r->state;
    int rc = 1;
    while (s->rate == 0 && rc == 1)
        rc = next_window(r, error);
    if (rc != 1)
        return rc;
    double left = s->draw(&s->random, s->shape);
    while (left > (s->end - s->now) * s->rate) {
        left -= (s->end - s->now) * s->rate;
        rc = next_window(r, error);
        if (rc != 1)
            return rc;
    }
    if (s->rate > 0)
        s->now += left / s->rate;
    return 1;
}

static int draw_lengths(trace_reader *r, trace_request *out, trace_error *error)
{
    servegen_state *s = r->state;
    while (s->at + 1 < s->n_lengths && s->lengths[s->at + 1].start_us <= out->arrival_us)
        s->at++;
    const length_window *w = s->n_lengths ? &s->lengths[s->at] : NULL;
    if (!w || w->start_us > out->arrival_us || w->input.n == 0 || w->output.n == 0)
        return trace_bad_input(error, (trace_place){s->dataset, 0, NULL}, "has no lengths for requests at %g s",
                               s->now);
    out->n_input = length_law_draw(&w->input, &s->random);
    out->n_output = length_law_draw(&w->output, &s->random);
    return 1;
}

static int next_servegen(trace_reader *r, trace_request *out, trace_error *error)
{
    servegen_state *s = r->state;
    int rc = pass_gap(r, error);
    if (rc != 1)
        return rc;
    *out = (trace_request){.arrival_us = (uint64_t)llround(s->now * 1e6)};
    return draw_lengths(r, out, error);
}

static int read_lengths(servegen_state *s, const char *start, const json_t *window, const char *name, length_law *law,
                        trace_error *error)
{
    char field[64];
    snprintf(field, sizeof field, "%.32s.%s", start, name);
    trace_place place = {s->dataset, 0, field};
    const json_t *text = json_object_get(window, name);
    if (!json_is_string(text))
        return trace_bad_input(error, place, text ? "is not a string" : "missing");
    return length_law_read(law, json_string_value(text), place, error);
}

static int read_length_window(servegen_state *s, const char *start, const json_t *window, trace_error *error)
{
    uint64_t start_s;
    const char *wrong = number_whole(start, 9000000000u, &start_s);
    if (wrong)
        return trace_bad_input(error, (trace_place){s->dataset, 0, start}, "the window's start %s", wrong);
    length_window *w = &s->lengths[s->n_lengths++];
    w->start_us = start_s * 1000000;
    int rc = read_lengths(s, start, window, "input_tokens", &w->input, error);
    return rc < 0 ? rc : read_lengths(s, start, window, "output_tokens", &w->output, error);
}

static int by_start(const void *left, const void *right)
{
    const length_window *a = left, *b = right;
    return a->start_us < b->start_us ? -1 : a->start_us > b->start_us;
}

static int read_windows(servegen_state *s, json_t *document, trace_error *error)
{
    const char *start;
    json_t *window;
    s->lengths = calloc(json_object_size(document) + 1, sizeof *s->lengths);
    if (!s->lengths)
        return trace_failed(error, (trace_place){s->dataset, 0, NULL}, "out of memory");
    json_object_foreach(document, start, window)
    {
        int rc = read_length_window(s, start, window, error);
        if (rc < 0)
            return rc;
    }
    qsort(s->lengths, s->n_lengths, sizeof *s->lengths, by_start);
    return 0;
}

static int read_dataset(servegen_state *s, trace_error *error)
{
    FILE *in = NULL;
    line_reader lines;
    int rc = input_open(s->dataset, &in, error);
    if (rc < 0)
        return rc;
    lines_open(&lines, in, s->dataset);
    json_t *document = json_document(&lines, &rc, error);
    lines_close(&lines);
    fclose(in);
    if (rc == 0)
        rc = read_windows(s, document, error);
    json_decref(document);
    return rc;
}

static int open_servegen(trace_reader *r, trace_error *error)
{
    servegen_state *s = r->state;
    const char *name = r->lines.name;
    size_t n = strlen(name), cut = sizeof trace_end - 1;
    if (n < cut || strcmp(name + n - cut, trace_end) != 0)
        return trace_bad_input(error, (trace_place){name, 0, NULL},
                               "must be named FILE%s, as lengths are in FILE%s beside it", trace_end, dataset_end);
    s->dataset = malloc(n - cut + sizeof dataset_end);
    if (!s->dataset)
        return trace_failed(error, (trace_place){name, 0, NULL}, "out of memory");
    memcpy(s->dataset, name, n - cut);
    memcpy(s->dataset + n - cut, dataset_end, sizeof dataset_end);
    random_seed(&s->random, r->options.seed);
    return read_dataset(s, error);
}

static void close_servegen(trace_reader *r)
{
    servegen_state *s = r->state;
    for (size_t i = 0; i < s->n_lengths; i++) {
        length_law_close(&s->lengths[i].input);
        length_law_close(&s->lengths[i].output);
    }
    free(s->lengths);
    free(s->dataset);
}

const trace_format trace_servegen = {
    .name = "servegen",
    .content = TRACE_LENGTHS,
    .arrival_field = "start",
    .input_field = "input_tokens",
    .output_field = "output_tokens",
    .state_bytes = sizeof(servegen_state),
    .open = open_servegen,
    .detect = detect,
    .next = next_servegen,
    .close = close_servegen,
};
