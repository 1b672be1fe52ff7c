/* Scissorhands (Liu et al. 2023): what was important most often of late. An observation counts for a page if it gave it
 * more than its even share. When the budget is reached, half of it goes at once.
 *
 * A page's history is a ring of bits, 32 in each of the first scores. */
#include "policy/policies.h"

enum { SINKS, RECENT, HISTORY };
enum { WORDS = 14, NEXT = WORDS, COUNT, N_SCORES }; /* NEXT: the bit to be written next; COUNT: bits that are set */
enum { HISTORY_MAX = 32 * WORDS };

static const kvk_knob knobs[] = {
    [SINKS] = KNOB_SINKS(0),
    [RECENT] = KNOB_RECENT(10),
    [HISTORY] = {"history", 1, HISTORY_MAX, 400, 1, "the last observations that are counted"},
};

static kvk_protection protect(const double *k, uint32_t tokens, uint32_t page_tokens)
{
    return (kvk_protection){.sinks = (uint32_t)k[SINKS], .recent = policy_recent(k[RECENT], tokens, page_tokens)};
}

/* Puts a bit in the place of the oldest. Returns what the count changes by. */
static int write_bit(float *word, uint32_t bit, int value)
{
    uint32_t bits;
    memcpy(&bits, word, sizeof bits);
    int old = bits >> bit & 1;
    bits ^= (uint32_t)(old ^ value) << bit;
    memcpy(word, &bits, sizeof bits);
    return value - old;
}

static void observe(const kvk_policy_view *view, const kvk_observation *seen)
{
    uint32_t history = (uint32_t)view->knobs[HISTORY];
    uint32_t held = policy_tokens_held(view);
    for (uint32_t i = 0; i < view->n; i++) {
        uint32_t next = (uint32_t)view->scores[NEXT][i];
        int counts = policy_above_share(view, seen, i, held);
        view->scores[COUNT][i] += (float)write_bit(&view->scores[next / 32][i], next % 32, counts);
        view->scores[NEXT][i] = (float)((next + 1) % history);
    }
}

static void rank(const kvk_policy_view *view, float *score, uint8_t *tier)
{
    (void)tier;
    memcpy(score, view->scores[COUNT], view->n * sizeof *score);
}

/* Pages to go so that at most half the budget is held, the page that the next token needs included. */
static uint32_t over_half(const kvk_policy_view *view)
{
    uint32_t pages = view->budget / view->page_tokens;
    uint32_t held = view->n_tokens % view->page_tokens == 0;
    for (uint32_t i = 0; i < view->n; i++)
        held += policy_tokens_in(view, i) > 0;
    uint32_t left = pages - pages / 2;
    return view->budget && held > left ? held - left : 0;
}

/* The count of the last page to go, if `want` go in the order of counts; *ties: how many of those with this count. */
static uint32_t last_count(const kvk_policy_view *view, uint32_t want, uint32_t *ties)
{
    uint32_t pages[HISTORY_MAX + 1] = {0};
    uint32_t count = 0;
    for (uint32_t i = 0; i < view->n; i++)
        pages[(uint32_t)view->scores[COUNT][i]] += view->eligible[i];
    for (; count < HISTORY_MAX && pages[count] < want; count++)
        want -= pages[count];
    *ties = want;
    return count;
}

static uint32_t choose(const kvk_policy_view *view, uint32_t want, uint32_t *victims)
{
    uint32_t ties, n = 0, half = over_half(view);
    if (want == 0)
        return 0;
    uint32_t last = last_count(view, half > want ? half : want, &ties);
    for (uint32_t i = 0; i < view->n; i++) {
        uint32_t count = (uint32_t)view->scores[COUNT][i];
        if (view->eligible[i] && (count < last || (count == last && ties && ties--)))
            victims[n++] = i;
    }
    return n;
}

/* ---- Numbers that may be made up ------------------------------------------------------------------------------ */

static uint32_t bits_set(uint32_t word)
{
    uint32_t n = 0;
    for (; word; word &= word - 1)
        n++;
    return n;
}

/* Bits of a word that a history of this length has. */
static uint32_t bits_used(uint32_t word, uint32_t history)
{
    uint32_t before = 32 * word;
    if (history <= before)
        return 0;
    return history - before < 32 ? (1u << (history - before)) - 1 : UINT32_MAX;
}

static int is_sound(float *const *scores, uint32_t page, uint32_t history)
{
    uint32_t count = 0;
    float next = scores[NEXT][page];
    for (uint32_t k = 0; k < WORDS; k++) {
        uint32_t bits;
        memcpy(&bits, &scores[k][page], sizeof bits);
        if (bits & ~bits_used(k, history))
            return 0;
        count += bits_set(bits);
    }
    return scores[COUNT][page] == (float)count && next >= 0 && next < (float)history && next == (float)(uint32_t)next;
}

int scissorhands_is_sound(const double *k, float *const *scores, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!is_sound(scores, i, (uint32_t)k[HISTORY]))
            return 0;
    return 1;
}

const kvk_policy policy_scissorhands = {
    .size = sizeof(kvk_policy),
    .n_knobs = N_KNOBS(knobs),
    .name = "scissorhands",
    .text =
        "keeps what got more than its even share most often, and drops half at once (Scissorhands, Liu et al. 2023)",
    .knobs = knobs,
    .n_scores = N_SCORES,
    .needs = policy_needs_mean,
    .protect = protect,
    .observe = observe,
    .rank = rank,
    .choose = choose,
};
