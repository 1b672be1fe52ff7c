/* kvkeep/cuda.h: attention with page masses, append and moves on a CUDA device (compute capability 8.0 and up).
 *
 * The arguments are those of attention.h and moves.h, with arrays in device memory: the structs themselves are in host
 * memory and are copied at the call, what they point to is read and written by the device. Every call launches kernels
 * on the caller's stream and returns: nothing waits, nothing is allocated, no state is kept. Launches depend on the
 * host's arguments alone, not on what device memory holds, so that a captured graph can be replayed with other batches
 * within the same plan. A stream is a cudaStream_t; calls are for the current device.
 *
 * Results are 0 or a negative KVK_E* code; KVK_EDEVICE: CUDA refused a launch, and cudaGetLastError() tells why. What
 * only the device can see is not checked: page ids, indptr and positions must be what attention.h asks for. */
#ifndef KVKEEP_CUDA_H
#define KVKEEP_CUDA_H

#include <kvkeep/attention.h>
#include <kvkeep/moves.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What batches may come, and what the kernels have for them. All of a batch's layers in one group of the cache use the
 * same plan; a plan can be used by one batch at a time.
 *
 * Each query attends to its pages in parts that blocks of the device work on side by side and the last one puts
 * together. How long a part is follows from the batch, so that the device is full; with split_tokens it is always the
 * same, and an entry's results do not depend on which others are in the batch. Either way the same batch gives the same
 * bits. */
typedef struct kvk_cuda_plan {
    uint32_t size;          /* sizeof(kvk_cuda_plan) */
    uint32_t n_entries;     /* of a batch, at most */
    uint32_t n_queries;     /* of all entries, at most */
    uint32_t entry_queries; /* of one entry, at most; default 1 */
    uint32_t n_pages;       /* listed by all entries, at most */
    uint32_t n_mass_layers; /* layers whose masses wait for kvk_cuda_mass; 0: no masses */
    uint64_t n_masses;      /* sum over entries of queries * pages, at most; 0: n_pages * entry_queries */
    uint32_t n_heads;       /* of queries */
    uint32_t n_kv_heads;
    uint32_t head_size;    /* 64, 80, 96, 128 or 256; not 80 for int4 */
    uint32_t page_tokens;  /* 1, 2, 4, 8 or a multiple of 16 */
    uint32_t split_tokens; /* 0: as the batch suggests; else a part's tokens, rounded up to what blocks can share */
    uint32_t near_peaks;   /* 1: kvk_attention_out.near will be asked for */
    uint32_t n_processors; /* of the device; 0: ask it */
    uint32_t reserved;
    void *workspace;          /* device memory, aligned to 256 bytes; it begins with the status, an int32: 0, or
                                 KVK_ESPACE if the last batch was more than the plan has room for, and nothing was
                                 computed */
    uint64_t workspace_bytes; /* at least kvk_cuda_workspace */
} kvk_cuda_plan;

/* Fills in `size` and the defaults. */
KVK_API void kvk_cuda_plan_init(kvk_cuda_plan *plan);

/* Bytes of workspace that a plan needs; workspace and workspace_bytes are not read. KVK_EINVAL, KVK_EDEVICE. */
KVK_API int64_t kvk_cuda_workspace(const kvk_cuda_plan *plan);

/* Divides a batch's work. To be called for every batch, before its first layer: reads n, indptr, positions, seq_lens
 * and query_indptr of `attention`, and rows ([n], or NULL) of its masses. An entry may have no query and no page, so a
 * replayed graph can have fewer entries. One launch. KVK_EINVAL, KVK_ESPACE (workspace too small), KVK_EDEVICE. */
KVK_API int kvk_cuda_prepare(const kvk_cuda_plan *plan, const kvk_attention *attention, const uint32_t *rows,
                             void *stream);

/* Attention of one layer: o, lse and near of `out`. The masses wait in the workspace as number `mass_layer` of
 * n_mass_layers. Types: K and V f16 or bf16 as the queries are, or e4m3, int8 or int4 for either; rows of K and V begin
 * at multiples of 16 bytes, those of a page less than 4 GB apart. One launch, two with near. KVK_EINVAL, KVK_ESPACE,
 * KVK_EDEVICE. */
KVK_API int kvk_cuda_attention(const kvk_cuda_plan *plan, const kvk_attention *attention, const kvk_attention_out *out,
                               uint32_t mass_layer, void *stream);

/* Adds the masses of the first n_layers that wait to mean and peak of `out`: one launch for all layers of a step.
 * KVK_EINVAL, KVK_ESPACE, KVK_EDEVICE. */
KVK_API int kvk_cuda_mass(const kvk_cuda_plan *plan, const kvk_attention *attention, const kvk_attention_out *out,
                          uint32_t n_layers, void *stream);

/* New tokens, as kvk_append takes them, in device memory. */
typedef struct kvk_cuda_tokens {
    uint32_t size; /* sizeof(kvk_cuda_tokens) */
    uint32_t n;
    const int64_t *slots; /* [n] one that is negative or past the last page is skipped */
    kvk_rows k, v;
} kvk_cuda_tokens;

/* kvk_append on the device, for every type. One launch. KVK_EINVAL, KVK_EDEVICE. */
KVK_API int kvk_cuda_append(const kvk_kv *kv, uint32_t layer, const kvk_cuda_tokens *tokens, void *stream);

/* Runs n moves in order, as kvk_moves_run_host does; a move that is not valid is skipped, so a captured launch can have
 * room for more than there are (n_tokens 0). `moves` is read by the device; so are the pages that `where` describes:
 * device memory, and for the host pool page-locked memory that the device can address. One launch for each group.
 * KVK_EINVAL, KVK_EDEVICE. */
KVK_API int kvk_cuda_moves(const kvk_move *moves, uint32_t n, const kvk_host_memory *where, void *stream);

#ifdef __cplusplus
}
#endif

#endif
