/* standalone.c: runs every file of the folders named on the command line through the fuzz target it is linked with, for
 * compilers without libFuzzer. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path)
{
    static uint8_t bytes[1 << 20];
    FILE *in = fopen(path, "rb");
    if (!in) {
        perror(path);
        return -1;
    }
    size_t size = fread(bytes, 1, sizeof bytes, in);
    fclose(in);
    uint8_t *exact = malloc(size ? size : 1); /* so that a sanitizer sees a read past the end */
    if (!exact)
        return -1;
    for (size_t i = 0; i < size; i++)
        exact[i] = bytes[i];
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    return 0;
}

/* Returns the files run, or -1. */
static int run_folder(const char *folder)
{
    int n = 0;
    DIR *dir = opendir(folder);
    if (!dir) {
        perror(folder);
        return -1;
    }
    for (struct dirent *entry; n >= 0 && (entry = readdir(dir));) {
        char path[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        n = run_file(path) < 0 ? -1 : n + 1;
    }
    closedir(dir);
    return n;
}

int main(int argc, char **argv)
{
    int total = 0;
    for (int i = 1; i < argc; i++) {
        int n = run_folder(argv[i]);
        if (n < 0)
            return EXIT_FAILURE;
        total += n;
    }
    printf("%d inputs\n", total);
    return total > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
