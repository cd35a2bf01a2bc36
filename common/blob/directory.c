/*
 * Blobs in a directory: a file is written in <directory>/tmp and then moved to
 * <directory>/data/<key>.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/blob/backend.h"

struct directory {
    struct df_blob blob;
    char *data;
    pthread_mutex_t making; /* held until a new directory is durable: none is used before */
};

static struct directory *directory_of(struct df_blob *b)
{
    return (struct directory *)b; /* its first member */
}

/* ---- keys and paths ------------------------------------------------------------------------- */

/* Returns the path of a key's file; the caller frees. NULL with err set if out of memory. */
static char *path_of(struct df_blob *b, const char *key, struct df_err *err)
{
    char *path = df_fs_join(directory_of(b)->data, key);
    if (!path)
        (void)df_fail_oom(err);
    return path;
}

static int sync_parent(char *path, struct df_err *err)
{
    char *slash = strrchr(path, '/');
    *slash = '\0';
    int result = df_fs_sync_dir(path, err);
    *slash = '/';
    return result;
}

/* Creates the missing directories above path, durably. Those up to data exist. */
static int make_parents(struct df_blob *b, char *path, struct df_err *err)
{
    struct directory *d = directory_of(b);
    int result = 0;
    (void)pthread_mutex_lock(&d->making);
    for (char *slash = path + strlen(d->data); result == 0;) {
        slash = strchr(slash + 1, '/');
        if (!slash)
            break;
        *slash = '\0';
        if (mkdir(path, 0700) == 0)
            result = sync_parent(path, err);
        else if (errno != EEXIST)
            result = df_fail_errno(err, errno, "create directory %s", path);
        *slash = '/';
    }
    (void)pthread_mutex_unlock(&d->making);
    return result;
}

/* ---- whole blobs ---------------------------------------------------------------------------- */

static int link_new(const char *from, const char *to)
{
    return link(from, to);
}

static int move_over(const char *from, const char *to)
{
    return rename(from, to);
}

typedef int (*publish)(const char *from, const char *to);

/* Moves the finished file `from` to path. Missing directories are created only after a failure. */
static int publish_file(struct df_blob *b, publish how, const char *from, char *path,
                        struct df_err *err)
{
    if (how(from, path) == 0)
        return 0;
    if (errno == ENOENT) {
        if (make_parents(b, path, err) < 0)
            return -1;
        if (how(from, path) == 0)
            return 0;
    }
    return df_fail_errno(err, errno, "create %s", path);
}

static int write_temporary(char *tmp, const struct df_blob_content *content, int *ret_fd,
                           struct df_err *err)
{
    DF_CLOSE int fd = mkostemp(tmp, O_CLOEXEC);
    if (fd < 0)
        return df_fail_errno(err, errno, "create %s", tmp);
    if (df_fs_write_all(fd, content->bytes, content->n, err) < 0)
        return -1;
    *ret_fd = DF_TAKE_FD(fd);
    return 0;
}

static int sync_content(int fd, const char *path, struct df_err *err)
{
    return fsync(fd) < 0 ? df_fail_errno(err, errno, "sync %s", path) : 0;
}

static int seal_content(const char *path, struct df_err *err)
{
    DF_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fchmod(fd, 0600) < 0)
        return df_fail_errno(err, errno, "sync %s", path);
    return sync_content(fd, path, err);
}

/* Writes the bytes into a temporary file and publishes it at path. */
static int put_bytes(struct df_blob *b, char *path, const struct df_blob_content *content,
                     enum df_blob_how how, struct df_err *err)
{
    publish give_name = how == DF_BLOB_CREATE ? link_new : move_over;
    DF_FREE char *tmp = df_fs_join(b->tmp, "put-XXXXXX");
    DF_CLOSE int fd = -1;
    if (!tmp)
        return df_fail_oom(err);
    int result = write_temporary(tmp, content, &fd, err);
    if (result == 0)
        result = sync_content(fd, tmp, err);
    if (result == 0)
        result = publish_file(b, give_name, tmp, path, err);
    /* After a rename the temporary file is gone; after a link or a failure it is not. */
    if (result < 0 || how == DF_BLOB_CREATE)
        (void)unlink(tmp);
    return result;
}

