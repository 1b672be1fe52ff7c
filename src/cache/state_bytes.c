/* state_bytes.c: buffers and checksums of the bytes of a state. */
#include "cache/state_bytes.h"

void state_flush(state_writer *w)
{
    if (w->n == 0)
        return;
    XXH3_64bits_update(&w->sum, w->bytes, w->n);
    if (!w->failed && w->write(w->ctx, w->bytes, w->n) != 0)
        w->failed = 1;
    w->n = 0;
}

void state_put(state_writer *w, const void *from, size_t n)
{
    for (size_t done = 0, step; done < n; done += step) {
        if (w->n == sizeof w->bytes)
            state_flush(w);
        step = sizeof w->bytes - w->n < n - done ? sizeof w->bytes - w->n : n - done;
        memcpy(w->bytes + w->n, (const char *)from + done, step);
        w->n += (uint32_t)step;
    }
}

/* Bit by bit: a policy may keep what is no number. */
void state_put_floats(state_writer *w, const float *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        put32(w, bits);
    }
}

static void refill(state_reader *r)
{
    int64_t got = r->failed ? 0 : r->read(r->ctx, r->bytes, sizeof r->bytes);
    if (!r->failed && got <= 0)
        r->failed = got < 0 ? KVK_EIO : KVK_EFORMAT;
    if (!r->failed && got > (int64_t)sizeof r->bytes)
        r->failed = KVK_EIO;
    r->at = 0;
    r->n = r->failed ? 0 : (uint32_t)got;
}

void state_get(state_reader *r, void *to, size_t n)
{
    for (size_t done = 0, step; done < n; done += step) {
        if (r->at == r->n)
            refill(r);
        if (r->failed) {
            memset((char *)to + done, 0, n - done);
            return;
        }
        step = r->n - r->at < n - done ? r->n - r->at : n - done;
        memcpy((char *)to + done, r->bytes + r->at, step);
        XXH3_64bits_update(&r->sum, r->bytes + r->at, step);
        r->at += (uint32_t)step;
    }
}

void state_get_floats(state_reader *r, float *values, size_t n)
{
    for (size_t i = 0; i < n && !r->failed; i++) {
        uint32_t bits = get32(r);
        memcpy(&values[i], &bits, sizeof bits);
    }
}
