#include "kvkeep/eval/needle_wording.h"

#include <stdio.h>
#include <string.h>

const char needle_filler[] =
    " The river runs down to the sea. The road goes over the hill. The wind comes from the west."
    " The day is long and the night is short.";

/* Each question ends in the words that went before the key, since small models answer by going on. */
static const needle_wording wordings[] = {
    {"passkey", " The pass key is {KEY}.", " Remember that {KEY} is the pass key.",
     " What is the pass key? The pass key is", 1},
    {"order", " Your order number is {KEY}.", " Please quote {KEY} when you write to us.",
     " What is the order number? Your order number is", 1},
    {"locker", " The code of the locker is {KEY}.", " Only {KEY} opens the locker.",
     " Which code opens the locker? The code of the locker is", 1},
    {"ticket", " The winning ticket was {KEY}.", " Whoever holds {KEY} may come for the prize.",
     " Which ticket won? The winning ticket was", 1},
    {"account", " The money went to account {KEY}.", " It was {KEY} and no other account.",
     " Where did the money go? The money went to account", 1},
    {"flight", " They all took flight {KEY}.", " Nobody had heard of {KEY} before.",
     " Which flight did they take? They all took flight", 1},
    {"safe", " The combination of the safe is {KEY}.", " Turn the dial to {KEY} and pull.",
     " How is the safe opened? The combination of the safe is", 0},
    {"parcel", " The parcel is registered as {KEY}.", " Ask at the counter for {KEY}.",
     " What is the parcel registered as? The parcel is registered as", 0},
    {"member", " Her membership number is {KEY}.", " The card says {KEY} on both sides.",
     " What is her membership number? Her membership number is", 0},
    {"invoice", " We have paid the invoice {KEY}.", " The receipt for {KEY} is in the drawer.",
     " Which invoice have we paid? We have paid the invoice", 0},
    {"signal", " The signal for the attack is {KEY}.", " When you hear {KEY}, run.",
     " What is the signal? The signal for the attack is", 0},
    {"room", " The meeting is in room {KEY}.", " Go up the stairs until you see {KEY} on a door.",
     " Where is the meeting? The meeting is in room", 0},
};

enum { N_WORDINGS = sizeof wordings / sizeof wordings[0] };

const needle_wording *needle_wording_at(uint32_t i)
{
    return i < N_WORDINGS ? &wordings[i] : NULL;
}

const needle_wording *needle_wording_of(int tuning, uint32_t i)
{
    for (uint32_t k = 0; k < N_WORDINGS; k++)
        if (wordings[k].tuning == tuning && i-- == 0)
            return &wordings[k];
    return NULL;
}

const needle_wording *needle_wording_find(const char *name)
{
    for (uint32_t k = 0; k < N_WORDINGS; k++)
        if (strcmp(wordings[k].name, name) == 0)
            return &wordings[k];
    return NULL;
}

/* ---- Keys ------------------------------------------------------------------------------------------------------- */

static const char *const firsts[] = {"amber",  "bitter", "brave",  "broken", "clever", "copper", "cotton", "crystal",
                                     "dusty",  "eager",  "empty",  "famous", "frozen", "gentle", "golden", "hidden",
                                     "hollow", "humble", "lonely", "lucky",  "modern", "narrow", "purple", "quiet",
                                     "rapid",  "royal",  "silent", "silver", "sleepy", "stormy", "velvet", "wooden"};
static const char *const seconds[] = {
    "anchor", "basket", "bridge", "candle", "castle", "cherry", "circle",  "dragon",  "engine", "falcon", "feather",
    "garden", "hammer", "island", "jacket", "kettle", "ladder", "lantern", "lemon",   "marble", "mirror", "monkey",
    "needle", "orange", "pepper", "pilot",  "planet", "rabbit", "saddle",  "thunder", "tunnel", "window"};

void needle_key(needle_keys kind, random_state *random, char key[NEEDLE_MAX_KEY])
{
    if (kind == NEEDLE_DIGITS) {
        snprintf(key, NEEDLE_MAX_KEY, "%05u", random_below(random, 100000));
        return;
    }
    const char *first = firsts[random_below(random, sizeof firsts / sizeof firsts[0])];
    snprintf(key, NEEDLE_MAX_KEY, "%s %s", first, seconds[random_below(random, sizeof seconds / sizeof seconds[0])]);
}
