#include "base/decimal.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POINT_BYTES 8u /* of a locale's decimal point; they are of one to three bytes */

/* printf and strtod go by the locale, which is the caller's; what stands between 0 and 5 is its decimal point. */
static size_t locale_point(char *point)
{
    char half[POINT_BYTES + 3];
    int n = snprintf(half, sizeof half, "%.1f", 0.5);
    size_t length = n > 2 && (size_t)n < sizeof half ? (size_t)n - 2 : 0;
    memcpy(point, half + 1, length);
    return length;
}

static size_t digits(const char *text)
{
    return strspn(text, "0123456789");
}

/* Not what strtod alone would take: blanks, hexadecimal numbers, infinities. Returns where the point is, the length
 * if there is none, or SIZE_MAX if it is no number. */
static size_t find_point(const char *text, size_t length)
{
    const char *c = text + (*text == '-');
    size_t whole = digits(c), point = length;
    c += whole;
    if (*c == '.') {
        point = (size_t)(c - text);
        whole = whole ? digits(c + 1) : 0;
        c += 1 + whole;
    }
    if (whole && (*c == 'e' || *c == 'E')) {
        c += 1 + (c[1] == '+' || c[1] == '-');
        whole = digits(c);
        c += whole;
    }
    return whole && c == text + length ? point : SIZE_MAX;
}

int decimal_read(const char *text, size_t length, double *out)
{
    char plain[DECIMAL_READ_MAX], local[DECIMAL_READ_MAX + POINT_BYTES];
    if (length >= sizeof plain)
        return 0;
    memcpy(plain, text, length);
    plain[length] = 0;
    size_t at = find_point(plain, length);
    if (at == SIZE_MAX)
        return 0;
    memcpy(local, plain, length + 1);
    if (at < length) {
        size_t n = locale_point(local + at);
        memcpy(local + at + n, plain + at + 1, length - at);
    }
    double value = strtod(local, NULL);
    if (!isfinite(value))
        return 0;
    *out = value;
    return 1;
}

/* Whole numbers that people write as such stay so: 1000000, not 1e+06. */
static void print(double value, int precision, char *text)
{
    if (fabs(value) < 1e15 && value == floor(value))
        snprintf(text, DECIMAL_BYTES + POINT_BYTES, "%.0f", value);
    else
        snprintf(text, DECIMAL_BYTES + POINT_BYTES, "%.*g", precision, value);
}

size_t decimal_write(double value, char *text)
{
    char local[DECIMAL_BYTES + POINT_BYTES], point[POINT_BYTES];
    int precision = 0;
    do
        print(value, ++precision, local);
    while (precision < 17 && strtod(local, NULL) != value);
    size_t n = locale_point(point);
    size_t length = 0;
    for (const char *c = local; *c && length < DECIMAL_BYTES - 1; length++) {
        int is_point = n && strncmp(c, point, n) == 0;
        text[length] = is_point ? '.' : *c;
        c += is_point ? n : 1;
    }
    text[length] = 0;
    return length;
}
