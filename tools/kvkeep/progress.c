#define _POSIX_C_SOURCE 200809L /* clock_gettime, isatty */
#include "kvkeep/progress.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

double progress_now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Whether to show now, which is `now_s`. */
static bool is_due(progress *p, double *now_s)
{
    const double every_s = 0.2;
    if (p->terminal == 0)
        p->terminal = isatty(STDERR_FILENO) ? 1 : -1;
    if (p->terminal < 0)
        return false;
    *now_s = progress_now_s();
    if (p->start_s == 0)
        p->start_s = *now_s;
    if (*now_s < p->next_s)
        return false;
    p->next_s = *now_s + every_s;
    p->shown = 1;
    return true;
}

void progress_show(progress *p, uint64_t requests)
{
    double now_s;
    if (is_due(p, &now_s))
        fprintf(stderr, "\r%" PRIu64 " requests", requests);
}

void progress_show_part(progress *p, double part)
{
    double now_s;
    if (!is_due(p, &now_s))
        return;
    double gone_s = now_s - p->start_s;
    if (part > 0 && gone_s > 1)
        fprintf(stderr, "\r%3.0f %%, %.0f s left\033[K", 100 * part, gone_s * (1 - part) / part);
    else
        fprintf(stderr, "\r%3.0f %%", 100 * part);
}

void progress_end(progress *p)
{
    if (p->shown)
        fputs("\r\033[K", stderr);
    p->shown = 0;
}
