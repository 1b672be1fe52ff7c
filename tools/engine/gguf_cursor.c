#include "engine/gguf_cursor.h"

uint32_t gguf_value_bytes(uint32_t type)
{
    static const uint32_t bytes[VALUE_TYPES] = {
        [VALUE_U8] = 1,  [VALUE_I8] = 1,     [VALUE_BOOL] = 1,   [VALUE_U16] = 2, [VALUE_I16] = 2,
        [VALUE_U32] = 4, [VALUE_I32] = 4,    [VALUE_F32] = 4,    [VALUE_U64] = 8, [VALUE_I64] = 8,
        [VALUE_F64] = 8, [VALUE_STRING] = 8, [VALUE_ARRAY] = 12,
    };
    return bytes[type];
}

/* The next `n` bytes, or NULL. */
static const unsigned char *take(gguf_cursor *c, uint64_t n)
{
    if (n > gguf_left(c))
        return NULL;
    c->at += n;
    return c->g->bytes + (c->at - n);
}

static int cut_short(const gguf_cursor *c)
{
    return gguf_wrong(c->g, c->about, c->error, "the file ends within it, at byte %ju", (uintmax_t)c->g->n);
}

int gguf_take_u32(gguf_cursor *c, uint32_t *out)
{
    const unsigned char *bytes = take(c, 4);
    if (!bytes)
        return cut_short(c);
    *out = u32_at(bytes);
    return 0;
}

int gguf_take_u64(gguf_cursor *c, uint64_t *out)
{
    const unsigned char *bytes = take(c, 8);
    if (!bytes)
        return cut_short(c);
    *out = u64_at(bytes);
    return 0;
}

int gguf_take_text(gguf_cursor *c, uint64_t most, gguf_text *out)
{
    uint64_t n = 0, at = c->at;
    int rc = gguf_take_u64(c, &n);
    if (rc < 0)
        return rc;
    if (n > most)
        return gguf_wrong(c->g, c->about, c->error, "the string at byte %ju has %ju bytes, more than %ju",
                          (uintmax_t)at, (uintmax_t)n, (uintmax_t)most);
    const unsigned char *bytes = take(c, n);
    if (!bytes)
        return cut_short(c);
    *out = (gguf_text){(const char *)bytes, n};
    return 0;
}

/* An array within an array: the type and the number of its values, then they. */
static int take_array(gguf_cursor *c, uint32_t depth)
{
    uint32_t type = 0;
    uint64_t n = 0;
    int rc = gguf_take_u32(c, &type);
    if (rc == 0)
        rc = gguf_take_u64(c, &n);
    return rc < 0 ? rc : gguf_take_values(c, type, n, depth + 1);
}

int gguf_take_values(gguf_cursor *c, uint32_t type, uint64_t n, uint32_t depth)
{
    if (type >= VALUE_TYPES)
        return gguf_wrong(c->g, c->about, c->error, "value type %u is not known, before byte %ju", type,
                          (uintmax_t)c->at);
    if (depth > GGUF_MAX_NESTING)
        return gguf_wrong(c->g, c->about, c->error, "more than %d arrays within each other, before byte %ju",
                          GGUF_MAX_NESTING, (uintmax_t)c->at);
    if (n > gguf_left(c) / gguf_value_bytes(type))
        return depth == 0 ? cut_short(c)
                          : gguf_wrong(c->g, c->about, c->error,
                                       "an array of %ju values is larger than the %ju bytes that are left at byte %ju",
                                       (uintmax_t)n, (uintmax_t)gguf_left(c), (uintmax_t)c->at);
    gguf_text text;
    int rc = 0;
    if (type != VALUE_STRING && type != VALUE_ARRAY)
        c->at += n * gguf_value_bytes(type);
    else
        for (uint64_t i = 0; rc == 0 && i < n; i++)
            rc = type == VALUE_STRING ? gguf_take_text(c, GGUF_MAX_STRING, &text) : take_array(c, depth);
    return rc;
}