static int put_file(struct df_blob *b, char *path, const char *from, struct df_err *err)
{
    return seal_content(from, err) < 0 ? -1 : publish_file(b, move_over, from, path, err);
}

static int put(struct df_blob *b, const char *key, const struct df_blob_content *content,
               enum df_blob_how how, struct df_err *err)
{
    DF_FREE char *path = path_of(b, key, err);
    if (!path)
        return -1;
    int result = content->path ? put_file(b, path, content->path, err)
                               : put_bytes(b, path, content, how, err);
    if (result == 0)
        result = sync_parent(path, err);
    return result < 0 ? df_err_wrap(err, "store blob %s", key) : 0;
}

static int sync_blob(struct df_blob *b, const char *key, struct df_err *err)
{
    DF_FREE char *path = path_of(b, key, err);
    if (!path || seal_content(path, err) < 0)
        return -1;
    return sync_parent(path, err);
}

/* ---- reading -------------------------------------------------------------------------------- */

static int open_read(struct df_blob *b, const char *key, int *ret_fd, int64_t *ret_size,
                     struct df_err *err)
{
    DF_FREE char *path = path_of(b, key, err);
    if (!path)
        return -1;
    DF_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return df_blob_fail_absent(key, err);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return df_fail_errno(err, errno, "open %s", path);
    if (!S_ISREG(st.st_mode))
        return df_blob_fail_absent(key, err);
    if (ret_size)
        *ret_size = st.st_size;
    *ret_fd = DF_TAKE_FD(fd);
    return 0;
}

static int get_range(struct df_blob *b, const char *key, int64_t offset, struct df_buf *out,
                     int64_t *ret_size, struct df_err *err)
{
    DF_CLOSE int fd = -1;
    int64_t size = 0;
    if (open_read(b, key, &fd, &size, err) < 0 || df_fs_read_at(fd, offset, size, out, err) < 0)
        return -1;
    *ret_size = size;
    return 0;
}

static int get_size(struct df_blob *b, const char *key, int64_t *ret_size, struct df_err *err)
{
    DF_FREE char *path = path_of(b, key, err);
    if (!path)
        return -1;
    struct stat st;
    if (stat(path, &st) == 0)
        *ret_size = S_ISREG(st.st_mode) ? st.st_size : 0;
    else if (errno == ENOENT || errno == ENOTDIR)
        *ret_size = 0;
    else
        return df_fail_errno(err, errno, "blob %s", key);
    return 0;
}

/* ---- removing ------------------------------------------------------------------------------- */

static int remove_file(struct df_blob *b, const char *key, enum df_blob_removal *ret,
                       struct df_err *err)
{
    DF_FREE char *path = path_of(b, key, err);
    if (!path)
        return -1;
    *ret = DF_BLOB_REMOVED;
    if (unlink(path) == 0)
        return sync_parent(path, err);
    if (errno != ENOENT && errno != ENOTDIR)
        return df_fail_errno(err, errno, "remove %s", path);
    *ret = DF_BLOB_ABSENT;
    return 0;
}

/* Agrees also to what is absent. */
static int ask(struct df_blob *b, const char *key, const struct df_blob_condition *c,
               bool *ret_agrees, struct df_err *err)
{
    DF_BUF struct df_buf content = DF_BUF_INIT(c->max);
    struct df_err why = {0};
    int64_t size = 0;
    *ret_agrees = true;
    if (get_range(b, key, 0, &content, &size, &why) < 0)
        return why.cls == DF_ERR_NOT_FOUND ? 0 : df_err_pass(err, &why);
    if (df_blob_check_room(key, size, c->max, err) < 0)
        return -1;
    *ret_agrees = c->agrees(c->arg, &content);
    return 0;
}

/* Nobody replaces it meanwhile: the caller serialises the writers of a key. */
static int remove_blob(struct df_blob *b, const char *key, const struct df_blob_condition *c,
                       enum df_blob_removal *ret, struct df_err *err)
{
    bool agrees = true;
    if (c && ask(b, key, c, &agrees, err) < 0)
        return -1;
    return agrees ? remove_file(b, key, ret, err) : 0;
}

