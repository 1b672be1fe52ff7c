#include "trace/mass_generate.h"

#include "base/checked.h"
#include "trace/mass_text.h"
#include "trace/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SINK_TOKENS = 4, NOISES = 1 << 13, NEEDLE_QUERIES = 32, ASK_QUERIES = 8, RETRIEVAL_HEAD = 7 };

/* How a head divides its attention before anything special comes up. */
typedef struct head_law {
    float sinks, local, topics, even;
} head_law;

/* Three heads look nearby, two at the sinks, two at what the text is about, and one for what is looked up. */
static const head_law laws[MASS_HEADS] = {
    {.25F, .50F, .20F, .05F}, {.25F, .50F, .20F, .05F}, {.25F, .50F, .20F, .05F}, {.75F, .10F, .12F, .03F},
    {.75F, .10F, .12F, .03F}, {.30F, .10F, .52F, .08F}, {.30F, .10F, .52F, .08F}, {.55F, .08F, .30F, .07F},
};

static const float sink_weights[SINK_TOKENS] = {.85F, .05F, .05F, .05F};
static const double local_exponent = 1.5;                  /* attention falls with distance as a power of it */
static const float faded = .3F;                            /* what is left of a topic that is over */
static const double topic_half_life = 48;                  /* tokens in which it fades, or comes up */
static const float burst_share = .25F;                     /* added to the head's whole of 1 */
static const float needle_share = .6F, asked_share = 1.5F; /* likewise, in the head that looks things up */
static const double needle_half_life = 16;                 /* queries */
static const double noise_shape = .1;                      /* of a token's attention, by the gamma law */
static const double share_sigma = .3, head_sigma = .25, token_sigma = .5; /* of logarithms */

/* One head of one group: its own shares, and how heavy the pages are for it. */
typedef struct head {
    head_law law;
    float *topics; /* [TEXT_TOPICS][pages] sum of its weights of the page's tokens on that topic */
} head;

typedef struct generated {
    mass_trace trace;
    uint64_t seed;
    mass_text text;
    random_state random;
    head *heads;       /* [groups][MASS_HEADS] */
    float *all_topics; /* what the heads' `topics` point into */
    float activity[TEXT_TOPICS];
    double *nearby;       /* [steps + 1] attention to all tokens less than so far away, not normalised */
    float *noise;         /* [NOISES] with mean 1 */
    uint32_t first_burst; /* those before it are over */
    float *row;           /* [pages] one head's */
    float *mean, *peak;   /* [groups][pages] */
    float *near;          /* [groups][2][MASS_HEADS] */
} generated;

