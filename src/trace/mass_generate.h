/* trace/mass_generate.h: attention made up from a seed, with what is known of real attention: sinks, heavy hitters,
 * topics that drift and come again, stretches that are read again for a while, and needles: a few tokens that matter to
 * the queries right after them and then not, until a late query asks for them. docs/traces.md has the model.
 */
#ifndef KVKEEP_TRACE_MASS_GENERATE_H
#define KVKEEP_TRACE_MASS_GENERATE_H

#include "trace/mass.h"

enum { MASS_HEADS = 8 }; /* of a group */

typedef struct mass_generate_options {
    uint64_t seed;
    uint32_t steps; /* the text's tokens, 1 .. 2^24 */
    uint32_t page_tokens;
    uint32_t groups;
} mass_generate_options;

#define MASS_GENERATE_DEFAULT ((mass_generate_options){.seed = 1, .steps = 2048, .page_tokens = 16, .groups = 4})
#define MASS_GENERATE_STEPS ((uint32_t)1 << 24)

/* The same options give the same masses (and C library). 0 or TRACE_FAILED. */
int mass_generate(const mass_generate_options *options, mass_trace **out, trace_error *error);

#endif
