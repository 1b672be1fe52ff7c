/* fuzz_gguf.c: the input is a GGUF file. Of one that opens, every key and tensor is asked for in every way. */
#include "engine/gguf_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gguf *g = NULL;
    trace_error error = {""};
    int rc = gguf_open_bytes(data, size, "f.gguf", &g, &error);
    if (!gguf_error_is_a_line(rc, &error))
        abort();
    if (rc == 0 && gguf_walk(g) < 0)
        abort();
    gguf_close(g);
    return 0;
}
