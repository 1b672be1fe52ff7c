/* api.h: short words for the tests of kvkeep.h: one cache at a time, pages of 4 tokens. */
#ifndef API_H
#define API_H

#include <check.h>

#include "kvkeep/kvkeep.h"

enum { API_MAX = 64 };

extern kvk_cache *cache;

/* Opens `cache` with n_pages pages of 4 tokens, one group and tokens as content; `change` (may be NULL) has the last
 * word. */
void api_open(uint32_t n_pages, void (*change)(kvk_config *config));
void api_close(void);

kvk_seq api_seq(void);

/* A sequence whose first n tokens are first, first+1, ... reserved and committed. */
kvk_seq api_text(uint32_t first, uint32_t n);

/* Names n more tokens. */
int api_commit(kvk_seq seq, uint32_t first, uint32_t n);
int api_attach(kvk_seq seq, uint32_t first, uint32_t n);

/* Plans a batch of one entry without arrays. */
kvk_batch api_plan(kvk_seq seq, uint32_t n_query);
int api_end(kvk_batch batch, uint32_t accepted);

kvk_stats api_stats(void);
kvk_seq_info api_info(kvk_seq seq);
kvk_page_info api_page(uint32_t page);

/* The table of a group must be these `n` pages. */
void api_check_table(kvk_seq seq, uint32_t group, uint32_t n, const uint32_t *pages);
#define CHECK_TABLE(seq, group, ...)                                                                                   \
    api_check_table(seq, group, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), (const uint32_t[]){__VA_ARGS__})

/* Runs the tests of one file; returns main's status. */
int api_run(const char *name, const TTest *const *tests, size_t n);
#define RUN_TESTS(name, ...)                                                                                           \
    api_run(name, (const TTest *const[]){__VA_ARGS__}, sizeof((const TTest *const[]){__VA_ARGS__}) / sizeof(TTest *))

#endif
