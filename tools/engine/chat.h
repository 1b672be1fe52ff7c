/* engine/chat.h: a conversation as the prompt that a model was trained on.
 *
 * Model files carry a program for that (a Jinja template). It is not run: templates of known families are recognised by
 * their text and followed, others are refused, since a prompt that is nearly right makes a model worse without a word.
 * Known are ChatML (SmolLM2, Qwen2, Qwen2.5), with the default system message that the template has, and Llama 3, 3.1
 * and 3.2, whose date is the one that the template falls back to, so that prompts do not change from day to day. Tools
 * are not rendered.
 *
 * What messages say is plain text: a message that spells <|im_end|> does not end. */
#ifndef KVKEEP_ENGINE_CHAT_H
#define KVKEEP_ENGINE_CHAT_H

#include "engine/tokenizer.h"

typedef enum chat_role { CHAT_SYSTEM, CHAT_USER, CHAT_ASSISTANT } chat_role;

typedef struct chat_message {
    chat_role role;
    const char *text; /* [n] */
    size_t n;
} chat_message;

typedef struct chat_conversation {
    const chat_message *messages;
    size_t n;
    int add_prompt; /* what an answer begins with goes last: the assistant's turn */
} chat_conversation;

typedef struct chat_family chat_family;

/* How a model's prompts look. */
typedef struct chat_format {
    const chat_family *family;
    gguf_text system; /* for conversations without a system message; n 0: none */
    gguf_text date;   /* n 0: none */
    int begins;       /* the tokenizer's begin token goes first */
} chat_format;

/* Recognises the template of a model file, which is to stay open as long as the format is used. Bad input: there is
 * none, or one of no known family. */
int chat_format_open(const gguf *g, chat_format *out, trace_error *error);
int chat_format_read(gguf_text text, const char *path, chat_format *out, trace_error *error);

/* ChatML, Llama 3, ... */
const char *chat_format_name(const chat_format *f);

/* Puts a conversation's tokens at the end of a list. Bad input: no message, a vocabulary without the family's marks,
 * or text that it cannot spell; the list is as it was then. */
int chat_render(const tokenizer *t, const chat_format *f, const chat_conversation *c, token_list *ids,
                trace_error *error);

#endif
