/* gguf_values.c: the values of keys, out of a file that was checked when it was opened. */
#include "engine/gguf_file.h"

#include <math.h>
#include <stdlib.h>

int gguf_has(const gguf *g, const char *key)
{
    return gguf_entry_find(g, key) != NULL;
}

typedef enum kind { TRUTH, WHOLE, FLOAT, STRING, ARRAY } kind;

static kind kind_of(uint32_t type)
{
    static const kind kinds[VALUE_TYPES] = {
        [VALUE_U8] = WHOLE,      [VALUE_I8] = WHOLE,    [VALUE_U16] = WHOLE,  [VALUE_I16] = WHOLE, [VALUE_U32] = WHOLE,
        [VALUE_I32] = WHOLE,     [VALUE_U64] = WHOLE,   [VALUE_I64] = WHOLE,  [VALUE_F32] = FLOAT, [VALUE_F64] = FLOAT,
        [VALUE_STRING] = STRING, [VALUE_ARRAY] = ARRAY, [VALUE_BOOL] = TRUTH,
    };
    return kinds[type];
}

static int find(const gguf *g, const char *key, const gguf_entry **out, trace_error *error)
{
    *out = gguf_entry_find(g, key);
    return *out ? 0 : gguf_wrong(g, gguf_key(key), error, "missing");
}

static int find_one(const gguf *g, const char *key, kind wanted, const gguf_entry **out, trace_error *error)
{
    static const char *const names[] = {
        [TRUTH] = "truth value", [WHOLE] = "whole number", [FLOAT] = "float", [STRING] = "string"};
    int rc = find(g, key, out, error);
    if (rc == 0 && ((*out)->is_array || kind_of((*out)->type) != wanted))
        rc = gguf_wrong(g, gguf_key(key), error, "is no %s", names[wanted]);
    return rc;
}

static int find_array(const gguf *g, const char *key, kind wanted, const gguf_entry **out, trace_error *error)
{
    static const char *const names[] = {[WHOLE] = "whole numbers", [FLOAT] = "floats", [STRING] = "strings"};
    int rc = find(g, key, out, error);
    if (rc == 0 && (!(*out)->is_array || kind_of((*out)->type) != wanted))
        rc = gguf_wrong(g, gguf_key(key), error, "is no array of %s", names[wanted]);
    return rc;
}

/* ---- Numbers ---------------------------------------------------------------------------------------------------- */

/* What is above an int64_t becomes its largest, which fits nothing here either. */
static int64_t whole_at(const unsigned char *at, uint32_t type)
{
    switch (type) {
    case VALUE_U8:
        return at[0];
    case VALUE_I8:
        return (int8_t)at[0];
    case VALUE_U16:
        return u16_at(at);
    case VALUE_I16:
        return (int16_t)u16_at(at);
    case VALUE_U32:
        return u32_at(at);
    case VALUE_I32:
        return (int32_t)u32_at(at);
    case VALUE_U64:
        return u64_at(at) > INT64_MAX ? INT64_MAX : (int64_t)u64_at(at);
    default:
        return (int64_t)u64_at(at);
    }
}

static float float_at(const unsigned char *at, uint32_t type)
{
    if (type == VALUE_F32)
        return float_of_bits(u32_at(at));
    uint64_t bits = u64_at(at);
    double value;
    memcpy(&value, &bits, sizeof value);
    return (float)value;
}

static const unsigned char *value_at(const gguf_entry *e, uint64_t i)
{
    return e->value + i * gguf_value_bytes(e->type);
}

int gguf_u32(const gguf *g, const char *key, uint32_t *out, trace_error *error)
{
    const gguf_entry *e;
    int rc = find_one(g, key, WHOLE, &e, error);
    if (rc < 0)
        return rc;
    int64_t value = whole_at(e->value, e->type);
    if (value < 0 || value > UINT32_MAX)
        return gguf_wrong(g, gguf_key(key), error, "is not from 0 to %u", UINT32_MAX);
    *out = (uint32_t)value;
    return 0;
}

int gguf_f32(const gguf *g, const char *key, float *out, trace_error *error)
{
    const gguf_entry *e;
    int rc = find_one(g, key, FLOAT, &e, error);
    if (rc < 0)
        return rc;
    float value = float_at(e->value, e->type);
    if (!isfinite(value))
        return gguf_wrong(g, gguf_key(key), error, "is no finite number");
    *out = value;
    return 0;
}

int gguf_bool(const gguf *g, const char *key, int *out, trace_error *error)
{
    const gguf_entry *e;
    int rc = find_one(g, key, TRUTH, &e, error);
    if (rc == 0 && *e->value > 1)
        rc = gguf_wrong(g, gguf_key(key), error, "is %u, neither 0 nor 1", *e->value);
    if (rc == 0)
        *out = *e->value;
    return rc;
}

int gguf_i32s(const gguf *g, const char *key, int32_t **out, uint64_t *n, trace_error *error)
{
    const gguf_entry *e;
    int rc = find_array(g, key, WHOLE, &e, error);
    if (rc < 0)
        return rc;
    int32_t *list = calloc(e->n + 1, sizeof *list); /* one too many: none is no failure */
    if (!list)
        return gguf_no_memory(g, error);
    for (uint64_t i = 0; i < e->n; i++) {
        int64_t value = whole_at(value_at(e, i), e->type);
        if (value < INT32_MIN || value > INT32_MAX) {
            free(list);
            return gguf_wrong(g, gguf_key(key), error, "value %ju is not from %d to %d", (uintmax_t)i, INT32_MIN,
                              INT32_MAX);
        }
        list[i] = (int32_t)value;
    }
    *out = list;
    *n = e->n;
    return 0;
}

int gguf_f32s(const gguf *g, const char *key, float **out, uint64_t *n, trace_error *error)
{
    const gguf_entry *e;
    int rc = find_array(g, key, FLOAT, &e, error);
    if (rc < 0)
        return rc;
    float *list = calloc(e->n + 1, sizeof *list);
    if (!list)
        return gguf_no_memory(g, error);
    for (uint64_t i = 0; i < e->n; i++)
        list[i] = float_at(value_at(e, i), e->type);
    *out = list;
    *n = e->n;
    return 0;
}

/* ---- Strings ---------------------------------------------------------------------------------------------------- */

/* The string at *at, which then is behind it. */
static gguf_text next_text(const unsigned char **at)
{
    gguf_text text = {(const char *)*at + 8, u64_at(*at)};
    *at += 8 + text.n;
    return text;
}

int gguf_string(const gguf *g, const char *key, gguf_text *out, trace_error *error)
{
    const gguf_entry *e;
    int rc = find_one(g, key, STRING, &e, error);
    if (rc < 0)
        return rc;
    const unsigned char *at = e->value;
    *out = next_text(&at);
    return 0;
}

int gguf_strings(const gguf *g, const char *key, gguf_text **out, uint64_t *n, trace_error *error)
{
    const gguf_entry *e;
    int rc = find_array(g, key, STRING, &e, error);
    if (rc < 0)
        return rc;
    gguf_text *list = calloc(e->n + 1, sizeof *list);
    if (!list)
        return gguf_no_memory(g, error);
    const unsigned char *at = e->value;
    for (uint64_t i = 0; i < e->n; i++)
        list[i] = next_text(&at);
    *out = list;
    *n = e->n;
    return 0;
}
