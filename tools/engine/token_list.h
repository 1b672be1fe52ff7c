/* engine/token_list.h: a list of token ids that grows. All zeroes is an empty one. */
#ifndef KVKEEP_ENGINE_TOKEN_LIST_H
#define KVKEEP_ENGINE_TOKEN_LIST_H

#include <stddef.h>
#include <stdint.h>

typedef struct token_list {
    int32_t *ids; /* [n] */
    size_t n, cap;
} token_list;

/* Makes room for `more` further ids. -1 without memory, the list as it was. */
int token_list_reserve(token_list *list, size_t more);

/* Puts one at the end. -1 without memory. */
int token_list_add(token_list *list, int32_t id);

/* Gives the memory back; the list is empty then. */
void token_list_free(token_list *list);

#endif
