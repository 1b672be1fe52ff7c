#include "base/heap.h"

void heap_open(heap *h, memory *from)
{
    *h = (heap){.memory = from};
}

void heap_close(heap *h)
{
    memory_give(h->memory, h->items, h->cap * sizeof *h->items);
    memory_give(h->memory, h->where, h->where_cap * sizeof *h->where);
    *h = (heap){.memory = h->memory};
}

int heap_prepare(heap *h, uint32_t n_ids)
{
    uint32_t had = h->where_cap;
    if (memory_grow(h->memory, &h->items, &h->cap, n_ids, sizeof *h->items) < 0 ||
        memory_grow(h->memory, &h->where, &h->where_cap, n_ids, sizeof *h->where) < 0)
        return KVK_ENOMEM;
    for (uint32_t id = had; id < h->where_cap; id++)
        h->where[id] = HEAP_NONE;
    return 0;
}

static int before(const heap_item *a, const heap_item *b)
{
    return a->key != b->key ? a->key < b->key : a->tie < b->tie;
}

static void put(heap *h, uint32_t i, heap_item item)
{
    h->items[i] = item;
    h->where[item.id] = i;
}

static uint32_t sift_up(heap *h, uint32_t i, heap_item item)
{
    for (uint32_t parent; i > 0 && before(&item, &h->items[parent = (i - 1) / 2]); i = parent)
        put(h, i, h->items[parent]);
    return i;
}

static uint32_t sift_down(heap *h, uint32_t i, heap_item item)
{
    for (uint32_t child; (child = 2 * i + 1) < h->count; i = child) {
        if (child + 1 < h->count && before(&h->items[child + 1], &h->items[child]))
            child++;
        if (!before(&h->items[child], &item))
            break;
        put(h, i, h->items[child]);
    }
    return i;
}

/* Settles an item into the hole at i. */
static void settle(heap *h, uint32_t i, heap_item item)
{
    i = sift_up(h, i, item);
    put(h, sift_down(h, i, item), item);
}

void heap_push(heap *h, uint32_t id, uint64_t key, uint64_t tie)
{
    uint32_t i = h->where[id] == HEAP_NONE ? h->count++ : h->where[id];
    settle(h, i, (heap_item){.key = key, .tie = tie, .id = id});
}

const heap_item *heap_top(const heap *h)
{
    return h->count ? &h->items[0] : NULL;
}

void heap_remove(heap *h, uint32_t id)
{
    if (id >= h->where_cap || h->where[id] == HEAP_NONE)
        return;
    uint32_t i = h->where[id];
    h->where[id] = HEAP_NONE;
    heap_item last = h->items[--h->count];
    if (last.id != id)
        settle(h, i, last);
}
