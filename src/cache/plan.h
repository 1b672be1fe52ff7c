/* cache/plan.h: writing a plan into the caller's arrays. */
#ifndef KVK_CACHE_PLAN_H
#define KVK_CACHE_PLAN_H

#include "cache/cache.h"

/* Writes the plan of entries that were checked, into arrays that were measured, before the batch is opened. */
void plan_write(const kvk_cache *c, const kvk_batch_entry *entries, uint32_t n, const kvk_plan *plan);

#endif
