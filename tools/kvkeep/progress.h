/* kvkeep/progress.h: a line on stderr that says how far the work is; only on a terminal, and a few times a second. */
#ifndef KVKEEP_TOOLS_PROGRESS_H
#define KVKEEP_TOOLS_PROGRESS_H

#include <stdint.h>

typedef struct progress {
    int terminal;  /* 0: not looked yet, 1: a terminal, -1: none */
    int shown;     /* a line stands there */
    double next_s; /* when to show again */
    double start_s;
} progress;

void progress_show(progress *p, uint64_t requests);

/* The same of work whose end is known: the part done, and the time that the rest takes if it goes on like this. */
void progress_show_part(progress *p, double part);

/* Seconds on a clock that only goes forward. */
double progress_now_s(void);

/* Wipes the line. */
void progress_end(progress *p);

#endif
