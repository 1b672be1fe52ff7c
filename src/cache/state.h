/* cache/state.h: the bytes of a saved state.
 *
 * All numbers are little-endian. What can be computed is not stored: references, lists, the index and the counts per
 * state are made anew by the calls that make them in life, so a state that was made up cannot break them.
 *
 *     "kvkeep st" STATE_VERSION
 *     what must equal the cache's: page_tokens n_groups content host_pages extra_keys windows[n_groups]
 *     what is taken over: n_pages watermark reclaim hash_seed next_epoch opened now_ms retaining drained
 *     counters, reclaimed, peak_pages_used
 *     pages ever taken, and for each: filled generation pins level deadline rank word
 *     contents, parents before children, and for each: parent scope row, and for each group its pages, oldest first
 *     free stack; host pool: pages ever taken, stack
 *     slots of sequences, and for each what it holds; stack of closed slots
 *     XXH3-64 of all before */
#ifndef KVK_CACHE_STATE_H
#define KVK_CACHE_STATE_H

#include "cache/state_bytes.h"

#define STATE_MAGIC "kvkeep st"
#define STATE_VERSION 1u

#endif
