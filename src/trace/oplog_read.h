/* trace/oplog_read.h: readers of the arguments of an op log's line.
 *
 * oplog_read.c   one value
 * oplog_lists.c  a list
 * oplog_masses.c what attention gave the pages */
#ifndef KVKEEP_TRACE_OPLOG_READ_H
#define KVKEEP_TRACE_OPLOG_READ_H

#include "trace/oplog_run.h"

typedef struct oplog_rule {
    const char *name;
    int (*read)(oplog_run *run, const struct oplog_rule *arg, json_t *value, void *out);
    size_t offset; /* of the place that gets it, in kvk_config or oplog_args */
    int64_t min, max;
    const char *const *words; /* of an enum, by value, then NULL; of a list of numbers, what an item is */
    bool required;
    unsigned contents; /* a bit per kvk_content under which it exists; 0: always */
} oplog_rule;

/* Errors at a field, or at an item of a list. Each returns its code. */
int oplog_wrong(oplog_run *run, const char *field, const json_t *value, const char *wanted);
int oplog_wrong_item(oplog_run *run, const oplog_rule *arg, const json_t *list, size_t i, const char *wanted);

bool oplog_is_integer(const json_t *value, int64_t min, int64_t max);

/* Parses 1 to max_digits hexadecimal digits. */
bool oplog_parse_key(const json_t *value, size_t max_digits, kvk_key *out);

/* A 64-bit number that JSON's integers may be too small for. */
bool oplog_parse_u64(const json_t *value, uint64_t *out);

/* A number, or one that JSON can't write: "nan", "inf", "-inf". */
bool oplog_parse_float(const json_t *value, float *out);

int oplog_read_u32(oplog_run *run, const oplog_rule *arg, json_t *value, void *out);
int oplog_read_i32(oplog_run *run, const oplog_rule *arg, json_t *value, void *out);
int oplog_read_id(oplog_run *run, const oplog_rule *arg, json_t *value, void *out);
int oplog_read_u64(oplog_run *run, const oplog_rule *arg, json_t *value, void *out);
int oplog_read_float(oplog_run *run, const oplog_rule *arg, json_t *value, void *out);
int oplog_read_bool(oplog_run *run, const oplog_rule *arg, json_t *value, void *out);
int oplog_read_word(oplog_run *run, const oplog_rule *arg, json_t *value, void *out);
int oplog_read_key(oplog_run *run, const oplog_rule *arg, json_t *value, void *out);
int oplog_read_string(oplog_run *run, const oplog_rule *arg, json_t *value, void *out);
int oplog_read_version(oplog_run *run, const oplog_rule *arg, json_t *value, void *out);
int oplog_read_expect(oplog_run *run, const oplog_rule *arg, json_t *value, void *out);
int oplog_read_policy(oplog_run *run, const oplog_rule *arg, json_t *value, void *out);

/* Of something that is not open yet. */
int oplog_read_new_seq(oplog_run *run, const oplog_rule *arg, json_t *value, void *out);
int oplog_read_new_batch(oplog_run *run, const oplog_rule *arg, json_t *value, void *out);

int oplog_read_tokens(oplog_run *run, const oplog_rule *arg, json_t *value, void *out);
int oplog_read_keys(oplog_run *run, const oplog_rule *arg, json_t *value, void *out);
int oplog_read_extras(oplog_run *run, const oplog_rule *arg, json_t *value, void *out);
int oplog_read_entries(oplog_run *run, const oplog_rule *arg, json_t *value, void *out);
int oplog_read_ranges(oplog_run *run, const oplog_rule *arg, json_t *value, void *out);
int oplog_read_windows(oplog_run *run, const oplog_rule *arg, json_t *value, void *out);
int oplog_read_near_sizes(oplog_run *run, const oplog_rule *arg, json_t *value, void *out);

/* Numbers of 32 bits, into the buffer `min`. */
int oplog_read_numbers(oplog_run *run, const oplog_rule *arg, json_t *value, void *out);

/* A list of numbers per group. */
int oplog_read_masses(oplog_run *run, const oplog_rule *arg, json_t *value, void *out);

#endif
