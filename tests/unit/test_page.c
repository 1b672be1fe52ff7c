/* The page floor: pool, content index, and the two as one. */
#include "page/store.h"
#include "run_tests.h"

#include <check.h>
#include <string.h>

static memory mem;
static store st;

static const scope nobody = {{0, 0}, 0};

static void open_store(uint32_t n_pages, uint32_t n_groups)
{
    ck_assert_int_eq(memory_open(&mem, NULL), 0);
    memset(&st, 0, sizeof st);
    ck_assert_int_eq(pool_open(&st.pool, &mem, n_pages, &reclaim_lru), 0);
    static const uint32_t no_windows[4];
    prefix_config config = {sizeof(uint32_t), n_groups, no_windows, 0};
    ck_assert_int_eq(prefix_open(&st.prefix, &mem, &config), 0);
    ck_assert_int_eq(pool_prepare(&st.pool, n_pages), 0);
    ck_assert_int_eq(prefix_prepare(&st.prefix, n_pages, n_pages), 0);
}

static void close_store(void)
{
    prefix_close(&st.prefix);
    pool_close(&st.pool);
    ck_assert_uint_eq(mem.bytes, 0);
    memory_close(&mem);
}

/* Puts a page of group 0 under (parent, letter); returns its node. */
static uint32_t publish(uint32_t page, uint32_t parent, uint32_t letter)
{
    content c = {parent, &nobody, &letter};
    uint32_t node = prefix_find(&st.prefix, &c);
    if (node == NODE_NONE)
        node = prefix_add(&st.prefix, &c);
    store_publish(&st, page, 0, node);
    return node;
}

static uint32_t find(uint32_t parent, uint32_t letter)
{
    content c = {parent, &nobody, &letter};
    return prefix_find(&st.prefix, &c);
}

START_TEST(pages_come_ascending_then_last_freed_first)
{
    open_store(5, 1);
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_uint_eq(store_take(&st), i);
    pool_unref(&st.pool, 0, 0);
    pool_unref(&st.pool, 2, 0);
    ck_assert_uint_eq(pool_free(&st.pool), 4);
    ck_assert_uint_eq(store_take(&st), 2);
    ck_assert_uint_eq(store_take(&st), 0);
    ck_assert_uint_eq(store_take(&st), 3);
    ck_assert_uint_eq(st.pool.pages[0].generation, 2);
    close_store();
}
END_TEST

START_TEST(cached_pages_are_taken_after_free_ones_and_lose_their_content)
{
    open_store(2, 1);
    uint32_t page = store_take(&st);
    publish(page, NODE_NONE, 'a');
    pool_unref(&st.pool, page, 0);
    ck_assert_uint_eq(st.pool.n_cached, 1);
    ck_assert_uint_eq(store_take(&st), 1);
    ck_assert_uint_eq(store_take(&st), page);
    ck_assert_uint_eq(find(NODE_NONE, 'a'), NODE_NONE);
    ck_assert_uint_eq(st.reclaimed, 1);
    close_store();
}
END_TEST

/* The only copy of a parent is passed over while its child is cached, whatever the order on the list. */
START_TEST(an_inner_page_is_not_reclaimed_before_its_leaf)
{
    open_store(2, 1);
    uint32_t parent = store_take(&st), child = store_take(&st);
    uint32_t node = publish(parent, NODE_NONE, 'a');
    publish(child, node, 'b');
    pool_unref(&st.pool, parent, 0); /* the wrong way round */
    pool_unref(&st.pool, child, 0);
    ck_assert_uint_eq(store_take(&st), child);
    ck_assert_uint_eq(store_take(&st), parent);
    close_store();
}
END_TEST

/* Out of leaves, an inner page goes; its node stays as the parent's name until its last child is gone. */
START_TEST(a_parent_without_pages_still_names_its_children)
{
    open_store(3, 1);
    uint32_t parent = store_take(&st), child = store_take(&st);
    uint32_t top = publish(parent, NODE_NONE, 'a'), low = publish(child, top, 'b');
    store_take(&st);
    pool_unref(&st.pool, parent, 0);
    ck_assert_uint_eq(store_take(&st), parent); /* its child is used: no leaf among the cached */
    ck_assert_uint_eq(find(NODE_NONE, 'a'), top);
    ck_assert_uint_eq(prefix_page(&st.prefix, top, 0), LIST_NONE);
    publish(parent, NODE_NONE, 'a'); /* the same content again: the chain is whole */
    ck_assert_uint_eq(find(find(NODE_NONE, 'a'), 'b'), low);
    store_withdraw(&st, parent);
    store_withdraw(&st, child);
    ck_assert_uint_eq(st.prefix.n_live, 0);
    ck_assert_uint_eq(find(NODE_NONE, 'a'), NODE_NONE);
    close_store();
}
END_TEST

START_TEST(equal_content_lives_until_its_last_copy_goes)
{
    open_store(3, 1);
    uint32_t a = store_take(&st), b = store_take(&st);
    uint32_t node = publish(a, NODE_NONE, 'x');
    ck_assert_uint_eq(publish(b, NODE_NONE, 'x'), node);
    ck_assert_uint_eq(prefix_page(&st.prefix, node, 0), a);
    store_withdraw(&st, a);
    ck_assert_uint_eq(prefix_page(&st.prefix, node, 0), b);
    store_withdraw(&st, b);
    ck_assert_uint_eq(find(NODE_NONE, 'x'), NODE_NONE);
    close_store();
}
END_TEST

