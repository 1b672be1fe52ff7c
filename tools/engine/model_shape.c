/* model_shape.c: the numbers of a model, as the keys of its file give them. */
#include "engine/gguf_file.h"
#include "engine/model_file.h"

#include <stddef.h>
#include <stdio.h>

enum { KEY_CAP = 128 };

static const model_family families[] = {
    {"llama", MODEL_PAIRS_NEXT, 0},
    {"qwen2", MODEL_PAIRS_HALVES, 1},
};

enum { N_FAMILIES = sizeof families / sizeof families[0] };

static int find_family(const gguf *g, const model_family **out, trace_error *error)
{
    gguf_text name;
    int rc = gguf_string(g, "general.architecture", &name, error);
    if (rc < 0)
        return rc;
    for (int i = 0; i < N_FAMILIES; i++)
        if (gguf_text_compare(name, (gguf_text){families[i].name, strlen(families[i].name)}) == 0) {
            *out = &families[i];
            return 0;
        }
    return gguf_wrong(g, gguf_key("general.architecture"), error, "\"%.*s\" is not supported, llama and qwen2 are",
                      (int)(name.n < 64 ? name.n : 64), name.at);
}

/* ---- Whole numbers ---------------------------------------------------------------------------------------------- */

/* A key of the family's, behind its name. */
typedef struct shape_key {
    const char *suffix;
    size_t offset; /* of the uint32_t in model_shape */
    uint32_t max;
    int optional; /* 1: left as it is where the key is absent */
} shape_key;

#define AT(member) offsetof(model_shape, member)

static const shape_key keys[] = {
    {"block_count", AT(n_layers), MODEL_MAX_LAYERS, 0},        {"embedding_length", AT(width), MODEL_MAX_WIDTH, 0},
    {"feed_forward_length", AT(ff_width), MODEL_MAX_WIDTH, 0}, {"context_length", AT(context), MODEL_MAX_CONTEXT, 0},
    {"attention.head_count", AT(n_heads), MODEL_MAX_WIDTH, 0},
};

/* Those that are 0 until something else is known. */
static const shape_key late_keys[] = {
    {"attention.head_count_kv", AT(n_kv_heads), MODEL_MAX_WIDTH, 1},
    {"attention.key_length", AT(head_size), MODEL_MAX_HEAD, 1},
    {"rope.dimension_count", AT(n_rotated), MODEL_MAX_HEAD, 1},
    {"vocab_size", AT(n_vocabulary), MODEL_MAX_VOCABULARY, 1},
};

static const char *key_name(const model_family *family, const char *suffix, char name[KEY_CAP])
{
    snprintf(name, KEY_CAP, "%s.%s", family->name, suffix);
    return name;
}

static int read_keys(const gguf *g, const model_family *family, const shape_key *list, size_t n, model_shape *shape,
                     trace_error *error)
{
    for (size_t i = 0; i < n; i++) {
        char name[KEY_CAP];
        uint32_t value = 0;
        if (list[i].optional && !gguf_has(g, key_name(family, list[i].suffix, name)))
            continue;
        int rc = gguf_u32(g, key_name(family, list[i].suffix, name), &value, error);
        if (rc < 0)
            return rc;
        if (value < 1 || value > list[i].max)
            return gguf_wrong(g, gguf_key(name), error, "is %u, not within 1 to %u", value, list[i].max);
        memcpy((char *)shape + list[i].offset, &value, sizeof value);
    }
    return 0;
}

/* ---- What must not be there ------------------------------------------------------------------------------------- */

