/* cuda/prepare.cu: what kvk_cuda_prepare launches: one block that counts a batch's work, chooses how long parts are and
 * lists the items. */
#include "cuda/launch.cuh"
#include "cuda/plan.cuh"

namespace
{

const uint32_t THREADS = 256;
const uint32_t WARPS = THREADS / 32;
const uint32_t LARGEST_AT = WARPS * sizeof(uint64_t); /* in shared memory, behind the sums */
const uint32_t SHARED_BYTES = LARGEST_AT + WARPS * sizeof(uint32_t);

struct prepare_parameters {
    plan_view plan;
    uint32_t n;
    const int32_t *indptr, *positions, *seq_lens, *query_indptr;
    const uint32_t *rows;
};

/* What is summed over entries. */
enum { TILES, WHOLES, RESTS, MASSES, MEANS, NEARS, TOO_LONG, N_SUMS };

struct sums {
    uint64_t of[N_SUMS];
};

KVK_DEVICE uint32_t divide_up(uint32_t a, uint32_t b)
{
    return a / b + (a % b != 0);
}

/* The sum of what the threads before this one bring; *total is that of all. */
KVK_DEVICE uint64_t sum_before(uint64_t mine, uint64_t *total)
{
    uint64_t *of_warps = reinterpret_cast<uint64_t *>(shared_memory());
    uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint64_t sum = mine, before = 0;
    for (uint32_t distance = 1; distance < 32; distance *= 2) {
        uint64_t other = __shfl_up_sync(ALL_LANES, sum, distance);
        sum += lane >= distance ? other : 0;
    }
    if (lane == 31)
        of_warps[warp] = sum;
    __syncthreads();
    *total = 0;
    for (uint32_t i = 0; i < WARPS; i++) {
        before += i < warp ? of_warps[i] : 0;
        *total += of_warps[i];
    }
    __syncthreads();
    return before + sum - mine;
}

/* The largest of what the threads bring; to be called once. */
KVK_DEVICE uint32_t largest_of_block(uint32_t mine)
{
    uint32_t *of_warps = reinterpret_cast<uint32_t *>(shared_memory() + LARGEST_AT), largest = 0;
    for (uint32_t distance = 16; distance > 0; distance /= 2) {
        uint32_t other = __shfl_xor_sync(ALL_LANES, mine, distance);
        mine = mine > other ? mine : other;
    }
    of_warps[threadIdx.x / 32] = mine;
    __syncthreads();
    for (uint32_t i = 0; i < WARPS; i++)
        largest = largest > of_warps[i] ? largest : of_warps[i];
    return largest;
}

/* The first listed page of those that a batch can change the near peaks of: the page of its first query, the one before
 * it, and all after. */
KVK_DEVICE uint32_t find_near(const prepare_parameters &p, const entry_plan &e)
{
    uint32_t size = p.plan.page_tokens, number = (e.n_tokens - e.n_queries) / size, from = e.n_pages;
    while (from > 0) {
        uint32_t position = p.positions ? p.positions[e.first_page + from - 1] : (from - 1) * size;
        if (position / size + 1 < number)
            break;
        from--;
    }
    return from;
}

KVK_DEVICE entry_plan read_entry(const prepare_parameters &p, uint32_t i)
{
    entry_plan e = {};
    if (i >= p.n)
        return e;
    e.first_page = p.indptr[i];
    e.n_pages = p.indptr[i + 1] - p.indptr[i];
    e.first_query = p.query_indptr[i];
    e.n_queries = p.query_indptr[i + 1] - p.query_indptr[i];
    e.n_tokens = p.seq_lens[i];
    e.n_tiles = divide_up(e.n_queries * p.plan.group, TILE_ROWS);
    e.n_rows = p.rows ? p.rows[i] : 1;
    return e;
}

/* Pages of a part: so many that the batch makes the items wanted, and no entry too many parts. */
KVK_DEVICE uint32_t choose_part_pages(const prepare_parameters &p)
{
    const plan_view &v = p.plan;
    uint64_t pages = 0, total;
    uint32_t longest = 0;
    if (v.part_pages)
        return v.part_pages;
    for (uint32_t i = threadIdx.x; i < p.n; i += THREADS) {
        entry_plan e = read_entry(p, i);
        pages += static_cast<uint64_t>(e.n_pages) * e.n_tiles;
        longest = longest > e.n_pages ? longest : e.n_pages;
    }
    sum_before(pages, &total);
    longest = largest_of_block(longest);
    uint64_t wanted = (total + v.wanted_items - 1) / v.wanted_items;
    uint32_t chosen = divide_up(longest, MOST_PARTS);
    chosen = wanted > chosen ? static_cast<uint32_t>(wanted) : chosen;
    chosen = v.least_pages > chosen ? v.least_pages : chosen;
    return divide_up(chosen, v.share_pages) * v.share_pages;
}

KVK_DEVICE void divide_entry(entry_plan *e, uint32_t part_pages)
{
    e->n_whole = e->n_pages / part_pages;
    e->n_parts = e->n_whole + (e->n_pages % part_pages != 0 || e->n_pages == 0);
}

KVK_DEVICE sums sums_of(const prepare_parameters &p, const entry_plan &e)
{
    sums s;
    s.of[TILES] = e.n_tiles;
    s.of[WHOLES] = static_cast<uint64_t>(e.n_whole) * e.n_tiles;
    s.of[RESTS] = (e.n_parts - e.n_whole) * e.n_tiles;
    s.of[MASSES] = static_cast<uint64_t>(e.n_queries) * e.n_pages;
    s.of[MEANS] = static_cast<uint64_t>(e.n_rows) * e.n_pages;
    s.of[NEARS] = static_cast<uint64_t>(e.n_rows) * (e.n_pages - e.near_from);
    s.of[TOO_LONG] = e.n_queries > p.plan.entry_queries;
    return s;
}

KVK_DEVICE void place_entry(entry_plan *e, const sums &before)
{
    e->tile_at = static_cast<uint32_t>(before.of[TILES]);
    e->whole_at = static_cast<uint32_t>(before.of[WHOLES]);
    e->rest_at = static_cast<uint32_t>(before.of[RESTS]);
    e->mass_at = before.of[MASSES];
    e->mean_at = before.of[MEANS];
    e->near_at = before.of[NEARS];
}

/* Writes the entries; returns the sums over all of them. */
KVK_DEVICE sums place_entries(const prepare_parameters &p, uint32_t part_pages)
{
    sums all = {};
    for (uint32_t first = 0; first < p.n; first += THREADS) {
        uint32_t i = first + threadIdx.x;
        entry_plan e = read_entry(p, i);
        divide_entry(&e, part_pages);
        e.near_from = find_near(p, e);
        sums mine = sums_of(p, e);
        for (int k = 0; k < N_SUMS; k++) {
            uint64_t total, before = sum_before(mine.of[k], &total);
            mine.of[k] = all.of[k] + before;
            all.of[k] += total;
        }
        place_entry(&e, mine);
        if (i < p.n)
            p.plan.entries[i] = e;
    }
    return all;
}

KVK_DEVICE bool has_room(const prepare_parameters &p, const sums &all)
{
    return all.of[TILES] <= p.plan.n_tiles && all.of[WHOLES] + all.of[RESTS] <= p.plan.n_items &&
           all.of[MASSES] <= p.plan.n_masses && all.of[TOO_LONG] == 0 &&
           static_cast<uint32_t>(p.indptr[p.n]) <= p.plan.n_pages &&
           static_cast<uint32_t>(p.query_indptr[p.n]) <= p.plan.n_queries;
}

/* A warp lists the items of an entry. The tiles of a part come one after the other: they read the same pages. */
KVK_DEVICE void list_items(const prepare_parameters &p, uint32_t n_whole_items)
{
    uint32_t lane = threadIdx.x % 32;
    for (uint32_t i = threadIdx.x / 32; i < p.n; i += WARPS) {
        const entry_plan &e = p.plan.entries[i];
        for (uint32_t k = lane; k < e.n_parts * e.n_tiles; k += 32) {
            work_item item = {i, k % e.n_tiles, k / e.n_tiles};
            uint32_t at = e.whole_at + k;
            if (item.part == e.n_whole)
                at = n_whole_items + e.rest_at + item.tile;
            p.plan.items[at] = item;
        }
    }
}

__global__ void __launch_bounds__(THREADS) prepare(const __grid_constant__ prepare_parameters p)
{
    uint32_t part_pages = choose_part_pages(p);
    sums all = place_entries(p, part_pages);
    bool fits = has_room(p, all);
    uint32_t n_whole_items = static_cast<uint32_t>(all.of[WHOLES]);
    __syncthreads(); /* entries that other threads have written */
    if (fits) {
        list_items(p, n_whole_items);
        for (uint64_t i = threadIdx.x; i < all.of[TILES] * p.plan.n_kv_heads; i += THREADS)
            p.plan.tickets[i] = 0;
    }
    if (threadIdx.x > 0)
        return;
    p.plan.state->status = fits ? 0 : KVK_ESPACE;
    p.plan.state->n_items = fits ? static_cast<uint32_t>(all.of[WHOLES] + all.of[RESTS]) : 0;
    p.plan.state->n_whole_items = n_whole_items;
    p.plan.state->part_pages = part_pages;
    p.plan.state->n_means = fits ? all.of[MEANS] : 0;
}

} // namespace

int kvk_cuda_prepare(const kvk_cuda_plan *plan, const kvk_attention *attention, const uint32_t *rows, void *stream)
{
    prepare_parameters p;
    int rc = plan_use(plan, &p.plan);
    if (rc < 0)
        return rc;
    if (!attention_fits(plan, attention))
        return KVK_EINVAL;
    p.n = attention->n;
    p.indptr = attention->indptr;
    p.positions = attention->positions;
    p.seq_lens = attention->seq_lens;
    p.query_indptr = attention->query_indptr;
    p.rows = rows;
    return launch(prepare, {1, THREADS, SHARED_BYTES}, p, stream);
}
