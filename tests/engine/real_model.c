#include "engine/real_model.h"

#include <stdio.h>
#include <stdlib.h>

const char *model_path(void)
{
    const char *path = getenv("KVKEEP_MODEL");
    if (path && *path)
        return path;
    printf("skipped: KVKEEP_MODEL names no model; tools/model-fetch prints the path of one\n");
    return NULL;
}
