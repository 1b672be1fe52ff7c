#include "trace/mass_text.h"

#include "trace/random.h"

#include <kvkeep/base.h>
#include <math.h>
#include <stdlib.h>

enum {
    SEGMENT = 256,    /* tokens on one topic, on average */
    BURST_EVERY = 64, /* tokens, on average */
    BURST_LEAST = 16, /* queries */
    BURST_MOST = 48,
    NEEDLE_EVERY = 256, /* tokens; one in each such stretch */
    NEEDLE_TOKENS = 5
};

/* Pareto's law, which is Zipf's for weights by rank: a few tokens weigh as much as all the others. */
static const double zipf_exponent = 0.8, heaviest = 1024;

static float draw_weight(random_state *random)
{
    double weight = pow(1 - random_unit(random), -1 / zipf_exponent);
    return (float)(weight < heaviest ? weight : heaviest);
}

/* Topics come again: the k-th with a probability of 1 / (k + 1), and a share. */
static uint8_t draw_topic(random_state *random)
{
    double total = 0;
    for (int k = 0; k < TEXT_TOPICS; k++)
        total += 1.0 / (k + 1);
    double left = total * random_unit(random);
    uint8_t k = 0;
    while (k + 1 < TEXT_TOPICS && left >= 1.0 / (k + 1)) {
        left -= 1.0 / (k + 1);
        k++;
    }
    return k;
}

static void make_tokens(mass_text *text, random_state *random)
{
    uint8_t topic = draw_topic(random);
    for (uint32_t i = 0; i < text->n; i++) {
        if (random_below(random, SEGMENT) == 0)
            topic = draw_topic(random);
        text->topic[i] = topic;
        text->weight[i] = draw_weight(random);
    }
}

/* Any earlier stretch, each head with one chance in two. */
static void make_bursts(mass_text *text, random_state *random)
{
    for (uint32_t i = 4 * TEXT_CELL; i < text->n; i++) {
        if (random_below(random, BURST_EVERY) != 0)
            continue;
        uint32_t length = BURST_LEAST + random_below(random, BURST_MOST - BURST_LEAST + 1);
        uint32_t cell = random_below(random, i / TEXT_CELL);
        text->bursts[text->n_bursts++] = (text_burst){.position = cell * TEXT_CELL,
                                                      .n_tokens = TEXT_CELL,
                                                      .begin = i,
                                                      .end = i + length,
                                                      .heads = (uint32_t)(random_u64(random) >> 32)};
    }
}

/* One in each stretch but the last, asked for at a random time at least a quarter of the text later. */
static void make_needles(mass_text *text, random_state *random)
{
    for (uint32_t at = 0; at + 2 * NEEDLE_EVERY <= text->n; at += NEEDLE_EVERY) {
        uint32_t cell = at / TEXT_CELL + 4 + random_below(random, NEEDLE_EVERY / TEXT_CELL - 8);
        uint32_t position = cell * TEXT_CELL + random_below(random, TEXT_CELL - NEEDLE_TOKENS + 1);
        uint32_t earliest = position + text->n / 4;
        if (earliest + 16 > text->n)
            break;
        text->needles[text->n_needles++] =
            (mass_needle){position, NEEDLE_TOKENS, earliest + random_below(random, text->n - 16 - earliest + 1)};
    }
}

int mass_text_make(mass_text *text, uint32_t n, uint64_t seed)
{
    random_state random;
    random_seed(&random, seed);
    *text = (mass_text){.n = n};
    text->topic = calloc(n, sizeof *text->topic);
    text->weight = calloc(n, sizeof *text->weight);
    text->bursts = calloc(n, sizeof *text->bursts);
    text->needles = calloc(n / NEEDLE_EVERY + 1, sizeof *text->needles);
    if (!text->topic || !text->weight || !text->bursts || !text->needles)
        return KVK_ENOMEM;
    make_tokens(text, &random);
    make_bursts(text, &random);
    make_needles(text, &random);
    return 0;
}

void mass_text_close(mass_text *text)
{
    free(text->topic);
    free(text->weight);
    free(text->bursts);
    free(text->needles);
}
