/* base/list.h: doubly linked lists of array items, linked by index through a `list_link` inside each item.
 *
 * All functions are O(1). An item is on at most one list per link. `links` points to the first item's link and `stride`
 * is the items' size. */
#ifndef KVK_BASE_LIST_H
#define KVK_BASE_LIST_H

#include <stddef.h>
#include <stdint.h>

#define LIST_NONE UINT32_MAX

typedef struct list_link {
    uint32_t prev, next;
} list_link;

typedef struct list {
    uint32_t head, tail, count;
} list;

typedef struct list_items {
    void *links;
    size_t stride;
} list_items;

#define LIST_EMPTY ((list){LIST_NONE, LIST_NONE, 0})

static inline list_link *list_at(list_items items, uint32_t id)
{
    return (list_link *)(void *)((char *)items.links + items.stride * id);
}

static inline void list_push_tail(list *l, list_items items, uint32_t id)
{
    *list_at(items, id) = (list_link){.prev = l->tail, .next = LIST_NONE};
    if (l->tail == LIST_NONE)
        l->head = id;
    else
        list_at(items, l->tail)->next = id;
    l->tail = id;
    l->count++;
}

static inline void list_remove(list *l, list_items items, uint32_t id)
{
    list_link link = *list_at(items, id);
    if (link.prev == LIST_NONE)
        l->head = link.next;
    else
        list_at(items, link.prev)->next = link.next;
    if (link.next == LIST_NONE)
        l->tail = link.prev;
    else
        list_at(items, link.next)->prev = link.prev;
    l->count--;
}

#endif
