#define _XOPEN_SOURCE 700 /* mkdtemp */
/* Requests made from ServeGen's client models: means and spreads against what the models say, and every bad input. */
#include "run_tests.h"
#include "trace/length_law.h"
#include "trace/request.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX = 200000 };

/* What came out of a pair of files. */
typedef struct made {
    int rc;
    uint32_t n;
    double arrival_s[MAX];
    uint32_t input[MAX], output[MAX];
    trace_error error;
} made;

static void write_file(const char *name, const char *text)
{
    FILE *out = fopen(name, "w");
    ck_assert_ptr_nonnull(out);
    fputs(text, out);
    ck_assert_int_eq(fclose(out), 0);
}

static void read_all(made *m, trace *t)
{
    trace_request r;
    while (m->n < MAX && (m->rc = trace_next(t, &r, &m->error)) == 1) {
        m->arrival_s[m->n] = (double)r.arrival_us * 1e-6;
        m->input[m->n] = r.n_input;
        m->output[m->n++] = r.n_output;
    }
}

/* Reads a pair as a-trace.csv and a-dataset.json (NULL: there is none) in a folder of its own. The result is to be
 * freed. */
static made *make(const char *csv, const char *dataset, uint64_t seed)
{
    char folder[] = "/tmp/kvkeep-servegen-XXXXXX";
    const char *path = "a-trace.csv";
    made *m = calloc(1, sizeof *m);
    trace_options options = TRACE_OPTIONS_DEFAULT;
    trace *t = NULL;
    ck_assert_ptr_nonnull(m);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    write_file(path, csv);
    if (dataset)
        write_file("a-dataset.json", dataset);
    options.seed = seed;
    m->rc = trace_open_files(&path, 1, &options, &t, &m->error);
    if (m->rc == 0)
        read_all(m, t);
    trace_close(t);
    unlink(path);
    unlink("a-dataset.json");
    ck_assert_int_eq(chdir("/"), 0);
    rmdir(folder);
    return m;
}

static double mean_of(const uint32_t *x, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += x[i];
    return sum / n;
}

/* The gaps' spread: deviation / mean. */
static double cv_of(const made *m)
{
    double sum = 0, squares = 0;
    for (uint32_t i = 1; i < m->n; i++) {
        double gap = m->arrival_s[i] - m->arrival_s[i - 1];
        sum += gap;
        squares += gap * gap;
    }
    double mean = sum / (m->n - 1);
    return sqrt(squares / (m->n - 1) - mean * mean) / mean;
}

static void assert_near(double got, double want, double tolerance)
{
    ck_assert_msg(fabs(got - want) <= tolerance, "%g is not within %g of %g", got, tolerance, want);
}

#define LENGTHS(in, out)                                                                                               \
    "{\"input_tokens\": \"" in "\", \"output_tokens\": \"" out "\", \"reason_ratio\": \"{0.5: 1}\"}"
#define DATASET "{\"0\": " LENGTHS("{10: 0.25, 30: 0.75}", "{0: 0.5, 7: 0.5}") "}"

/* 20 windows of this law, 10 requests/s: 120,000 requests. */
static made *twenty_windows(const char *law)
{
    char csv[4096];
    size_t n = 0;
    for (int i = 0; i < 20; i++)
        n += (size_t)snprintf(csv + n, sizeof csv - n, "%d,10,1.0,%s,0.1\n", 600 * i, law);
    return make(csv, DATASET, 1);
}

/* Gamma of shape 1/2: CV 1/sqrt(1/2) = 1.4142. Means: (10 + 3 * 30) / 4 = 25 and 3.5. Deviations of the means of
 * 120,000 are 0.025 and 0.0101, of the number of requests sqrt(2 * 120,000) = 490: five of each are allowed. */
START_TEST(gamma_gaps_have_the_rate_and_the_spread)
{
    made *m = twenty_windows("Gamma,0.5");
    ck_assert_int_eq(m->rc, 0);
    assert_near(m->n, 120000, 5 * 490);
    assert_near(cv_of(m), 1.41421, 0.03);
    assert_near(mean_of(m->input, m->n), 25, 0.125);
    assert_near(mean_of(m->output, m->n), 3.5, 0.051);
    free(m);
}
END_TEST

