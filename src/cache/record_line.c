#include "cache/record_line.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ITEM_BYTES 96u /* no single piece of a line is longer */

void line_flush(recorder *r)
{
    r->cache->in_callback = 1;
    if (r->n && !r->failed && r->write(r->ctx, r->bytes, r->n) != 0)
        r->failed = 1;
    r->cache->in_callback = 0;
    r->n = 0;
}

void line_text(recorder *r, const char *text)
{
    size_t n = strlen(text);
    if (r->n + n + ITEM_BYTES > RECORDER_BYTES)
        line_flush(r);
    memcpy(r->bytes + r->n, text, n);
    r->n += (uint32_t)n;
}

/* printf would cost more than the call that is recorded. */
void line_number(recorder *r, uint64_t value, unsigned base)
{
    char digits[64];
    unsigned n = 0;
    do
        digits[n++] = "0123456789abcdef"[value % base];
    while ((value /= base) > 0);
    if (r->n + n + ITEM_BYTES > RECORDER_BYTES)
        line_flush(r);
    while (n > 0)
        r->bytes[r->n++] = digits[--n];
}

void line_signed(recorder *r, int64_t value)
{
    if (value < 0)
        line_text(r, "-");
    line_number(r, value < 0 ? -(uint64_t)value : (uint64_t)value, 10);
}

void line_key(recorder *r, kvk_key key)
{
    line_text(r, "\"");
    if (key.hi)
        line_number(r, key.hi, 16);
    for (unsigned bits = 64; key.hi && bits > 4 && key.lo >> (bits - 4) == 0; bits -= 4)
        line_text(r, "0"); /* the low half keeps its leading zeros */
    line_number(r, key.lo, 16);
    line_text(r, "\"");
}

static double power_of_ten(unsigned n)
{
    double power = 1, square = 10;
    for (; n > 0; n >>= 1, square *= square)
        if (n & 1)
            power *= square;
    return power;
}

static double scale(double value, int exponent)
{
    return exponent < 0 ? value / power_of_ten((unsigned)-exponent) : value * power_of_ten((unsigned)exponent);
}

/* The power of ten of a value's leading digit, from its power of two: 1233 / 4096 is log10(2) to five digits, and no
 * power of two that a float has comes that close to a power of ten. */
static int leading_power(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    int two = (int)(bits >> 52) - 1023, ten = ((two + 4096) * 1233 >> 12) - 1233;
    return scale(1, ten + 1) <= value ? ten + 1 : ten;
}

/* A decimal number: digits * 10^-places. */
typedef struct decimal {
    uint64_t digits;
    int places;
} decimal;

/* Nine digits tell any two floats apart (IEEE 754), with a margin in the ninth that is far above what a double rounds
 * away here. Fewer are taken where a power of ten and the digits are exact doubles, since a reader then computes the
 * very quotient that is compared. */
static decimal shortest(double value)
{
    decimal d;
    int first = leading_power(value), n = 6;
    do {
        d.places = n - 1 - first;
        d.digits = (uint64_t)(scale(value, d.places) + 0.5);
    } while (++n <= 9 && (abs(d.places) > 22 || (float)scale((double)d.digits, -d.places) != (float)value));
    for (; d.digits % 10 == 0 && d.places != 0; d.digits /= 10)
        d.places--;
    return d;
}

/* As 12.5, 0.001 or 1e-7. */
static void put_decimal(recorder *r, decimal d)
{
    uint64_t unit = 1;
    for (int i = 0; i < d.places && d.places <= 9; i++)
        unit *= 10;
    if (d.places < 0 || d.places > 9) {
        line_number(r, d.digits, 10);
        line_text(r, "e");
        line_signed(r, -d.places);
        return;
    }
    line_number(r, d.digits / unit, 10);
    for (line_text(r, d.places ? "." : ""); unit > 1; unit /= 10)
        line_number(r, d.digits % unit / (unit / 10), 10);
}

void line_float(recorder *r, float value)
{
    if (isnan(value) || isinf(value)) {
        line_text(r, isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"");
        return;
    }
    line_text(r, signbit(value) ? "-" : "");
    if (value == 0) /* -0 would be read as an integer */
        line_text(r, signbit(value) ? "0.0" : "0");
    else
        put_decimal(r, shortest(fabs((double)value)));
}

void line_name(recorder *r, const char *name)
{
    line_text(r, ",\"");
    line_text(r, name);
    line_text(r, "\":");
}

void line_field(recorder *r, const char *name, uint64_t value)
{
    line_name(r, name);
    line_number(r, value, 10);
}

void line_word(recorder *r, const char *name, const char *word)
{
    line_name(r, name);
    line_text(r, "\"");
    line_text(r, word);
    line_text(r, "\"");
}

void line_wide(recorder *r, const char *name, uint64_t value)
{
    if (value <= INT64_MAX) {
        line_field(r, name, value);
        return;
    }
    line_name(r, name);
    line_key(r, (kvk_key){.lo = value});
}

void line_list(recorder *r, const uint32_t *values, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        line_text(r, i ? "," : "");
        line_number(r, values[i], 10);
    }
}

int line_begin(kvk_cache *c, const char *op, int rc)
{
    if (rc == KVK_EINVAL || rc == KVK_ENOMEM || c->recorder->failed)
        return 0;
    line_text(c->recorder, "{\"op\":\"");
    line_text(c->recorder, op);
    line_text(c->recorder, "\"");
    return 1;
}

void line_result(kvk_cache *c, int rc)
{
    line_text(c->recorder, ",\"expect\":{\"result\":");
    line_signed(c->recorder, rc);
}

void line_end(kvk_cache *c)
{
    line_text(c->recorder, "}}\n");
}

void line_finish(kvk_cache *c, int rc)
{
    line_result(c, rc);
    line_end(c);
}
