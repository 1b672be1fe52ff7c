/* eval/needle_options.c: what `kvkeep eval passkey`, `niah` and `multi-turn` are told. */
#include "kvkeep/eval/needle.h"

#include <errno.h>
#include <string.h>

enum {
    KEY_HAYSTACK = 0x300,
    KEY_WORDING,
    KEY_NEEDLE,
    KEY_QUESTION,
    KEY_LENGTH,
    KEY_STATED,
    KEY_ASK,
    KEY_KEYS,
    KEY_DEPTHS,
    KEY_REPEATS
};

static const char *const asks[EVAL_QUESTIONS] = {
    [NEEDLE_HIDDEN] = "hidden", [NEEDLE_VISIBLE] = "visible", [NEEDLE_DURING] = "during"};

const char *eval_question_name(needle_question question)
{
    return asks[question];
}

static error_t refuse(const arguments *a, const char *option, const char *text, const char *why)
{
    trace_bad_input(a->error, (trace_place){a->command, 0, option}, "'%.64s' %s", text, why);
    return EINVAL;
}

error_t eval_names_add(const arguments *a, const char *option, const char *text, eval_names *names)
{
    if (names->n == EVAL_MAX_NAMES)
        return refuse(a, option, text, "is one too many");
    names->list[names->n++] = text;
    return 0;
}

static error_t add_wording(const arguments *a, eval_needle_options *o, const char *text)
{
    if (strcmp(text, "tuning") != 0 && strcmp(text, "reported") != 0 && !needle_wording_find(text))
        return refuse(a, "--wording", text, "is neither tuning, reported nor the name of a wording");
    return eval_names_add(a, "--wording", text, &o->wordings);
}

static error_t add_number(const arguments *a, const char *option, const char *text, whole_range range,
                          eval_numbers *numbers)
{
    uint64_t n = 0;
    if (numbers->n == EVAL_MAX_NUMBERS)
        return refuse(a, option, text, "is one too many");
    error_t rc = arguments_whole(a, option, text, range, &n);
    if (rc == 0)
        numbers->list[numbers->n++] = (uint32_t)n;
    return rc;
}

static error_t add_ask(const arguments *a, eval_needle_options *o, const char *text)
{
    for (uint32_t i = 0; i < EVAL_QUESTIONS; i++)
        if (strcmp(text, asks[i]) == 0 && o->n_questions < EVAL_QUESTIONS) {
            o->questions[o->n_questions++] = (needle_question)i;
            return 0;
        }
    return refuse(a, "--ask", text, "is not one of hidden, visible and during, or one too many");
}

static error_t parse_keys(const arguments *a, eval_needle_options *o, const char *text)
{
    o->keys = strcmp(text, "words") == 0 ? NEEDLE_WORDS : NEEDLE_DIGITS;
    return o->keys == NEEDLE_WORDS || strcmp(text, "digits") == 0
               ? 0
               : refuse(a, "--keys", text, "is neither digits nor words");
}

