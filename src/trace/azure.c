/* Azure LLM inference traces: TIMESTAMP with 100 ns digits, ContextTokens, GeneratedTokens. */
#include "trace/format.h"

#include <string.h>

static const char *const names[] = {"TIMESTAMP", "ContextTokens", "GeneratedTokens"};

typedef struct azure_state {
    bool started;
    uint64_t start; /* 100 ns since 1970 of the first request: arrivals count from there */
} azure_state;

/* Whether `text` is `shape`, where a 0 stands for any digit. */
static bool has_shape(const char *text, const char *shape)
{
    for (; *shape; text++, shape++)
        if (*shape == '0' ? *text < '0' || *text > '9' : *text != *shape)
            return false;
    return *text == '\0';
}

static uint32_t digits(const char *text, int n)
{
    uint32_t value = 0;
    for (int i = 0; i < n; i++)
        value = 10 * value + (uint32_t)(text[i] - '0');
    return value;
}

static uint32_t days_in_month(uint32_t year, uint32_t month)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month == 2 && leap ? 29 : days[month - 1];
}

/* Days since 1970-01-01 in the Gregorian calendar, with the year begun in March so that the leap day comes last. */
static uint64_t day_number(uint32_t year, uint32_t month, uint32_t day)
{
    uint64_t y = year - (month <= 2);
    uint64_t day_of_year = (153 * (month + (month > 2 ? -3u : 9u)) + 2) / 5 + day - 1;
    return 365 * y + y / 4 - y / 100 + y / 400 + day_of_year - 719468;
}

/* Reads 'YYYY-MM-DD hh:mm:ss.fffffff' as 100 ns since 1970. */
static bool read_time(const char *text, uint64_t *out)
{
    if (!has_shape(text, "0000-00-00 00:00:00.0000000"))
        return false;
    uint32_t year = digits(text, 4), month = digits(text + 5, 2), day = digits(text + 8, 2);
    uint32_t hour = digits(text + 11, 2), minute = digits(text + 14, 2), second = digits(text + 17, 2);
    if (year < 1970 || month < 1 || month > 12 || day < 1 || day > days_in_month(year, month))
        return false;
    if (hour > 23 || minute > 59 || second > 59)
        return false;
    uint64_t seconds = ((day_number(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    *out = seconds * 10000000 + digits(text + 20, 7);
    return true;
}

static int read_arrival(trace_reader *r, const char *text, uint64_t *arrival_us, trace_error *error)
{
    azure_state *s = r->state;
    uint64_t time;
    if (!read_time(text, &time))
        return trace_bad_input(error, lines_place(&r->lines, names[0]), "'%.64s' is not YYYY-MM-DD hh:mm:ss.fffffff",
                               text);
    if (!s->started)
        *s = (azure_state){true, time};
    if (time < s->start)
        return trace_bad_input(error, lines_place(&r->lines, names[0]), "is earlier than the request before");
    *arrival_us = (time - s->start) / 10;
    return 0;
}

static int read_row(trace_reader *r, char *const *fields, trace_request *out, trace_error *error)
{
    int rc = read_arrival(r, fields[0], &out->arrival_us, error);
    if (rc == 0)
        rc = csv_tokens(&r->lines, names[1], fields[1], &out->n_input, error);
    return rc < 0 ? rc : csv_tokens(&r->lines, names[2], fields[2], &out->n_output, error);
}

const trace_format trace_azure = {
    .name = "azure",
    .content = TRACE_LENGTHS,
    .arrival_field = "TIMESTAMP",
    .input_field = "ContextTokens",
    .output_field = "GeneratedTokens",
    .state_bytes = sizeof(azure_state),
    .columns = {names, 3},
    .row = read_row,
};
