/* Choices of policies as text: NAME:key=value:key=value. */
#include "base/decimal.h"
#include "policy/knobs.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SHOWN 40u /* bytes of a caller's text that a message repeats */

/* A piece of the caller's text. */
typedef struct piece {
    const char *at;
    size_t length;
} piece;

/* A choice that is being read. */
typedef struct reading {
    kvk_policy_choice *out;
    uint32_t seen; /* a bit for each knob that was given */
    char *why;
    size_t cap;
} reading;

__attribute__((format(printf, 2, 3))) static int refuse(const reading *r, const char *format, ...)
{
    if (r->cap) {
        va_list args;
        va_start(args, format);
        vsnprintf(r->why, r->cap, format, args);
        va_end(args);
    }
    return KVK_EINVAL;
}

/* Something that can stand in a line of a terminal, whatever was given. */
static const char *shown(piece p, char *room)
{
    size_t n = p.length < SHOWN ? p.length : SHOWN;
    for (size_t i = 0; i < n; i++)
        room[i] = p.at[i] >= ' ' && p.at[i] <= '~' ? p.at[i] : '?';
    room[n] = 0;
    return room;
}

static int is(piece p, const char *name)
{
    return strlen(name) == p.length && memcmp(p.at, name, p.length) == 0;
}

static const kvk_policy *find_policy(const kvk_policy *also, piece name)
{
    const kvk_policy *policy;
    if (also && is(name, also->name))
        return also;
    for (uint32_t i = 0; (policy = kvk_policy_at(i)); i++)
        if (is(name, policy->name))
            return policy;
    return NULL;
}

static const kvk_preset *find_preset(piece name)
{
    const kvk_preset *preset;
    for (uint32_t i = 0; (preset = kvk_preset_at(i)); i++)
        if (is(name, preset->name))
            return preset;
    return NULL;
}

static int read_value(reading *r, uint32_t i, piece text)
{
    const kvk_policy *policy = r->out->policy;
    const kvk_knob *knob = &policy->knobs[i];
    double value;
    if (decimal_read(text.at, text.length, &value) && knob_takes(knob, value)) {
        r->out->knobs[i] = value + 0.0; /* -0 becomes 0 */
        return 0;
    }
    char room[SHOWN + 1], min[DECIMAL_BYTES], max[DECIMAL_BYTES];
    decimal_write(knob->min, min);
    decimal_write(knob->max, max);
    return refuse(r, "%s: %s: '%s' is not a %snumber of %s to %s", policy->name, knob->name, shown(text, room),
                  knob->whole ? "whole " : "", min, max);
}

static int read_knob(reading *r, piece item)
{
    char room[SHOWN + 1];
    const kvk_policy *policy = r->out->policy;
    const char *equals = memchr(item.at, '=', item.length);
    if (!equals)
        return refuse(r, "%s: '%s' is not key=value", policy->name, shown(item, room));
    piece key = {item.at, (size_t)(equals - item.at)};
    piece value = {equals + 1, item.length - key.length - 1};
    for (uint32_t i = 0; i < policy->n_knobs; i++) {
        if (!is(key, policy->knobs[i].name))
            continue;
        if (r->seen & 1u << i)
            return refuse(r, "%s: %s is given twice", policy->name, policy->knobs[i].name);
        r->seen |= 1u << i;
        return read_value(r, i, value);
    }
    return refuse(r, "%s has no knob '%s'", policy->name, shown(key, room));
}

static int read_name(reading *r, piece name, const kvk_policy *also)
{
    char room[SHOWN + 1];
    const kvk_policy *policy = find_policy(also, name);
    if (policy) {
        kvk_policy_defaults(policy, r->out);
        return 0;
    }
    const kvk_preset *preset = find_preset(name);
    if (!preset)
        return refuse(r, "'%s' is neither a policy nor a preset", shown(name, room));
    return kvk_policy_parse(preset->choice, NULL, r->out, r->why, r->cap);
}

static int read_choice(reading *r, const char *text, const kvk_policy *also)
{
    piece item = {text, strcspn(text, ":")};
    int rc = read_name(r, item, also);
    while (rc == 0 && item.at[item.length]) {
        item.at += item.length + 1;
        item.length = strcspn(item.at, ":");
        rc = read_knob(r, item);
    }
    return rc;
}

int kvk_policy_parse(const char *text, const kvk_policy *also, kvk_policy_choice *out, char *why, size_t cap)
{
    kvk_policy_choice choice;
    reading r = {.out = &choice, .why = why, .cap = why ? cap : 0};
    if (!text || !out)
        return refuse(&r, "no policy is given");
    if (also && !policy_is_complete(also))
        return refuse(&r, "the policy that is given is not complete");
    if (memchr(text, 0, KVK_MAX_POLICY_TEXT) == NULL)
        return refuse(&r, "a policy of more than %u bytes", KVK_MAX_POLICY_TEXT - 1);
    int rc = read_choice(&r, text, also);
    if (rc == 0)
        *out = choice;
    return rc;
}

/* Text that is being written: counted past its room. */
typedef struct writing {
    char *text;
    size_t cap, length;
} writing;

static void put(writing *w, const char *text)
{
    size_t n = strlen(text);
    if (w->length + n < w->cap)
        memcpy(w->text + w->length, text, n + 1);
    w->length += n;
}

int kvk_policy_print(const kvk_policy_choice *choice, char *text, size_t cap)
{
    if (kvk_policy_check(choice) < 0 || (cap && !text))
        return KVK_EINVAL;
    const kvk_policy *policy = choice->policy;
    writing w = {.text = text, .cap = cap};
    put(&w, policy->name);
    for (uint32_t i = 0; i < policy->n_knobs; i++) {
        if (choice->knobs[i] == policy->knobs[i].standard)
            continue;
        char value[DECIMAL_BYTES];
        decimal_write(choice->knobs[i], value);
        put(&w, ":");
        put(&w, policy->knobs[i].name);
        put(&w, "=");
        put(&w, value);
    }
    return w.length < cap ? (int)w.length : KVK_ESPACE;
}
