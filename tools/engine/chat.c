#include "engine/chat.h"

#include "engine/chat_family.h"

#include <stdlib.h>
#include <string.h>

/* Plain text waits until a mark comes: tokens join across what a template and a message say, but not across marks. */
typedef struct writer {
    const tokenizer *t;
    const chat_format *f;
    token_list *ids;
    char *text;
    size_t n, cap;
    trace_error *error;
    int rc; /* of the first step that failed; the others do nothing then */
} writer;

static void fail_memory(writer *w)
{
    w->rc = trace_failed(w->error, (trace_place){"chat", 0, NULL}, "out of memory");
}

static void put_text(writer *w, const char *text, size_t n)
{
    if (w->rc < 0 || n == 0)
        return;
    if (n > w->cap - w->n) {
        size_t cap = n > SIZE_MAX / 4 - w->n ? 0 : 2 * (w->n + n);
        char *grown = cap ? realloc(w->text, cap) : NULL;
        if (!grown) {
            fail_memory(w);
            return;
        }
        w->text = grown;
        w->cap = cap;
    }
    memcpy(w->text + w->n, text, n);
    w->n += n;
}

static void put_words(writer *w, const char *words)
{
    put_text(w, words, strlen(words));
}

static void flush(writer *w)
{
    if (w->rc == 0 && w->n > 0)
        w->rc = tokenizer_encode(w->t, w->text, w->n, 0, w->ids, w->error);
    w->n = 0;
}

static void put_token(writer *w, int32_t id, const char *name)
{
    flush(w);
    if (w->rc < 0)
        return;
    if (id < 0)
        w->rc =
            trace_bad_input(w->error, (trace_place){"chat", 0, NULL}, "the model's vocabulary has no token '%s'", name);
    else if (token_list_add(w->ids, id) < 0)
        fail_memory(w);
}

static void put_mark(writer *w, const char *name)
{
    put_token(w, tokenizer_mark(w->t, name), name);
}

/* ---- Trimming --------------------------------------------------------------------------------------------------- */

/* What Python's str.strip takes away, which is what templates mean by trim. */
static bool is_space(const char *character, size_t n)
{
    const unsigned char *c = (const unsigned char *)character;
    if (n == 1)
        return c[0] == ' ' || (c[0] >= '\t' && c[0] <= '\r') || (c[0] >= 0x1C && c[0] <= 0x1F);
    if (n == 2)
        return c[0] == 0xC2 && (c[1] == 0x85 || c[1] == 0xA0);
    if (n != 3)
        return false;
    uint32_t code = (c[0] & 0x0Fu) << 12 | (c[1] & 0x3Fu) << 6 | (c[2] & 0x3Fu);
    return code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F ||
           code == 0x205F || code == 0x3000;
}

static void put_trimmed(writer *w, const char *text, size_t n)
{
    size_t from = n, to = n, length;
    for (size_t at = 0; at < n; at += length ? length : 1) {
        length = trace_utf8_length(text + at, n - at);
        if (is_space(text + at, length))
            continue;
        from = from == n ? at : from;
        to = at + (length ? length : 1);
    }
    put_text(w, text + from, to - from);
}

/* ---- Turns ------------------------------------------------------------------------------------------------------ */

static void put_header(writer *w, chat_role role)
{
    static const char *const names[] = {[CHAT_SYSTEM] = "system", [CHAT_USER] = "user", [CHAT_ASSISTANT] = "assistant"};
    put_mark(w, w->f->family->open);
    put_words(w, names[role]);
    if (w->f->family->close)
        put_mark(w, w->f->family->close);
    put_words(w, w->f->family->gap);
}

static void put_end(writer *w)
{
    put_mark(w, w->f->family->end);
    put_words(w, w->f->family->after);
}

static void put_content(writer *w, const chat_message *m)
{
    if (w->f->family->trims)
        put_trimmed(w, m->text, m->n);
    else
        put_text(w, m->text, m->n);
}

static void put_message(writer *w, const chat_message *m)
{
    put_header(w, m->role);
    put_content(w, m);
    put_end(w);
}

/* The dated system turn, which takes the system message in if there is one. */
static void put_dates(writer *w, const chat_message *system)
{
    put_header(w, CHAT_SYSTEM);
    put_words(w, "Cutting Knowledge Date: December 2023\nToday Date: ");
    put_text(w, w->f->date.at, w->f->date.n);
    put_words(w, "\n\n");
    if (system)
        put_content(w, system);
    put_end(w);
}

static void put_conversation(writer *w, const chat_conversation *c)
{
    const chat_message *system = c->messages[0].role == CHAT_SYSTEM ? c->messages : NULL;
    size_t first = 0;
    if (w->f->begins && tokenizer_begin(w->t) >= 0)
        put_token(w, tokenizer_begin(w->t), "");
    if (w->f->family->dated) {
        put_dates(w, system);
        first = system ? 1 : 0;
    } else if (!system && w->f->system.n > 0) {
        put_message(w, &(chat_message){CHAT_SYSTEM, w->f->system.at, w->f->system.n});
    }
    for (size_t i = first; i < c->n; i++)
        put_message(w, &c->messages[i]);
    if (c->add_prompt)
        put_header(w, CHAT_ASSISTANT);
    flush(w);
}

int chat_render(const tokenizer *t, const chat_format *f, const chat_conversation *c, token_list *ids,
                trace_error *error)
{
    writer w = {.t = t, .f = f, .ids = ids, .error = error};
    size_t had = ids->n;
    if (c->n == 0)
        return trace_bad_input(error, (trace_place){"chat", 0, NULL}, "has no messages");
    put_conversation(&w, c);
    if (w.rc < 0)
        ids->n = had;
    free(w.text);
    return w.rc;
}
