#include "trace/registry.h"

#include <string.h>

/* A new format is its file, its declaration in format.h and its name here. */
#define FORMATS(X)                                                                                                     \
    X(mooncake) X(azure) X(vidur) X(etalon) X(kv_cache_tester) X(qwen) X(servegen_offline) X(burstgpt) X(servegen)

#define FORMAT_ADDRESS(name) &trace_##name,
static const trace_format *const formats[] = {FORMATS(FORMAT_ADDRESS)};

enum { N_FORMATS = sizeof formats / sizeof formats[0] };

const char *trace_format_names(void)
{
#define FORMAT_LISTED(name) ", " #name
    static const char names[] = FORMATS(FORMAT_LISTED);
    return names + 2; /* past the first comma */
}

const trace_format *registry_named(const char *name)
{
    for (size_t i = 0; i < N_FORMATS; i++)
        if (strcmp(formats[i]->name, name) == 0)
            return formats[i];
    return NULL;
}

static bool begins_like(const trace_format *f, const char *line, size_t length)
{
    return f->columns.n ? csv_is_header(f->columns, line) : f->detect && f->detect(line, length);
}

const trace_format *registry_detect_head(const char *head)
{
    for (size_t i = 0; i < N_FORMATS; i++)
        if (formats[i]->detect_head && formats[i]->detect_head(head))
            return formats[i];
    return NULL;
}

/* From the last to the first: Mooncake takes any line that begins an object, so the others are asked before it. */
const trace_format *registry_detect(const char *line, size_t length)
{
    for (size_t i = N_FORMATS; i-- > 0;)
        if (begins_like(formats[i], line, length))
            return formats[i];
    return NULL;
}
