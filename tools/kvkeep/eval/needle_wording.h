/* eval/needle_wording.h: sentences that state a key, with the questions that ask for it, and keys.
 *
 * Wordings come in two sets: policies are tuned on one and judged by the other, so that no figure is of a sentence that
 * the policy was fitted to. */
#ifndef KVKEEP_TOOLS_EVAL_NEEDLE_WORDING_H
#define KVKEEP_TOOLS_EVAL_NEEDLE_WORDING_H

#include "trace/random.h"

#include <stddef.h>

#define NEEDLE_KEY "{KEY}" /* where the key goes */

typedef struct needle_wording {
    const char *name;
    const char *once;     /* a sentence with the key */
    const char *again;    /* another one, for keys that are stated twice */
    const char *question; /* ends where the key would follow */
    int tuning;           /* 1: of the set for tuning, 0: of the one for reporting */
} needle_wording;

/* The built-in wordings by number, from 0; NULL past the last. */
const needle_wording *needle_wording_at(uint32_t i);

/* Those of a set by number, from 0; NULL past its last. */
const needle_wording *needle_wording_of(int tuning, uint32_t i);

const needle_wording *needle_wording_find(const char *name);

typedef enum needle_keys { NEEDLE_DIGITS, NEEDLE_WORDS } needle_keys;

enum { NEEDLE_MAX_KEY = 32 }; /* bytes, with its 0 */

/* Five digits, or two common words. */
void needle_key(needle_keys kind, random_state *random, char key[NEEDLE_MAX_KEY]);

/* The text that is repeated where there is no haystack. */
extern const char needle_filler[];

#endif