static uint32_t own_page(const generated *g)
{
    return mass_position(&g->trace) / g->trace.shape.page_tokens;
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

static void close_generated(mass_trace *trace)
{
    generated *g = (generated *)trace;
    mass_text_close(&g->text);
    free(g->heads);
    free(g->all_topics);
    free(g->nearby);
    free(g->noise);
    free(g->row);
    free(g->mean);
    free(g->peak);
    free(g->near);
    free(g);
}

static bool take_memory(generated *g)
{
    const mass_shape *s = &g->trace.shape;
    size_t pages = s->pages, heads = (size_t)s->groups * MASS_HEADS;
    g->heads = calloc(heads, sizeof *g->heads);
    g->all_topics = calloc(heads * TEXT_TOPICS, pages * sizeof *g->all_topics);
    g->nearby = calloc((size_t)s->steps + 1, sizeof *g->nearby);
    g->noise = calloc(NOISES, sizeof *g->noise);
    g->row = calloc(pages, sizeof *g->row);
    g->mean = calloc(s->groups, pages * sizeof *g->mean);
    g->peak = calloc(s->groups, pages * sizeof *g->peak);
    g->near = calloc(heads, 2 * sizeof *g->near);
    return g->heads && g->all_topics && g->nearby && g->noise && g->row && g->mean && g->peak && g->near;
}

static float around(float value, double sigma, random_state *random)
{
    return value * (float)exp(sigma * random_normal(random));
}

static head_law draw_law(const head_law *law, double sigma, random_state *random)
{
    head_law l = {around(law->sinks, sigma, random), around(law->local, sigma, random),
                  around(law->topics, sigma, random), around(law->even, sigma, random)};
    float whole = l.sinks + l.local + l.topics + l.even;
    return (head_law){l.sinks / whole, l.local / whole, l.topics / whole, l.even / whole};
}

/* What stays the same through all passes. The attention of a page is noisier the fewer tokens it has. */
static void set_up(generated *g)
{
    const mass_shape *s = &g->trace.shape;
    random_state random;
    random_seed(&random, g->seed + 1);
    for (uint32_t i = 0; i < s->groups * MASS_HEADS; i++) {
        g->heads[i].law = draw_law(&laws[i % MASS_HEADS], head_sigma, &random);
        g->heads[i].topics = g->all_topics + (size_t)i * TEXT_TOPICS * s->pages;
    }
    for (uint32_t d = 0; d < s->steps; d++)
        g->nearby[d + 1] = g->nearby[d] + pow(d + 1.0, -local_exponent);
    double shape = noise_shape * s->page_tokens;
    for (uint32_t i = 0; i < NOISES; i++)
        g->noise[i] = (float)(random_gamma(&random, shape) / shape);
}

static int rewind_generated(mass_trace *trace, trace_error *error)
{
    generated *g = (generated *)trace;
    const mass_shape *s = &trace->shape;
    (void)error;
    random_seed(&g->random, g->seed + 2);
    memset(g->all_topics, 0, (size_t)s->groups * MASS_HEADS * TEXT_TOPICS * s->pages * sizeof *g->all_topics);
    for (int k = 0; k < TEXT_TOPICS; k++)
        g->activity[k] = faded;
    g->first_burst = 0;
    return 0;
}

/* ---- A step ------------------------------------------------------------------------------------------------------ */

/* The topic at hand comes up, all others fade. */
static void drift(generated *g)
{
    const float share = (float)(1 - exp2(-1 / topic_half_life));
    uint8_t now = g->text.topic[mass_position(&g->trace)];
    for (int k = 0; k < TEXT_TOPICS; k++)
        g->activity[k] += share * ((k == now ? 1.0F : faded) - g->activity[k]);
}

/* The token at hand becomes part of its page, with a weight of its own for each head. */
static void add_token(generated *g)
{
    const mass_shape *s = &g->trace.shape;
    uint32_t at = mass_position(&g->trace);
    size_t place = (size_t)g->text.topic[at] * s->pages + own_page(g);
    for (uint32_t i = 0; i < s->groups * MASS_HEADS; i++)
        g->heads[i].topics[place] += around(g->text.weight[at], token_sigma, &g->random);
}

/* row[p] = what page p is to the head, of all its topics; returns the sum. */
static float weigh_topics(const generated *g, const head *h, uint32_t n)
{
    float sum = 0;
    memset(g->row, 0, n * sizeof *g->row);
    for (int k = 0; k < TEXT_TOPICS; k++) {
        const float *of_topic = h->topics + (size_t)k * g->trace.shape.pages;
        for (uint32_t p = 0; p < n; p++)
            g->row[p] += g->activity[k] * of_topic[p];
    }
    for (uint32_t p = 0; p < n; p++)
        sum += g->row[p];
    return sum;
}

/* Adds what is nearby and what is alike everywhere, and shakes it all. */
static void spread(generated *g, const head_law *law, float topics, uint32_t n)
{
    uint32_t at = mass_position(&g->trace), page_tokens = g->trace.shape.page_tokens;
    double local = (double)law->local / g->nearby[at + 1], even = (double)law->even / (at + 1);
    uint64_t draw = random_u64(&g->random);
    uint32_t noise = (uint32_t)draw, stride = (uint32_t)(draw >> 32) | 1;
    for (uint32_t p = 0; p < n; p++) {
        uint32_t first = p * page_tokens, end = min_u32(first + page_tokens, at + 1);
        double near = g->nearby[at + 1 - first] - g->nearby[at + 1 - end];
        float share = topics * g->row[p] + (float)(local * near + even * (end - first));
        g->row[p] = share * g->noise[(noise + p * stride) % NOISES];
    }
}

/* Adds to the pages of some tokens, to each as much. */
static void add_stretch(generated *g, uint32_t position, uint32_t n_tokens, float share)
{
    for (uint32_t i = 0; i < n_tokens; i++)
        g->row[(position + i) / g->trace.shape.page_tokens] += share / (float)n_tokens;
}

static void add_sinks(generated *g, float share)
{
    uint32_t at = mass_position(&g->trace);
    for (uint32_t i = 0; i < SINK_TOKENS && i <= at; i++)
        add_stretch(g, i, 1, share * sink_weights[i]);
}

static void add_bursts(generated *g, uint32_t number)
{
    uint32_t at = mass_position(&g->trace);
    for (uint32_t i = g->first_burst; i < g->text.n_bursts && g->text.bursts[i].begin <= at; i++) {
        const text_burst *b = &g->text.bursts[i];
        if (at < b->end && b->heads >> number & 1)
            add_stretch(g, b->position, b->n_tokens, burst_share);
    }
}

/* Every second query after a needle looks at it, less and less; then none, until it is asked for. */
static void add_needles(generated *g)
{
    uint32_t at = mass_position(&g->trace);
    for (uint32_t i = 0; i < g->text.n_needles && g->text.needles[i].position < at; i++) {
        const mass_needle *x = &g->text.needles[i];
        uint32_t end = x->position + x->n_tokens;
        if (at >= end && at < end + NEEDLE_QUERIES && random_below(&g->random, 2))
            add_stretch(g, x->position, x->n_tokens,
                        needle_share * (float)exp2(-(double)(at - end) / needle_half_life));
        if (at >= x->asked && at < x->asked + ASK_QUERIES)
            add_stretch(g, x->position, x->n_tokens, asked_share);
    }
}

/* row[n] = what one head gives each page. */
static void attend(generated *g, uint32_t head_number, uint32_t n)
{
    const head *h = &g->heads[head_number];
    head_law law = draw_law(&h->law, share_sigma, &g->random);
    float topics = law.topics / weigh_topics(g, h, n), sum = 0;
    spread(g, &law, topics, n);
    add_sinks(g, law.sinks);
    add_bursts(g, head_number % MASS_HEADS);
    if (head_number % MASS_HEADS == RETRIEVAL_HEAD)
        add_needles(g);
    for (uint32_t p = 0; p < n; p++)
        sum += g->row[p];
    for (uint32_t p = 0; p < n; p++)
        g->row[p] /= sum;
}

static void take_row(generated *g, uint32_t head_number, uint32_t n)
{
    size_t group = head_number / MASS_HEADS, i = head_number % MASS_HEADS, first = n > 1 ? n - 2 : 0;
    float *mean = g->mean + group * g->trace.shape.pages, *peak = g->peak + group * g->trace.shape.pages;
    for (uint32_t p = 0; p < n; p++) {
        mean[p] = (i ? mean[p] : 0) + g->row[p] / MASS_HEADS;
        peak[p] = i && peak[p] > g->row[p] ? peak[p] : g->row[p];
    }
    for (size_t p = first; p < n; p++)
        g->near[(group * 2 + p - first) * MASS_HEADS + i] = g->row[p];
}

static int next_generated(mass_trace *trace, mass_step *out, trace_error *error)
{
    generated *g = (generated *)trace;
    uint32_t at = mass_position(trace), n = own_page(g) + 1;
    (void)error;
    while (g->first_burst < g->text.n_bursts && g->text.bursts[g->first_burst].end <= at)
        g->first_burst++;
    drift(g);
    add_token(g);
    for (uint32_t i = 0; i < trace->shape.groups * MASS_HEADS; i++) {
        attend(g, i, n);
        take_row(g, i, n);
    }
    *out = (mass_step){g->mean, g->peak, g->near};
    return 0;
}

/* ------------------------------------------------------------------------------------------------------------------ */

static const mass_ops generated_ops = {rewind_generated, next_generated, close_generated};

static mass_shape shape_of(const mass_generate_options *o)
{
    uint32_t pages = (uint32_t)ceil_div(o->steps, o->page_tokens);
    return (mass_shape){.page_tokens = o->page_tokens,
                        .groups = o->groups,
                        .heads = MASS_HEADS,
                        .steps = o->steps,
                        .pages = pages,
                        .columns = pages,
                        .near_heads = MASS_HEADS};
}

int mass_generate(const mass_generate_options *options, mass_trace **out, trace_error *error)
{
    generated *g = calloc(1, sizeof *g);
    trace_place place = {"generated", 0, NULL};
    *out = NULL;
    if (!g)
        return trace_failed(error, place, "out of memory");
    g->trace = (mass_trace){.ops = &generated_ops, .format = "generated", .name = place.file};
    g->trace.shape = shape_of(options);
    g->seed = options->seed;
    if (mass_text_make(&g->text, options->steps, options->seed) < 0 || !take_memory(g)) {
        close_generated(&g->trace);
        return trace_failed(error, place, "out of memory");
    }
    g->trace.needles = g->text.needles;
    g->trace.n_needles = g->text.n_needles;
    set_up(g);
    *out = &g->trace;
    return mass_rewind(*out, error);
}
