/* cuda/near.cuh: near peaks of one layer (kvk_attention_out.near), from its o and lse. */
#ifndef KVK_CUDA_NEAR_CUH
#define KVK_CUDA_NEAR_CUH

#include "cuda/work.cuh"

/* After decode with the same parameters. 0 or KVK_EDEVICE. */
int launch_near(const decode_parameters &p, void *stream);

#endif
