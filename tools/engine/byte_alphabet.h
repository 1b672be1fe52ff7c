/* engine/byte_alphabet.h: how model files spell bytes as characters (GPT-2's byte-level alphabet).
 *
 * A byte that prints in Latin-1 stands for itself, the others are U+0100 and on in their order; so any bytes can be
 * written as text without spaces or control characters. */
#ifndef KVKEEP_ENGINE_BYTE_ALPHABET_H
#define KVKEEP_ENGINE_BYTE_ALPHABET_H

#include "engine/gguf.h"

/* Puts the bytes that `text` spells into out[at most text.n] and returns how many there are, or -1 if some of the text
 * is not of the alphabet. */
int64_t byte_alphabet_read(gguf_text text, char *out);

#endif
