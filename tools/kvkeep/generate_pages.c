#include "kvkeep/generate_pages.h"

#include <stdlib.h>

enum { MARKS_IN_LINE = 64 };

static int failed(int rc, trace_error *error)
{
    return trace_failed(error, (trace_place){"kvkeep generate", 0, NULL}, "%s", kvk_strerror(rc));
}

/* Counts in held[n_pages] the groups that hold each page. `positions` is room for as many. */
static int count_held(runner *r, kvk_seq seq, uint32_t page_tokens, uint32_t n_pages, uint32_t *held)
{
    uint32_t *positions = held + n_pages, n_groups = 0;
    kvk_seq_info info = {.size = sizeof info};
    int n = kvk_seq_info_get(runner_cache(r), seq, &info);
    for (; n >= 0; n_groups++) {
        n = kvk_seq_positions(runner_cache(r), seq, n_groups, positions, n_pages);
        for (int i = 0; i < n; i++)
            held[positions[i] / page_tokens]++;
    }
    return n == KVK_EINVAL && n_groups > 1 ? (int)n_groups - 1 : n;
}

static char mark_of(uint32_t held, uint32_t n_groups)
{
    if (held == n_groups)
        return '#';
    return held == 0 ? '.' : (char)('1' + held * 9 / n_groups);
}

int generate_show_pages(runner *r, kvk_seq seq, uint32_t page_tokens, FILE *out, trace_error *error)
{
    kvk_seq_info info = {.size = sizeof info};
    int rc = kvk_seq_info_get(runner_cache(r), seq, &info);
    if (rc < 0)
        return failed(rc, error);
    uint32_t n_pages = (uint32_t)((info.n_tokens + page_tokens - 1) / page_tokens);
    uint32_t *held = calloc(2 * ((size_t)n_pages + 1), sizeof *held);
    if (!held)
        return failed(KVK_ENOMEM, error);
    rc = count_held(r, seq, page_tokens, n_pages, held);
    for (uint32_t p = 0; p < n_pages && rc > 0; p++) {
        if (p % MARKS_IN_LINE == 0)
            fprintf(out, "%stoken %6u  ", p ? "\n" : "", p * page_tokens);
        fputc(mark_of(held[p], (uint32_t)rc), out);
    }
    fputc('\n', out);
    free(held);
    return rc < 0 ? failed(rc, error) : 0;
}
