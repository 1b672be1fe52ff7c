#include "engine/near_heads.h"

#define REFUSE(...) trace_bad_input(error, (trace_place){"the cache", 0, "near"}, __VA_ARGS__)

int near_heads_has(const near_heads *h, near_head x)
{
    for (uint32_t i = 0; i < h->n; i++)
        if (h->chosen[i].layer == x.layer && h->chosen[i].head == x.head)
            return 1;
    return 0;
}

static int check_chosen(const near_heads *h, const model_shape *s, trace_error *error)
{
    near_heads before = {.n = 0};
    for (uint32_t i = 0; i < h->n; i++) {
        near_head x = h->chosen[i];
        if (x.layer >= s->n_layers || x.head >= s->n_heads)
            return REFUSE("head %u of layer %u is not in a model of %u layers and %u heads", x.head, x.layer,
                          s->n_layers, s->n_heads);
        if (near_heads_has(&before, x))
            return REFUSE("head %u of layer %u is chosen twice", x.head, x.layer);
        before.chosen[before.n++] = x;
    }
    return 0;
}

int near_heads_check(const near_heads *h, const model_shape *s, uint32_t group_layers, trace_error *error)
{
    uint64_t values = (uint64_t)group_layers * s->n_heads;
    if (h->n > NEAR_MAX_CHOSEN)
        return REFUSE("%u heads are more than %d", h->n, NEAR_MAX_CHOSEN);
    if (h->n == 0 && values > NEAR_MAX_VALUES)
        return REFUSE("%u layers of %u heads are more than %d: choose heads", group_layers, s->n_heads,
                      NEAR_MAX_VALUES);
    return check_chosen(h, s, error);
}

void near_heads_describe(const near_heads *h, const model_shape *s, uint32_t group_layers, kvk_group *groups)
{
    for (uint32_t g = 0; g < s->n_layers / group_layers; g++) {
        groups[g].near_layers = (uint16_t)(h->n ? 0 : group_layers);
        groups[g].near_heads = (uint16_t)(h->n ? 0 : s->n_heads);
    }
    for (uint32_t i = 0; i < h->n; i++) {
        kvk_group *g = &groups[h->chosen[i].layer / group_layers];
        g->near_layers = (uint16_t)(g->near_layers + 1);
        g->near_heads = 1;
    }
}

/* Those of a group in the order in which they were chosen. */
void near_heads_place(const near_heads *h, const model_shape *s, uint32_t group_layers, int32_t *places)
{
    uint32_t n = s->n_layers * s->n_heads;
    for (uint32_t i = 0; i < n; i++)
        places[i] = h->n ? -1 : (int32_t)(i % (group_layers * s->n_heads));
    for (uint32_t i = 0; i < h->n; i++) {
        int32_t before = 0;
        for (uint32_t k = 0; k < i; k++)
            before += h->chosen[k].layer / group_layers == h->chosen[i].layer / group_layers;
        places[h->chosen[i].layer * s->n_heads + h->chosen[i].head] = before;
    }
}
