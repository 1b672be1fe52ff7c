/* fuzz_vocabulary.c: a model file, of which the tokenizer is opened. If it can be, any text, here the file itself,
 * comes back from its tokens or is refused; a conversation is rendered by the file's template or refused. */
#include "engine/chat.h"
#include "engine/small_tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int rc, const trace_error *error)
{
    if (rc < 0 && (error->text[0] == '\0' || strchr(error->text, '\n')))
        abort();
}

static void encode(const tokenizer *t, const char *text, size_t n, unsigned flags)
{
    trace_error error = {""};
    token_list ids = {0};
    int rc = tokenizer_encode(t, text, n, flags, &ids, &error);
    check(rc, &error);
    if (rc == 0 && !small_spells(t, &ids, 0, text, n))
        abort();
    token_list_free(&ids);
}

static void converse(const gguf *g, const tokenizer *t)
{
    const chat_message messages[] = {{CHAT_USER, " ab ", 4}, {CHAT_ASSISTANT, "", 0}};
    const chat_conversation c = {messages, 2, 1};
    trace_error error = {""};
    chat_format format;
    token_list ids = {0};
    int rc = chat_format_open(g, &format, &error);
    if (rc == 0)
        rc = chat_render(t, &format, &c, &ids, &error);
    check(rc, &error);
    token_list_free(&ids);
}

static void open_tokenizer(const gguf *g, const char *text, size_t n)
{
    trace_error error = {""};
    tokenizer *t = NULL;
    int rc = tokenizer_open(g, &t, &error);
    check(rc, &error);
    if (rc < 0)
        return;
    encode(t, text, n, 0);
    encode(t, text, n, TOKENIZER_MARKS);
    encode(t, "ab<|im_end|>", 12, TOKENIZER_MARKS);
    for (int32_t id = -1; id <= (int32_t)tokenizer_size(t); id++)
        if (tokenizer_is_end(t, id) && (uint32_t)id >= tokenizer_size(t))
            abort();
    converse(g, t);
    tokenizer_close(t);
}

/* The file lies at a multiple of its alignment, and ends where its memory does. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    trace_error error = {""};
    gguf *g = NULL;
    unsigned char *bytes = malloc(size ? size : 1);
    if (!bytes)
        return 0;
    memcpy(bytes, data, size);
    if (gguf_open_bytes(bytes, size, "m.gguf", &g, &error) == 0)
        open_tokenizer(g, (const char *)bytes, size);
    gguf_close(g);
    free(bytes);
    return 0;
}
