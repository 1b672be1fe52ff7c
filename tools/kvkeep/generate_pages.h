/* kvkeep/generate_pages.h: which pages of a text a sequence still holds, for people. */
#ifndef KVKEEP_TOOLS_GENERATE_PAGES_H
#define KVKEEP_TOOLS_GENERATE_PAGES_H

#include "engine/runner.h"

#include <stdio.h>

/* Lines of a mark for each page: # held in every group, . in none, and 1 .. 9 tenths of the groups. 0 or an error. */
int generate_show_pages(runner *r, kvk_seq seq, uint32_t page_tokens, FILE *out, trace_error *error);

#endif
