/* Real traces and what an independent program counted in them. */
#ifndef TESTS_GOLDEN_GOLDEN_H
#define TESTS_GOLDEN_GOLDEN_H

#include "trace/replay.h"

#include <jansson.h>

#define MOONCAKE "mooncake_conversation_trace.jsonl"
#define SESSIONS "kv-cache-tester"
#define AZURE "AzureLLMInferenceTrace_conv.csv"
#define VIDUR "vidur_splitwise_conv.csv"
#define ETALON_SHAREGPT "etalon_sharegpt_8k_filtered_stats_llama2_tokenizer.csv"
#define ETALON_BWB "etalon_bwb_stats_llama2_tokenizer_filtered_v2.csv"

/* Where the traces are not, says so and returns 0. */
int golden_is_here(void);

/* The whole expectation; a new reference. */
json_t *golden_expected(void);

/* The number at object[name], which must be there. */
uint64_t golden_count(const json_t *object, const char *name);

/* Where a file of the traces is. */
void golden_path(const char *file, char *path, size_t cap);

/* Replays a trace, which must succeed. */
replay_result golden_replay(const char *file, const replay_options *options);

/* Replays all of SESSIONS as one stream. */
replay_result golden_replay_sessions(const replay_options *options);

#endif
