#define _POSIX_C_SOURCE 200809L /* PATH_MAX */
#include "trace/input.h"
#include "trace/mass_file.h"

#include <limits.h>
#include <string.h>

typedef char path_text[PATH_MAX];

/* FILE.npy -> FILE.json. */
static int name_about(const char *path, path_text out, trace_error *error)
{
    size_t n = strlen(path);
    if (n < 5 || n + 2 > PATH_MAX || strcmp(path + n - 4, ".npy") != 0)
        return trace_bad_input(error, (trace_place){path, 0, NULL},
                               "must be named FILE.npy, as FILE.json beside it says what it holds");
    memcpy(out, path, n - 4);
    memcpy(out + n - 4, ".json", 6);
    return 0;
}

/* A file in the folder of another. */
static int name_beside(const char *path, const char *name, path_text out, trace_error *error)
{
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash - path) + 1 : 0;
    if (snprintf(out, PATH_MAX, "%.*s%s", folder, path, name) < PATH_MAX)
        return 0;
    return trace_bad_input(error, (trace_place){path, 0, NULL}, "has too long a path");
}

static int read_about(const char *path, mass_about *about, trace_error *error)
{
    path_text name;
    FILE *in = NULL;
    int rc = name_about(path, name, error);
    if (rc == 0)
        rc = input_open(name, &in, error);
    if (rc == 0)
        rc = mass_about_read(about, in, name, error);
    if (in)
        fclose(in);
    return rc;
}

int mass_open(const char *path, uint64_t memory_limit, mass_trace **out, trace_error *error)
{
    mass_about about;
    path_text peaks = "";
    mass_files files = {path, peaks, NULL, NULL};
    *out = NULL;
    int rc = read_about(path, &about, error);
    if (rc == 0 && about.peaks[0])
        rc = name_beside(path, about.peaks, peaks, error);
    if (rc == 0)
        rc = input_open(path, &files.masses, error);
    if (rc == 0 && about.peaks[0])
        rc = input_open(peaks, &files.peaks, error);
    if (rc == 0)
        return mass_files_open(&files, &about, memory_limit, out, error);
    if (files.masses)
        fclose(files.masses);
    return rc;
}
