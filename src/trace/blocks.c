#include "trace/blocks.h"

#include "base/checked.h"

#include <stdlib.h>

static int make_room(block_ids *b, size_t n, trace_place place, trace_error *error)
{
    if (n <= b->cap)
        return 0;
    size_t cap = n < 256 ? 256 : 2 * n;
    uint64_t *grown = realloc(b->ids, cap * sizeof *grown);
    if (!grown)
        return trace_failed(error, place, "out of memory");
    b->ids = grown;
    b->cap = cap;
    return 0;
}

int blocks_read(block_ids *b, const json_t *list, trace_place place, const char *input_field, trace_request *request,
                trace_error *error)
{
    uint32_t input = request->n_input, block = request->block_tokens;
    size_t want = request->full_blocks ? input / block : ceil_div(input, block), n = json_array_size(list);
    if (!json_is_array(list))
        return trace_bad_input(error, place, list ? "is not a list" : "missing");
    if (n != want)
        return trace_bad_input(error, place, "has %zu ids where %s %u needs %zu", n, input_field, input, want);
    int rc = make_room(b, n ? n : 1, place, error);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = json_whole(json_array_get(list, i), place, INT64_MAX, &b->ids[i], error);
    request->n_blocks = (uint32_t)n;
    request->blocks = b->ids;
    return rc;
}

void blocks_close(block_ids *b)
{
    free(b->ids);
}
