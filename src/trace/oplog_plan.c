/* The ops of batches. A plan is first asked for without room for its lists: the library says what they need, and only
 * then is memory taken, and only if somebody reads the lists. */
#include "base/checked.h"
#include "trace/oplog_run.h"

/* The arrays of a plan, in the buffer BUFFER_PLAN, as places of index_bits. */
typedef struct plan_arrays {
    kvk_plan plan;
    uint32_t n_entries, n_groups;
} plan_arrays;

static uint64_t places_of_lists(const plan_arrays *a)
{
    uint64_t rows = a->plan.form == KVK_PLAN_PADDED ? a->n_entries : 1, places;
    if (checked_mul(rows * a->n_groups, a->plan.pages_cap, &places) < 0 || places > OPLOG_MAX_PLAN_PLACES)
        return OPLOG_MAX_PLAN_PLACES + 1;
    return places;
}

static int too_large(oplog_run *run)
{
    return trace_bad_input(run->error, lines_place(&run->lines, "entries"), "its lists take more than %llu places",
                           (unsigned long long)OPLOG_MAX_PLAN_PLACES);
}

/* Cuts the buffer into the plan's arrays; every place has the room of an int64_t, whatever index_bits is. */
static int take_arrays(oplog_run *run, plan_arrays *a)
{
    uint64_t lists = places_of_lists(a), slots = a->plan.slots_cap * a->n_groups;
    uint64_t ends = (uint64_t)a->n_groups * (a->n_entries + 1);
    if (lists > OPLOG_MAX_PLAN_PLACES || slots > OPLOG_MAX_PLAN_PLACES || ends > OPLOG_MAX_PLAN_PLACES)
        return too_large(run);
    int64_t *at = oplog_buffer(run, BUFFER_PLAN, 2 * lists + slots + 2 * ends + 2 * (uint64_t)a->n_entries + 2);
    if (!at)
        return TRACE_FAILED;
    a->plan.pages = at;
    a->plan.positions = at += lists;
    a->plan.slots = at += lists;
    a->plan.indptr = at += slots;
    a->plan.last_page_len = at += ends;
    a->plan.seq_lens = at += ends;
    a->plan.query_indptr = at + a->n_entries;
    return 0;
}

static json_t *index_at(const plan_arrays *a, const void *array, uint64_t i)
{
    return json_integer(a->plan.index_bits == 64 ? ((const int64_t *)array)[i] : ((const int32_t *)array)[i]);
}

static json_t *index_list(const plan_arrays *a, const void *array, uint64_t first, uint64_t n)
{
    json_t *list = json_array();
    for (uint64_t i = first; i < first + n; i++)
        json_array_append_new(list, index_at(a, array, i));
    return list;
}

/* A list per group of `n` of the `stride` places that each has. */
static json_t *index_lists(const plan_arrays *a, const void *array, uint64_t stride, uint64_t n)
{
    json_t *lists = json_array();
    for (uint32_t g = 0; g < a->n_groups; g++)
        json_array_append_new(lists, index_list(a, array, g * stride, n));
    return lists;
}

static json_t *slot_lists(const plan_arrays *a)
{
    json_t *lists = json_array();
    for (uint32_t g = 0; g < a->n_groups; g++) {
        json_t *list = json_array();
        for (uint64_t i = 0; i < a->plan.n_slots; i++)
            json_array_append_new(list, json_integer(a->plan.slots[g * a->plan.slots_cap + i]));
        json_array_append_new(lists, list);
    }
    return lists;
}

static json_t *csr_lists(const plan_arrays *a, const void *array)
{
    json_t *lists = json_array();
    for (uint32_t g = 0; g < a->n_groups; g++) {
        json_t *n = index_at(a, a->plan.indptr, (uint64_t)g * (a->n_entries + 1) + a->n_entries);
        json_array_append_new(lists, index_list(a, array, g * a->plan.pages_cap, (uint64_t)json_integer_value(n)));
        json_decref(n);
    }
    return lists;
}

static json_t *padded_lists(const plan_arrays *a, const void *array)
{
    json_t *lists = json_array();
    for (uint64_t g = 0; g < a->n_groups; g++) {
        json_t *rows = json_array();
        for (uint64_t e = 0; e < a->n_entries; e++)
            json_array_append_new(rows,
                                  index_list(a, array, (g * a->n_entries + e) * a->plan.pages_cap, a->plan.pages_cap));
        json_array_append_new(lists, rows);
    }
    return lists;
}

