/* kvkeep/plot.h: curves as an SVG file, drawn by gnuplot. */
#ifndef KVKEEP_TOOLS_PLOT_H
#define KVKEEP_TOOLS_PLOT_H

#include "trace/error.h"
#include "trace/samples.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct plot {
    const char *title;
    const char *x_label, *y_label;
    const char *a, *b; /* the curves' names; b NULL: one curve only */
    bool log_x;
} plot;

typedef struct plot_bar {
    const char *name;
    double length;
} plot_bar;

typedef struct plot_bars {
    const char *title, *x_label;
    const plot_bar *bars; /* the first is at the top */
    uint32_t n;
} plot_bars;

typedef struct plot_point {
    double x, y;
} plot_point;

typedef struct plot_curve {
    const char *name;
    const plot_point *points; /* [n] in any order */
    uint32_t n;
} plot_curve;

typedef struct plot_curves {
    const char *title, *x_label, *y_label;
    const plot_curve *curves;
    uint32_t n;
    double y_most; /* what is higher is left out, so that it does not flatten the rest; 0: nothing is */
    bool is_share; /* y is from 0 to 1 */
} plot_curves;

/* Shares from 0 to 1 as colours. */
typedef struct plot_map {
    const char *title, *x_label;
    const char *const *columns; /* [n_columns] what stands below them */
    const char *const *rows;    /* [n_rows] names; the first is at the top */
    const double *values;       /* [n_rows][n_columns] */
    uint32_t n_columns, n_rows;
} plot_map;

/* Draws onto `out`. 0, or TRACE_FAILED where gnuplot is missing or fails. */
int plot_draw(const plot *p, const samples *s, FILE *out, trace_error *error);

/* The same of bars side by side; names must not hold quotes. */
int plot_draw_bars(const plot_bars *p, FILE *out, trace_error *error);

/* The same of a map; names must not hold quotes. */
int plot_draw_map(const plot_map *p, FILE *out, trace_error *error);

/* The same of any number of curves with a few points each, in n panels one below the other. */
int plot_draw_curves(const plot_curves *panels, uint32_t n, FILE *out, trace_error *error);

#endif
