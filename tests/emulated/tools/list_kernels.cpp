/* list_kernels.cpp: the kernels of decode by the name that the compiler gives them, with what a launch asks for: name,
 * threads, bytes of shared memory. */
#include "cuda/kernels.cuh"

#include <cstdio>

static void list(const char *math, const char *kv, const decode_kernels &kernels)
{
    static const int sizes[] = {64, 80, 96, 128, 256};
    for (int i = 0; i < 5; i++)
        if (kernels.by_size[i].kernel)
            std::printf("decode<decode_shape<%s, %s<%s>, %d>>\t%u\t%u\n", math, kv, math, sizes[i],
                        kernels.by_size[i].shape.threads, kernels.by_size[i].shape.shared_bytes);
}

int main()
{
    list("f16_math", "plain_kv", decode_f16);
    list("f16_math", "e4m3_kv", decode_f16_e4m3);
    list("f16_math", "i8_kv", decode_f16_i8);
    list("f16_math", "i4_kv", decode_f16_i4);
    list("bf16_math", "plain_kv", decode_bf16);
    list("bf16_math", "e4m3_kv", decode_bf16_e4m3);
    list("bf16_math", "i8_kv", decode_bf16_i8);
    list("bf16_math", "i4_kv", decode_bf16_i4);
    return 0;
}