/* With every key equal the index still tells all contents apart (openvino.genai#3722). */
START_TEST(colliding_keys_never_give_another_content)
{
    open_store(8, 1);
    st.prefix.hash_mask = 0;
    uint32_t nodes[8];
    for (uint32_t i = 0; i < 8; i++)
        nodes[i] = publish(store_take(&st), i < 4 ? NODE_NONE : nodes[i - 4], i % 4);
    for (uint32_t i = 0; i < 8; i++)
        ck_assert_uint_eq(find(i < 4 ? NODE_NONE : nodes[i - 4], i % 4), nodes[i]);
    ck_assert_uint_eq(find(NODE_NONE, 9), NODE_NONE);
    store_withdraw(&st, 5);
    ck_assert_uint_eq(find(nodes[1], 1), NODE_NONE);
    ck_assert_uint_eq(find(nodes[2], 2), nodes[6]);
    close_store();
}
END_TEST

START_TEST(scope_separates_roots)
{
    open_store(2, 1);
    uint32_t letter = 'a';
    scope salted = {{1, 0}, 0}, adapted = {{0, 0}, 1};
    uint32_t node = publish(store_take(&st), NODE_NONE, letter);
    content a = {NODE_NONE, &salted, &letter}, b = {NODE_NONE, &adapted, &letter}, c = {NODE_NONE, &nobody, &letter};
    ck_assert_uint_eq(prefix_find(&st.prefix, &a), NODE_NONE);
    ck_assert_uint_eq(prefix_find(&st.prefix, &b), NODE_NONE);
    ck_assert_uint_eq(prefix_find(&st.prefix, &c), node);
    close_store();
}
END_TEST

START_TEST(limbo_lasts_as_long_as_the_batch)
{
    open_store(4, 1);
    uint32_t a = store_take(&st), b = store_take(&st), known = store_take(&st);
    publish(known, NODE_NONE, 'k');
    st.pool.oldest_open = 5;
    pool_unref(&st.pool, a, 4); /* read by an ended batch only */
    pool_unref(&st.pool, b, 6);
    pool_unref(&st.pool, known, 5);
    ck_assert_int_eq(pool_state(&st.pool, a), KVK_PAGE_FREE);
    ck_assert_int_eq(pool_state(&st.pool, b), KVK_PAGE_LIMBO);
    ck_assert_int_eq(pool_state(&st.pool, known), KVK_PAGE_LIMBO);
    ck_assert_uint_eq(pool_drain(&st.pool, 6), 1);
    ck_assert_int_eq(pool_state(&st.pool, known), KVK_PAGE_CACHED);
    ck_assert_int_eq(pool_state(&st.pool, b), KVK_PAGE_LIMBO);
    ck_assert_uint_eq(pool_drain(&st.pool, 7), 1);
    ck_assert_int_eq(pool_state(&st.pool, b), KVK_PAGE_FREE);
    close_store();
}
END_TEST

/* A shared page is in limbo if any of its sequences was being read when it let go, not only the last. */
START_TEST(limbo_remembers_every_reader)
{
    open_store(1, 1);
    uint32_t page = store_take(&st);
    pool_ref(&st.pool, page);
    st.pool.oldest_open = 3;
    ck_assert_int_eq(pool_unref(&st.pool, page, 3), 0);
    ck_assert_int_eq(pool_unref(&st.pool, page, 0), 1);
    ck_assert_int_eq(pool_state(&st.pool, page), KVK_PAGE_LIMBO);
    close_store();
}
END_TEST

START_TEST(records_grow_with_the_pages_taken_only)
{
    ck_assert_int_eq(memory_open(&mem, NULL), 0);
    memset(&st, 0, sizeof st);
    ck_assert_int_eq(pool_open(&st.pool, &mem, KVK_MAX_PAGES, &reclaim_lru), 0);
    ck_assert_int_eq(pool_prepare(&st.pool, 10), 0);
    ck_assert_uint_lt(mem.bytes, 1u << 20);
    uint32_t first = store_take(&st);
    pool_unref(&st.pool, first, 0);
    uint64_t had = mem.allocations;
    ck_assert_int_eq(pool_prepare(&st.pool, 1), 0);
    ck_assert_uint_eq(mem.allocations, had);
    pool_close(&st.pool);
    memory_close(&mem);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("page");
    tcase_add_test(t, pages_come_ascending_then_last_freed_first);
    tcase_add_test(t, cached_pages_are_taken_after_free_ones_and_lose_their_content);
    tcase_add_test(t, an_inner_page_is_not_reclaimed_before_its_leaf);
    tcase_add_test(t, a_parent_without_pages_still_names_its_children);
    tcase_add_test(t, equal_content_lives_until_its_last_copy_goes);
    tcase_add_test(t, colliding_keys_never_give_another_content);
    tcase_add_test(t, scope_separates_roots);
    tcase_add_test(t, limbo_lasts_as_long_as_the_batch);
    tcase_add_test(t, limbo_remembers_every_reader);
    tcase_add_test(t, records_grow_with_the_pages_taken_only);
    return run_tests("page", t);
}
