/* main.c: the kernels on the first CUDA device. Exits with 77 where there is none. */
#define _DEFAULT_SOURCE /* setenv */
#include "device/tests.h"
#include "gpu/graph.h"
#include "run_tests.h"

#include <cuda_runtime_api.h>
#include <stdio.h>

int main(void)
{
    int n = 0;
    cudaError_t rc = cudaGetDeviceCount(&n);
    if (rc != cudaSuccess || n == 0) {
        printf("skipped: no CUDA device: %s\n", rc == cudaSuccess ? "none is there" : cudaGetErrorString(rc));
        return 77;
    }
    setenv("CK_FORK", "no", 1); /* a child can't use what its parent has opened */
    TCase *tests = tcase_create("kernels");
    add_plan_tests(tests);
    add_append_tests(tests);
    add_moves_tests(tests);
    add_graph_tests(tests);
    add_fault_tests(tests);
    add_attention_tests(tests);
    return run_tests("gpu", tests);
}
