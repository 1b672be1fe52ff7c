#include "engine/chat_family.h"

#include <string.h>

enum { MAX_TEMPLATE = 1 << 16 /* bytes; those of the known families have a tenth of that */ };

#define DATED "Cutting Knowledge Date: December 2023"
static const char date_before[] = "set date_string = \"", system_before[] = "<|im_start|>system";

static const char *const chatml_needs[] = {"<|im_start|>assistant", "<|im_end|>", NULL};
static const char *const chatml_refuses[] = {"trim", "strip", "split", "replace", "eos_token", "system_message", NULL};
static const char *const chatml_marks[] = {
    "<|im_start|>",    "<|im_end|>",       "<tools>",         "</tools>",           "<tool_call>", "</tool_call>",
    "<tool_response>", "</tool_response>", "<function-name>", "<args-json-object>", NULL};
static const chat_line chatml_lines[] = {{"<|im_start|>assistant", 1}, {"<|im_end|>", 1}, {NULL, 0}};

static const char *const llama3_needs[] = {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "trim", NULL};
static const char *const llama3_refuses[] = {
    "<|start_header_id|>system", "system_message", "strip", "split", "replace", "eos_token", NULL};
static const char *const dated_needs[] = {"<|start_header_id|>system", DATED, date_before, "trim", NULL};
static const char *const dated_refuses[] = {"strip(", "split", "replace", "eos_token", NULL};
static const char *const llama3_marks[] = {"<|begin_of_text|>",
                                           "<|start_header_id|>",
                                           "<|end_header_id|>",
                                           "<|eot_id|>",
                                           "<|eom_id|>",
                                           "<|python_tag|>",
                                           NULL};
static const chat_line llama3_lines[] = {{"<|end_header_id|>", 2}, {"<|eot_id|>", 0}, {NULL, 0}};

static const chat_family families[] = {
    {.name = "ChatML",
     .open = "<|im_start|>",
     .gap = "\n",
     .end = "<|im_end|>",
     .after = "\n",
     .needs = chatml_needs,
     .refuses = chatml_refuses,
     .marks = chatml_marks,
     .lines = chatml_lines},
    {.name = "Llama 3.1",
     .open = "<|start_header_id|>",
     .close = "<|end_header_id|>",
     .gap = "\n\n",
     .end = "<|eot_id|>",
     .after = "",
     .trims = true,
     .dated = true,
     .needs = dated_needs,
     .refuses = dated_refuses,
     .marks = llama3_marks,
     .lines = llama3_lines},
    {.name = "Llama 3",
     .open = "<|start_header_id|>",
     .close = "<|end_header_id|>",
     .gap = "\n\n",
     .end = "<|eot_id|>",
     .after = "",
     .trims = true,
     .needs = llama3_needs,
     .refuses = llama3_refuses,
     .marks = llama3_marks,
     .lines = llama3_lines},
};

/* The rest of a text from a word on; at NULL if it is not there. */
static gguf_text from_word(gguf_text text, const char *word)
{
    size_t n = strlen(word);
    for (uint64_t i = 0; i + n <= text.n; i++)
        if (memcmp(text.at + i, word, n) == 0)
            return (gguf_text){text.at + i, text.n - i};
    return (gguf_text){NULL, 0};
}

static bool holds(gguf_text text, const char *word)
{
    return from_word(text, word).at != NULL;
}

static bool is_same(gguf_text a, gguf_text b)
{
    return a.n == b.n && memcmp(a.at, b.at, a.n) == 0;
}

static gguf_text skip(gguf_text text, uint64_t n)
{
    return (gguf_text){text.at + n, text.n - n};
}

static int refuse(const char *path, trace_error *error, const char *what, gguf_text which)
{
    return trace_bad_input(error, (trace_place){path, 0, "tokenizer.chat_template"}, "%s '%.*s'", what,
                           which.n < 60 ? (int)which.n : 60, which.at);
}

static const chat_family *find_family(gguf_text text)
{
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        const char *const *need = families[i].needs;
        while (*need && holds(text, *need))
            need++;
        if (!*need)
            return &families[i];
    }
    return NULL;
}

/* ---- Signs of what is not known --------------------------------------------------------------------------------- */

