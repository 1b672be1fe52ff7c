/* eval/needle_dialog.h: a conversation with a customer service: a fact at its beginning, long chatter, and a question
 * about the fact at the end. */
#ifndef KVKEEP_TOOLS_EVAL_NEEDLE_DIALOG_H
#define KVKEEP_TOOLS_EVAL_NEEDLE_DIALOG_H

#include "engine/chat.h"
#include "kvkeep/eval/needle_prompt.h"

typedef struct needle_dialog {
    const chat_format *format; /* of the model */
    uint32_t length;           /* tokens of the conversation before the question, at most: whole turns */
    int again;                 /* 1: the question was asked before, and answered, soon after the fact */
    needle_keys keys;
    uint64_t seed; /* for the key and the chatter */
} needle_dialog;

/* Bad input: a length without room for the fact. */
int needle_dialog_make(const tokenizer *t, const needle_dialog *dialog, needle_prompt *out, trace_error *error);

#endif
