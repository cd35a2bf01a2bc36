/*
 * The source `files`: a directory in which each secret is a directory with a file for each key, as
 * a mounted Secret or the secrets-store CSI driver has it. Whoever writes such a directory replaces
 * all of its files at once by another target of the link "..data": a read follows the link once, so
 * that no secret is half old and half new.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "spawner/store/vault/source_backends.h"
#include "spawner/store/vault/sources.h"

#define DATA "..data"

/* A writer replaces a secret once a minute at most; more in one read is a fault. */
enum { SWAPS = 100 };

struct files_vault {
    struct df_vault vault;
    char *directory;
};

static const struct files_vault *files_of(const struct df_vault *v)
{
    return (const struct files_vault *)v; /* its first member */
}

static void close_stream(DIR **d)
{
    if (*d)
        (void)closedir(*d);
}
#define STREAM DF_CLEANUP(close_stream) DIR

/* A failure of the file system, which is one of the operator's: a mount that is missing. */
static int fail_at(const char *path, int os_errno, struct df_err *err)
{
    struct df_err why = {0};
    (void)df_fail_errno(&why, os_errno, "%s", path);
    (void)df_source_failed(err, &why);
    return -1;
}

static int open_directory(const struct files_vault *v, DIR **ret, struct df_err *err)
{
    DIR *d = opendir(v->directory);
    if (!d)
        return fail_at(v->directory, errno, err);
    *ret = d;
    return 0;
}

/* ---- one secret ---- */

