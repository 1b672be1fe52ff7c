/* trace/blocks.h: lists of block ids out of JSON, as several formats have them. */
#ifndef KVKEEP_TRACE_BLOCKS_H
#define KVKEEP_TRACE_BLOCKS_H

#include "trace/json.h"
#include "trace/request.h"

/* Room for the ids of one request, kept for the next. All zeroes is empty. */
typedef struct block_ids {
    uint64_t *ids;
    size_t cap;
} block_ids;

/* Reads `list`, the field that `place` names, as the ids of request->n_input tokens in blocks of request->block_tokens,
 * and sets its `blocks` and `n_blocks`. `input_field` is what the format calls the input's length. 0 or an error. */
int blocks_read(block_ids *b, const json_t *list, trace_place place, const char *input_field, trace_request *request,
                trace_error *error);

void blocks_close(block_ids *b);

#endif
