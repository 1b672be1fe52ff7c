/* fuzz_oplog.c: the input is an op log. It may be wrong, and it may fail; it may not break an invariant. */
#include "bounded.h"
#include "trace/oplog.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int swallow(void *ctx, const char *bytes, size_t n)
{
    *(size_t *)ctx += n;
    return bytes[0] == '\0'; /* a line is never empty */
}

/* True if the text is an audit's; an input may quote one only further back. */
static int tells_violation(const char *text)
{
    int end = 0;
    sscanf(text, "input:%*u: field audit: expected 0 violations%n", &end);
    return end > 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t held = 0, n_printed = 0, n_recorded = 0;
    const kvk_allocator allocator = {bounded_alloc, bounded_free, &held};
    const oplog_options options = {.audit = 1,
                                   .record = swallow,
                                   .record_ctx = &n_recorded,
                                   .print = swallow,
                                   .print_ctx = &n_printed,
                                   .max_ops = 5000,
                                   .allocator = &allocator};
    oplog_summary summary;
    trace_error error;
    void *bytes = malloc(size + 1); /* fmemopen wants to be able to write */
    if (!bytes)
        return 0;
    memcpy(bytes, data, size);
    FILE *in = fmemopen(bytes, size ? size : 1, "r");
    if (in) {
        int rc = oplog_replay(in, "input", &options, &summary, &error);
        if (held != 0 || (rc < 0 && (strchr(error.text, '\n') || tells_violation(error.text))))
            abort();
        fclose(in);
    }
    free(bytes);
    return 0;
}
