/* fuzz_tokenizer.c: the first byte chooses the pre-tokenizer and the flags, the rest is text. It must come back from
 * its tokens, and a terminal must get characters of it. The vocabulary is the small one of the tests. */
#include "engine/small_tokenizer.h"
#include "engine/utf8_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FAMILIES = 4 };

/* Opened once: the input is the text. */
static const tokenizer *tokenizer_of(unsigned family)
{
    static const char *const names[FAMILIES] = {"gpt2", "smollm", "llama-bpe", "qwen2"};
    static tokenizer *open[FAMILIES];
    if (!open[family])
        open[family] = small_tokenizer_open(names[family]);
    return open[family];
}

static void check_characters(const char *out, size_t n)
{
    for (size_t at = 0, length; at < n; at += length) {
        length = trace_utf8_length(out + at, n - at);
        if (length == 0 || out[at] == '\x1B')
            abort();
    }
}

static void stream(const tokenizer *t, const token_list *ids)
{
    utf8_stream s = {0};
    const char *bytes;
    size_t n;
    char out[UTF8_STREAM_ROOM(64)];
    for (size_t i = 0; i < ids->n; i++) {
        if (tokenizer_bytes(t, ids->ids[i], &bytes, &n) < 0 || n > 64)
            abort();
        check_characters(out, utf8_stream_put(&s, bytes, n, out));
    }
    check_characters(out, utf8_stream_end(&s, out));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    trace_error error = {""};
    token_list ids = {0};
    const tokenizer *t = size ? tokenizer_of(data[0] % FAMILIES) : NULL;
    if (!t)
        return 0;
    unsigned flags = data[0] / FAMILIES % FAMILIES;
    const char *text = (const char *)data + 1;
    if (tokenizer_encode(t, text, size - 1, flags, &ids, &error) < 0)
        abort();
    size_t begun = (flags & TOKENIZER_BEGIN) && data[0] % FAMILIES == 2;
    if (!small_spells(t, &ids, begun, text, size - 1))
        abort();
    stream(t, &ids);
    token_list_free(&ids);
    return 0;
}
