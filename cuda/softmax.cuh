/* cuda/softmax.cuh: sums of powers that may be split at will: x the largest exponent, y the sum of e^(exponent - x). Of
 * nothing at all x is -inf and y is 0, and merging with that changes nothing. The difference of exponents is taken
 * before anything is rounded, so that large ones do not cost precision. */
#ifndef KVK_CUDA_SOFTMAX_CUH
#define KVK_CUDA_SOFTMAX_CUH

#include "cuda/ptx.cuh"

#define MINUS_INFINITY (-__builtin_huge_valf())
#define LOG2_E 1.4426950408889634f
#define LN_2 0.6931471805599453f

/* What a largest exponent may be subtracted from without -inf - -inf. */
KVK_DEVICE float softmax_base(float largest)
{
    return largest == MINUS_INFINITY ? 0.0f : largest;
}

/* What sums of a part with that largest exponent are to be multiplied by in one with a larger or equal one. */
KVK_DEVICE float softmax_factor(float of_part, float of_all)
{
    return exp2_fast((of_part - softmax_base(of_all)) * LOG2_E);
}

KVK_DEVICE float2 softmax_merge(float2 a, float2 b)
{
    float largest = fmaxf(a.x, b.x);
    float2 both = {largest, a.y * softmax_factor(a.x, largest) + b.y * softmax_factor(b.x, largest)};
    return both;
}

/* The logarithm of the whole sum; -inf of nothing. */
KVK_DEVICE float softmax_log(float largest, float sum)
{
    return softmax_base(largest) + log2_fast(sum) * LN_2;
}

/* ---- Of the four lanes that hold a row of a 16 x 8 matrix (mma, ptx.cuh) */

KVK_DEVICE float largest_of_row(float x)
{
    x = fmaxf(x, __shfl_xor_sync(ALL_LANES, x, 1));
    return fmaxf(x, __shfl_xor_sync(ALL_LANES, x, 2));
}

KVK_DEVICE float sum_of_row(float x)
{
    x += __shfl_xor_sync(ALL_LANES, x, 1);
    return x + __shfl_xor_sync(ALL_LANES, x, 2);
}

#endif
