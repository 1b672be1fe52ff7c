/* eval/text.h: a file as tokens of the model. */
#ifndef KVKEEP_TOOLS_EVAL_TEXT_H
#define KVKEEP_TOOLS_EVAL_TEXT_H

#include "kvkeep/eval/eval.h"

typedef struct eval_text {
    uint32_t *tokens; /* [n] */
    uint32_t n;
    uint64_t digest; /* of the tokens and the model's weights */
} eval_text;

/* Reads a file ("-": the standard input), any bytes, and takes the part of its tokens that --offset and --tokens ask
 * for, up to the model's context. Bad input: fewer than two tokens are left. */
int eval_text_read(const eval_job *j, const char *path, eval_text *out);
void eval_text_free(eval_text *t);

#endif
