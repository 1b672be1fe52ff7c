/* Readers of arguments that are one value. */
#include "trace/oplog_read.h"

#include <math.h>
#include <string.h>

int oplog_wrong(oplog_run *run, const char *field, const json_t *value, const char *wanted)
{
    char shown[80];
    return trace_bad_input(run->error, lines_place(&run->lines, field), "expected %s, got %s", wanted,
                           oplog_show(value, shown, sizeof shown));
}

int oplog_wrong_item(oplog_run *run, const oplog_rule *arg, const json_t *list, size_t i, const char *wanted)
{
    char field[64];
    snprintf(field, sizeof field, "%s[%zu]", arg->name, i);
    return oplog_wrong(run, field, json_array_get(list, i), wanted);
}

bool oplog_is_integer(const json_t *value, int64_t min, int64_t max)
{
    return json_is_integer(value) && json_integer_value(value) >= min && json_integer_value(value) <= max;
}

static int check_integer(oplog_run *run, const oplog_rule *arg, const json_t *value)
{
    char wanted[80];
    if (oplog_is_integer(value, arg->min, arg->max))
        return 0;
    snprintf(wanted, sizeof wanted, "an integer %lld to %lld", (long long)arg->min, (long long)arg->max);
    return oplog_wrong(run, arg->name, value, wanted);
}

int oplog_read_u32(oplog_run *run, const oplog_rule *arg, json_t *value, void *out)
{
    int rc = check_integer(run, arg, value);
    if (rc == 0)
        *(uint32_t *)out = (uint32_t)json_integer_value(value);
    return rc;
}

int oplog_read_i32(oplog_run *run, const oplog_rule *arg, json_t *value, void *out)
{
    int rc = check_integer(run, arg, value);
    if (rc == 0)
        *(int32_t *)out = (int32_t)json_integer_value(value);
    return rc;
}

int oplog_read_id(oplog_run *run, const oplog_rule *arg, json_t *value, void *out)
{
    int rc = check_integer(run, arg, value);
    if (rc == 0)
        *(uint64_t *)out = (uint64_t)json_integer_value(value);
    return rc;
}

static int read_new_id(oplog_run *run, const oplog_rule *arg, json_t *value, uint64_t *out, const oplog_ids *ids)
{
    int rc = oplog_read_id(run, arg, value, out);
    if (rc == 0 && oplog_ids_is_open(ids, *out))
        return trace_bad_input(run->error, lines_place(&run->lines, arg->name), "%llu is open already",
                               (unsigned long long)*out);
    return rc;
}

int oplog_read_new_seq(oplog_run *run, const oplog_rule *arg, json_t *value, void *out)
{
    return read_new_id(run, arg, value, out, &run->seqs);
}

int oplog_read_new_batch(oplog_run *run, const oplog_rule *arg, json_t *value, void *out)
{
    return read_new_id(run, arg, value, out, &run->batches);
}

bool oplog_parse_float(const json_t *value, float *out)
{
    static const char *const words[] = {"nan", "inf", "-inf"};
    static const float numbers[] = {NAN, INFINITY, -INFINITY};
    const char *word = json_string_value(value);
    for (int i = 0; word && i < 3; i++)
        if (!strcmp(word, words[i])) {
            *out = numbers[i];
            return true;
        }
    *out = (float)json_number_value(value);
    return json_is_number(value);
}

int oplog_read_float(oplog_run *run, const oplog_rule *arg, json_t *value, void *out)
{
    return oplog_parse_float(value, out) ? 0 : oplog_wrong(run, arg->name, value, "a number");
}

/* NULL stands for no policy. */
int oplog_read_policy(oplog_run *run, const oplog_rule *arg, json_t *value, void *out)
{
    char why[256];
    oplog_args *args = out;
    if (!json_is_string(value) && !json_is_null(value))
        return oplog_wrong(run, arg->name, value, "a policy or null");
    args->has_policy = json_is_string(value);
    if (!args->has_policy ||
        kvk_policy_parse(json_string_value(value), NULL, &args->eviction.choice, why, sizeof why) >= 0)
        return 0;
    return trace_bad_input(run->error, lines_place(&run->lines, arg->name), "%s", why);
}

/* Nothing but its type or range matters. */
int oplog_read_string(oplog_run *run, const oplog_rule *arg, json_t *value, void *out)
{
    (void)out;
    return json_is_string(value) ? 0 : oplog_wrong(run, arg->name, value, "a string");
}

int oplog_read_version(oplog_run *run, const oplog_rule *arg, json_t *value, void *out)
{
    (void)out;
    return check_integer(run, arg, value);
}

int oplog_read_expect(oplog_run *run, const oplog_rule *arg, json_t *value, void *out)
{
    *(json_t **)out = value;
    return json_is_object(value) ? 0 : oplog_wrong(run, arg->name, value, "an object");
}

int oplog_read_bool(oplog_run *run, const oplog_rule *arg, json_t *value, void *out)
{
    if (!json_is_boolean(value))
        return oplog_wrong(run, arg->name, value, "true or false");
    *(uint32_t *)out = json_is_true(value);
    return 0;
}

int oplog_read_word(oplog_run *run, const oplog_rule *arg, json_t *value, void *out)
{
    const char *word = json_string_value(value);
    for (uint32_t i = 0; word && arg->words[i]; i++) {
        *(uint32_t *)out = i;
        if (!strcmp(word, arg->words[i]))
            return 0;
    }
    char wanted[80];
    size_t n = (size_t)snprintf(wanted, sizeof wanted, "one of");
    for (uint32_t i = 0; arg->words[i]; i++)
        n += (size_t)snprintf(wanted + n, sizeof wanted - n, " %s", arg->words[i]);
    return oplog_wrong(run, arg->name, value, wanted);
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    const char *at = c ? strchr(digits, c) : NULL;
    int value = at ? (int)(at - digits) : -1;
    return value < 16 ? value : value - 6;
}

bool oplog_parse_key(const json_t *value, size_t max_digits, kvk_key *out)
{
    const char *text = json_string_value(value);
    size_t n = json_string_length(value);
    if (!text || n == 0 || n > max_digits)
        return false;
    *out = (kvk_key){0};
    for (size_t i = 0; i < n; i++) {
        int digit = hex_digit(text[i]);
        if (digit < 0)
            return false;
        out->hi = out->hi << 4 | out->lo >> 60;
        out->lo = out->lo << 4 | (uint64_t)digit;
    }
    return true;
}

int oplog_read_key(oplog_run *run, const oplog_rule *arg, json_t *value, void *out)
{
    return oplog_parse_key(value, 32, out) ? 0 : oplog_wrong(run, arg->name, value, "1 to 32 hexadecimal digits");
}

bool oplog_parse_u64(const json_t *value, uint64_t *out)
{
    kvk_key key;
    if (json_is_string(value) ? !oplog_parse_key(value, 16, &key) : !oplog_is_integer(value, 0, INT64_MAX))
        return false;
    *out = json_is_string(value) ? key.lo : (uint64_t)json_integer_value(value);
    return true;
}

int oplog_read_u64(oplog_run *run, const oplog_rule *arg, json_t *value, void *out)
{
    if (!json_is_string(value))
        return oplog_read_id(run, arg, value, out);
    return oplog_parse_u64(value, out) ? 0
                                       : oplog_wrong(run, arg->name, value, "an integer or 1 to 16 hexadecimal digits");
}