/* Features that change what a model computes and that are not built here. */
static int refuse_numbers(const gguf *g, const model_family *family, trace_error *error)
{
    static const char *const suffixes[] = {"expert_count", "attention.sliding_window"};
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        char name[KEY_CAP];
        uint32_t value = 0;
        if (!gguf_has(g, key_name(family, suffixes[i], name)))
            continue;
        int rc = gguf_u32(g, name, &value, error);
        if (rc == 0 && value != 0)
            rc = gguf_wrong(g, gguf_key(name), error, "is %u: not supported", value);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int refuse_scaling(const gguf *g, const model_family *family, trace_error *error)
{
    char name[KEY_CAP];
    gguf_text type;
    float linear = 0;
    if (gguf_has(g, key_name(family, "rope.scaling.type", name))) {
        int rc = gguf_string(g, name, &type, error);
        if (rc == 0 && gguf_text_compare(type, (gguf_text){"none", 4}) != 0)
            rc = gguf_wrong(g, gguf_key(name), error, "is \"%.*s\": not supported", (int)(type.n < 32 ? type.n : 32),
                            type.at);
        if (rc < 0)
            return rc;
    }
    if (!gguf_has(g, key_name(family, "rope.scale_linear", name)))
        return 0;
    int rc = gguf_f32(g, name, &linear, error);
    return rc < 0 || linear == 1.0f ? rc : gguf_wrong(g, gguf_key(name), error, "is not 1: not supported");
}

/* ---- What fits together ----------------------------------------------------------------------------------------- */

static int check_heads(const gguf *g, const model_family *family, model_shape *s, trace_error *error)
{
    char name[KEY_CAP];
    s->n_kv_heads = s->n_kv_heads ? s->n_kv_heads : s->n_heads;
    if (s->n_heads % s->n_kv_heads != 0)
        return gguf_wrong(g, gguf_key(key_name(family, "attention.head_count", name)), error,
                          "is %u, no multiple of the %u of K and V", s->n_heads, s->n_kv_heads);
    if (s->head_size == 0 && s->width % s->n_heads != 0)
        return gguf_wrong(g, gguf_key(key_name(family, "embedding_length", name)), error,
                          "is %u, no multiple of the %u heads", s->width, s->n_heads);
    s->head_size = s->head_size ? s->head_size : s->width / s->n_heads;
    if (s->head_size % 2 != 0 || s->head_size > MODEL_MAX_HEAD || s->head_size > MODEL_MAX_WIDTH / s->n_heads)
        return gguf_wrong(g, gguf_key(key_name(family, "attention.head_count", name)), error,
                          "%u heads of %u dimensions are not supported", s->n_heads, s->head_size);
    s->n_rotated = s->n_rotated ? s->n_rotated : s->head_size;
    if (s->n_rotated % 2 != 0 || s->n_rotated > s->head_size)
        return gguf_wrong(g, gguf_key(key_name(family, "rope.dimension_count", name)), error,
                          "is %u, of heads of %u dimensions", s->n_rotated, s->head_size);
    return 0;
}

static int check_values(const gguf *g, const model_family *family, const model_shape *s, trace_error *error)
{
    char name[KEY_CAP];
    uint32_t value = 0;
    if (!gguf_has(g, key_name(family, "attention.value_length", name)))
        return 0;
    int rc = gguf_u32(g, name, &value, error);
    if (rc == 0 && value != s->head_size)
        rc = gguf_wrong(g, gguf_key(name), error, "is %u, not the %u of the keys", value, s->head_size);
    return rc;
}

static int read_floats(const gguf *g, const model_family *family, model_shape *s, trace_error *error)
{
    char name[KEY_CAP];
    int rc = gguf_f32(g, key_name(family, "attention.layer_norm_rms_epsilon", name), &s->rms_epsilon, error);
    if (rc < 0)
        return rc;
    if (!(s->rms_epsilon > 0 && s->rms_epsilon < 1))
        return gguf_wrong(g, gguf_key(name), error, "is not between 0 and 1");
    s->rope_base = 10000;
    if (!gguf_has(g, key_name(family, "rope.freq_base", name)))
        return 0;
    rc = gguf_f32(g, name, &s->rope_base, error);
    if (rc == 0 && !(s->rope_base >= 1))
        rc = gguf_wrong(g, gguf_key(name), error, "is below 1");
    return rc;
}

/* The vocabulary is as long as the embedding, whatever the keys say beside it. */
static int read_vocabulary(const gguf *g, const model_family *family, model_shape *s, trace_error *error)
{
    const gguf_tensor *embedding;
    char name[KEY_CAP];
    int rc = gguf_tensor_find(g, "token_embd.weight", &embedding, error);
    if (rc < 0)
        return rc;
    if (s->n_vocabulary && s->n_vocabulary != embedding->dims[1])
        return gguf_wrong(g, gguf_key(key_name(family, "vocab_size", name)), error,
                          "is %u, but there are %ju embeddings", s->n_vocabulary, (uintmax_t)embedding->dims[1]);
    if (embedding->dims[1] > MODEL_MAX_VOCABULARY)
        return gguf_wrong(g, (gguf_subject){"tensor", embedding->name, 0}, error, "%ju tokens are more than %d",
                          (uintmax_t)embedding->dims[1], MODEL_MAX_VOCABULARY);
    s->n_vocabulary = (uint32_t)embedding->dims[1];
    return 0;
}

int model_read_shape(const gguf *g, const model_family **family, model_shape *out, trace_error *error)
{
    model_shape s = {0};
    int rc = find_family(g, family, error);
    if (rc == 0)
        rc = read_keys(g, *family, keys, sizeof keys / sizeof keys[0], &s, error);
    if (rc == 0)
        rc = read_keys(g, *family, late_keys, sizeof late_keys / sizeof late_keys[0], &s, error);
    if (rc == 0)
        rc = refuse_numbers(g, *family, error);
    if (rc == 0)
        rc = refuse_scaling(g, *family, error);
    if (rc == 0)
        rc = check_heads(g, *family, &s, error);
    if (rc == 0)
        rc = check_values(g, *family, &s, error);
    if (rc == 0)
        rc = read_floats(g, *family, &s, error);
    if (rc == 0)
        rc = read_vocabulary(g, *family, &s, error);
    s.pairs = rc == 0 ? (*family)->pairs : MODEL_PAIRS_NEXT;
    *out = s;
    return rc;
}
