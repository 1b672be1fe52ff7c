#include "trace/random.h"

#include <math.h>

static uint64_t splitmix(uint64_t *x)
{
    uint64_t z = *x += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static uint64_t rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

void random_seed(random_state *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        r->s[i] = splitmix(&seed);
}

uint64_t random_u64(random_state *r)
{
    uint64_t *s = r->s, result = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

uint32_t random_below(random_state *r, uint32_t n)
{
    return (uint32_t)((random_u64(r) >> 32) * n >> 32);
}

double random_unit(random_state *r)
{
    return (double)(random_u64(r) >> 11) * 0x1p-53;
}

double random_exponential(random_state *r)
{
    return -log(1 - random_unit(r));
}

double random_normal(random_state *r)
{
    const double turn = 6.283185307179586;
    double radius = sqrt(2 * random_exponential(r));
    return radius * cos(turn * random_unit(r));
}

/* Marsaglia and Tsang (2000): a cube of a normal variable, accepted nearly always; a shape below 1 comes from the
 * next. */
double random_gamma(random_state *r, double shape)
{
    if (shape < 1)
        return random_gamma(r, shape + 1) * pow(1 - random_unit(r), 1 / shape);
    double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double x = random_normal(r), v = 1 + c * x;
        if (v <= 0)
            continue;
        v = v * v * v;
        if (log(1 - random_unit(r)) < 0.5 * x * x + d - d * v + d * log(v))
            return d * v;
    }
}
