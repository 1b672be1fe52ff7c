#include "trace/number.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

const char *number_whole(const char *text, uint64_t max, uint64_t *out)
{
    if (!*text)
        return "is empty";
    const char *c = text + (*text == '-');
    uint64_t value = 0;
    bool fits = true;
    do {
        if (!is_digit(*c))
            return "is not a whole number";
        uint64_t digit = (uint64_t)(*c - '0');
        fits = fits && !__builtin_mul_overflow(value, 10u, &value) && !__builtin_add_overflow(value, digit, &value);
    } while (*++c);
    if (*text == '-')
        return "is negative";
    if (!fits || value > max)
        return "is too large";
    *out = value;
    return NULL;
}

/* Only what a CSV writer makes of a double: strtod alone would take "inf", "0x1p3" and leading blanks as well. */
const char *number_decimal(const char *text, double *out)
{
    if (!*text)
        return "is empty";
    if (strspn(text, "0123456789.eE+-") != strlen(text) || !(is_digit(*text) || *text == '.' || *text == '-'))
        return "is not a number";
    char *end;
    double value = strtod(text, &end);
    if (*end)
        return "is not a number";
    if (value < 0 || *text == '-')
        return "is negative";
    if (!isfinite(value))
        return "is too large";
    *out = value;
    return NULL;
}
