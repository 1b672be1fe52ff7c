/* cuda/plan.cu: sizes of a plan, and its workspace. */
#include "cuda/plan.cuh"

namespace
{

/* ---- Arithmetic that stays at UINT64_MAX once it was passed */

uint64_t times(uint64_t a, uint64_t b)
{
    return b && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

uint64_t plus(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

uint64_t divided_up(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint32_t rounded_up(uint64_t n, uint32_t unit)
{
    return static_cast<uint32_t>(least_of(times(divided_up(n, unit), unit), UINT32_MAX / unit * unit));
}

bool head_size_is_known(uint32_t n)
{
    return n == 64 || n == 80 || n == 96 || n == 128 || n == 256;
}

bool page_tokens_are_known(uint32_t n)
{
    return n == 1 || n == 2 || n == 4 || n == 8 || (n > 0 && n % STRIP_TOKENS == 0 && n <= 65536);
}

bool plan_is_valid(const kvk_cuda_plan *p)
{
    return p && p->size == sizeof *p && p->n_entries > 0 && p->n_entries <= INT32_MAX && p->n_queries <= INT32_MAX &&
           p->n_pages <= INT32_MAX && p->entry_queries > 0 && p->n_heads > 0 && p->n_kv_heads > 0 &&
           p->n_heads % p->n_kv_heads == 0 && head_size_is_known(p->head_size) &&
           page_tokens_are_known(p->page_tokens) && p->near_peaks <= 1;
}

int count_processors(uint32_t given, uint32_t *n)
{
    int device, found;
    *n = given;
    if (given)
        return 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&found, cudaDevAttrMultiProcessorCount, device) != cudaSuccess)
        return KVK_EDEVICE;
    *n = static_cast<uint32_t>(found);
    return 0;
}

void set_shape(const kvk_cuda_plan *p, plan_view *v)
{
    v->n_entries = p->n_entries;
    v->n_queries = p->n_queries;
    v->entry_queries = p->entry_queries;
    v->n_heads = p->n_heads;
    v->n_kv_heads = p->n_kv_heads;
    v->group = p->n_heads / p->n_kv_heads;
    v->head_size = p->head_size;
    v->page_tokens = p->page_tokens;
    v->strip_shift = p->page_tokens < STRIP_TOKENS ? static_cast<uint32_t>(__builtin_ctz(p->page_tokens)) : 4;
    v->n_pages = p->n_pages;
    v->n_masses = p->n_masses ? p->n_masses : times(p->n_pages, p->entry_queries);
}

/* Parts that the warps of a block can share in whole pages and whole strips. */
void set_parts(const kvk_cuda_plan *p, uint32_t processors, plan_view *v)
{
    uint32_t pages_of_strip = p->page_tokens < STRIP_TOKENS ? STRIP_TOKENS / p->page_tokens : 1;
    v->share_pages = decode_warps(p->head_size) * pages_of_strip;
    v->part_pages = p->split_tokens ? rounded_up(divided_up(p->split_tokens, p->page_tokens), v->share_pages) : 0;
    v->least_pages = rounded_up(divided_up(256, p->page_tokens), v->share_pages);
    /* Eight blocks for each processor: four times the two that are there at once, so the last ones matter little. */
    v->wanted_items = static_cast<uint32_t>(divided_up(8ull * processors, p->n_kv_heads));
}

/* The pages of a tile's queries and the one before them. */
void set_near(plan_view *v)
{
    uint32_t queries = (TILE_ROWS + v->group - 2) / v->group + 1;
    uint32_t pages = (queries + v->page_tokens - 2) / v->page_tokens + 2;
    v->near_blocks = static_cast<uint32_t>(divided_up(pages, decode_warps(v->head_size)));
}

/* The most tiles and items that a batch can have. */
int set_bounds(const kvk_cuda_plan *p, plan_view *v)
{
    uint64_t rows = times(p->entry_queries, v->group), tiles_of_entry = divided_up(rows, TILE_ROWS);
    uint64_t by_queries = plus(divided_up(times(p->n_queries, v->group), TILE_ROWS), p->n_entries);
    uint64_t tiles = least_of(times(p->n_entries, tiles_of_entry), by_queries), whole = v->wanted_items;
    if (v->part_pages) {
        uint64_t by_masses = plus(divided_up(times(v->n_masses, v->group), TILE_ROWS), p->n_pages);
        whole = divided_up(least_of(times(p->n_pages, tiles_of_entry), by_masses), v->part_pages);
    }
    uint64_t items = plus(whole, tiles);
    uint64_t near = p->near_peaks ? times(tiles, v->near_blocks) : 0;
    if (times(items, p->n_kv_heads) > INT32_MAX || times(near, p->n_kv_heads) > INT32_MAX ||
        divided_up(v->n_masses, 32) > INT32_MAX)
        return KVK_EINVAL; /* more blocks than a launch can have */
    v->n_tiles = static_cast<uint32_t>(tiles);
    v->n_items = static_cast<uint32_t>(items);
    v->tile_rows = static_cast<uint32_t>(least_of(rows, TILE_ROWS));
    return 0;
}

/* Takes arrays one after the other, each aligned to 256 bytes. */
struct arena {
    uint64_t base, at;

    template <class T> void take(T **array, uint64_t n)
    {
        *array = reinterpret_cast<T *>(base + at);
        at = times(divided_up(plus(at, times(n, sizeof(T))), 256), 256);
    }
};

uint64_t lay_out(const kvk_cuda_plan *p, plan_view *v)
{
    arena a = {reinterpret_cast<uint64_t>(p->workspace), 0};
    uint64_t part_rows = times(times(v->n_items, v->n_kv_heads), v->tile_rows);
    uint64_t layers = p->n_mass_layers ? p->n_mass_layers : 1, query_heads = times(v->n_queries, v->n_heads);
    a.take(&v->state, 1);
    a.take(&v->entries, v->n_entries);
    a.take(&v->items, v->n_items);
    a.take(&v->tickets, times(v->n_tiles, v->n_kv_heads));
    a.take(&v->part_sums, part_rows);
    a.take(&v->part_o, times(part_rows, v->head_size));
    a.take(&v->lse, times(layers, query_heads));
    a.take(&v->page_lse, times(p->n_mass_layers, times(v->n_masses, v->n_heads)));
    a.take(&v->o, p->near_peaks ? times(query_heads, v->head_size) : 0);
    return a.at;
}

} // namespace

void kvk_cuda_plan_init(kvk_cuda_plan *plan)
{
    if (!plan)
        return;
    *plan = kvk_cuda_plan();
    plan->size = sizeof *plan;
    plan->entry_queries = 1;
}

int64_t plan_open(const kvk_cuda_plan *plan, plan_view *view)
{
    uint32_t processors;
    if (!plan_is_valid(plan))
        return KVK_EINVAL;
    int rc = count_processors(plan->n_processors, &processors);
    if (rc < 0)
        return rc;
    *view = plan_view();
    set_shape(plan, view);
    set_parts(plan, processors, view);
    set_near(view);
    if (set_bounds(plan, view) < 0)
        return KVK_EINVAL;
    uint64_t bytes = lay_out(plan, view);
    return bytes <= INT64_MAX ? static_cast<int64_t>(bytes) : int64_t(KVK_EINVAL);
}

int plan_use(const kvk_cuda_plan *plan, plan_view *view)
{
    int64_t bytes = plan_open(plan, view);
    if (bytes < 0)
        return static_cast<int>(bytes);
    if (!plan->workspace || reinterpret_cast<uint64_t>(plan->workspace) % 256)
        return KVK_EINVAL;
    return plan->workspace_bytes >= static_cast<uint64_t>(bytes) ? 0 : KVK_ESPACE;
}

int64_t kvk_cuda_workspace(const kvk_cuda_plan *plan)
{
    plan_view view;
    return plan_open(plan, &view);
}

bool attention_fits(const kvk_cuda_plan *p, const kvk_attention *a)
{
    return a && a->size == sizeof *a && a->kv && a->kv->size == sizeof *a->kv && a->n <= p->n_entries &&
           a->n_heads == p->n_heads && a->kv->n_heads == p->n_kv_heads && a->kv->head_size == p->head_size &&
           a->kv->page_tokens == p->page_tokens && a->indptr && a->pages && a->query_indptr && a->seq_lens;
}