/* Weibull of shape 1/2: CV sqrt(G(5) / G(3)^2 - 1) = sqrt(24 / 4 - 1) = 2.2361; the number deviates by 775. */
START_TEST(weibull_gaps_have_the_rate_and_the_spread)
{
    made *m = twenty_windows("Weibull,0.5");
    ck_assert_int_eq(m->rc, 0);
    assert_near(m->n, 120000, 5 * 775);
    assert_near(cv_of(m), 2.23607, 0.1);
    free(m);
}
END_TEST

/* Shape 1 of both is the exponential law: CV 1. Gamma of 4: 1/2. */
START_TEST(shapes_of_one_and_more)
{
    static const char *const laws[] = {"Gamma,1", "Weibull,1", "Gamma,4"};
    for (int i = 0; i < 3; i++) {
        made *m = twenty_windows(laws[i]);
        assert_near(cv_of(m), i < 2 ? 1 : 0.5, 0.02);
        free(m);
    }
}
END_TEST

/* 600 s of 1/s, 600 s and a hole of nothing, 600 s of 20/s with other lengths. */
START_TEST(windows_have_their_own_rates_and_lengths)
{
    made *m = make("0,1,1,Gamma,4,0.25\n600,0,0,,0,0\n21600,20,1,Gamma,4,0.25\n",
                   "{\"21600\": " LENGTHS("{5: 1}", "{6: 1}") ", \"0\": " LENGTHS("{3: 1}", "{4: 1}") "}", 3);
    uint32_t early = 0;
    ck_assert_int_eq(m->rc, 0);
    for (uint32_t i = 0; i < m->n; i++) {
        bool first = m->arrival_s[i] <= 600;
        early += first;
        ck_assert(first || (m->arrival_s[i] >= 21600 && m->arrival_s[i] <= 22200));
        ck_assert_uint_eq(m->input[i], first ? 3 : 5);
        ck_assert_uint_eq(m->output[i], first ? 4 : 6);
    }
    assert_near(early, 600, 5 * 12.3);          /* sqrt(600 / 4) */
    assert_near(m->n - early, 12000, 5 * 54.8); /* sqrt(12000 / 4) */
    free(m);
}
END_TEST

START_TEST(the_seed_decides)
{
    made *a = twenty_windows("Gamma,0.5"), *b = twenty_windows("Gamma,0.5"),
         *c = make("0,10,1,Gamma,0.5,0.1\n", DATASET, 2);
    ck_assert_uint_eq(a->n, b->n);
    ck_assert_mem_eq(a->arrival_s, b->arrival_s, sizeof a->arrival_s);
    ck_assert_mem_eq(a->input, b->input, sizeof a->input);
    ck_assert_mem_ne(a->arrival_s, c->arrival_s, 100 * sizeof a->arrival_s[0]);
    free(a);
    free(b);
    free(c);
}
END_TEST

START_TEST(a_law_draws_by_its_probabilities)
{
    length_law law = {NULL, NULL, 0};
    random_state random;
    trace_error error;
    uint32_t seen[4] = {0};
    random_seed(&random, 5);
    ck_assert_int_eq(length_law_read(&law, " { 3 : 0.5,1: 5e-1 ,2:0.0 } ", (trace_place){"t", 0, NULL}, &error), 0);
    ck_assert_uint_eq(law.n, 3);
    for (int i = 0; i < 10000; i++)
        seen[length_law_draw(&law, &random)]++;
    ck_assert_uint_eq(seen[2], 0);
    assert_near(seen[1], 5000, 5 * 50);
    length_law_close(&law);
}
END_TEST

typedef struct refusal {
    const char *csv, *dataset, *line;
} refusal;

#define GOOD "0,10,1,Gamma,0.5,0.1\n"

