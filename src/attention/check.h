/* attention/check.h: what arguments must be, in one place for every version of append and attention. Each returns 0 or
 * KVK_EINVAL. What has passed can be addressed in 64 bits without another look. */
#ifndef KVK_ATTENTION_CHECK_H
#define KVK_ATTENTION_CHECK_H

#include <kvkeep/attention.h>

#define MAX_HEAD_SIZE 1024u

/* Shape and strides, and the bytes and scales that they span. */
int check_shape(const kvk_kv *kv, uint64_t *bytes, uint64_t *n_scales);

/* A layer of K and V, slots in it, and n tokens with a row of each KV head. O(n). */
int check_append(const kvk_kv *kv, uint32_t layer, const int64_t *slots, uint32_t n, const kvk_rows *k,
                 const kvk_rows *v);

/* All that attention reads and writes. O(entries + pages). */
int check_attention(const kvk_attention *attention, const kvk_attention_out *out);

#endif
