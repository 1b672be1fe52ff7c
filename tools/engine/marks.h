/* engine/marks.h: the tokens that stand for no plain text, as <|im_start|> does, found by their spelling. */
#ifndef KVKEEP_ENGINE_MARKS_H
#define KVKEEP_ENGINE_MARKS_H

#include "engine/vocabulary.h"

enum { MARKS_MAX_BYTES = 256 /* of one, so that a search takes no more than that many steps at any place */ };

typedef struct marks {
    const vocabulary *v;
    int32_t *ids;        /* [first[256]], in the order of their bytes */
    uint32_t first[257]; /* where those begin that start with this byte, or a later one */
} marks;

/* Bad input: two alike, or one that is too long. */
int marks_open(marks *m, const vocabulary *v, const tokenizer_source *from, trace_error *error);
void marks_close(marks *m);

/* The longest mark that text[0 .. n-1] begins with: its length, and *id; 0 if there is none. */
size_t marks_match(const marks *m, const char *text, size_t n, int32_t *id);

#endif
