/* The model that tools/model-fetch fetches, for tests; without it they are skipped. */
#ifndef TESTS_ENGINE_REAL_MODEL_H
#define TESTS_ENGINE_REAL_MODEL_H

/* Its path, of $KVKEEP_MODEL; NULL and a line on the standard output if there is none. */
const char *model_path(void);

enum { MODEL_SKIPPED = 77 }; /* what main returns then */

#endif
