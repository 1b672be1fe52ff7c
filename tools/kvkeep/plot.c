#define _GNU_SOURCE /* posix_spawnp's file actions, environ */
#include "kvkeep/plot.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const trace_place gnuplot = {"gnuplot", 0, NULL};

static void write_points(FILE *script, const samples *s)
{
    fputs("$curve << end_of_curve\n", script);
    for (uint32_t i = 0; i < s->n; i++)
        fprintf(script, "%.17g %.17g %.17g\n", s->points[i].x, s->points[i].a, s->points[i].b);
    fputs("end_of_curve\n", script);
}

static void write_terminal(FILE *script, uint32_t panels)
{
    fprintf(script, "set terminal svg size 960,%u dynamic font 'sans,14' background rgb 'white'\n", 540 * panels);
}

static void write_labels(FILE *script, const char *title, const char *x_label)
{
    fprintf(script, "set grid\nset title '%s'\nset xlabel '%s'\n", title, x_label);
}

static void write_head(FILE *script, const char *title, const char *x_label)
{
    write_terminal(script, 1);
    write_labels(script, title, x_label);
}

/* The first curve is broad and pale, so that the second one shows where they are the same. */
static void write_script(FILE *script, const plot *p, const samples *s)
{
    write_head(script, p->title, p->x_label);
    fputs("set key below\nset yrange [0:*]\nset autoscale xfix\n", script);
    fprintf(script, "%sset ylabel '%s'\n", p->log_x ? "set logscale x\n" : "", p->y_label);
    write_points(script, s);
    fprintf(script, "plot $curve using 1:2 with lines lw 4 lc rgb '#9ecae1' title '%s'", p->a);
    if (p->b)
        fprintf(script, ", $curve using 1:3 with lines lw 1.5 lc rgb '#08519c' title '%s'", p->b);
    fputc('\n', script);
}

static void write_bars_script(FILE *script, const plot_bars *p)
{
    write_head(script, p->title, p->x_label);
    fprintf(script, "unset key\nset rmargin 9\nset xrange [0:*]\nset yrange [-0.6:%u - 0.4]\nset style fill solid\n",
            p->n);
    fputs("$bars << end_of_bars\n", script);
    for (uint32_t i = 0; i < p->n; i++)
        fprintf(script, "%u %.17g \"%s\"\n", p->n - 1 - i, p->bars[i].length, p->bars[i].name);
    fputs("end_of_bars\n", script);
    fputs("plot $bars using (0.5*$2):1:(0.5*$2):(0.35):ytic(3) with boxxyerrorbars lc rgb '#9ecae1', \\\n"
          "  '' using 2:1:(sprintf(' %.4f', $2)) with labels left\n",
          script);
}

static void write_curve(FILE *script, const plot_curve *c, uint32_t number)
{
    fprintf(script, "$curve%u << end_of_curve\n", number);
    for (uint32_t i = 0; i < c->n; i++)
        fprintf(script, "%.17g %.17g\n", c->points[i].x, c->points[i].y);
    fputs("end_of_curve\n", script);
}

/* More curves than colours are told apart by their dashes. */
static void write_panel(FILE *script, const plot_curves *p)
{
    static const char *const colours[] = {"#000000", "#7f7f7f", "#1f77b4", "#ff7f0e", "#2ca02c", "#d62728",
                                          "#9467bd", "#8c564b", "#e377c2", "#bcbd22", "#17becf", "#08306b"};
    const uint32_t n_colours = sizeof colours / sizeof colours[0];
    write_labels(script, p->title, p->x_label);
    fprintf(script, "set key outside right top\nset ylabel '%s'\n", p->y_label);
    if (p->is_share)
        fputs("set yrange [-0.02:1.02]\n", script);
    else if (p->y_most > 0)
        fprintf(script, "set yrange [*:%.17g]\n", p->y_most);
    else
        fputs("set yrange [*:*]\n", script);
    for (uint32_t i = 0; i < p->n; i++)
        write_curve(script, &p->curves[i], i);
    for (uint32_t i = 0; i < p->n; i++)
        fprintf(script,
                "%s $curve%u using 1:2 smooth unique with linespoints lw 1.5 pt 7 ps 0.4 lc rgb '%s' dt %u "
                "title \"%s\" noenhanced",
                i ? "," : "plot", i, colours[i % n_colours], i / n_colours + 1, p->curves[i].name);
    fputc('\n', script);
}

static void write_curves_script(FILE *script, const plot_curves *panels, uint32_t n)
{
    write_terminal(script, n);
    fprintf(script, "set multiplot layout %u,1\n", n);
    for (uint32_t i = 0; i < n; i++)
        write_panel(script, &panels[i]);
    fputs("unset multiplot\n", script);
}

