#include "trace/json.h"
#include "trace/mass_file.h"

#include <kvkeep/kvkeep.h>
#include <string.h>

typedef struct about_reader {
    const json_t *object;
    const char *name;
    trace_error *error;
} about_reader;

static trace_place place(const about_reader *r, const char *field)
{
    return (trace_place){r->name, 0, field};
}

/* A whole number of `least` .. `most`. */
static int read_whole(const about_reader *r, const char *field, uint32_t least, uint32_t most, uint32_t *out)
{
    uint64_t value = 0;
    int rc = json_whole(json_object_get(r->object, field), place(r, field), most, &value, r->error);
    if (rc == 0 && value < least)
        rc = trace_bad_input(r->error, place(r, field), "%ju is too small", (uintmax_t)value);
    *out = (uint32_t)value;
    return rc;
}

static int read_first(const about_reader *r, uint32_t *out)
{
    *out = 0;
    bool given = json_object_get(r->object, "first_query") != NULL;
    return given ? read_whole(r, "first_query", 0, KVK_MAX_TOKENS - 1, out) : 0;
}

static int read_aggregation(const about_reader *r, bool *head_maximum)
{
    const char *text = json_string_value(json_object_get(r->object, "aggregation"));
    *head_maximum = text && strcmp(text, "max") == 0;
    if (text && (*head_maximum || strcmp(text, "mean") == 0))
        return 0;
    return trace_bad_input(r->error, place(r, "aggregation"), "is neither \"mean\" nor \"max\"");
}

/* A name, not a path: what describes a file should not lead to files elsewhere. */
static int read_peaks(const about_reader *r, char out[MASS_FILE_NAME])
{
    const json_t *value = json_object_get(r->object, "peaks");
    const char *text = json_string_value(value);
    out[0] = '\0';
    if (!value || json_is_null(value))
        return 0;
    if (!text || !*text || strchr(text, '/') || strlen(text) >= MASS_FILE_NAME)
        return trace_bad_input(r->error, place(r, "peaks"), "is not the name of a file beside it");
    memcpy(out, text, strlen(text) + 1);
    return 0;
}

static int read_all(const about_reader *r, mass_about *about)
{
    int rc = read_whole(r, "page_tokens", 1, KVK_MAX_PAGE_TOKENS, &about->page_tokens);
    if (rc == 0)
        rc = read_whole(r, "groups", 1, KVK_MAX_GROUPS, &about->groups);
    if (rc == 0)
        rc = read_whole(r, "heads", 1, UINT16_MAX, &about->heads);
    if (rc == 0)
        rc = read_first(r, &about->first);
    if (rc == 0)
        rc = read_aggregation(r, &about->head_maximum);
    return rc < 0 ? rc : read_peaks(r, about->peaks);
}

int mass_about_read(mass_about *about, FILE *in, const char *name, trace_error *error)
{
    line_reader lines;
    int rc = 0;
    *about = (mass_about){.groups = 0};
    lines_open(&lines, in, name);
    json_t *object = json_document(&lines, &rc, error);
    if (object) {
        about_reader r = {object, name, error};
        rc = read_all(&r, about);
        json_decref(object);
    }
    lines_close(&lines);
    return rc;
}
