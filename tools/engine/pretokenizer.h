/* engine/pretokenizer.h: cuts text into words, across whose borders no tokens join.
 *
 * Letters and numbers are those of PCRE2's version of Unicode (14 in Debian 12's): a character that came later counts
 * as neither, and a model's own tokenizer may see a letter there. */
#ifndef KVKEEP_ENGINE_PRETOKENIZER_H
#define KVKEEP_ENGINE_PRETOKENIZER_H

#include "engine/tokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

typedef struct pretokenizer {
    pcre2_code *code;
    int whole_words; /* a word that is a token is taken as it is, whatever the merges would make of it */
    int add_begin;   /* texts begin with the begin token unless the file says otherwise */
} pretokenizer;

/* By the name that model files have for it. Bad input: an unknown one. */
int pretokenizer_open(pretokenizer *p, const tokenizer_source *from, trace_error *error);
void pretokenizer_close(pretokenizer *p);

/* What one search needs; several may run on one pre-tokenizer. */
typedef struct pretokenizer_search {
    const pretokenizer *p;
    pcre2_match_data *found;
    pcre2_match_context *limits;
} pretokenizer_search;

/* -1 without memory. Close it in either case. */
int pretokenizer_search_open(pretokenizer_search *s, const pretokenizer *p);
void pretokenizer_search_close(pretokenizer_search *s);

/* Where the word ends that begins at text[at]; the text, text[0 .. n-1], is UTF-8. 0 if PCRE2 fails, which it does
 * without memory only. */
size_t pretokenizer_word_end(const pretokenizer_search *s, const char *text, size_t n, size_t at);

#endif
