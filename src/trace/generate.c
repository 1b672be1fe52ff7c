#include "trace/generate.h"

#include "trace/arrivals.h"

#include <math.h>
#include <stdlib.h>

typedef struct conversation {
    uint32_t *tokens; /* all prompts and answers so far */
    uint32_t n, cap;
    bool over;
} conversation;

typedef struct generate_state {
    random_state random;
    arrivals arrivals;
    conversation live[GENERATE_LIVE];
    uint32_t n_live, current; /* live[current] made the last request */
} generate_state;

/* A length whose logarithm is normal: half of them are below `median`. */
typedef struct lognormal {
    double median, sigma;
    uint32_t least, most;
} lognormal;

static const lognormal system_law = {600, 0.5, 64, 2048}, preamble_law = {80, 0.7, 8, 512};
static const lognormal message_law = {60, 1.0, 4, 2048}, answer_law = {150, 0.8, 1, 1024};

static uint32_t draw_length(random_state *random, lognormal law)
{
    double length = law.median * exp(law.sigma * random_normal(random));
    if (length <= law.least)
        return law.least;
    return length >= law.most ? law.most : (uint32_t)length;
}

/* 0 .. n-1, number k with a weight of 1 / (k + 1). */
static uint32_t draw_zipf(random_state *random, uint32_t n)
{
    double total = 0;
    for (uint32_t k = 0; k < n; k++)
        total += 1.0 / (k + 1);
    double left = total * random_unit(random);
    uint32_t k = 0;
    while (k + 1 < n && left >= 1.0 / (k + 1))
        left -= 1.0 / (++k);
    return k;
}

static int add_tokens(trace_reader *r, conversation *c, random_state *random, uint32_t n, trace_error *error)
{
    if (c->n + n > c->cap) {
        uint32_t cap = 2 * (c->n + n);
        uint32_t *grown = realloc(c->tokens, cap * sizeof *grown);
        if (!grown)
            return trace_failed(error, lines_place(&r->lines, NULL), "out of memory");
        c->tokens = grown;
        c->cap = cap;
    }
    for (uint32_t i = 0; i < n; i++)
        c->tokens[c->n++] = random_below(random, GENERATE_VOCABULARY);
    return 0;
}

/* Text that is the same each time it is asked for: drawn from a generator that only its kind and number seed. */
static int add_fixed(trace_reader *r, conversation *c, lognormal law, uint64_t number, trace_error *error)
{
    random_state fixed;
    random_seed(&fixed, r->options.seed ^ (number + 1) << 32);
    uint32_t n = draw_length(&fixed, law);
    return add_tokens(r, c, &fixed, n, error);
}

static int begin_conversation(trace_reader *r, trace_error *error)
{
    generate_state *s = r->state;
    uint32_t user = draw_zipf(&s->random, GENERATE_USERS);
    random_state of_user;
    random_seed(&of_user, r->options.seed + user);
    uint32_t system = draw_zipf(&of_user, GENERATE_SYSTEMS);
    s->current = s->n_live++;
    conversation *c = &s->live[s->current];
    c->n = 0;
    c->over = false;
    int rc = add_fixed(r, c, system_law, system, error);
    return rc < 0 ? rc : add_fixed(r, c, preamble_law, GENERATE_SYSTEMS + user, error);
}

/* The place of a conversation that is over goes to the last one; its memory waits there for the next to begin. */
static void drop_if_over(generate_state *s)
{
    if (s->n_live == 0 || !s->live[s->current].over)
        return;
    conversation over = s->live[s->current];
    s->live[s->current] = s->live[--s->n_live];
    s->live[s->n_live] = over;
}

static int choose_conversation(trace_reader *r, trace_error *error)
{
    generate_state *s = r->state;
    drop_if_over(s);
    bool begin = random_below(&s->random, GENERATE_TURNS) == 0 && s->n_live < GENERATE_LIVE;
    if (begin || s->n_live == 0)
        return begin_conversation(r, error);
    s->current = random_below(&s->random, s->n_live);
    return 0;
}

static int take_turn(trace_reader *r, trace_request *out, trace_error *error)
{
    generate_state *s = r->state;
    conversation *c = &s->live[s->current];
    int rc = add_tokens(r, c, &s->random, draw_length(&s->random, message_law), error);
    uint32_t n_input = c->n;
    if (rc == 0)
        rc = add_tokens(r, c, &s->random, draw_length(&s->random, answer_law), error);
    if (rc < 0)
        return rc;
    c->over = c->n >= GENERATE_LONGEST || random_below(&s->random, GENERATE_TURNS) == 0;
    *out = (trace_request){.n_input = n_input, .n_output = c->n - n_input, .tokens = c->tokens};
    rc = arrivals_next(&s->arrivals, r, &out->arrival_us, error);
    return rc < 0 ? rc : 1;
}

static int open_generated(trace_reader *r, trace_error *error)
{
    (void)error;
    generate_state *s = r->state;
    random_seed(&s->random, r->options.seed);
    arrivals_start(&s->arrivals, r);
    return 0;
}

static int next_generated(trace_reader *r, trace_request *out, trace_error *error)
{
    if (r->lines.line >= r->options.requests)
        return 0;
    r->lines.line++;
    int rc = choose_conversation(r, error);
    return rc < 0 ? rc : take_turn(r, out, error);
}

static void close_generated(trace_reader *r)
{
    generate_state *s = r->state;
    for (uint32_t i = 0; i < GENERATE_LIVE; i++)
        free(s->live[i].tokens);
}

const trace_format trace_generated = {
    .name = "generated",
    .content = TRACE_TOKENS,
    .input_field = "n_input",
    .output_field = "n_output",
    .state_bytes = sizeof(generate_state),
    .open = open_generated,
    .next = next_generated,
    .close = close_generated,
};
