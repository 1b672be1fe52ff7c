/* main.c: model --ops N --seed S [--audit-every K] [--fail-allocations] [--plant FAULT]
 *
 * Runs N random operations on a cache and on its naive twin, and compares all that can be seen after each. Every
 * episode of some thousand operations has a fresh cache with parameters of its own; seed and operation number tell
 * where a difference was found. With --plant the library is made to go wrong at a moment: 0 if that was found. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

static bool read_number(const char *text, uint64_t *out)
{
    char *end = NULL;
    if (!text || *text < '0' || *text > '9')
        return false;
    *out = strtoull(text, &end, 10);
    return *end == '\0';
}

static bool read_arguments(int argc, char **argv, world *w, uint64_t *ops)
{
    for (int i = 1; i < argc; i++) {
        uint64_t number = 0;
        if (strcmp(argv[i], "--fail-allocations") == 0) {
            w->fail_allocations = true;
            continue;
        }
        if (strcmp(argv[i], "--plant") == 0 && i + 1 < argc) {
            w->fault = argv[++i];
            continue;
        }
        if (i + 1 == argc || !read_number(argv[i + 1], &number))
            return false;
        if (strcmp(argv[i], "--ops") == 0)
            *ops = number;
        else if (strcmp(argv[i], "--seed") == 0)
            w->seed = number;
        else if (strcmp(argv[i], "--audit-every") == 0 && number > 0)
            w->audit_every = number;
        else
            return false;
        i++;
    }
    return true;
}

int main(int argc, char **argv)
{
    static world w = {.seed = 1, .audit_every = 1};
    uint64_t ops = 100000, episodes = 0;
    if (!read_arguments(argc, argv, &w, &ops)) {
        fprintf(stderr, "usage: model [--ops N] [--seed S] [--audit-every K] [--fail-allocations] [--plant FAULT]\n");
        return 2;
    }
    w.random = w.seed;
    w.plant_from = ops / 4 + world_random(&w, (uint32_t)(ops / 4) + 1);
    for (; w.n_ops < ops; episodes++) {
        uint64_t end = w.n_ops + 500 + world_random(&w, 4000);
        world_open(&w);
        while (w.n_ops < ops && w.n_ops < end)
            world_step(&w);
        world_close(&w);
    }
    printf("model: %llu operations in %llu episodes, as expected\n", (unsigned long long)w.n_ops,
           (unsigned long long)episodes);
    if (w.fault)
        printf("model: fault '%s' was %s\n", w.fault, w.planted_at ? "planted and not found" : "never planted");
    return w.fault != NULL;
}
