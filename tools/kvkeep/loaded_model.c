#define _POSIX_C_SOURCE 200809L /* access */
#include "kvkeep/loaded_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char fetched[] = "SmolLM2-135M-Instruct.Q4_1.gguf"; /* by tools/model-fetch */

static const char *from_environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* As tools/model-fetch chooses its folder. */
static void find(char path[LOADED_MODEL_PATH])
{
    const char *given = from_environment("KVKEEP_MODEL"), *folder = from_environment("KVKEEP_MODEL_DIR");
    const char *cache = from_environment("XDG_CACHE_HOME"), *home = from_environment("HOME");
    if (given)
        snprintf(path, LOADED_MODEL_PATH, "%s", given);
    else if (folder)
        snprintf(path, LOADED_MODEL_PATH, "%s/%s", folder, fetched);
    else if (cache)
        snprintf(path, LOADED_MODEL_PATH, "%s/kvkeep/%s", cache, fetched);
    else
        snprintf(path, LOADED_MODEL_PATH, "%s/.cache/kvkeep/%s", home ? home : "", fetched);
}

static int open_parts(loaded_model *m, trace_error *error)
{
    int rc = gguf_open(m->path, &m->file, error);
    if (rc == 0)
        rc = model_open(m->file, &m->model, error);
    return rc < 0 ? rc : tokenizer_open(m->file, &m->tokenizer, error);
}

int loaded_model_open(loaded_model *m, const char *path, trace_error *error)
{
    *m = (loaded_model){.file = NULL};
    if (path)
        snprintf(m->path, sizeof m->path, "%s", path);
    else
        find(m->path);
    if (!path && access(m->path, R_OK) != 0)
        return trace_bad_input(error, (trace_place){m->path, 0, NULL},
                               "no model there: run tools/model-fetch, or set KVKEEP_MODEL to a GGUF file");
    int rc = open_parts(m, error);
    if (rc < 0)
        loaded_model_close(m);
    return rc;
}

void loaded_model_close(loaded_model *m)
{
    tokenizer_close(m->tokenizer);
    model_close(m->model);
    gguf_close(m->file);
    *m = (loaded_model){.file = NULL};
}

const char *loaded_model_name(const loaded_model *m)
{
    const char *slash = strrchr(m->path, '/');
    return slash ? slash + 1 : m->path;
}
