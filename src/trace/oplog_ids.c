#include "trace/oplog_ids.h"

void oplog_ids_open(oplog_ids *ids, memory *from)
{
    map_open(&ids->open, from);
    map_open(&ids->closed, from);
    map_open(&ids->names, from);
    ids->closes = 0;
}

void oplog_ids_close(oplog_ids *ids)
{
    map_close(&ids->open);
    map_close(&ids->closed);
    map_close(&ids->names);
}

int oplog_ids_prepare(oplog_ids *ids)
{
    int rc = map_prepare(&ids->closed, OPLOG_CLOSED_IDS - ids->closed.count);
    if (rc == 0)
        rc = map_prepare(&ids->names, 1);
    return rc < 0 ? rc : map_prepare(&ids->open, 1);
}

void oplog_ids_add(oplog_ids *ids, uint64_t id, uint64_t handle)
{
    map_remove(&ids->closed, id);
    map_set(&ids->open, id, handle);
    map_set(&ids->names, handle, id);
}

/* An id that was opened again may stand in the ring twice; then its newer stale handle is forgotten early, with the
 * older entry. */
void oplog_ids_retire(oplog_ids *ids, uint64_t id)
{
    uint64_t handle = map_get(&ids->open, id);
    if (handle == MAP_NONE)
        return;
    uint64_t *slot = &ids->recent[ids->closes % OPLOG_CLOSED_IDS];
    if (ids->closes++ >= OPLOG_CLOSED_IDS)
        map_remove(&ids->closed, *slot);
    *slot = id;
    map_remove(&ids->open, id);
    map_remove(&ids->names, handle);
    map_set(&ids->closed, id, handle);
}

bool oplog_ids_is_open(const oplog_ids *ids, uint64_t id)
{
    return map_get(&ids->open, id) != MAP_NONE;
}

uint64_t oplog_ids_handle(const oplog_ids *ids, uint64_t id)
{
    uint64_t handle = map_get(&ids->open, id);
    if (handle == MAP_NONE)
        handle = map_get(&ids->closed, id);
    return handle == MAP_NONE ? 0 : handle;
}

uint64_t oplog_ids_of(const oplog_ids *ids, uint64_t handle)
{
    uint64_t id = map_get(&ids->names, handle);
    return id == MAP_NONE ? 0 : id;
}
