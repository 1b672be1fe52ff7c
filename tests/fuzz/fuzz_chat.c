/* fuzz_chat.c: a chat template up to the first NUL, then messages, each up to a NUL, that users and assistants say in
 * turns. A template of a known family renders them all, in a vocabulary that has its marks. */
#include "engine/chat.h"
#include "engine/small_tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_MESSAGES = 8, N_MARKS = 5 };

static const tokenizer *open_once(void)
{
    static const char *const marks[N_MARKS] = {"<|im_start|>", "<|im_end|>", "<|start_header_id|>", "<|end_header_id|>",
                                               "<|eot_id|>"};
    static small_source source;
    static tokenizer *t;
    trace_error error;
    if (t)
        return t;
    small_source_open(&source, "smollm");
    source.says.n_merges -= N_MARKS;
    for (int i = 0; i < N_MARKS; i++) {
        source.tokens[SMALL_TOKENS - 1 - i] = small_text_of(marks[i]);
        source.types[SMALL_TOKENS - 1 - i] = 3;
    }
    return tokenizer_open_source(&source.says, &t, &error) < 0 ? NULL : t;
}

/* Takes the text up to the next NUL, or the end. */
static gguf_text take(const char **at, size_t *left)
{
    const char *end = *left ? memchr(*at, '\0', *left) : NULL;
    gguf_text text = {*at, end ? (uint64_t)(end - *at) : *left};
    *at += text.n + (end != NULL);
    *left -= text.n + (end != NULL);
    return text;
}

static void render(const tokenizer *t, const chat_format *format, const char *at, size_t left)
{
    chat_message messages[MAX_MESSAGES];
    chat_conversation c = {messages, 0, 1};
    trace_error error = {""};
    token_list ids = {0};
    while (left > 0 && c.n < MAX_MESSAGES) {
        gguf_text text = take(&at, &left);
        messages[c.n] = (chat_message){(chat_role)((c.n + 1) % 3), text.at, text.n};
        c.n++;
    }
    if ((chat_render(t, format, &c, &ids, &error) == 0) != (c.n > 0))
        abort();
    token_list_free(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const tokenizer *t = open_once();
    const char *at = (const char *)data;
    trace_error error = {""};
    chat_format format;
    if (!t)
        return 0;
    gguf_text text = take(&at, &size);
    int rc = chat_format_read(text, "m.gguf", &format, &error);
    if (rc < 0 && (error.text[0] == '\0' || strchr(error.text, '\n')))
        abort();
    if (rc == 0)
        render(t, &format, at, size);
    return 0;
}
