#define _POSIX_C_SOURCE 200809L /* clock_gettime, isatty */
#include "kvkeep/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

void progress_show(progress *p, uint64_t requests)
{
    const double every_s = 0.2;
    if (p->terminal == 0)
        p->terminal = isatty(STDERR_FILENO) ? 1 : -1;
    if (p->terminal < 0)
        return;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    double now_s = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
    if (now_s < p->next_s)
        return;
    p->next_s = now_s + every_s;
    p->shown = 1;
    fprintf(stderr, "\r%" PRIu64 " requests", requests);
}

void progress_end(progress *p)
{
    if (p->shown)
        fputs("\r\033[K", stderr);
    p->shown = 0;
}
