#include "spawner/cli/mirror_store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "common/base/fs.h"
#include "common/crypto/crypto.h"
#include "common/json/json.h"

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
    if (!s.directory)
        return df_fail_oom(err);
    if (lock_store(&s, err) < 0)
        return -1;
    s.stage = df_fs_join(real, STAGE);
    if (!s.stage)
        return df_fail_oom(err);
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

static const char *type_of(const struct df_mirror_package *p)
{
    return strrchr(p->source, '/') + 1;
}

char *df_mirror_archive(const char *root, const struct df_mirror_package *p)
{
    return df_strf("%s/%s/terraform-provider-%s_%s_%s.zip", root, p->source, type_of(p), p->version,
                   p->platform);
}

/* ---- a package in its place ---- */

int df_mirror_store_put(const struct df_mirror_store *s, const char *archive,
                        const struct df_mirror_package *p, struct df_err *err)
{
    DF_FREE char *place = df_mirror_archive(s->directory, p);
    DF_FREE char *parent = df_strf("%s/%s", s->directory, p->source);
    DF_CLOSE int fd = open(archive, O_RDONLY | O_CLOEXEC);
    if (!place || !parent)
        return df_fail_oom(err);
    if (df_fs_mkdirs(parent, 0755, err) < 0)
        return -1;
    /* Others may serve it: a tool's umask does not count. */
    if (fd < 0 || fchmod(fd, 0644) < 0 || fsync(fd) < 0 || rename(archive, place) < 0)
        return df_fail_errno(err, errno, "rename to %s", place);
    return df_fs_sync_dir(parent, err);
}

/* ---- indexes ---- */

/* *ret: the index at path; an object without members if there is none, or none that can be read. */
static int read_index(const char *path, cJSON **ret, struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_MIRROR_INDEX);
    DF_JSON cJSON *tree = NULL;
    struct df_err why = {0};
    if (df_fs_read(path, &text, &why) < 0 && why.cls != DF_ERR_NOT_FOUND)
        return df_err_pass(err, &why);
    if (text.len == 0 || df_json_parse(df_buf_str(&text), text.len, &tree, NULL) < 0 ||
        !cJSON_IsObject(tree)) {
        cJSON_Delete(tree);
        tree = cJSON_CreateObject();
    }
    *ret = DF_TAKE(tree);
    return *ret ? 0 : df_fail_oom(err);
}

/* Sets <member>.<name> of the index at path to value, which it takes. Does not write what is the
 * same. */
static int set_index(const char *path, const char *member, const char *name, cJSON *value,
                     struct df_err *err)
{
    DF_JSON cJSON *taken = value, *index = NULL;
    if (!value)
        return df_fail_oom(err);
    if (read_index(path, &index, err) < 0)
        return -1;
    cJSON *members = df_json_object_at(index, member);
    if (!members)
        return df_fail_oom(err);
    if (cJSON_Compare(cJSON_GetObjectItemCaseSensitive(members, name), value, true))
        return 0;
    if (df_json_set(members, name, DF_TAKE(taken), err) < 0)
        return -1;
    DF_FREE char *text = df_json_print(index);
    return text ? df_fs_replace(path, text, strlen(text), 0644, err) : df_fail_oom(err);
}

/* {"url": "<file>", "hashes": ["zh:..."]} */
static cJSON *describe(const char *archive, const char *hex)
{
    DF_JSON cJSON *entry = cJSON_CreateObject();
    cJSON *hashes = entry ? df_json_array_at(entry, "hashes") : NULL;
    DF_FREE char *zh = df_strf("zh:%s", hex);
    if (!hashes || !zh || df_json_append_str(hashes, zh, NULL) < 0 ||
        df_json_add_str(entry, "url", strrchr(archive, '/') + 1, NULL) < 0)
        return NULL;
    return DF_TAKE(entry);
}

int df_mirror_store_index(const struct df_mirror_store *s, const struct df_mirror_package *p,
                          struct df_err *err)
{
    char hex[DF_SHA256_HEX];
    DF_FREE char *archive = df_mirror_archive(s->directory, p);
    DF_FREE char *versions = df_strf("%s/%s/index.json", s->directory, p->source);
    DF_FREE char *archives = df_strf("%s/%s/%s.json", s->directory, p->source, p->version);
    if (!archive || !versions || !archives)
        return df_fail_oom(err);
    DF_CLOSE int fd = open(archive, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return df_fail_errno(err, errno, "open %s", archive);
    if (df_sha256_file_hex(fd, hex, NULL, err) < 0 ||
        set_index(archives, "archives", p->platform, describe(archive, hex), err) < 0)
        return -1;
    return set_index(versions, "versions", p->version, cJSON_CreateObject(), err);
}
