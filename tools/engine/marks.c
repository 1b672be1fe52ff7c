#include "engine/marks.h"

#include <stdlib.h>
#include <string.h>

typedef struct ordered_mark {
    gguf_text bytes;
    int32_t id;
} ordered_mark;

static int compare_bytes(gguf_text a, gguf_text b)
{
    int order = memcmp(a.at, b.at, a.n < b.n ? a.n : b.n);
    return order ? order : (a.n > b.n) - (a.n < b.n);
}

static int compare(const void *a, const void *b)
{
    const ordered_mark *x = a, *y = b;
    int order = compare_bytes(x->bytes, y->bytes);
    return order ? order : (x->id > y->id) - (x->id < y->id);
}

/* All that have any bytes, into list[]. Returns how many. */
static uint32_t collect(const vocabulary *v, ordered_mark *list)
{
    uint32_t n = 0;
    for (uint32_t id = 0; id < v->n; id++)
        if (v->kinds[id] == TOKEN_MARK && vocabulary_bytes(v, (int32_t)id).n > 0)
            list[n++] = (ordered_mark){vocabulary_bytes(v, (int32_t)id), (int32_t)id};
    return n;
}

static int check(const ordered_mark *list, uint32_t n, const tokenizer_source *from, trace_error *error)
{
    trace_place place = {from->path, 0, "tokenizer.ggml.tokens"};
    for (uint32_t i = 0; i < n; i++) {
        if (list[i].bytes.n > MARKS_MAX_BYTES)
            return trace_bad_input(error, place, "control token %d is longer than %d bytes", list[i].id,
                                   MARKS_MAX_BYTES);
        if (i > 0 && compare_bytes(list[i - 1].bytes, list[i].bytes) == 0)
            return trace_bad_input(error, place, "control tokens %d and %d are the same: '%.*s'", list[i - 1].id,
                                   list[i].id, (int)list[i].bytes.n, list[i].bytes.at);
    }
    return 0;
}

static void take_over(marks *m, const ordered_mark *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        m->ids[i] = list[i].id;
        m->first[(unsigned char)list[i].bytes.at[0] + 1]++;
    }
    for (int b = 0; b < 256; b++)
        m->first[b + 1] += m->first[b];
}

int marks_open(marks *m, const vocabulary *v, const tokenizer_source *from, trace_error *error)
{
    *m = (marks){.v = v, .ids = malloc(v->n * sizeof *m->ids)};
    ordered_mark *list = malloc(v->n * sizeof *list);
    int rc = m->ids && list ? 0 : trace_failed(error, (trace_place){from->path, 0, NULL}, "out of memory");
    if (rc == 0) {
        uint32_t n = collect(v, list);
        qsort(list, n, sizeof *list, compare);
        rc = check(list, n, from, error);
        if (rc == 0)
            take_over(m, list, n);
    }
    free(list);
    return rc;
}

void marks_close(marks *m)
{
    free(m->ids);
}

/* The first of ids[low .. high-1], which agree in `depth` bytes, whose next byte is at least `byte`. One that ends
 * there comes before all others. */
static uint32_t first_from(const marks *m, uint32_t low, uint32_t high, size_t depth, int byte)
{
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        gguf_text mark = vocabulary_bytes(m->v, m->ids[middle]);
        if (mark.n > depth && (unsigned char)mark.at[depth] >= byte)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

size_t marks_match(const marks *m, const char *text, size_t n, int32_t *id)
{
    size_t best = 0;
    uint32_t low = 0, high = m->first[256];
    for (size_t depth = 0; depth < n && low < high; depth++) {
        int byte = (unsigned char)text[depth];
        high = depth ? first_from(m, low, high, depth, byte + 1) : m->first[byte + 1];
        low = depth ? first_from(m, low, high, depth, byte) : m->first[byte];
        if (low < high && vocabulary_bytes(m->v, m->ids[low]).n == depth + 1) {
            best = depth + 1;
            *id = m->ids[low];
        }
    }
    return best;
}
