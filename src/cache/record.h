/* cache/record.h: one line of the op log (docs/oplog.md) per call that may have changed the cache.
 *
 * Each function is called after its call, with its result, and only while a recorder is attached. Calls refused for bad
 * arguments or for want of memory leave no line. */
#ifndef KVK_CACHE_RECORD_H
#define KVK_CACHE_RECORD_H

#include "cache/cache.h"

#include <kvkeep/eviction.h>

/* What kvk_reserve was asked, and how long the tables were before. */
typedef struct reservation {
    kvk_seq seq;
    uint32_t n_tokens;
    kvk_effort effort;
    uint32_t had;
} reservation;

void record_open(kvk_cache *c, kvk_seq seq, const kvk_seq_params *params);
void record_close(kvk_cache *c, kvk_seq seq, int rc);
void record_fork(kvk_cache *c, kvk_seq parent, kvk_seq child, int rc);
void record_priority(kvk_cache *c, kvk_seq seq, int32_t priority, int rc);
void record_attach(kvk_cache *c, kvk_seq seq, const kvk_text *prompt, int rc);
void record_reserve(kvk_cache *c, const reservation *r, int rc);
void record_commit(kvk_cache *c, kvk_seq seq, const kvk_text *text, int rc);
void record_truncate(kvk_cache *c, kvk_seq seq, uint32_t n_tokens, int rc);
void record_plan(kvk_cache *c, const kvk_batch_entry *entries, uint32_t n, int rc);

/* `places` [2][n_groups]: how many values of the result's `mean` and `peak`, and of its `near`, were taken in; NULL:
 * nothing was. */
void record_end(kvk_cache *c, kvk_batch batch, const kvk_batch_result *result, const uint64_t *places, int rc);

/* `asked` NULL: no policy. */
void record_set_eviction(kvk_cache *c, kvk_seq seq, const kvk_eviction *asked, int rc);
void record_evict(kvk_cache *c, kvk_seq seq, uint32_t group, const uint32_t *positions, uint32_t n, int rc);
void record_pin(kvk_cache *c, kvk_seq seq, uint32_t n_tokens, int rc);
void record_unpin(kvk_cache *c, kvk_seq seq, uint32_t n_tokens, int rc);
void record_retain(kvk_cache *c, kvk_seq seq, const kvk_retention *ranges, uint32_t n, int rc);
void record_time(kvk_cache *c, uint64_t now_ms, int rc);
void record_preempt(kvk_cache *c, kvk_seq seq, kvk_preempt_how how, int rc);
void record_swap_in(kvk_cache *c, kvk_seq seq, kvk_effort effort, int rc);
void record_resize(kvk_cache *c, uint32_t n_pages, int move, int rc);
void record_moves(kvk_cache *c, uint32_t cap, int rc);
void record_reset(kvk_cache *c, int rc);

#endif
