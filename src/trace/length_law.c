#include "trace/length_law.h"

#include <kvkeep/kvkeep.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void skip_blanks(const char **at)
{
    *at += strspn(*at, " \t\r\n");
}

/* Passes over one character and the blanks around it. */
static bool take(const char **at, char c)
{
    skip_blanks(at);
    if (**at != c)
        return false;
    ++*at;
    skip_blanks(at);
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool take_length(const char **at, uint32_t *out)
{
    uint64_t value = 0;
    if (!is_digit(**at))
        return false;
    for (; is_digit(**at) && value <= KVK_MAX_TOKENS; ++*at)
        value = 10 * value + (uint64_t)(**at - '0');
    *out = (uint32_t)value;
    return value <= KVK_MAX_TOKENS;
}

/* Not what strtod alone would take: signs, hexadecimal numbers, infinities. */
static bool take_probability(const char **at, double *out)
{
    size_t n = strspn(*at, "0123456789.eE+-");
    char *end;
    if (!is_digit(**at))
        return false;
    *out = strtod(*at, &end);
    bool whole = end == *at + n && isfinite(*out);
    *at = end;
    return whole;
}

/* Appends the entry at *at; there is room. */
static bool take_entry(length_law *law, const char **at, double *sum)
{
    double probability;
    if (!take_length(at, &law->lengths[law->n]) || !take(at, ':') || !take_probability(at, &probability))
        return false;
    *sum += probability;
    law->cumulative[law->n++] = *sum;
    return true;
}

static bool take_entries(length_law *law, const char **at, double *sum)
{
    if (!take(at, '{'))
        return false;
    if (**at != '}')
        do
            if (!take_entry(law, at, sum))
                return false;
        while (take(at, ','));
    return take(at, '}') && **at == '\0';
}

static int make_room(length_law *law, const char *text, trace_place place, trace_error *error)
{
    size_t n = 1;
    for (const char *c = text; *c; c++)
        n += *c == ',';
    law->lengths = calloc(n, sizeof *law->lengths);
    law->cumulative = calloc(n, sizeof *law->cumulative);
    return law->lengths && law->cumulative ? 0 : trace_failed(error, place, "out of memory");
}

int length_law_read(length_law *law, const char *text, trace_place place, trace_error *error)
{
    const double tolerance = 1e-3;
    double sum = 0;
    const char *at = text;
    if (make_room(law, text, place, error) < 0)
        return TRACE_FAILED;
    if (!take_entries(law, &at, &sum))
        return trace_bad_input(error, place, "is not {length: probability, ...} at character %zu, '%.16s'",
                               (size_t)(at - text) + 1, at);
    if (law->n > 0 && !(fabs(sum - 1) <= tolerance))
        return trace_bad_input(error, place, "the probabilities add up to %g", sum);
    for (uint32_t i = 0; i < law->n; i++)
        law->cumulative[i] = i + 1 < law->n ? law->cumulative[i] / sum : 1;
    return 0;
}

uint32_t length_law_draw(const length_law *law, random_state *random)
{
    double u = random_unit(random);
    uint32_t low = 0, high = law->n - 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (law->cumulative[middle] > u)
            high = middle;
        else
            low = middle + 1;
    }
    return law->lengths[low];
}

void length_law_close(length_law *law)
{
    free(law->lengths);
    free(law->cumulative);
    *law = (length_law){0};
}
