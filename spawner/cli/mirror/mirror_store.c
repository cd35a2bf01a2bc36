#include "spawner/cli/mirror/mirror_store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "common/base/fs.h"
#include "common/crypto/crypto.h"

#define LOCK ".dayfly.lock"
#define STAGE ".stage"

/* ---- the directory ---- */

static int lock_store(struct df_mirror_store *s, struct df_err *err)
{
    DF_FREE char *path = df_fs_join(s->directory, LOCK);
    if (!path)
        return df_fail_oom(err);
    s->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (s->lock_fd < 0)
        return df_fail_errno(err, errno, "open %s", path);
    if (flock(s->lock_fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    return errno == EWOULDBLOCK
               ? df_fail(err, DF_ERR_CONFLICT,
                         "another dayfly mirror writes to %s: wait until it has ended",
                         s->directory)
               : df_fail_errno(err, errno, "lock %s", path);
}

int df_mirror_store_open(const char *directory, struct df_mirror_store *ret, struct df_err *err)
{
    DF_MIRROR_STORE struct df_mirror_store s = DF_MIRROR_STORE_NONE;
    char real[PATH_MAX];
    if (df_fs_mkdirs(directory, 0755, err) < 0)
        return -1;
    if (!realpath(directory, real))
        return df_fail_errno(err, errno, "%s", directory);
    s.directory = strdup(real);
    if (df_check_alloc(s.directory, err) < 0 || lock_store(&s, err) < 0)
        return -1;
    s.stage = df_fs_join(real, STAGE);
    if (df_fs_remove_tree(s.stage, err) < 0 || df_fs_mkdirs(s.stage, 0700, err) < 0)
        return -1;
    *ret = s;
    s = DF_MIRROR_STORE_NONE;
    return 0;
}

void df_mirror_store_close(struct df_mirror_store *s)
{
    if (s->stage)
        (void)!df_fs_remove_tree(s->stage, NULL);
    if (s->lock_fd >= 0)
        (void)close(s->lock_fd);
    free(s->stage);
    free(s->directory);
    *s = DF_MIRROR_STORE_NONE;
}

int df_mirror_store_put(const struct df_mirror_store *s, const char *archive,
                        const struct df_mirror_package *p, struct df_err *err)
{
    DF_FREE char *place = df_provider_archive_path(s->directory, &p->archive);
    DF_FREE char *parent = df_strf("%s/%s", s->directory, p->archive.source);
    DF_CLOSE int fd = open(archive, O_RDONLY | O_CLOEXEC);
    if (df_check_alloc(place, err) < 0 || df_fs_mkdirs(parent, 0755, err) < 0)
        return -1;
    /* Others may serve it: a tool's umask does not count. */
    if (fd < 0 || fchmod(fd, 0644) < 0 || fsync(fd) < 0 || rename(archive, place) < 0)
        return df_fail_errno(err, errno, "rename to %s", place);
    return df_fs_sync_dir(parent, err);
}

int df_mirror_store_index(const struct df_mirror_store *s, const struct df_mirror_package *p,
                          struct df_err *err)
{
    char hex[DF_SHA256_HEX];
    DF_FREE char *archive = df_provider_archive_path(s->directory, &p->archive);
    if (!archive)
        return df_fail_oom(err);
    DF_CLOSE int fd = open(archive, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return df_fail_errno(err, errno, "open %s", archive);
    if (df_sha256_file_hex(fd, hex, NULL, err) < 0)
        return -1;
    return df_provider_index_add(s->directory, &p->archive, hex, err);
}
