/* trace/repage.h: the pages of a prompt whose trace names blocks of another size.
 *
 * A page within a block is known by the block's id and its place there. A page of several blocks is known by its last
 * block's id, since an id stands for the block and everything before it, and by how many blocks it has. Where the trace
 * names its partial last block too, a partial last page has a key like any other; where it names full blocks only, full
 * pages of them have keys and the rest of the prompt is unnamed.
 */
#ifndef KVKEEP_TRACE_REPAGE_H
#define KVKEEP_TRACE_REPAGE_H

#include "trace/request.h"

#include <kvkeep/kvkeep.h>

/* Whether pages can be made of blocks, or blocks of pages. */
bool repage_fits(uint32_t block_tokens, uint32_t page_tokens);

/* The pages of a prompt that the trace names. */
uint32_t repage_count(const trace_request *request, uint32_t page_tokens);

/* Sets keys[repage_count]. The sizes must fit. */
void repage_keys(const trace_request *request, uint32_t page_tokens, kvk_key *keys);

/* The key of a page that no trace names: each `number` gives another one, which repage_keys never sets. */
kvk_key repage_unnamed(uint64_t number);

/* Room for keys that grows as needed. All zeroes is empty. */
typedef struct repage_keys_buffer {
    kvk_key *keys;
    size_t cap;
    uint64_t unnamed; /* keys so far that no trace names */
} repage_keys_buffer;

/* Sets the first `n` keys: as many as the trace names of the request (NULL: none), and unnamed ones after them. 0, or
 * KVK_ENOMEM. */
int repage_keys_fill(repage_keys_buffer *b, const trace_request *request, uint32_t page_tokens, uint32_t n);

void repage_keys_close(repage_keys_buffer *b);

#endif