static int remove_all(struct df_blob *b, const char *prefix, struct df_err *err)
{
    DF_FREE char *path = path_of(b, prefix, err);
    if (!path)
        return -1;
    if (!df_fs_exists(path))
        return 0;
    if (df_fs_remove_tree(path, err) < 0)
        return df_err_wrap(err, "remove blobs %s", prefix);
    return sync_parent(path, err);
}

/* ---- listing -------------------------------------------------------------------------------- */

static void cleanup_dir(DIR **d)
{
    if (*d)
        (void)closedir(*d);
}

/* Names are gathered (out) or, with size and time, given to visit. */
struct walk {
    struct df_strs *out; /* takes the keys where nothing visits */
    df_blob_visit visit; /* or NULL */
    void *arg;
};

static int list_below(const char *path, const char *key, const struct walk *w, struct df_err *err);

/* Returns the type of the entry; most file systems report it in the listing. DT_UNKNOWN: just
 * removed. */
static int type_of(const char *path, unsigned char listed, unsigned char *ret, struct df_err *err)
{
    struct stat st = {0};
    if (listed == DT_UNKNOWN && lstat(path, &st) < 0 && errno != ENOENT)
        return df_fail_errno(err, errno, "list %s", path);
    *ret = listed == DT_UNKNOWN ? (unsigned char)IFTODT(st.st_mode) : listed;
    return 0;
}

/* Takes ownership of *key. */
static int take_file(const struct walk *w, const char *path, char **key, struct df_err *err)
{
    struct stat st;
    if (!w->visit) {
        (void)df_strs_take(w->out, DF_TAKE(*key)); /* df_blob_list() checks */
        return 0;
    }
    if (lstat(path, &st) < 0)
        return errno == ENOENT ? 0 : df_fail_errno(err, errno, "list %s", path);
    const struct df_blob_info info = {
        *key, st.st_size, (int64_t)st.st_mtim.tv_sec * 1000000 + st.st_mtim.tv_nsec / 1000};
    return w->visit(w->arg, &info, err);
}

static int list_entry(const char *dir, const char *key, const struct dirent *e,
                      const struct walk *w, struct df_err *err)
{
    DF_FREE char *path = df_fs_join(dir, e->d_name);
    DF_FREE char *below = df_strf("%s%s%s", key, *key ? "/" : "", e->d_name);
    unsigned char type = DT_UNKNOWN;
    if (!path || !below)
        return df_fail_oom(err);
    if (!df_blob_key_is_good(below))
        return 0; /* not ours */
    if (type_of(path, e->d_type, &type, err) < 0)
        return -1;
    if (type == DT_DIR)
        return list_below(path, below, w, err);
    return type == DT_REG ? take_file(w, path, &below, err) : 0;
}

