#include "kvkeep/profile.h"

#include "kvkeep/whole_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char format[] = "kvkeep-profile";
static const char *const kinds[] = {[KVK_NEAR_MASS] = "mass", [KVK_NEAR_ERROR] = "error"};

enum { VERSION = 1, MOST_LAYERS = MODEL_MAX_LAYERS, MOST_HEADS = 65535 };

/* ---- Fields ----------------------------------------------------------------------------------------------------- */

/* A file that is being read. */
typedef struct reading {
    const char *path;
    const json_t *fields;
    trace_error *error;
} reading;

#define REFUSE(r, field, ...) trace_bad_input((r)->error, (trace_place){(r)->path, 0, field}, __VA_ARGS__)

static int read_whole(const reading *r, const char *field, uint32_t max, uint32_t *out)
{
    const json_t *value = json_object_get(r->fields, field);
    if (!json_is_integer(value))
        return REFUSE(r, field, value ? "is no whole number" : "is missing");
    json_int_t n = json_integer_value(value);
    if (n < 0 || n > (json_int_t)max)
        return REFUSE(r, field, "%jd is not within 0 to %u", (intmax_t)n, max);
    *out = (uint32_t)n;
    return 0;
}

static int read_text(const reading *r, const char *field, const char **out)
{
    const json_t *value = json_object_get(r->fields, field);
    if (!json_is_string(value))
        return REFUSE(r, field, value ? "is no text" : "is missing");
    *out = json_string_value(value);
    return strlen(*out) == json_string_length(value) ? 0 : REFUSE(r, field, "has a 0 in it");
}

static int read_format(const reading *r)
{
    const char *is;
    uint32_t version;
    int rc = read_text(r, "format", &is);
    if (rc == 0 && strcmp(is, format) != 0)
        rc = REFUSE(r, "format", "'%.64s' is not '%s'", is, format);
    if (rc == 0)
        rc = read_whole(r, "version", UINT32_MAX, &version);
    return rc == 0 && version != VERSION ? REFUSE(r, "version", "%u is not known, only %d", version, VERSION) : rc;
}

static int read_model(const reading *r, profile *p)
{
    const char *name;
    int rc = read_text(r, "model", &name);
    if (rc == 0 && strlen(name) >= sizeof p->model)
        rc = REFUSE(r, "model", "is longer than %zu bytes", sizeof p->model - 1);
    if (rc == 0)
        snprintf(p->model, sizeof p->model, "%s", name);
    if (rc == 0)
        rc = read_whole(r, "layers", MOST_LAYERS, &p->layers);
    return rc < 0 ? rc : read_whole(r, "heads", MOST_HEADS, &p->heads);
}

static int read_kind(const reading *r, profile *p)
{
    const char *kind;
    int rc = read_text(r, "near_kind", &kind);
    for (uint32_t i = 0; rc == 0 && i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kind, kinds[i]) == 0) {
            p->near.kind = (kvk_near_kind)i;
            return 0;
        }
    return rc < 0 ? rc : REFUSE(r, "near_kind", "'%.64s' is neither mass nor error", kind);
}

/* A pair of layer and head. */
static int read_head(const reading *r, const json_t *pair, const profile *p, near_head *out)
{
    const json_t *layer = json_array_get(pair, 0), *head = json_array_get(pair, 1);
    if (json_array_size(pair) != 2 || !json_is_integer(layer) || !json_is_integer(head))
        return REFUSE(r, "near_heads", "is no list of pairs of whole numbers");
    json_int_t l = json_integer_value(layer), h = json_integer_value(head);
    if (l < 0 || l >= (json_int_t)p->layers || h < 0 || h >= (json_int_t)p->heads)
        return REFUSE(r, "near_heads", "[%jd, %jd] is not in a model of %u layers and %u heads", (intmax_t)l,
                      (intmax_t)h, p->layers, p->heads);
    *out = (near_head){(uint16_t)l, (uint16_t)h};
    return 0;
}

static int add_head(const reading *r, near_head x, near_heads *to)
{
    if (near_heads_has(to, x))
        return REFUSE(r, "near_heads", "[%u, %u] is there twice", x.layer, x.head);
    to->chosen[to->n++] = x;
    return 0;
}

static int read_near(const reading *r, profile *p)
{
    const json_t *list = json_object_get(r->fields, "near_heads");
    size_t n = json_array_size(list);
    int rc = read_kind(r, p);
    if (rc == 0 && (n < 1 || n > NEAR_MAX_CHOSEN))
        rc = REFUSE(r, "near_heads", "is no list of 1 to %d heads", NEAR_MAX_CHOSEN);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        near_head x = {0};
        rc = read_head(r, json_array_get(list, i), p, &x);
        if (rc == 0)
            rc = add_head(r, x, &p->near);
    }
    return rc;
}

