#include "kvkeep/eval/interval.h"

#include <math.h>

interval interval_wilson(uint32_t right, uint32_t n)
{
    const double z = 1.959963984540054; /* of the normal law, 2.5 % on each side */
    if (n == 0)
        return (interval){0, 1};
    double share = (double)right / n, scale = 1 + z * z / n;
    double middle = (share + z * z / (2.0 * n)) / scale;
    double half = z / scale * sqrt(share * (1 - share) / n + z * z / (4.0 * n * n));
    return (interval){right == 0 ? 0 : middle - half, right == n ? 1 : middle + half};
}
