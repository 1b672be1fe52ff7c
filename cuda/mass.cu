/* cuda/mass.cu: the masses of a step's layers in one launch, from the logarithms that decode left: e^(page's - lse).
 *
 * A block takes 32 places of mean and peak, one for each lane; its warps share the layers, heads and queries that go
 * into a place, and their sums are added in the warps' order. So the same work gives the same bits. */
#include "cuda/launch.cuh"
#include "cuda/plan.cuh"
#include "cuda/softmax.cuh"

namespace
{

const uint32_t WARPS = 8;

struct mass_parameters {
    plan_view plan;
    uint32_t n, n_layers;
    float weight;
    float *mean, *peak;
};

/* A place: a page of an entry, for one of its queries or all of them. */
struct mass_place {
    entry_plan entry;
    uint32_t page, first_query, n_queries; /* queries: of the entry */
};

struct mass_sum {
    float sum, largest;
};

KVK_DEVICE mass_place find_place(const mass_parameters &p, uint64_t index)
{
    mass_place place;
    place.entry = p.plan.entries[find_entry(p.plan.entries, p.n, &entry_plan::mean_at, index)];
    uint64_t within = index - place.entry.mean_at;
    bool is_sum = place.entry.n_rows == 1;
    place.page = static_cast<uint32_t>(within % place.entry.n_pages);
    place.first_query = is_sum ? 0 : static_cast<uint32_t>(within / place.entry.n_pages);
    place.n_queries = is_sum ? place.entry.n_queries : 1;
    return place;
}

/* Adds a query's masses in the heads of a group. */
KVK_DEVICE void add_group(const mass_parameters &p, const mass_place &place, uint64_t layer_head, uint32_t query,
                          mass_sum *s)
{
    uint32_t group = p.plan.group, layer = layer_head / p.plan.n_kv_heads, kv_head = layer_head % p.plan.n_kv_heads;
    uint64_t mass = place.entry.mass_at + static_cast<uint64_t>(query) * place.entry.n_pages + place.page;
    uint64_t of_query = static_cast<uint64_t>(layer) * p.plan.n_queries + place.entry.first_query + query;
    const float *page_lse = p.plan.page_lse + (layer_head * p.plan.n_masses + mass) * group;
    const float *lse = p.plan.lse + of_query * p.plan.n_heads + kv_head * group;
    for (uint32_t i = 0; i < group; i++) {
        float x = softmax_factor(page_lse[i], lse[i]);
        s->sum += x;
        s->largest = fmaxf(s->largest, x);
    }
}

KVK_DEVICE mass_sum add_share(const mass_parameters &p, const mass_place &place)
{
    mass_sum s = {0, 0};
    uint64_t n = static_cast<uint64_t>(p.n_layers) * p.plan.n_kv_heads * place.n_queries;
    for (uint64_t i = threadIdx.x / 32; i < n; i += WARPS)
        add_group(p, place, i / place.n_queries, place.first_query + static_cast<uint32_t>(i % place.n_queries), &s);
    return s;
}

KVK_DEVICE void write_place(const mass_parameters &p, uint64_t index, const mass_sum *of_warps)
{
    mass_sum s = {0, 0};
    for (uint32_t warp = 0; warp < WARPS; warp++) {
        s.sum += of_warps[warp * 32].sum;
        s.largest = fmaxf(s.largest, of_warps[warp * 32].largest);
    }
    if (p.mean)
        p.mean[index] += p.weight * (s.sum / static_cast<float>(p.plan.n_heads));
    if (p.peak)
        p.peak[index] = fmaxf(p.peak[index], s.largest);
}

__global__ void __launch_bounds__(WARPS * 32) mass(const __grid_constant__ mass_parameters p)
{
    mass_sum *sums = reinterpret_cast<mass_sum *>(shared_memory());
    uint32_t lane = threadIdx.x % 32;
    uint64_t index = static_cast<uint64_t>(blockIdx.x) * 32 + lane;
    bool is_place = index < p.plan.state->n_means;
    if (is_place)
        sums[threadIdx.x] = add_share(p, find_place(p, index));
    __syncthreads();
    if (is_place && threadIdx.x < 32)
        write_place(p, index, sums + lane);
}

} // namespace

int kvk_cuda_mass(const kvk_cuda_plan *plan, const kvk_attention *attention, const kvk_attention_out *out,
                  uint32_t n_layers, void *stream)
{
    mass_parameters p;
    int rc = plan_use(plan, &p.plan);
    if (rc < 0)
        return rc;
    if (!attention_fits(plan, attention) || !out || out->size != sizeof *out || n_layers > plan->n_mass_layers)
        return KVK_EINVAL;
    p.n = attention->n;
    p.n_layers = n_layers;
    p.weight = out->weight;
    p.mean = out->mean;
    p.peak = out->peak;
    /* An entry without queries has places too, which nothing is added to: as many as pages at most. */
    uint64_t places = p.plan.n_masses + p.plan.n_pages;
    launch_shape shape = {static_cast<uint32_t>((places + 31) / 32), WARPS * 32, WARPS * 32 * sizeof(mass_sum)};
    return p.n && n_layers ? launch(mass, shape, p, stream) : 0;
}
