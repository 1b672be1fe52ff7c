#include "engine/token_list.h"

#include <stdlib.h>

int token_list_reserve(token_list *list, size_t more)
{
    size_t cap = list->cap ? list->cap : 64;
    if (more <= list->cap - list->n)
        return 0;
    if (more > SIZE_MAX / (4 * sizeof *list->ids) - list->n)
        return -1;
    while (cap - list->n < more)
        cap *= 2;
    int32_t *ids = realloc(list->ids, cap * sizeof *ids);
    if (!ids)
        return -1;
    list->ids = ids;
    list->cap = cap;
    return 0;
}

int token_list_add(token_list *list, int32_t id)
{
    if (token_list_reserve(list, 1) < 0)
        return -1;
    list->ids[list->n++] = id;
    return 0;
}

void token_list_free(token_list *list)
{
    free(list->ids);
    *list = (token_list){0};
}