/* The length of what looks like a mark at the beginning of a text: <a-z|/_->. 0: it does not. */
static uint64_t mark_length(gguf_text text)
{
    static const char inside[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789|/_-";
    uint64_t n = 1;
    while (n < text.n && text.at[n] != '\0' && strchr(inside, text.at[n]))
        n++;
    return text.at[0] == '<' && n > 1 && n < text.n && text.at[n] == '>' ? n + 1 : 0;
}

static bool is_known(gguf_text mark, const char *const *known)
{
    for (; *known; known++)
        if (is_same(mark, (gguf_text){*known, strlen(*known)}))
            return true;
    return false;
}

/* A line's end, as itself or as a template's string has it. */
static uint64_t newline_length(gguf_text text)
{
    return text.n > 0 && text.at[0] == '\n' ? 1 : text.n > 1 && memcmp(text.at, "\\n", 2) == 0 ? 2 : 0;
}

/* The line ends that follow, in the same string or in one that is put behind it. */
static uint32_t newlines_after(gguf_text text)
{
    uint32_t n = 0;
    for (uint64_t length; text.n > 0; text = skip(text, length)) {
        length = newline_length(text);
        n += length > 0;
        if (length == 0 && text.at[0] != '\0' && strchr("'\" +~", text.at[0]))
            length = 1;
        if (length == 0)
            break;
    }
    return n;
}

static int check_lines(gguf_text text, const char *path, const chat_family *family, trace_error *error)
{
    for (const chat_line *line = family->lines; line->word; line++)
        for (gguf_text at = from_word(text, line->word); at.at; at = from_word(at, line->word)) {
            gguf_text here = at;
            at = skip(at, strlen(line->word));
            if (newlines_after(at) != line->newlines)
                return refuse(path, error, "is of a kind that is not known here: it has", here);
        }
    return 0;
}

static int check_signs(gguf_text text, const char *path, const chat_family *family, trace_error *error)
{
    for (const char *const *word = family->refuses; *word; word++)
        if (holds(text, *word))
            return refuse(path, error, "is of a kind that is not known here: it has",
                          (gguf_text){*word, strlen(*word)});
    for (; text.n > 0; text = skip(text, 1)) {
        gguf_text mark = {text.at, mark_length(text)};
        if (mark.n > 0 && !is_known(mark, family->marks))
            return refuse(path, error, "is of a kind that is not known here: it has", mark);
    }
    return 0;
}

/* ---- What templates of one family differ in ---------------------------------------------------------------------- */

/* The text up to <|im_end|> if it is all one string's; at NULL if the string, or the plain text, ends before. */
static gguf_text literal(gguf_text text)
{
    gguf_text end = from_word(text, "<|im_end|>");
    uint64_t n = end.at ? (uint64_t)(end.at - text.at) : 0;
    for (uint64_t i = 0; i < n; i++)
        if (strchr("'\"{\\", text.at[i]))
            n = i;
    return end.at && text.at + n == end.at ? (gguf_text){text.at, n} : (gguf_text){NULL, n};
}

/* The default system message stands in the template as a turn of its own; those of messages are put together. */
static int find_system(gguf_text text, const char *path, chat_format *out, trace_error *error)
{
    while ((text = from_word(text, system_before)).at) {
        gguf_text turn = text;
        text = skip(text, sizeof system_before - 1);
        text = skip(text, newline_length(text));
        gguf_text found = literal(text);
        if (!found.at && found.n == 0)
            continue;
        if (!found.at ||
            (out->system.n && (found.n != out->system.n || memcmp(found.at, out->system.at, found.n) != 0)))
            return refuse(path, error, "has a default system message that is not understood:", turn);
        out->system = found;
    }
    return 0;
}

static int find_date(gguf_text text, const char *path, chat_format *out, trace_error *error)
{
    /* The last one is what stays where nothing tells the day. */
    for (gguf_text rest = from_word(text, date_before); rest.at; rest = from_word(rest, date_before)) {
        rest = skip(rest, sizeof date_before - 1);
        const char *end = memchr(rest.at, '"', rest.n < 40 ? rest.n : 40);
        if (!end)
            return refuse(path, error, "has a date that is not understood:", rest);
        out->date = (gguf_text){rest.at, (uint64_t)(end - rest.at)};
    }
    return 0;
}

int chat_format_read(gguf_text text, const char *path, chat_format *out, trace_error *error)
{
    chat_format format = {0};
    if (text.n > MAX_TEMPLATE)
        return trace_bad_input(error, (trace_place){path, 0, "tokenizer.chat_template"}, "is longer than %d bytes",
                               MAX_TEMPLATE);
    format.family = find_family(text);
    if (!format.family)
        return trace_bad_input(error, (trace_place){path, 0, "tokenizer.chat_template"},
                               "is of no known family: ChatML and Llama 3 are known");
    format.begins = holds(text, "bos_token") || holds(text, "<|begin_of_text|>");
    int rc = check_signs(text, path, format.family, error);
    if (rc == 0)
        rc = check_lines(text, path, format.family, error);
    if (rc == 0)
        rc = format.family->dated ? find_date(text, path, &format, error) : find_system(text, path, &format, error);
    if (rc == 0)
        *out = format;
    return rc;
}

int chat_format_open(const gguf *g, chat_format *out, trace_error *error)
{
    gguf_text text;
    int rc = gguf_string(g, "tokenizer.chat_template", &text, error);
    return rc < 0 ? rc : chat_format_read(text, gguf_path(g), out, error);
}

const char *chat_format_name(const chat_format *f)
{
    return f->family->name;
}