static int read_policy(const reading *r, profile *p)
{
    const char *text;
    char why[256];
    int rc = read_text(r, "policy", &text);
    if (rc == 0 && kvk_policy_parse(text, NULL, &p->choice, why, sizeof why) < 0)
        rc = REFUSE(r, "policy", "%s", why);
    if (rc == 0 && strcmp(p->choice.policy->name, "keep") != 0)
        rc = REFUSE(r, "policy", "is %s, not keep", p->choice.policy->name);
    return rc;
}

/* ---- Files ------------------------------------------------------------------------------------------------------ */

/* What jansson says of a file may quote it, so only the place is taken over. */
static int read_fields(const char *text, size_t n, const char *path, json_t **out, trace_error *error)
{
    json_error_t wrong;
    *out = json_loadb(text, n, JSON_REJECT_DUPLICATES, &wrong);
    uint64_t line = *out || wrong.line < 0 ? 0 : (uint64_t)wrong.line;
    return *out ? 0 : trace_bad_input(error, (trace_place){path, line, NULL}, "is no JSON");
}

static int read_all(const reading *r, profile *p)
{
    if (!json_is_object(r->fields))
        return REFUSE(r, NULL, "is no JSON object");
    int rc = read_format(r);
    if (rc == 0)
        rc = read_model(r, p);
    if (rc == 0)
        rc = read_near(r, p);
    return rc < 0 ? rc : read_policy(r, p);
}

int profile_parse(const char *text, size_t n, const char *path, profile *out, trace_error *error)
{
    profile p = {0};
    json_t *fields = NULL;
    int rc = read_fields(text, n, path, &fields, error);
    if (rc == 0)
        rc = read_all(&(reading){path, fields, error}, &p);
    json_decref(fields);
    if (rc == 0)
        *out = p;
    return rc;
}

int profile_read(const char *path, profile *out, trace_error *error)
{
    char *text;
    size_t n;
    int rc = whole_file_read(path, &text, &n, error);
    if (rc < 0)
        return rc;
    rc = profile_parse(text, n, path, out, error);
    free(text);
    return rc;
}

int profile_fits(const profile *p, const char *path, const model_shape *shape, trace_error *error)
{
    if (p->layers == shape->n_layers && p->heads == shape->n_heads)
        return 0;
    return trace_bad_input(error, (trace_place){path, 0, NULL},
                           "is of a model of %u layers and %u heads, not of %u and %u", p->layers, p->heads,
                           shape->n_layers, shape->n_heads);
}

int profile_open(const char *path, const model_shape *shape, profile *out, trace_error *error)
{
    profile p = {.layers = shape->n_layers, .heads = shape->n_heads, .near = {.kind = KVK_NEAR_ERROR}};
    char why[64];
    (void)kvk_policy_parse("keep", NULL, &p.choice, why, sizeof why);
    int rc = path ? profile_read(path, &p, error) : 0;
    if (rc == 0)
        rc = profile_fits(&p, path, shape, error);
    if (rc == 0)
        *out = p;
    return rc;
}

json_t *profile_heads_json(const near_heads *h)
{
    json_t *list = json_array();
    for (uint32_t i = 0; list && i < h->n; i++)
        json_array_append_new(list, json_pack("[i, i]", (int)h->chosen[i].layer, (int)h->chosen[i].head));
    return list;
}

json_t *profile_json(const profile *p, json_t *notes)
{
    char policy[KVK_MAX_POLICY_TEXT];
    if (kvk_policy_print(&p->choice, policy, sizeof policy) < 0)
        return NULL;
    json_t *fields =
        json_pack("{s:s, s:i, s:s, s:I, s:I, s:o, s:s, s:s}", "format", format, "version", VERSION, "model", p->model,
                  "layers", (json_int_t)p->layers, "heads", (json_int_t)p->heads, "near_heads",
                  profile_heads_json(&p->near), "near_kind", kinds[p->near.kind], "policy", policy);
    if (fields && notes && json_object_update_missing(fields, notes) < 0) {
        json_decref(fields);
        return NULL;
    }
    return fields;
}

kvk_policy_choice profile_choice(const profile *p, const kvk_policy_choice *choice)
{
    kvk_policy_choice plain;
    kvk_policy_defaults(p->choice.policy, &plain);
    int is_plain = choice->policy == plain.policy;
    for (uint32_t i = 0; is_plain && i < plain.policy->n_knobs; i++)
        is_plain = !(choice->knobs[i] < plain.knobs[i] || choice->knobs[i] > plain.knobs[i]);
    return is_plain ? p->choice : *choice;
}
