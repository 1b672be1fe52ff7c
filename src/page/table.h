/* page/table.h: a block table, the pages of one sequence in one group, in token order. */
#ifndef KVK_PAGE_TABLE_H
#define KVK_PAGE_TABLE_H

#include <stdint.h>

typedef struct table {
    uint32_t *pages; /* [cap]; keeps its memory when the sequence ends */
    uint32_t n, cap;
} table;

#endif
