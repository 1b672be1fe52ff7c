/* trace/generate.h: the built-in workload, a chat service made up from a seed.
 *
 * Users hold conversations of several turns. A prompt is the system prompt of the user's application, the user's own
 * preamble, all earlier messages and answers of the conversation, and a new message; so its beginning is what earlier
 * prompts began with. Applications and users are chosen by Zipf's law, messages and answers have log-normal lengths,
 * requests arrive as a Poisson process. The same options give the same requests.
 */
#ifndef KVKEEP_TRACE_GENERATE_H
#define KVKEEP_TRACE_GENERATE_H

enum {
    GENERATE_SYSTEMS = 8, /* applications, each with a system prompt */
    GENERATE_USERS = 256, /* each of one application */
    GENERATE_LIVE = 64,   /* conversations at a time, at most */
    GENERATE_TURNS = 4,   /* of a conversation, on average */
    GENERATE_VOCABULARY = 32000,
    GENERATE_LONGEST = 12288 /* a conversation that has as many tokens ends */
};

#endif
