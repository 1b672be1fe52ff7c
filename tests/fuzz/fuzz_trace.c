/* fuzz_trace.c: the first byte picks a trace format, or none to have it found; the rest is the file. Every request that
 * comes out must be one that replay can rely on. */
#include "trace/request.h"

#include <kvkeep/kvkeep.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Sets `name` to the `i`-th format, if there are so many. */
static const char *format_named(size_t i, char *name, size_t cap)
{
    const char *at = trace_format_names();
    for (; i > 0 && at; i--) {
        at = strstr(at, ", ");
        at = at ? at + 2 : NULL;
    }
    if (!at)
        return NULL;
    size_t n = strcspn(at, ",");
    if (n >= cap)
        abort();
    memcpy(name, at, n);
    name[n] = '\0';
    return name;
}

static void check_blocks(const trace_request *r, uint32_t block_tokens)
{
    if (r->block_tokens != block_tokens || block_tokens == 0 || !r->blocks)
        abort();
    uint32_t rest = r->n_input % block_tokens != 0;
    if (r->n_blocks != r->n_input / block_tokens + (r->full_blocks ? 0 : rest))
        abort();
    uint64_t sum = 0;
    for (uint32_t i = 0; i < r->n_blocks; i++)
        sum += r->blocks[i]; /* all of them can be read */
    (void)sum;
}

static void check_request(const trace *t, const trace_request *r, uint64_t number, uint64_t not_before)
{
    if (r->n_input == 0 || (uint64_t)r->n_input + r->n_output > KVK_MAX_TOKENS || r->arrival_us < not_before)
        abort();
    if (trace_content_of(t) == TRACE_BLOCKS)
        check_blocks(r, trace_block_tokens(t));
    else if (r->blocks)
        abort();
    if (r->turn.after >= number || (!trace_has_turns(t) && (r->turn.think_us || r->turn.service_us)))
        abort();
}

static void check_error(int rc, const trace_error *error)
{
    if (rc < 0 && (error->text[0] == '\0' || strchr(error->text, '\n')))
        abort();
}

static void read_all(trace *t)
{
    trace_request request;
    trace_error error = {""};
    uint64_t last = 0, number = 0;
    int rc;
    while ((rc = trace_next(t, &request, &error)) > 0) {
        check_request(t, &request, ++number, last);
        last = request.arrival_us;
    }
    check_error(rc, &error);
}

static void read_trace(FILE *in, uint8_t pick)
{
    char name[64];
    trace_options options = TRACE_OPTIONS_DEFAULT;
    trace_error error = {""};
    trace *t = NULL;
    options.format = format_named(pick % 16, name, sizeof name);
    int rc = trace_open(in, "input", &options, &t, &error);
    check_error(rc, &error);
    if (rc < 0)
        return;
    read_all(t);
    trace_close(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    void *bytes = malloc(size - 1);
    if (!bytes)
        return 0;
    memcpy(bytes, data + 1, size - 1);
    FILE *in = fmemopen(bytes, size - 1, "r");
    if (in) {
        read_trace(in, data[0]);
        fclose(in);
    }
    free(bytes);
    return 0;
}
