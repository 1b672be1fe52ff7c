#define _GNU_SOURCE /* O_TMPFILE */
#include "kvkeep/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int cannot(const outfile *f, const char *what, trace_error *error)
{
    return trace_failed(error, (trace_place){f->path, 0, NULL}, "cannot %s: %s", what, strerror(errno));
}

/* The length of the folder's part of a path, its last slash included. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

static FILE *open_nameless(const char *target)
{
    char folder[PATH_MAX];
    size_t n = folder_length(target);
    if (n >= sizeof folder)
        return NULL;
    memcpy(folder, target, n);
    folder[n] = '\0';
    int fd = open(n ? folder : ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
    FILE *stream = fd < 0 ? NULL : fdopen(fd, "w+b");
    if (fd >= 0 && !stream)
        close(fd);
    return stream;
}

static bool folder_is_writable(const char *target)
{
    char folder[PATH_MAX];
    size_t n = folder_length(target);
    if (n >= sizeof folder)
        return false;
    memcpy(folder, target, n);
    folder[n] = '\0';
    return access(n ? folder : ".", W_OK | X_OK) == 0;
}

/* Where the content goes until it gets its name. */
static void open_stream(outfile *f)
{
    struct stat s;
    f->kind = OUTFILE_DIRECT;
    if (stat(f->target, &s) == 0 && !S_ISREG(s.st_mode)) {
        f->stream = fopen(f->target, "wb");
        return;
    }
    f->kind = OUTFILE_NAMELESS;
    f->stream = open_nameless(f->target);
    if (f->stream || !folder_is_writable(f->target))
        return;
    f->kind = OUTFILE_ELSEWHERE;
    f->stream = tmpfile();
}

int outfile_open(outfile *f, const char *path, trace_error *error)
{
    *f = (outfile){.path = path};
    f->target = realpath(path, NULL);
    if (!f->target)
        f->target = strdup(path);
    errno = ENOENT;
    if (f->target && f->target[0])
        open_stream(f);
    if (f->stream)
        return 0;
    cannot(f, "write", error);
    outfile_discard(f);
    return TRACE_BAD_INPUT;
}

/* Copies the content to a fresh file of that name. */
static int copy_to(const outfile *f, const char *name)
{
    char block[1 << 16];
    ssize_t got;
    int from = fileno(f->stream);
    int to = lseek(from, 0, SEEK_SET) < 0 ? -1 : open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (to < 0)
        return -1;
    while ((got = read(from, block, sizeof block)) > 0)
        for (ssize_t done = 0, n; done < got; done += n)
            if ((n = write(to, block + done, (size_t)(got - done))) < 0) {
                close(to);
                return -1;
            }
    return close(to) < 0 || got < 0 ? -1 : 0;
}

static int link_to(const outfile *f, const char *name)
{
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fileno(f->stream));
    return linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

/* A name of its own first, since a file can be linked only where none is; then over the old one in one step. */
static int put_in_place(const outfile *f)
{
    char name[PATH_MAX];
    int n = snprintf(name, sizeof name, "%s.%ld.part", f->target, (long)getpid());
    if (n < 0 || (size_t)n >= sizeof name) {
        errno = ENAMETOOLONG;
        return -1;
    }
    unlink(name); /* of a process long dead that had this number */
    int rc = f->kind == OUTFILE_NAMELESS ? link_to(f, name) : copy_to(f, name);
    struct stat s;
    if (rc == 0 && stat(f->target, &s) == 0) /* who may read it stays as it was */
        rc = chmod(name, s.st_mode & 07777);
    if (rc == 0 && rename(name, f->target) == 0)
        return 0;
    int why = errno;
    unlink(name);
    errno = why;
    return -1;
}

/* While the file has its first name no signal may end the process. */
static int put_in_place_undisturbed(const outfile *f)
{
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    int rc = put_in_place(f), why = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    errno = why;
    return rc;
}

int outfile_commit(outfile *f, trace_error *error)
{
    bool written = fflush(f->stream) == 0 && !ferror(f->stream);
    int rc = 0;
    if (!written || (f->kind != OUTFILE_DIRECT && put_in_place_undisturbed(f) < 0))
        rc = cannot(f, "write", error);
    outfile_discard(f);
    return rc;
}

void outfile_discard(outfile *f)
{
    if (f->stream)
        fclose(f->stream);
    free(f->target);
    *f = (outfile){0};
}
