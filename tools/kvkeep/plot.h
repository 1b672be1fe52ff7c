/* kvkeep/plot.h: curves as an SVG file, drawn by gnuplot. */
#ifndef KVKEEP_TOOLS_PLOT_H
#define KVKEEP_TOOLS_PLOT_H

#include "trace/error.h"
#include "trace/samples.h"

#include <stdio.h>

typedef struct plot {
    const char *title;
    const char *x_label, *y_label;
    const char *a, *b; /* the curves' names; b NULL: one curve only */
} plot;

/* Draws onto `out`. 0, or TRACE_FAILED where gnuplot is missing or fails. */
int plot_draw(const plot *p, const samples *s, FILE *out, trace_error *error);

#endif
