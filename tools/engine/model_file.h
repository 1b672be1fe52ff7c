/* engine/model_file.h: what the parts of model_open share. */
#ifndef KVKEEP_ENGINE_MODEL_FILE_H
#define KVKEEP_ENGINE_MODEL_FILE_H

#include "engine/model.h"

/* What tells one architecture from another. */
typedef struct model_family {
    const char *name; /* general.architecture, and what its keys begin with */
    model_pairs pairs;
    int has_bias; /* 1: Q, K and V have biases */
} model_family;

/* Reads which family a file is of, and the shape that its keys tell, checked. */
int model_read_shape(const gguf *g, const model_family **family, model_shape *out, trace_error *error);

/* Sets *out to a tensor of n_in columns and n_out rows (1: a list). */
int model_find_tensor(const gguf *g, const char *name, uint64_t n_in, uint64_t n_out, const gguf_tensor **out,
                      trace_error *error);

/* Reads all weights. */
int model_read_weights(const gguf *g, const model_family *family, model *m, trace_error *error);

#endif
