#include "engine/gguf_cursor.h"

#include <stdlib.h>

static int take_array_head(gguf_cursor *c, gguf_entry *e)
{
    e->is_array = 1;
    int rc = gguf_take_u32(c, &e->type);
    return rc < 0 ? rc : gguf_take_u64(c, &e->n);
}

static int take_entry(gguf_cursor *c, gguf_entry *e)
{
    *e = (gguf_entry){.n = 1};
    int rc = gguf_take_text(c, GGUF_MAX_KEY, &e->key);
    if (rc == 0 && e->key.n == 0)
        rc = gguf_wrong(c->g, c->about, c->error, "has no name, before byte %ju", (uintmax_t)c->at);
    if (rc < 0)
        return rc;
    c->about.name = e->key;
    rc = gguf_take_u32(c, &e->type);
    if (rc == 0 && e->type == VALUE_ARRAY)
        rc = take_array_head(c, e);
    if (rc < 0)
        return rc;
    e->value = c->g->bytes + c->at;
    return gguf_take_values(c, e->type, e->n, (uint32_t)e->is_array);
}

static int by_key(const void *a, const void *b)
{
    return gguf_text_compare(((const gguf_entry *)a)->key, ((const gguf_entry *)b)->key);
}

const gguf_entry *gguf_entry_find(const gguf *g, const char *key)
{
    gguf_entry wanted = {.key = {key, strlen(key)}};
    return bsearch(&wanted, g->entries, g->n_entries, sizeof *g->entries, by_key);
}

static int check_once(const gguf *g, trace_error *error)
{
    for (uint64_t i = 1; i < g->n_entries; i++)
        if (by_key(&g->entries[i - 1], &g->entries[i]) == 0)
            return gguf_wrong(g, (gguf_subject){"key", g->entries[i].key, 0}, error, "stands there twice");
    return 0;
}

int gguf_take_entries(gguf_cursor *c, gguf *g, uint64_t n)
{
    g->entries = calloc(n + 1, sizeof *g->entries); /* one too many: none is no failure */
    if (!g->entries)
        return gguf_no_memory(g, c->error);
    for (uint64_t i = 0; i < n; i++) {
        c->about = (gguf_subject){"key", {"", 0}, i + 1};
        int rc = take_entry(c, &g->entries[i]);
        if (rc < 0)
            return rc;
    }
    g->n_entries = n;
    qsort(g->entries, n, sizeof *g->entries, by_key);
    return check_once(g, c->error);
}