static const refusal refusals[] = {
    {GOOD, NULL, "a-dataset.json: cannot open: No such file or directory"},
    {GOOD, "[]", "a-dataset.json: is no JSON object"},
    {GOOD, "{\"0\": }", "a-dataset.json:1: field 0: not JSON at column 7: unexpected token near '}'"},
    {GOOD, "{}", "a-dataset.json: has no lengths for requests at ..."},
    {GOOD, "{\"x\": 1}", "a-dataset.json: field x: the window's start is not a whole number"},
    {GOOD, "{\"0\": 1}", "a-dataset.json: field 0.input_tokens: missing"},
    {GOOD, "{\"0\": {\"input_tokens\": 1}}", "a-dataset.json: field 0.input_tokens: is not a string"},
    {GOOD, "{\"0\": {\"input_tokens\": \"{}\"}}", "a-dataset.json: field 0.output_tokens: missing"},
    {GOOD, "{\"0\": " LENGTHS("{}", "{}") "}", "a-dataset.json: has no lengths for requests at ..."},
    {GOOD, "{\"21600\": " LENGTHS("{1: 1}", "{1: 1}") "}", "a-dataset.json: has no lengths for requests at ..."},
    {GOOD, "{\"0\": " LENGTHS("", "{}") "}",
     "a-dataset.json: field 0.input_tokens: is not {length: probability, ...} at character 1, ''"},
    {GOOD, "{\"0\": " LENGTHS("{1: 1,}", "{}") "}",
     "a-dataset.json: field 0.input_tokens: is not {length: probability, ...} at character 7, '}'"},
    {GOOD, "{\"0\": " LENGTHS("{1: -1}", "{}") "}",
     "a-dataset.json: field 0.input_tokens: is not {length: probability, ...} at character 5, '-1}'"},
    {GOOD, "{\"0\": " LENGTHS("{1: inf}", "{}") "}",
     "a-dataset.json: field 0.input_tokens: is not {length: probability, ...} at character 5, 'inf}'"},
    {GOOD, "{\"0\": " LENGTHS("{1: 1e999}", "{}") "}",
     "a-dataset.json: field 0.input_tokens: is not {length: probability, ...} at character 10, '}'"},
    {GOOD, "{\"0\": " LENGTHS("{1: 1} x", "{}") "}",
     "a-dataset.json: field 0.input_tokens: is not {length: probability, ...} at character 8, 'x'"},
    {GOOD, "{\"0\": " LENGTHS("{4294967296: 1}", "{}") "}",
     "a-dataset.json: field 0.input_tokens: is not {length: probability, ...} at character 12, ': 1}'"},
    {GOOD, "{\"0\": " LENGTHS("{1: 0.5}", "{}") "}",
     "a-dataset.json: field 0.input_tokens: the probabilities add up to 0.5"},
    {GOOD, "{\"0\": " LENGTHS("{0: 1}", "{1: 1}") "}", "a-trace.csv:1: field input_tokens: must be at least 1"},
    {"0,10,1,Gamma,0.5,0.1\n300,1,1,Gamma,1,1\n", DATASET,
     "a-trace.csv:2: field start: '300' is before the end of the last window, 600"},
    {"0,-1,1,Gamma,0.5,0.1\n", DATASET, "a-trace.csv:1: field rate: '-1' is negative"},
    {"0,1e7,1,Gamma,0.5,0.1\n", DATASET, "a-trace.csv:1: field rate: '1e7' is too large"},
    {"1e10,1,1,Gamma,0.5,0.1\n", DATASET, "a-trace.csv:1: field start: '1e10' is too large"},
    {"0,1,1,Gamma,0.001,0.1\n", DATASET, "a-trace.csv:1: field shape: '0.001' is below 0.01"},
    {"0,1,1,Pareto,1,0.1\n", DATASET, "a-trace.csv:1: field pattern: 'Pareto' is none of Gamma, Weibull"},
    {"0,1,1,,1,0.1\n", DATASET, "a-trace.csv:1: field pattern: '' is none of Gamma, Weibull"},
    {"0,0,0,,0,0\n600,1,1,Gamma\n", DATASET, "a-trace.csv:2: field shape: missing: the row has 4 of 6 columns"},
};

START_TEST(bad_input_is_refused_with_one_line)
{
    const refusal *r = &refusals[_i];
    made *m = make(r->csv, r->dataset, 1);
    const char *open_end = strstr(r->line, "...");
    bool beginning = open_end && open_end[3] == '\0';
    ck_assert_int_eq(m->rc, TRACE_BAD_INPUT);
    if (beginning)
        ck_assert_msg(strncmp(m->error.text, r->line, (size_t)(open_end - r->line)) == 0, "%s", m->error.text);
    else
        ck_assert_str_eq(m->error.text, r->line);
    free(m);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("servegen");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, gamma_gaps_have_the_rate_and_the_spread);
    tcase_add_test(t, weibull_gaps_have_the_rate_and_the_spread);
    tcase_add_test(t, shapes_of_one_and_more);
    tcase_add_test(t, windows_have_their_own_rates_and_lengths);
    tcase_add_test(t, the_seed_decides);
    tcase_add_test(t, a_law_draws_by_its_probabilities);
    tcase_add_loop_test(t, bad_input_is_refused_with_one_line, 0, sizeof refusals / sizeof refusals[0]);
    return run_tests("trace_servegen", t);
}
