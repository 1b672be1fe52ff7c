/* fuzz_npy.c: the first two bytes are the length of a JSON text and a number; then come the JSON file and the .npy file
 * of a trace of masses. An odd number takes the same file for the peaks too. Every step that comes out must be one that
 * the replay can rely on. */
#include "trace/mass_file.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_LIMIT = 1 << 24 };

static void check_error(int rc, const trace_error *error)
{
    if (rc < 0 && (error->text[0] == '\0' || strchr(error->text, '\n')))
        abort();
}

static void check_step(const mass_trace *t, const mass_step *step)
{
    const mass_shape *s = &t->shape;
    uint32_t there = mass_position(t) / s->page_tokens + 1;
    if (there > s->pages || s->pages > s->columns)
        abort();
    for (uint32_t g = 0; g < s->groups; g++)
        for (uint32_t p = 0; p < there; p++) {
            float mean = step->mean[(size_t)g * s->columns + p];
            if (!(mean >= 0 && mean < 1.01F))
                abort();
            if (step->peak && !(step->peak[(size_t)g * s->columns + p] >= 0))
                abort();
        }
}

static void read_all(mass_trace *t)
{
    mass_step step;
    trace_error error = {""};
    int rc;
    while ((rc = mass_next(t, &step, &error)) > 0)
        check_step(t, &step);
    check_error(rc, &error);
    check_error(mass_rewind(t, &error), &error);
}

static FILE *open_bytes(uint8_t *bytes, size_t n)
{
    return n ? fmemopen(bytes, n, "r") : fopen("/dev/null", "r");
}

static int read_about(uint8_t *bytes, size_t n, mass_about *about)
{
    trace_error error = {""};
    FILE *in = open_bytes(bytes, n);
    int rc = in ? mass_about_read(about, in, "f.json", &error) : -1;
    if (in) {
        check_error(rc, &error);
        fclose(in);
    }
    return rc;
}

static void read_masses(uint8_t *bytes, size_t n, const mass_about *about, int with_peaks)
{
    trace_error error = {""};
    mass_trace *t = NULL;
    mass_files files = {"f.npy", "p.npy", open_bytes(bytes, n), with_peaks ? open_bytes(bytes, n) : NULL};
    if (!files.masses)
        return;
    int rc = mass_files_open(&files, about, MEMORY_LIMIT, &t, &error);
    check_error(rc, &error);
    if (rc == 0)
        read_all(t);
    mass_close(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mass_about about;
    if (size < 2 || size - 2 < data[0])
        return 0;
    uint8_t *bytes = malloc(size);
    if (!bytes)
        return 0;
    memcpy(bytes, data, size);
    if (read_about(bytes + 2, data[0], &about) == 0)
        read_masses(bytes + 2 + data[0], size - 2 - data[0], &about, data[1] & 1);
    free(bytes);
    return 0;
}
