/* engine/tokenizer_parts.h: a tokenizer from inside. */
#ifndef KVKEEP_ENGINE_TOKENIZER_PARTS_H
#define KVKEEP_ENGINE_TOKENIZER_PARTS_H

#include "engine/marks.h"
#include "engine/pretokenizer.h"
#include "engine/vocabulary.h"

struct tokenizer {
    vocabulary vocabulary;
    pretokenizer pretokenizer;
    marks marks;
    int32_t begin, end; /* -1: none */
    int add_begin;
};

#endif
