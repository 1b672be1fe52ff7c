/* attention/cpu_tile.h: the next tokens of a block's pages, as many as are worked on at a time: those that any of the
 * block's queries sees, whatever pages they lie in. */
#ifndef KVK_ATTENTION_CPU_TILE_H
#define KVK_ATTENTION_CPU_TILE_H

#include "attention/cpu.h"
#include "attention/layout.h"

/* Tokens of one page. */
typedef struct cpu_segment {
    uint32_t page;       /* of the entry's list */
    uint32_t token;      /* the first, in the page */
    uint32_t begin, end; /* places in the tile */
    uint32_t continues;  /* 1: the page's first tokens were in the tile before */
} cpu_segment;

typedef struct cpu_tile {
    uint32_t n, n_segments;
    int is_masked;                 /* some query does not see some of its tokens */
    const char *k[TILE], *v[TILE]; /* rows of the first KV head; past the n-th the last one again */
    int32_t positions[TILE];       /* in the text */
    cpu_segment segments[TILE];
} cpu_tile;

/* Where the next tile begins. */
typedef struct cpu_cursor {
    const cpu_job *job;
    const entry *e;
    uint32_t first_query, last_query; /* of the entry's: all in between look at the tiles */
    uint32_t page, end;               /* of the entry's list: the next page, and where to stop */
    uint32_t token;                   /* of that page; 0: the first that is seen */
} cpu_cursor;

/* Tokens of the cursor's page: seen by the first query or after, and by the last one or before. */
static inline seen cursor_seen(const cpu_cursor *c)
{
    seen s = entry_seen(c->e, c->page, c->last_query, c->job->a->window);
    s.from = entry_seen(c->e, c->page, c->first_query, c->job->a->window).from;
    s.from = max_u32(s.from, c->token);
    return s;
}

static inline void tile_add(cpu_tile *t, const cpu_cursor *c, uint32_t token, uint32_t n)
{
    const kvk_kv *kv = c->job->a->kv;
    uint64_t at = layout_row(kv, (uint32_t)c->e->pages[c->page], c->job->a->layer, 0, 0, token);
    const char *k = (const char *)kv->base + at, *v = k + kv->value_stride;
    int32_t position = (int32_t)(entry_position(c->e, c->page) + token);
    for (uint32_t i = 0; i < n; i++) {
        t->k[t->n + i] = k + i * kv->token_stride;
        t->v[t->n + i] = v + i * kv->token_stride;
        t->positions[t->n + i] = position + (int32_t)i;
    }
    t->segments[t->n_segments++] = (cpu_segment){c->page, token, t->n, t->n + n, c->token > 0};
    t->n += n;
}

static inline void tile_close(cpu_tile *t, const cpu_cursor *c)
{
    uint32_t window = c->job->a->window, oldest = t->n ? (uint32_t)t->positions[0] : 0;
    uint32_t newest = t->n ? (uint32_t)t->positions[t->n - 1] : 0;
    t->is_masked = newest > entry_query_position(c->e, c->first_query) ||
                   (window && (uint64_t)oldest + window <= entry_query_position(c->e, c->last_query));
    for (uint32_t i = t->n; t->n && i < TILE; i++) {
        t->k[i] = t->k[t->n - 1];
        t->v[i] = t->v[t->n - 1];
        t->positions[i] = t->positions[t->n - 1];
    }
}

/* Fills a tile, with none when there are no more. A page that a tile can hold is not cut in two. */
static inline void tile_next(cpu_tile *t, cpu_cursor *c)
{
    t->n = t->n_segments = 0;
    while (c->page < c->end && t->n < TILE) {
        seen s = cursor_seen(c);
        uint32_t n = s.to > s.from ? s.to - s.from : 0, room = TILE - t->n;
        if (n > room && c->e->page_tokens <= TILE)
            break;
        if (n)
            tile_add(t, c, s.from, min_u32(n, room));
        c->token = n > room ? s.from + room : 0;
        c->page += n <= room;
    }
    tile_close(t, c);
}

#endif
