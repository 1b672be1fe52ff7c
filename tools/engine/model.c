#include "engine/model.h"
#include "engine/gguf_file.h"
#include "engine/model_file.h"

#include <stdlib.h>

int model_open(const gguf *file, model **out, trace_error *error)
{
    const model_family *family;
    model_shape shape;
    int rc = model_read_shape(file, &family, &shape, error);
    if (rc < 0)
        return rc;
    model *m = calloc(1, sizeof *m);
    if (!m || !(m->layers = calloc(shape.n_layers, sizeof *m->layers))) {
        free(m);
        return gguf_no_memory(file, error);
    }
    m->shape = shape;
    rc = model_read_weights(file, family, m, error);
    if (rc < 0)
        model_close(m);
    else
        *out = m;
    return rc;
}

void model_close(model *m)
{
    if (!m)
        return;
    free(m->layers);
    free(m->weights);
    free(m);
}

void model_embed(const model *m, uint32_t token, float *out)
{
    (void)gguf_row(m->embedding, token, out); /* which was checked when the model was opened */
}