static error_t parse_number(int key, const char *text, const arguments *a, eval_needle_options *o)
{
    switch (key) {
    case KEY_LENGTH:
        return add_number(a, "--length", text, (whole_range){1, MODEL_MAX_CONTEXT}, &o->lengths);
    case KEY_STATED:
        return add_number(a, "--stated", text, (whole_range){1, 2}, &o->stated);
    case KEY_DEPTHS:
        return arguments_u32(a, "--depths", text, (whole_range){1, 1000}, &o->depths);
    case KEY_REPEATS:
        return arguments_u32(a, "--repeats", text, (whole_range){1, 100000}, &o->repeats);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_option(int key, const char *text, const arguments *a, eval_needle_options *o)
{
    switch (key) {
    case KEY_HAYSTACK:
        return eval_names_add(a, "--haystack", text, &o->haystacks);
    case KEY_WORDING:
        return add_wording(a, o, text);
    case KEY_NEEDLE:
        o->needle = text;
        return 0;
    case KEY_QUESTION:
        o->question = text;
        return 0;
    case KEY_ASK:
        return add_ask(a, o, text);
    case KEY_KEYS:
        return parse_keys(a, o, text);
    default:
        return parse_number(key, text, a, o);
    }
}

static error_t check(const arguments *a, const eval_needle_options *o)
{
    if (o->needle && !strstr(o->needle, NEEDLE_KEY))
        return refuse(a, "--needle", o->needle, "has no " NEEDLE_KEY);
    if (!o->needle == !o->question)
        return 0;
    return refuse(a, o->needle ? "--needle" : "--question", o->needle ? o->needle : o->question,
                  o->needle ? "has no --question" : "has no --needle");
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    const arguments *a = state->input;
    eval_options *o = a ? a->options : NULL;
    if (!o)
        return ARGP_ERR_UNKNOWN;
    return key == ARGP_KEY_END ? check(a, &o->needle) : parse_option(key, text, a, &o->needle);
}

/* niah has no text of its own. */
static error_t parse_niah(int key, char *text, struct argp_state *state)
{
    const arguments *a = state->input;
    const eval_options *o = a ? a->options : NULL;
    if (!o || key != ARGP_KEY_END || o->needle.haystacks.n)
        return parse(key, text, state);
    trace_bad_input(a->error, (trace_place){a->command, 0, "--haystack"}, "missing: a text to put the needles into");
    return EINVAL;
}

#define OPTION_LENGTH                                                                                                  \
    {                                                                                                                  \
        "length", KEY_LENGTH, "N", 0, "Tokens of the text (default 1008). May be given several times", 11              \
    }
#define OPTION_ASK                                                                                                     \
    {                                                                                                                  \
        "ask", KEY_ASK, "WHEN", 0,                                                                                     \
            "hidden (the default): the question comes after the text went through the budget; visible: with the "      \
            "whole text, "                                                                                             \
            "which is cut down to the budget then; during: as the end of the text that goes through the budget. May "  \
            "be given "                                                                                                \
            "several times",                                                                                           \
            11                                                                                                         \
    }
#define OPTION_KEYS                                                                                                    \
    {                                                                                                                  \
        "keys", KEY_KEYS, "digits|words", 0, "Five digits (the default) or two words", 11                              \
    }

static const struct argp_option needle_options_list[] = {
    {"haystack", KEY_HAYSTACK, "FILE", 0,
     "What the needles are put into; filler: a few sentences, repeated. May be given several times", 11},
    {"wording", KEY_WORDING, "NAME", 0,
     "Built-in sentences, by name, or all of a set: reported (the default), or tuning, for whoever changes a policy. "
     "May be given several times",
     11},
    {"needle", KEY_NEEDLE, "TEXT", 0, "A sentence of your own, with " NEEDLE_KEY " for the key", 11},
    {"question", KEY_QUESTION, "TEXT", 0, "What is asked then; it ends where the key would follow", 11},
    OPTION_LENGTH,
    {"stated", KEY_STATED, "1|2", 0, "How often the key is stated (default: both, apart). May be given several times",
     11},
    OPTION_ASK,
    OPTION_KEYS,
    {"depths", KEY_DEPTHS, "N", 0, "Depths at which needles stand, from 10 to 90 % of the text (default 5)", 11},
    {"repeats", KEY_REPEATS, "N", 0, "Prompts at each depth, each with a key of its own (default 8)", 11},
    {0},
};

static const struct argp_option dialog_options_list[] = {
    OPTION_LENGTH, OPTION_ASK,
    OPTION_KEYS,   {"repeats", KEY_REPEATS, "N", 0, "Conversations, each with a key of its own (default 8)", 11},
    {0},
};

const struct argp eval_needle_argp = {needle_options_list, parse, NULL, NULL, NULL, NULL, NULL};
const struct argp eval_niah_argp = {needle_options_list, parse_niah, NULL, NULL, NULL, NULL, NULL};
const struct argp eval_dialog_argp = {dialog_options_list, parse, NULL, NULL, NULL, NULL, NULL};