/* The depth is at most DF_LIMIT_BLOB_KEY / 2, because df_blob_key_is_good() rejects longer keys. */
static int list_below(const char *path, const char *key, const struct walk *w, struct df_err *err)
{
    DF_CLEANUP(cleanup_dir) DIR *d = opendir(path);
    if (!d && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    if (!d)
        return df_fail_errno(err, errno, "list %s", path);
    for (;;) {
        errno = 0;
        const struct dirent *e = readdir(d);
        if (!e)
            return errno ? df_fail_errno(err, errno, "list %s", path) : 0;
        if (!df_streq(e->d_name, ".") && !df_streq(e->d_name, "..") &&
            list_entry(path, key, e, w, err) < 0)
            return -1;
    }
}

static int walk_below(struct df_blob *b, const char *prefix, const struct walk *w,
                      struct df_err *err)
{
    DF_FREE char *path = *prefix ? path_of(b, prefix, err) : NULL;
    if (*prefix && !path)
        return -1;
    return list_below(path ? path : directory_of(b)->data, prefix, w, err);
}

static int list(struct df_blob *b, const char *prefix, struct df_strs *out, struct df_err *err)
{
    const struct walk w = {.out = out};
    return walk_below(b, prefix, &w, err);
}

static int each(struct df_blob *b, const char *prefix, df_blob_visit visit, void *arg,
                struct df_err *err)
{
    const struct walk w = {.visit = visit, .arg = arg};
    return walk_below(b, prefix, &w, err);
}

/* ---- streams -------------------------------------------------------------------------------- */

/* Opens the blob for appending at offset. Only an append at offset 0 creates it; a later one leaves
 * *ret_fd at -1 if it does not exist. */
static int open_stream(struct df_blob *b, char *path, int64_t offset, int *ret_fd,
                       struct df_err *err)
{
    int flags = O_WRONLY | O_CLOEXEC | O_NOCTTY | (offset == 0 ? O_CREAT : 0);
    int fd = open(path, flags, 0600);
    if (fd < 0 && errno == ENOENT && offset == 0) {
        if (make_parents(b, path, err) < 0)
            return -1;
        fd = open(path, flags, 0600);
    }
    if (fd < 0 && (errno != ENOENT || offset == 0))
        return df_fail_errno(err, errno, "open %s", path);
    *ret_fd = fd;
    return 0;
}

static int write_at(int fd, int64_t offset, const char *bytes, size_t n, struct df_err *err)
{
    if (df_fs_write_at(fd, offset, bytes, n, err) < 0)
        return -1;
    return fdatasync(fd) < 0 ? df_fail_errno(err, errno, "sync") : 0;
}

static int append_at(int fd, char *path, int64_t offset, const void *bytes, size_t n,
                     struct df_err *err)
{
    if (write_at(fd, offset, bytes, n, err) < 0) {
        /* Remove bytes that were not acknowledged: the writer repeats the append with this offset.
         */
        (void)!ftruncate(fd, offset);
        return df_err_wrap(err, "append to %s", path);
    }
    return offset == 0 ? sync_parent(path, err) : 0;
}

static int append(struct df_blob *b, const char *key, int64_t offset, const void *bytes, size_t n,
                  int64_t *ret_size, struct df_err *err)
{
    DF_FREE char *path = path_of(b, key, err);
    DF_CLOSE int fd = -1;
    if (!path || open_stream(b, path, offset, &fd, err) < 0)
        return -1;
    struct stat st = {0};
    if (fd >= 0 && fstat(fd, &st) < 0)
        return df_fail_errno(err, errno, "append to %s", path);
    if (st.st_size != offset) {
        *ret_size = st.st_size;
        return df_blob_fail_gap(key, st.st_size, offset, err);
    }
    if (append_at(fd, path, offset, bytes, n, err) < 0)
        return -1;
    *ret_size = offset + (int64_t)n;
    return 0;
}

/* ---- opening -------------------------------------------------------------------------------- */

static void close_directory(struct df_blob *b)
{
    struct directory *d = directory_of(b);
    (void)pthread_mutex_destroy(&d->making);
    free(d->data);
    free(d);
}

static const struct df_blob_ops directory_ops = {
    .close = close_directory,
    .put = put,
    .append = append,
    .get = get_range,
    .open_read = open_read,
    .size = get_size,
    .remove = remove_blob,
    .list = list,
    .each = each,
    .sync = sync_blob,
    .remove_all = remove_all,
};

int df_blob_open(const char *directory, struct df_blob **ret, struct df_err *err)
{
    struct directory *d = calloc(1, sizeof(*d));
    if (!d)
        return df_fail_oom(err);
    DF_BLOB struct df_blob *b = &d->blob;
    b->ops = &directory_ops;
    (void)pthread_mutex_init(&d->making, NULL);
    d->data = df_fs_join(directory, "data");
    b->tmp = df_fs_join(directory, "tmp");
    if (df_fs_renew_dir(b->tmp, err) < 0 || df_fs_mkdirs(d->data, 0700, err) < 0 ||
        df_fs_sync_dir(directory, err) < 0)
        return df_err_wrap(err, "blob directory %s", directory);
    *ret = DF_TAKE(b);
    return 0;
}
