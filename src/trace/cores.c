#define _POSIX_C_SOURCE 200809L /* sysconf */
#include "trace/cores.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { MAX_THREADS = 16 };

typedef struct pieces {
    int (*work)(void *ctx, uint32_t i);
    void *ctx;
    uint32_t n;
    atomic_uint next; /* the first that nobody has taken */
    atomic_int failed;
} pieces;

typedef struct worker {
    pthread_t thread;
    pieces *pieces;
    uint32_t last; /* the piece that it ended with */
    int started, rc;
} worker;

/* A piece is taken after all smaller ones, so that the smallest that fails is never left out. */
static void *run(void *ctx)
{
    worker *w = ctx;
    pieces *p = w->pieces;
    while (w->rc >= 0 && !atomic_load(&p->failed) && (w->last = atomic_fetch_add(&p->next, 1)) < p->n)
        w->rc = p->work(p->ctx, w->last);
    if (w->rc < 0)
        atomic_store(&p->failed, 1);
    return NULL;
}

static uint32_t count_workers(uint32_t n)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t most = cores > MAX_THREADS ? MAX_THREADS : cores > 1 ? (uint32_t)cores : 1;
    return n < most ? n : most;
}

/* This thread is the first worker; one that cannot be started leaves its work to the others. */
int cores_run(int (*work)(void *ctx, uint32_t i), void *ctx, uint32_t n)
{
    pieces p = {.work = work, .ctx = ctx, .n = n};
    worker workers[MAX_THREADS];
    uint32_t n_workers = count_workers(n), first = n;
    int rc = 0;
    for (uint32_t i = 0; i < n_workers; i++) {
        worker *w = &workers[i];
        *w = (worker){.pieces = &p};
        w->started = i > 0 && pthread_create(&w->thread, NULL, run, w) == 0;
    }
    if (n_workers > 0)
        run(&workers[0]);
    for (uint32_t i = 0; i < n_workers; i++) {
        worker *w = &workers[i];
        if (w->started)
            pthread_join(w->thread, NULL);
        if (w->rc < 0 && w->last < first) {
            first = w->last;
            rc = w->rc;
        }
    }
    return rc;
}