/* The directory that the link names, which stands beside it; -1 with errno. */
static int open_target(int dir_fd)
{
    char target[NAME_MAX + 1];
    ssize_t n = readlinkat(dir_fd, DATA, target, NAME_MAX);
    if (n < 0)
        return -1;
    target[n] = '\0';
    if (strchr(target, '/') || strcmp(target, "..") == 0) {
        errno = ELOOP; /* it leads out of the secret */
        return -1;
    }
    return openat(dir_fd, target, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* ENOENT of the target: the link was replaced between the two calls. */
static int open_data(int dir_fd)
{
    struct stat at;
    if (fstatat(dir_fd, DATA, &at, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? fcntl(dir_fd, F_DUPFD_CLOEXEC, 0) : -1;
    for (int i = 1;; i++) {
        int fd = open_target(dir_fd);
        if (fd >= 0 || errno != ENOENT || i == SWAPS)
            return fd;
    }
}

/* The files of a secret; the caller closes the descriptor. */
static int open_secret(const struct files_vault *v, const char *name, int *ret_fd,
                       struct df_err *err)
{
    STREAM *d = NULL;
    DF_FREE char *path = df_fs_join(v->directory, name);
    if (df_check_alloc(path, err) < 0 || open_directory(v, &d, err) < 0)
        return -1;
    DF_CLOSE int fd = openat(dirfd(d), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return df_fail(err, DF_ERR_NOT_FOUND, "there is no directory %s", path);
    int data = fd < 0 ? -1 : open_data(fd);
    if (data < 0)
        return fail_at(path, errno, err);
    *ret_fd = data;
    return 0;
}

static int read_value(int dir_fd, const char *key, struct df_buf *value, struct df_err *err)
{
    /* O_NONBLOCK: a pipe must not stop the service. */
    DF_CLOSE int fd = openat(dir_fd, key, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat at;
    if (fd < 0 || fstat(fd, &at) < 0)
        return df_fail_errno(err, errno, "open");
    if (!S_ISREG(at.st_mode))
        return df_fail(err, DF_ERR_USER, "it is not a regular file");
    return df_fs_read_fd(fd, value, err) < 0
               ? -1
               : df_vault_check_value(df_buf_str(value), value->len, err);
}

static int add_value(cJSON *values, int dir_fd, const char *name, const char *key,
                     struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf value = DF_BUF_INIT(DF_LIMIT_SECRET_VALUE);
    struct df_err why = {0};
    if (df_vault_check_key(key, &why) < 0 || read_value(dir_fd, key, &value, &why) < 0)
        return df_source_unreadable(name, key, why.message, err);
    return df_source_add_value(values, name, key, df_buf_str(&value), err);
}

/* The names that begin with two dots belong to whoever writes the directory. */
static int add_values(cJSON *values, int dir_fd, const char *name, struct df_err *err)
{
    DF_CLOSE int copy = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
    STREAM *d = copy < 0 ? NULL : fdopendir(copy);
    if (!d)
        return df_fail_errno(err, errno, "read a directory");
    copy = -1; /* the stream closes it */
    for (struct dirent *entry; (entry = readdir(d));)
        if (!df_starts_with(entry->d_name, "..") && strcmp(entry->d_name, ".") != 0 &&
            add_value(values, dir_fd, name, entry->d_name, err) < 0)
            return -1;
    return 0;
}

/* True if the secret is another directory now: that of dir_fd may have been emptied while it was
 * read. As long as it is open no other gets its inode. */
static bool was_replaced(const struct files_vault *v, const char *name, int dir_fd)
{
    struct stat from, now;
    DF_CLOSE int fd = -1;
    return fstat(dir_fd, &from) == 0 && open_secret(v, name, &fd, NULL) == 0 &&
           fstat(fd, &now) == 0 && (now.st_ino != from.st_ino || now.st_dev != from.st_dev);
}

static int get_files(struct df_vault *vault, const char *name, cJSON **ret, struct df_err *err)
{
    const struct files_vault *v = files_of(vault);
    for (int i = 1;; i++) {
        DF_SECRET_JSON cJSON *values = cJSON_CreateObject();
        DF_CLOSE int fd = -1;
        struct df_err why = {0};
        if (df_check_alloc(values, err) < 0 || open_secret(v, name, &fd, err) < 0)
            return -1;
        int result = add_values(values, fd, name, &why);
        bool replaced = was_replaced(v, name, fd);
        if (replaced && i < SWAPS)
            continue;
        if (replaced)
            return df_source_fail(err, DF_ERR_RETRY,
                                  "\"%s\" was replaced %d times while it was read", name, i);
        if (result < 0)
            return df_err_pass(err, &why);
        *ret = DF_TAKE(values);
        return 0;
    }
}

/* ---- all of them ---- */

static int list_files(struct df_vault *vault, bool of_runs, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *list = cJSON_CreateArray();
    STREAM *d = NULL;
    (void)of_runs;
    if (df_check_alloc(list, err) < 0 || open_directory(files_of(vault), &d, err) < 0)
        return -1;
    for (struct dirent *entry; (entry = readdir(d));) {
        struct stat at;
        if (fstatat(dirfd(d), entry->d_name, &at, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISDIR(at.st_mode) && df_source_add_name(list, entry->d_name, err) < 0)
            return -1;
    }
    *ret = DF_TAKE(list);
    return 0;
}

static int check_files(struct df_vault *vault, struct df_err *err)
{
    STREAM *d = NULL;
    return open_directory(files_of(vault), &d, err);
}

static void close_files(struct df_vault *vault)
{
    free(((struct files_vault *)vault)->directory);
    free(vault);
}

static const struct df_vault_ops files_ops = {
    .close = close_files, .get = get_files, .list = list_files, .check = check_files};

int df_source_files_open(const cJSON *source, char **ret_place, struct df_vault **ret,
                         struct df_err *err)
{
    const char *directory = df_json_str(source, "directory");
    DF_FREE char *place = df_strf("the directory %s", directory);
    struct files_vault *v = calloc(1, sizeof(*v));
    if (!v || !place || !(v->directory = strdup(directory))) {
        free(v);
        return df_fail_oom(err);
    }
    v->vault.ops = &files_ops;
    *ret = &v->vault;
    *ret_place = DF_TAKE(place);
    return 0;
}
