#include "engine/pretokenizer.h"

#include <stdbool.h>
#include <string.h>

/* Unicode's white space. PCRE2's \s takes U+180E for one too, which it is no longer. */
#define SPACE "\\t-\\r \\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
#define ENDINGS "'(?:s|t|re|ve|m|ll|d)"
#define OTHERS " ?[^" SPACE "\\p{L}\\p{N}]+"

/* Spaces without the last one, which goes with the word that follows; all of them where none does. */
#define SPACES "[" SPACE "]+(?![^" SPACE "])|[" SPACE "]+"

#define GPT2 ENDINGS "| ?\\p{L}+| ?\\p{N}+|" OTHERS "|" SPACES

/* GPT2 between digits, each of which is a word of its own; so no space goes with a digit. */
#define SMOLLM "\\p{N}|" ENDINGS "| ?\\p{L}+|" OTHERS "|[" SPACE "]+(?![^" SPACE "\\p{N}])|[" SPACE "]+"

#define LLAMA3(NUMBER)                                                                                                 \
    "(?i:" ENDINGS ")|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" NUMBER "|" OTHERS "[\\r\\n]*|[" SPACE "]*[\\r\\n]+|" SPACES

typedef struct family {
    const char *name, *pattern;
    bool whole_words, add_begin;
} family;

static const family families[] = {
    {"gpt2", GPT2, false, false},
    {"gpt-2", GPT2, false, false},
    {"smollm", SMOLLM, false, false},
    {"llama-bpe", LLAMA3("\\p{N}{1,3}"), true, true},
    {"llama3", LLAMA3("\\p{N}{1,3}"), true, true},
    {"llama-v3", LLAMA3("\\p{N}{1,3}"), true, true},
    {"qwen2", LLAMA3("\\p{N}"), false, false},
};

static const family *find_family(gguf_text name)
{
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        if (strlen(families[i].name) == name.n && memcmp(families[i].name, name.at, name.n) == 0)
            return &families[i];
    return NULL;
}

int pretokenizer_open(pretokenizer *p, const tokenizer_source *from, trace_error *error)
{
    trace_place place = {from->path, 0, "tokenizer.ggml.pre"};
    int code = 0;
    size_t offset;
    *p = (pretokenizer){0};
    const family *f = find_family(from->pre);
    if (!f)
        return trace_bad_input(error, place, "'%.*s' is none of gpt2, smollm, llama-bpe, qwen2",
                               from->pre.n < 60 ? (int)from->pre.n : 60, from->pre.at);
    p->whole_words = f->whole_words;
    p->add_begin = f->add_begin;
    /* Anchored: every character begins a word of some kind, so words leave no gaps. */
    p->code = pcre2_compile((PCRE2_SPTR)f->pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED,
                            &code, &offset, NULL);
    if (!p->code)
        return trace_failed(error, place, "PCRE2 does not compile its pattern: error %d", code);
    pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE); /* where it cannot, it interprets */
    return 0;
}

void pretokenizer_close(pretokenizer *p)
{
    pcre2_code_free(p->code);
}

/* Its limits are made for patterns that can take exponential time; these cannot, and a word may be long. */
int pretokenizer_search_open(pretokenizer_search *s, const pretokenizer *p)
{
    *s = (pretokenizer_search){p, pcre2_match_data_create(1, NULL), pcre2_match_context_create(NULL)};
    if (!s->found || !s->limits)
        return -1;
    pcre2_set_match_limit(s->limits, UINT32_MAX);
    pcre2_set_depth_limit(s->limits, UINT32_MAX);
    return 0;
}

void pretokenizer_search_close(pretokenizer_search *s)
{
    pcre2_match_data_free(s->found);
    pcre2_match_context_free(s->limits);
}

size_t pretokenizer_word_end(const pretokenizer_search *s, const char *text, size_t n, size_t at)
{
    int rc = pcre2_match(s->p->code, (PCRE2_SPTR)text, n, at, PCRE2_NO_UTF_CHECK, s->found, s->limits);
    return rc < 0 ? 0 : pcre2_get_ovector_pointer(s->found)[1];
}
