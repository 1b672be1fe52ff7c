/* kvkeep/loaded_model.h: a model file, open and ready to run: what --model names, or the model that tools/model-fetch
 * fetches. */
#ifndef KVKEEP_TOOLS_LOADED_MODEL_H
#define KVKEEP_TOOLS_LOADED_MODEL_H

#include "engine/model.h"
#include "engine/tokenizer.h"

enum { LOADED_MODEL_PATH = 4096 /* bytes of a file name */ };

typedef struct loaded_model {
    char path[LOADED_MODEL_PATH];
    gguf *file;
    model *model;
    tokenizer *tokenizer;
} loaded_model;

/* `path` NULL: $KVKEEP_MODEL, else where tools/model-fetch puts the model. 0 or an error, with nothing to close. */
int loaded_model_open(loaded_model *m, const char *path, trace_error *error);

/* All zeroes are ignored. */
void loaded_model_close(loaded_model *m);

/* The file's name without its folder. */
const char *loaded_model_name(const loaded_model *m);

#endif
