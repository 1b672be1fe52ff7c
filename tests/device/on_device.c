#include "device/on_device.h"

#include "attention/layout.h"
#include "device/memory.h"

#include <check.h>
#include <stdlib.h>

static void *keep(device_case *d, void *array)
{
    ck_assert_uint_lt(d->n_arrays, sizeof d->arrays / sizeof *d->arrays);
    d->arrays[d->n_arrays++] = array;
    return array;
}

static void *copy(device_case *d, const void *host, uint64_t n, uint64_t bytes)
{
    return keep(d, device_copy_of(host, n * bytes));
}

/* Lists of one number for each entry, query or page: nothing may be read past them. */
static void *copy_list(device_case *d, const void *host, uint64_t n)
{
    return keep(d, device_copy_at_end(host, n * sizeof(int32_t)));
}

static void copy_input(device_case *d)
{
    const grid_case *c = d->c;
    kvk_attention *a = &d->attention;
    uint64_t n = c->attention.n, q_bytes = layout_row_bytes(a->q.dtype, 1);
    d->kv = c->kv;
    d->kv.base = device_borrow(c->kv.base, c->kv_bytes);
    d->kv.scales = copy(d, c->kv.scales, c->n_scales, sizeof(float));
    a->kv = &d->kv;
    a->indptr = copy_list(d, c->indptr, n + 1);
    a->pages = copy_list(d, c->pages, c->n_pages);
    a->positions = copy_list(d, c->attention.positions, c->n_pages);
    a->seq_lens = copy_list(d, c->seq_lens, n);
    a->query_indptr = copy_list(d, c->query_indptr, n + 1);
    a->q.data = copy(d, c->q, c->n_queries * a->q.token_stride, q_bytes);
    a->slopes = copy(d, c->attention.slopes, c->n_heads, sizeof(float));
    a->sinks = copy(d, c->attention.sinks, c->n_heads, sizeof(float));
}

static uint64_t o_bytes(const device_case *d)
{
    return d->c->n_queries * d->out.o_token_stride * layout_row_bytes(d->out.o_dtype, 1);
}

static void copy_output(device_case *d)
{
    const grid_case *c = d->c;
    d->out.o = copy(d, d->host_out->o, o_bytes(d), 1);
    d->out.lse = copy(d, d->host_out->lse, c->n_queries * c->n_heads, sizeof(float));
    d->out.rows = copy_list(d, c->rows, c->attention.n);
    d->out.mean = copy(d, d->host_out->mean, c->n_mean, sizeof(float));
    d->out.peak = copy(d, d->host_out->peak, c->n_mean, sizeof(float));
    d->out.near = copy(d, d->host_out->near, c->n_near, sizeof(float));
    d->out.near_places = copy_list(d, c->near_places, c->near_places ? c->n_heads : 0);
}

static void make_plan(device_case *d, device_options options)
{
    const grid_case *c = d->c;
    kvk_cuda_plan *p = &d->plan;
    kvk_cuda_plan_init(p);
    p->n_entries = c->attention.n;
    p->n_queries = (uint32_t)c->n_queries;
    p->n_pages = (uint32_t)c->n_pages;
    for (uint32_t i = 0; i < c->attention.n; i++) {
        uint32_t queries = (uint32_t)(c->query_indptr[i + 1] - c->query_indptr[i]);
        p->entry_queries = queries > p->entry_queries ? queries : p->entry_queries;
        p->n_masses += (uint64_t)queries * (uint32_t)(c->indptr[i + 1] - c->indptr[i]);
    }
    p->n_mass_layers = 1;
    p->n_heads = c->n_heads;
    p->n_kv_heads = c->kv.n_heads;
    p->head_size = c->kv.head_size;
    p->page_tokens = c->kv.page_tokens;
    p->split_tokens = options.split_tokens;
    p->n_processors = options.n_processors;
    p->near_peaks = 1;
}

void device_case_plan(device_case *d)
{
    int64_t bytes = kvk_cuda_workspace(&d->plan);
    ck_assert_int_gt(bytes, 0);
    d->plan.workspace_bytes = (uint64_t)bytes;
    d->plan.workspace = keep(d, device_take(d->plan.workspace_bytes));
}

device_case *device_case_open(const grid_case *c, const kvk_attention_out *out, device_options options)
{
    device_case *d = calloc(1, sizeof *d);
    ck_assert_ptr_nonnull(d);
    d->c = c;
    d->host_out = out;
    d->attention = c->attention;
    d->out = *out;
    copy_input(d);
    copy_output(d);
    make_plan(d, options);
    device_case_plan(d);
    return d;
}

void device_case_read(device_case *d)
{
    const grid_case *c = d->c;
    device_read(d->host_out->o, d->out.o, o_bytes(d));
    device_read(d->host_out->lse, d->out.lse, c->n_queries * c->n_heads * sizeof(float));
    device_read(d->host_out->mean, d->out.mean, c->n_mean * sizeof(float));
    device_read(d->host_out->peak, d->out.peak, c->n_mean * sizeof(float));
    device_read(d->host_out->near, d->out.near, c->n_near * sizeof(float));
}

void device_case_close(device_case *d)
{
    device_give_back(d->kv.base);
    for (uint32_t i = 0; i < d->n_arrays; i++)
        device_free(d->arrays[i]);
    free(d);
}

int device_case_run(device_case *d)
{
    int rc = kvk_cuda_prepare(&d->plan, &d->attention, d->out.rows, d->stream);
    if (rc == 0)
        rc = kvk_cuda_attention(&d->plan, &d->attention, &d->out, 0, d->stream);
    return rc == 0 ? kvk_cuda_mass(&d->plan, &d->attention, &d->out, 1, d->stream) : rc;
}

int attention_on_device(void *ctx, const grid_case *c, const kvk_attention_out *out)
{
    device_case *d = device_case_open(c, out, *(const device_options *)ctx);
    int rc = device_case_run(d);
    device_case_read(d);
    device_case_close(d);
    return rc;
}

int shape_is_for_device(const grid_shape *s)
{
    uint32_t size = s->head_size, page = s->page_tokens;
    int is_16_bit = s->dtype == KVK_F16 || s->dtype == KVK_BF16;
    int takes_types = s->q_dtype != KVK_F32 && s->dtype != KVK_F32 && (!is_16_bit || s->dtype == s->q_dtype);
    int takes_size = size == 64 || size == 80 || size == 96 || size == 128 || size == 256;
    return takes_types && takes_size && (page % 16 == 0 || page == 1 || page == 2 || page == 4 || page == 8);
}

grid_precision device_precision(const grid_shape *s)
{
    return s->q_dtype == KVK_F16 ? GRID_HALF : GRID_BRAIN;
}
