#include "kvkeep/eval/needle_dialog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_MESSAGES = 4096, MOST_BYTES = 256 /* of a message with a key */ };

typedef struct turn {
    const char *user, *assistant;
} turn;

static const turn fact = {"Hello. I am waiting for a parcel that was to come last week. My order number is {KEY}.",
                          "I am sorry that it is late. I will see what I can find out."};
static const turn asked = {"Wait, which order number did I give you?", "Your order number is {KEY}."};
static const char question[] = "One last thing: what is my order number?", answer[] = "Your order number is";

/* What people talk about while nothing happens; no number in it, and nothing that the question is about. */
static const turn chatter[] = {
    {"It rains all day here, so I would rather not go out again for nothing.",
     "I understand. Many of our drivers are slower in this weather, and they ask for patience."},
    {"Do you also sell umbrellas? Mine broke in the wind this morning.",
     "We do. There are long ones and short ones, in black, red and a dark green."},
    {"My neighbour said that the van passed our street without stopping.",
     "That may have been another van. There are several that take this road in the morning."},
    {"Could somebody leave it at the bakery on the corner next time?",
     "That is possible if the bakery agrees. You can tell us so under your settings."},
    {"The settings page looks different from what it was before.",
     "Yes, it was made anew in spring. The menu is on the left side now."},
    {"I liked the old one better, but I will get used to it, I suppose.",
     "Most people say so at first. We are glad about every hint on what to make better."},
    {"It is a present for my sister, who has just moved into a new flat.",
     "How nice. I hope that she likes both the present and the flat."},
    {"She paints, so it is a box of brushes and some paper.",
     "Good brushes last for years if they are washed after each use."},
    {"That is what the man in the shop told me, too.",
     "He was right. Lay them flat to dry, and never stand them on their hair."},
    {"Is there a way to pay by invoice instead of by card?",
     "There is, for customers who have been with us for a while. You find it at the checkout."},
    {"I have been with you since you opened, I believe.",
     "Then it should be offered to you the next time. If not, write to us."},
    {"The music while one waits on the telephone is rather loud, by the way.",
     "Thank you for telling us. I will pass that on to those who look after it."},
    {"My dog does not like it at all and barks whenever it begins.",
     "Poor dog. Writing to us, as you do now, is quieter for the both of you."},
    {"He is old and does not hear much, but that he hears.",
     "Old dogs are like that. Mine hears the fridge from two rooms away."},
    {"Are you a person or a machine, if I may ask?",
     "I am an assistant that answers in writing. A colleague can call you back if you like."},
    {"No, no, this is fine. I have some tea and time.",
     "That is good to hear. I am still looking and will tell you as soon as there is news."},
};

enum { N_CHATTER = sizeof chatter / sizeof chatter[0] };

/* ---- Conversations ---------------------------------------------------------------------------------------------- */

/* A conversation that grows. */
typedef struct talk {
    chat_message messages[MOST_MESSAGES];
    size_t n;
    char stated[MOST_BYTES], repeated[MOST_BYTES]; /* with the key */
} talk;

static void say(talk *c, chat_role role, const char *text)
{
    c->messages[c->n++] = (chat_message){role, text, strlen(text)};
}

static void take_turn(talk *c, const turn *t)
{
    say(c, CHAT_USER, t->user);
    say(c, CHAT_ASSISTANT, t->assistant);
}

static void put_key(const char *template, const char *key, char text[MOST_BYTES])
{
    const char *at = strstr(template, NEEDLE_KEY);
    snprintf(text, MOST_BYTES, "%.*s%s%s", (int)(at - template), template, key, at + strlen(NEEDLE_KEY));
}

static int render(const tokenizer *t, const needle_dialog *d, const talk *c, token_list *ids, trace_error *error)
{
    chat_conversation whole = {c->messages, c->n, 0};
    ids->n = 0;
    return chat_render(t, d->format, &whole, ids, error);
}

static void shuffle(random_state *random, uint8_t order[N_CHATTER])
{
    for (uint32_t i = 0; i < N_CHATTER; i++)
        order[i] = (uint8_t)i;
    for (uint32_t i = N_CHATTER; i > 1; i--) {
        uint32_t k = random_below(random, i);
        uint8_t kept = order[k];
        order[k] = order[i - 1];
        order[i - 1] = kept;
    }
}

