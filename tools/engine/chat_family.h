/* engine/chat_family.h: what the templates of a family have in common.
 *
 * A message is rendered as: open ROLE close gap TEXT end after, where open, close and end are marks. */
#ifndef KVKEEP_ENGINE_CHAT_FAMILY_H
#define KVKEEP_ENGINE_CHAT_FAMILY_H

#include "engine/chat.h"

#include <stdbool.h>

/* A word that is always followed by just so many line ends. */
typedef struct chat_line {
    const char *word;
    uint32_t newlines;
} chat_line;

struct chat_family {
    const char *name;
    const char *open, *close, *end; /* close NULL: none */
    const char *gap, *after;
    bool trims; /* white space around a message's text goes */
    bool dated; /* the system message, there or not, begins with two dates */

    /* Lists with a NULL at the end: words that all its templates hold; words that none holds, which are signs of more
     * than is known here; and all that may look like a mark in them. */
    const char *const *needs, *const *refuses, *const *marks;
    const chat_line *lines;
};

#endif
