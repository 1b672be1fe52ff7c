/* cache/state.h: a saved state, and what the files that write and read it share.
 *
 * All numbers are little-endian. What can be computed is not stored: references, lists, the index and the counts per
 * state are made anew by the calls that make them in life, so a state that was made up cannot break them.
 *
 *     "kvkeep st" STATE_VERSION
 *     what must equal the cache's: page_tokens n_groups content host_pages extra_keys, and for each group: window
 *         near_layers near_heads
 *     what is taken over: n_pages watermark reclaim hash_seed next_epoch opened now_ms retaining drained
 *     counters, reclaimed, peak_pages_used
 *     pages ever taken, and for each: filled generation pins level deadline rank word
 *     contents, parents before children, and for each: parent scope row, and for each group its pages, oldest first,
 *         each with its near peaks
 *     free stack; host pool: pages ever taken, stack
 *     slots of sequences, and for each what it holds; stack of closed slots
 *     XXH3-64 of all before
 *
 * A sequence's eviction, if it has any: whether a policy is set; if so the policy's name and knobs, the settings, and
 * each group's budget; for each group its figures and the policy's numbers by table entry; near peaks by group, and the
 * policy's numbers of the pages that have any. */
#ifndef KVK_CACHE_STATE_H
#define KVK_CACHE_STATE_H

#include "cache/cache.h"
#include "cache/state_bytes.h"

#define STATE_MAGIC "kvkeep st"
#define STATE_VERSION 2u

/* ---- state_evict.c */

/* Which pages a table lacks. The rest of the table, and the sequence's length, must have been read. */
void state_put_index(state_writer *w, const table *t);
void state_get_index(state_reader *r, kvk_cache *c, const sequence *s, uint32_t group);

/* What is known of a page that can be found. */
void state_put_page_near(state_writer *w, const kvk_cache *c, uint32_t group, uint32_t page);
void state_get_page_near(state_reader *r, kvk_cache *c, uint32_t group, uint32_t page);

/* What is kept of a sequence that may be evicted: nothing unless it has a struct for it. Its tables must have been
 * read. */
void state_put_eviction(state_writer *w, const kvk_cache *c, const sequence *s);
void state_get_eviction(state_reader *r, kvk_cache *c, sequence *s);

#endif