static void detail_arrays(oplog_run *run, const plan_arrays *a)
{
    json_t *(*lists)(const plan_arrays *, const void *) = a->plan.form == KVK_PLAN_PADDED ? padded_lists : csr_lists;
    uint64_t ends = (uint64_t)a->n_entries + 1;
    if (a->plan.form == KVK_PLAN_CSR)
        oplog_detail(run, "indptr", index_lists(a, a->plan.indptr, ends, ends));
    oplog_detail(run, "pages", lists(a, a->plan.pages));
    oplog_detail(run, "positions", lists(a, a->plan.positions));
    oplog_detail(run, "last_page_len", index_lists(a, a->plan.last_page_len, a->n_entries, a->n_entries));
    oplog_detail(run, "slots", slot_lists(a));
    oplog_detail(run, "seq_lens", index_list(a, a->plan.seq_lens, 0, a->n_entries));
    oplog_detail(run, "query_indptr", index_list(a, a->plan.query_indptr, 0, ends));
    oplog_detail(run, "needs", json_integer(a->plan.needs));
}

static void detail_sizes(oplog_run *run, const kvk_plan *plan)
{
    oplog_detail(run, "n_pages", json_integer((json_int_t)plan->n_pages));
    oplog_detail(run, "n_slots", json_integer((json_int_t)plan->n_slots));
}

static int plan_once(oplog_run *run, plan_arrays *a, kvk_batch *batch)
{
    return kvk_batch_plan(run->cache, run->buffers[BUFFER_ENTRIES].items, a->n_entries, &a->plan, batch);
}

/* Plans into arrays without room for lists, which tells their size; then with the room. Nothing to list: once is
 * enough. */
static int plan_and_read(oplog_run *run, plan_arrays *a, kvk_batch *batch)
{
    a->plan.pages_cap = run->args.row_pages;
    int rc = take_arrays(run, a);
    if (rc < 0)
        return rc;
    run->result = plan_once(run, a, batch);
    if (run->result != KVK_ESPACE || (run->args.row_pages && a->plan.n_pages > run->args.row_pages))
        return 0;
    a->plan.slots_cap = a->plan.n_slots;
    if (!run->args.row_pages)
        a->plan.pages_cap = a->plan.n_pages;
    rc = take_arrays(run, a);
    if (rc < 0)
        return rc;
    run->result = plan_once(run, a, batch);
    return 0;
}

int oplog_call_plan(oplog_run *run)
{
    kvk_batch batch;
    plan_arrays a = {.n_entries = run->args.n_entries, .n_groups = run->config.n_groups};
    kvk_plan_init(&a.plan);
    a.plan.form = run->args.form;
    a.plan.index_bits = run->args.index_bits;
    a.plan.entries_cap = a.n_entries;
    bool with_arrays = run->detail || run->args.row_pages;
    if (oplog_ids_prepare(&run->batches) < 0 || map_prepare(&run->n_entries, 1) < 0)
        return oplog_no_memory(run);
    int rc = 0;
    if (with_arrays)
        rc = plan_and_read(run, &a, &batch);
    else
        run->result = plan_once(run, &a, &batch);
    if (rc < 0)
        return rc;
    if (run->result >= 0) {
        oplog_ids_add(&run->batches, run->args.batch, batch);
        map_set(&run->n_entries, run->args.batch, a.n_entries);
    }
    if (run->detail && (run->result >= 0 || run->result == KVK_ESPACE))
        detail_sizes(run, &a.plan);
    if (run->detail && run->result >= 0)
        detail_arrays(run, &a);
    return 0;
}

/* Entries of the result that a call gives: as many as the log lists, or as were planned. */
static uint32_t n_ended(const oplog_run *run)
{
    const oplog_args *a = &run->args;
    uint64_t planned = map_get(&run->n_entries, a->batch);
    if (a->accepted.items)
        return a->accepted.n;
    return planned == MAP_NONE ? 0 : (uint32_t)planned;
}

/* The library takes one of each per entry; a batch that is not open has none. */
static int check_one_each(oplog_run *run, const char *field, const oplog_numbers *numbers)
{
    if (!numbers->items || numbers->n == n_ended(run) || map_get(&run->n_entries, run->args.batch) == MAP_NONE)
        return 0;
    return trace_bad_input(run->error, lines_place(&run->lines, field), "%u items for %u entries", numbers->n,
                           n_ended(run));
}

int oplog_call_end(oplog_run *run)
{
    const oplog_args *args = &run->args;
    kvk_masses masses;
    kvk_batch_result result = {.size = sizeof result, .n = n_ended(run), .accepted = args->accepted.items};
    if (args->mean || args->peak || args->near || args->rows.items || args->n_summed.items)
        result.masses = &masses;
    if (check_one_each(run, "rows", &args->rows) < 0 || check_one_each(run, "n_summed", &args->n_summed) < 0)
        return TRACE_BAD_INPUT;
    int rc = oplog_masses(run, &masses);
    if (rc < 0)
        return rc;
    run->result = kvk_batch_end(run->cache, oplog_ids_handle(&run->batches, args->batch),
                                result.accepted || result.masses ? &result : NULL);
    if (run->result < 0)
        return 0;
    oplog_ids_retire(&run->batches, args->batch);
    map_remove(&run->n_entries, args->batch);
    return 0;
}
