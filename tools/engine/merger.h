/* engine/merger.h: byte-pair encoding of one word: its bytes, joined two by two, the best pair first. */
#ifndef KVKEEP_ENGINE_MERGER_H
#define KVKEEP_ENGINE_MERGER_H

#include "base/heap.h"
#include "engine/vocabulary.h"

typedef struct merge_symbol {
    int32_t id;
    uint32_t before, after; /* its neighbours that are still there; MERGE_NONE: none */
} merge_symbol;

#define MERGE_NONE UINT32_MAX

typedef struct merger {
    const vocabulary *v;
    memory memory;
    merge_symbol *symbols; /* of a word, by the byte that they begin with */
    uint32_t cap;
    heap pairs; /* each under its left symbol, by rank; of equal ones the first goes first */
} merger;

void merger_open(merger *m, const vocabulary *v);
void merger_close(merger *m);

/* Puts the tokens of a word, all of whose bytes are in the vocabulary, at the end of a list. O(n log n). -1 without
 * memory. */
int merger_word(merger *m, const char *word, uint32_t n, token_list *ids);

#endif