/* Adds turns as long as they fit; *ids is the conversation then. */
static int chat_on(const tokenizer *t, const needle_dialog *d, talk *c, random_state *random, token_list *ids,
                   trace_error *error)
{
    uint8_t order[N_CHATTER];
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && c->n + 4 <= MOST_MESSAGES; i++) {
        if (i % N_CHATTER == 0)
            shuffle(random, order);
        take_turn(c, &chatter[order[i % N_CHATTER]]);
        rc = render(t, d, c, ids, error);
        if (rc == 0 && ids->n > d->length)
            break;
    }
    c->n -= 2;
    return rc < 0 ? rc : render(t, d, c, ids, error);
}

/* ---- Prompts ---------------------------------------------------------------------------------------------------- */

static int begin(const tokenizer *t, const needle_dialog *d, talk *c, const char *key, token_list *ids,
                 trace_error *error)
{
    put_key(fact.user, key, c->stated);
    put_key(asked.assistant, key, c->repeated);
    take_turn(c, &(turn){c->stated, fact.assistant});
    if (d->again)
        take_turn(c, &(turn){asked.user, c->repeated});
    int rc = render(t, d, c, ids, error);
    if (rc == 0 && ids->n > d->length)
        rc = trace_bad_input(error, (trace_place){"the conversation", 0, NULL}, "of %zu tokens does not fit into %u",
                             ids->n, d->length);
    return rc;
}

/* The question, the beginning of the answer, and the key that goes on from there. */
static int ask(const tokenizer *t, const needle_dialog *d, talk *c, const char *key, token_list *ids,
               trace_error *error)
{
    char text[MOST_BYTES];
    say(c, CHAT_USER, question);
    chat_conversation whole = {c->messages, c->n, 1};
    ids->n = 0;
    int rc = chat_render(t, d->format, &whole, ids, error);
    snprintf(text, sizeof text, "%s %s", answer, key);
    return rc < 0 ? rc : tokenizer_encode(t, text, strlen(text), 0, ids, error);
}

/* Tokens of the key at the end of a text that ends with it. */
static int count_key(const tokenizer *t, const char *key, uint32_t *n, trace_error *error)
{
    char text[MOST_BYTES];
    token_list alone = {0};
    snprintf(text, sizeof text, " %s", key);
    int rc = tokenizer_encode(t, text, strlen(text), 0, &alone, error);
    const char *bytes = "";
    size_t length = 0;
    if (rc == 0)
        (void)tokenizer_bytes(t, alone.ids[0], &bytes, &length);
    *n = (uint32_t)alone.n - (length == 1); /* a space alone is the answer's beginning */
    token_list_free(&alone);
    return rc;
}

static int split(const token_list *ids, size_t n_text, uint32_t n_key, needle_prompt *out, trace_error *error)
{
    out->tokens = malloc(ids->n * sizeof *out->tokens);
    if (!out->tokens)
        return trace_failed(error, (trace_place){"the conversation", 0, NULL}, "out of memory");
    for (size_t i = 0; i < ids->n; i++)
        out->tokens[i] = (uint32_t)ids->ids[i];
    out->n_text = (uint32_t)n_text;
    out->n_answer = out->n_needle = n_key;
    out->n_question = (uint32_t)(ids->n - n_text) - n_key;
    const uint32_t *key = out->tokens + out->n_text + out->n_question;
    while (memcmp(out->tokens + out->needle, key, n_key * sizeof *key) != 0)
        out->needle++; /* it is found at the end at the latest */
    return 0;
}

static int make(const tokenizer *t, const needle_dialog *d, talk *c, needle_prompt *out, trace_error *error)
{
    random_state random;
    token_list ids = {0};
    uint32_t n_key = 0;
    random_seed(&random, d->seed);
    needle_key(d->keys, &random, out->key);
    int rc = begin(t, d, c, out->key, &ids, error);
    if (rc == 0)
        rc = chat_on(t, d, c, &random, &ids, error);
    size_t n_text = ids.n;
    if (rc == 0)
        rc = ask(t, d, c, out->key, &ids, error);
    if (rc == 0)
        rc = count_key(t, out->key, &n_key, error);
    if (rc == 0)
        rc = split(&ids, n_text, n_key, out, error);
    token_list_free(&ids);
    return rc;
}

int needle_dialog_make(const tokenizer *t, const needle_dialog *dialog, needle_prompt *out, trace_error *error)
{
    needle_prompt p = {0};
    talk *c = calloc(1, sizeof *c);
    if (!c)
        return trace_failed(error, (trace_place){"the conversation", 0, NULL}, "out of memory");
    int rc = make(t, dialog, c, &p, error);
    free(c);
    if (rc == 0)
        *out = p;
    return rc;
}
