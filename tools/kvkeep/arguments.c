#include "kvkeep/arguments.h"

#include "kvkeep/commands.h"
#include "trace/number.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { KEY_HELP = 0x7000 };

/* A subcommand's parser with --help added. argp's own help is bound to its own, longer, error messages. */
typedef struct wrapped {
    arguments *arguments;
    bool help;
} wrapped;

static const struct argp_option help_option[] = {
    {"help", KEY_HELP, NULL, 0, "Show this help", -1},
    {0},
};

static error_t bad_option(wrapped *w, const struct argp_state *state)
{
    const char *text = state->next > 0 && state->next <= state->argc ? state->argv[state->next - 1] : "";
    trace_bad_input(w->arguments->error, (trace_place){w->arguments->command, 0, text}, "not understood; see %s --help",
                    w->arguments->command);
    return EINVAL;
}

static error_t parse_wrapped(int key, char *arg, struct argp_state *state)
{
    wrapped *w = state->input;
    (void)arg;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = w->arguments;
        return 0;
    case KEY_HELP:
        w->help = true;
        return ECANCELED;
    case ARGP_KEY_ERROR:
        return w->help || w->arguments->error->text[0] ? 0 : bad_option(w, state);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int arguments_parse(const struct argp *argp, int argc, char **argv, arguments *a)
{
    const struct argp_child child[] = {{argp, 0, NULL, 0}, {0}};
    const struct argp whole = {help_option, parse_wrapped, NULL, NULL, child, NULL, NULL};
    int first_left = argc;
    wrapped w = {.arguments = a};
    a->error->text[0] = '\0';
    error_t rc = argp_parse(&whole, argc, argv, ARGP_NO_ERRS | ARGP_NO_HELP, &first_left, &w);
    if (w.help) {
        char name[64];
        snprintf(name, sizeof name, "%s", a->command);
        argp_help(&whole, stdout, ARGP_HELP_USAGE | ARGP_HELP_LONG | ARGP_HELP_DOC, name);
        return 1;
    }
    if (rc == 0 && first_left < argc)
        return trace_bad_input(a->error, (trace_place){a->command, 0, argv[first_left]}, "an argument too many");
    return rc == 0 ? 0 : TRACE_BAD_INPUT;
}

error_t arguments_whole(const arguments *a, const char *option, const char *text, whole_range range, uint64_t *out)
{
    const char *wrong = number_whole(text, range.max, out);
    if (!wrong && *out < range.min)
        wrong = "is too small";
    if (!wrong)
        return 0;
    trace_bad_input(a->error, (trace_place){a->command, 0, option}, "'%.64s' %s (%" PRIu64 " .. %" PRIu64 ")", text,
                    wrong, range.min, range.max);
    return EINVAL;
}

error_t arguments_u32(const arguments *a, const char *option, const char *text, whole_range range, uint32_t *out)
{
    uint64_t n = 0;
    error_t rc = arguments_whole(a, option, text, range, &n);
    *out = (uint32_t)n;
    return rc;
}

error_t arguments_mib(const arguments *a, const char *option, const char *text, uint64_t *out)
{
    uint64_t mib = 0;
    error_t rc = arguments_whole(a, option, text, (whole_range){1, UINT64_MAX >> 20}, &mib);
    *out = mib << 20;
    return rc;
}

error_t arguments_positive(const arguments *a, const char *option, const char *text, double *out)
{
    const char *wrong = number_decimal(text, out);
    if (!wrong && !(*out > 0))
        wrong = "is not above 0";
    if (!wrong)
        return 0;
    trace_bad_input(a->error, (trace_place){a->command, 0, option}, "'%.64s' %s", text, wrong);
    return EINVAL;
}

int arguments_report(const trace_error *error, int code)
{
    fprintf(stderr, "%s\n", error->text);
    return code == TRACE_BAD_INPUT ? EXIT_BAD_INPUT : EXIT_FAILED;
}

int arguments_finish_stdout(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return EXIT_OK;
    fprintf(stderr, "stdout: cannot write: %s\n", strerror(errno));
    return EXIT_FAILED;
}
