/* A thread waits for the signals, because the main thread may be in a request of any length. */
#include "spawner/cli/unfinished.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "common/base/fs.h"
#include "spawner/cli/signals.h"

#define MARK ".part-"
#define DICE "XXXXXX"

struct df_unfinished {
    char *path, *part; /* owned */
    int fd;            /* of the file, locked; -1: there is none */
    int signals_fd;
    int done_fd; /* readable: the thread shall end */
    pthread_t thread;
    bool watched; /* the thread runs */
};

static void close_if_open(int fd)
{
    if (fd >= 0)
        (void)close(fd);
}

/* ---- signals --------------------------------------------------------------------------------- */

static void *remove_on_signal(void *arg)
{
    struct df_unfinished *u = arg;
    struct pollfd fds[] = {{.fd = u->signals_fd, .events = POLLIN},
                           {.fd = u->done_fd, .events = POLLIN}};
    for (;;) {
        (void)poll(fds, DF_ARRAY_SIZE(fds), -1);
        int number = fds[0].revents ? df_signals_take(u->signals_fd) : 0;
        if (number) {
            (void)unlink(u->part);
            df_signals_release();
            (void)raise(number);
        }
        if (fds[1].revents)
            return NULL;
    }
}

static int watch(struct df_unfinished *u, struct df_err *err)
{
    u->done_fd = eventfd(0, EFD_CLOEXEC);
    if (u->done_fd < 0)
        return df_fail_errno(err, errno, "eventfd");
    int e = pthread_create(&u->thread, NULL, remove_on_signal, u);
    if (e)
        return df_fail_errno(err, e, "start a thread for signals");
    u->watched = true;
    return 0;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Its writer holds a lock on it as long as it lives. */
static void remove_if_left(int directory, const char *name)
{
    DF_CLOSE int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
        (void)unlinkat(directory, name, 0);
}

static bool is_unfinished(const char *name, const char *base)
{
    size_t n = strlen(base);
    return df_starts_with(name, base) && df_starts_with(name + n, MARK) &&
           strlen(name + n) == strlen(MARK DICE);
}

static int remove_leftovers(const char *path, struct df_err *err)
{
    DF_FREE char *first = strdup(path);
    DF_FREE char *second = strdup(path);
    if (!first || !second)
        return df_fail_oom(err);
    const char *base = basename(first);
    DIR *directory = opendir(dirname(second));
    if (!directory)
        return df_fail_errno(err, errno, "open the directory of %s", path);
    for (const struct dirent *e; (e = readdir(directory));)
        if (is_unfinished(e->d_name, base))
            remove_if_left(dirfd(directory), e->d_name);
    (void)closedir(directory);
    return 0;
}

/* Another process may have removed it between creation and lock; then it is made once more. */
static int create(struct df_unfinished *u, struct df_err *err)
{
    struct stat st = {0};
    while (!st.st_nlink) {
        free(u->part);
        close_if_open(DF_TAKE_FD(u->fd));
        u->part = df_strf("%s" MARK DICE, u->path);
        if (!u->part)
            return df_fail_oom(err);
        u->fd = mkostemp(u->part, O_CLOEXEC);
        if (u->fd < 0)
            return df_fail_errno(err, errno, "create %s", u->part);
        if (flock(u->fd, LOCK_EX) < 0 || fstat(u->fd, &st) < 0)
            return df_fail_errno(err, errno, "lock %s", u->part);
    }
    return 0;
}

static int begin(struct df_unfinished *u, const char *path, struct df_err *err)
{
    u->path = strdup(path);
    if (!u->path)
        return df_fail_oom(err);
    if (df_fs_exists(path))
        return df_fail(err, DF_ERR_CONFLICT, "%s exists: a backup replaces no file", path);
    if (remove_leftovers(path, err) < 0 || df_signals_open(&u->signals_fd, err) < 0 ||
        create(u, err) < 0)
        return -1;
    return watch(u, err);
}

int df_unfinished_new(const char *path, struct df_unfinished **ret, struct df_err *err)
{
    struct df_unfinished *u = calloc(1, sizeof(*u));
    if (!u)
        return df_fail_oom(err);
    u->fd = u->signals_fd = u->done_fd = -1;
    if (begin(u, path, err) < 0) {
        df_unfinished_free(u);
        return -1;
    }
    *ret = u;
    return 0;
}

int df_unfinished_fd(const struct df_unfinished *u)
{
    return u->fd;
}

int df_unfinished_publish(struct df_unfinished *u, struct df_err *err)
{
    DF_FREE char *copy = strdup(u->path);
    if (!copy)
        return df_fail_oom(err);
    if (link(u->part, u->path) < 0)
        return df_fail_errno(err, errno, "create %s", u->path);
    return df_fs_sync_dir(dirname(copy), err);
}

/* ---- the end --------------------------------------------------------------------------------- */

void df_unfinished_free(struct df_unfinished *u)
{
    if (!u)
        return;
    if (u->fd >= 0)
        (void)unlink(u->part);
    if (u->watched) {
        (void)eventfd_write(u->done_fd, 1);
        (void)pthread_join(u->thread, NULL);
    }
    if (u->signals_fd >= 0)
        df_signals_release();
    close_if_open(u->fd);
    close_if_open(u->signals_fd);
    close_if_open(u->done_fd);
    free(u->path);
    free(u->part);
    free(u);
}
