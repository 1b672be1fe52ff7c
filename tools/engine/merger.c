#include "engine/merger.h"

#include "engine/heap_memory.h"

void merger_open(merger *m, const vocabulary *v)
{
    *m = (merger){.v = v};
    heap_memory_open(&m->memory);
    heap_open(&m->pairs, &m->memory);
}

void merger_close(merger *m)
{
    memory_give(&m->memory, m->symbols, m->cap * sizeof *m->symbols);
    heap_close(&m->pairs);
}

/* Ranks the pair of a symbol and the one behind it. */
static void rank_pair(merger *m, uint32_t left)
{
    uint32_t right = m->symbols[left].after;
    uint64_t merge = right == MERGE_NONE ? MAP_NONE : vocabulary_merge(m->v, m->symbols[left].id, m->symbols[right].id);
    if (merge == MAP_NONE)
        heap_remove(&m->pairs, left);
    else
        heap_push(&m->pairs, left, merge, left);
}

static void join(merger *m, uint32_t left, int32_t id)
{
    merge_symbol *s = &m->symbols[left];
    uint32_t right = s->after;
    heap_remove(&m->pairs, right);
    s->id = id;
    s->after = m->symbols[right].after;
    if (s->after != MERGE_NONE)
        m->symbols[s->after].before = left;
    if (s->before != MERGE_NONE)
        rank_pair(m, s->before);
    rank_pair(m, left);
}

static void start(merger *m, const char *word, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        m->symbols[i] = (merge_symbol){m->v->of_byte[(unsigned char)word[i]], i ? i - 1 : MERGE_NONE,
                                       i + 1 < n ? i + 1 : MERGE_NONE};
    for (uint32_t i = 0; i + 1 < n; i++)
        rank_pair(m, i);
}

int merger_word(merger *m, const char *word, uint32_t n, token_list *ids)
{
    if (memory_grow(&m->memory, &m->symbols, &m->cap, n, sizeof *m->symbols) < 0 || heap_prepare(&m->pairs, n) < 0 ||
        token_list_reserve(ids, n) < 0)
        return -1;
    start(m, word, n);
    for (const heap_item *best; (best = heap_top(&m->pairs));)
        join(m, best->id, (int32_t)(uint32_t)best->key);
    for (uint32_t i = 0; n > 0 && i != MERGE_NONE; i = m->symbols[i].after)
        ids->ids[ids->n++] = m->symbols[i].id;
    return 0;
}
