/* trace/oplog_ids.h: what the ids in an op log stand for.
 *
 * An open id maps to its handle. A closed one keeps its stale handle for a while, so that a log can try it; only the
 * last OPLOG_CLOSED_IDS are kept, so memory is bounded by what is open at a time. */
#ifndef KVKEEP_TRACE_OPLOG_IDS_H
#define KVKEEP_TRACE_OPLOG_IDS_H

#include "base/map.h"

#include <stdbool.h>

#define OPLOG_CLOSED_IDS 4096u

typedef struct oplog_ids {
    map open, closed;                  /* id to handle; no id is in both */
    map names;                         /* handle to id, of the open ones */
    uint64_t recent[OPLOG_CLOSED_IDS]; /* a ring of the ids closed last */
    uint64_t closes;
} oplog_ids;

void oplog_ids_open(oplog_ids *ids, memory *from);
void oplog_ids_close(oplog_ids *ids);

/* Makes room for one more id. KVK_ENOMEM. */
int oplog_ids_prepare(oplog_ids *ids);

/* An id becomes open; room must have been prepared. */
void oplog_ids_add(oplog_ids *ids, uint64_t id, uint64_t handle);

/* An open id becomes closed; any other is left as it is. */
void oplog_ids_retire(oplog_ids *ids, uint64_t id);

bool oplog_ids_is_open(const oplog_ids *ids, uint64_t id);

/* The handle of an id, open or stale; 0, which is never open, for an unknown one. */
uint64_t oplog_ids_handle(const oplog_ids *ids, uint64_t id);

/* The open id that stands for a handle; 0 if there is none. */
uint64_t oplog_ids_of(const oplog_ids *ids, uint64_t handle);

#endif