/* Each place is a box with its share written in it, so that no colour has to be guessed. */
static void write_map_script(FILE *script, const plot_map *p)
{
    write_head(script, p->title, p->x_label);
    fprintf(script,
            "unset key\nunset grid\nset cbrange [0:1]\nset palette defined (0 '#d7301f', 0.5 '#fdd49e', 1 "
            "'#31a354')\nset xrange [-0.5:%u - 0.5]\nset yrange [-0.5:%u - 0.5]\n",
            p->n_columns, p->n_rows);
    fputs("$map << end_of_map\n", script);
    for (uint32_t r = 0; r < p->n_rows; r++)
        for (uint32_t c = 0; c < p->n_columns; c++)
            fprintf(script, "%u %u %.17g \"%s\" \"%s\"\n", c, p->n_rows - 1 - r, p->values[r * p->n_columns + c],
                    p->columns[c], p->rows[r]);
    fputs("end_of_map\nset ytics noenhanced\n", script);
    fputs("plot $map using 1:2:(0.5):(0.5):3 with boxxyerror fillstyle solid 1 lc palette, \\\n"
          "  '' using 1:2:(sprintf('%.2f', $3)):xtic(4):ytic(5) with labels\n",
          script);
}

static int start_gnuplot(FILE *script, FILE *out, pid_t *pid)
{
    char name[] = "gnuplot", *argv[] = {name, NULL};
    posix_spawn_file_actions_t actions;
    int rc = posix_spawn_file_actions_init(&actions);
    if (rc)
        return rc;
    rc = posix_spawn_file_actions_adddup2(&actions, fileno(script), STDIN_FILENO);
    if (!rc)
        rc = posix_spawn_file_actions_adddup2(&actions, fileno(out), STDOUT_FILENO);
    if (!rc) /* its complaints would be more than one line */
        rc = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (!rc)
        rc = posix_spawnp(pid, name, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

/* gnuplot says that all is well even where it could not write, so its output passes through here. */
static int copy(FILE *from, FILE *to, trace_error *error)
{
    char block[1 << 14];
    size_t n;
    rewind(from);
    while ((n = fread(block, 1, sizeof block, from)) > 0)
        if (fwrite(block, 1, n, to) < n)
            return trace_failed(error, (trace_place){"plot", 0, NULL}, "cannot write: %s", strerror(errno));
    return ferror(from) ? trace_failed(error, gnuplot, "cannot read its drawing") : 0;
}

/* A whole drawing ends by closing its root. */
static bool is_whole(FILE *drawing)
{
    char end[17] = "";
    return fseek(drawing, -16, SEEK_END) == 0 && fread(end, 1, 16, drawing) == 16 && strstr(end, "</svg>");
}

static int run_gnuplot(FILE *script, FILE *out, trace_error *error)
{
    pid_t pid;
    int status = 0, rc = start_gnuplot(script, out, &pid);
    if (rc == ENOENT)
        return trace_failed(error, gnuplot, "not found; it draws what --plot asks for");
    if (rc)
        return trace_failed(error, gnuplot, "cannot start: %s", strerror(rc));
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return trace_failed(error, gnuplot, "lost: %s", strerror(errno));
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return trace_failed(error, gnuplot, "failed");
    return 0;
}

/* Has gnuplot draw by a script. */
static int draw(FILE *script, FILE *out, trace_error *error)
{
    int rc = fflush(script) == 0 && !ferror(script) ? 0 : trace_failed(error, gnuplot, "cannot write its script");
    rewind(script);
    FILE *drawing = tmpfile();
    if (rc == 0 && !drawing)
        rc = trace_failed(error, gnuplot, "no room for its drawing: %s", strerror(errno));
    if (rc == 0)
        rc = run_gnuplot(script, drawing, error);
    if (rc == 0 && !is_whole(drawing))
        rc = trace_failed(error, gnuplot, "drew only a part");
    if (rc == 0)
        rc = copy(drawing, out, error);
    if (drawing)
        fclose(drawing);
    return rc;
}

static int open_script(FILE **script, trace_error *error)
{
    *script = tmpfile();
    return *script ? 0 : trace_failed(error, gnuplot, "no room for its script: %s", strerror(errno));
}

int plot_draw(const plot *p, const samples *s, FILE *out, trace_error *error)
{
    FILE *script;
    if (open_script(&script, error) < 0)
        return TRACE_FAILED;
    write_script(script, p, s);
    int rc = draw(script, out, error);
    fclose(script);
    return rc;
}

int plot_draw_bars(const plot_bars *p, FILE *out, trace_error *error)
{
    FILE *script;
    if (open_script(&script, error) < 0)
        return TRACE_FAILED;
    write_bars_script(script, p);
    int rc = draw(script, out, error);
    fclose(script);
    return rc;
}

int plot_draw_curves(const plot_curves *panels, uint32_t n, FILE *out, trace_error *error)
{
    FILE *script;
    if (open_script(&script, error) < 0)
        return TRACE_FAILED;
    write_curves_script(script, panels, n);
    int rc = draw(script, out, error);
    fclose(script);
    return rc;
}

int plot_draw_map(const plot_map *p, FILE *out, trace_error *error)
{
    FILE *script;
    if (open_script(&script, error) < 0)
        return TRACE_FAILED;
    write_map_script(script, p);
    int rc = draw(script, out, error);
    fclose(script);
    return rc;
}
