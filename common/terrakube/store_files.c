/* LocalTerraformStateImpl: files below HOME, which the API reads there, too. */
#include <errno.h>

#include "common/base/fs.h"
#include "common/terrakube/store.h"

struct files {
    struct df_terrakube_store store;
    char *directory; /* "<HOME>/.terraform-spring-boot/local" */
};

static struct files *files_of(struct df_terrakube_store *s)
{
    return (struct files *)s; /* its first member */
}

/* The caller frees; NULL: no memory. */
static char *path_of(const struct files *f, const struct df_terrakube_item *i)
{
    static const char *const names[DF_TERRAKUBE_AREAS] = {"state", "output", "binary"};
    DF_FREE char *key = df_terrakube_item_key(i);
    return key ? df_strf("%s/%s/%s", f->directory, names[df_terrakube_item_area(i)], key) : NULL;
}

static int make_parents(const char *path, struct df_err *err)
{
    DF_FREE char *parent = strndup(path, (size_t)(strrchr(path, '/') - path));
    return df_fs_mkdirs(parent, 0755, err);
}

/* The API may be another user of this machine: it has to read what is here. */
static int put(struct df_terrakube_store *s, const struct df_terrakube_item *i, const void *bytes,
               size_t n, struct df_err *err)
{
    DF_FREE char *path = path_of(files_of(s), i);
    return df_check_alloc(path, err) < 0 || make_parents(path, err) < 0
               ? -1
               : df_fs_replace(path, bytes, n, 0644, err);
}

static int get(struct df_terrakube_store *s, const struct df_terrakube_item *i, int fd,
               struct df_err *err)
{
    DF_FREE char *path = path_of(files_of(s), i);
    DF_TERRAKUBE_BYTES b = {0};
    if (df_check_alloc(path, err) < 0 || df_terrakube_bytes_open(path, &b, err) < 0)
        return -1;
    if (ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0)
        return df_fail_errno(err, errno, "empty the file of an object");
    return df_fs_write_all(fd, b.at, b.n, err);
}

static char *place(struct df_terrakube_store *s, const struct df_terrakube_item *i)
{
    return path_of(files_of(s), i);
}

static void close_files(struct df_terrakube_store *s)
{
    free(files_of(s)->directory);
    free(s);
}

static const struct df_terrakube_store_ops ops = {close_files, put, get, place,
                                                  "/.terraform-spring-boot/local/state/"};

int df_terrakube_store_files(const struct df_terrakube_settings *s, struct df_terrakube_store **ret,
                             struct df_err *err)
{
    if (!s->home)
        return df_fail_reason(
            err, DF_ERR_USER, "SettingMissing",
            "HOME is not set: TerraformStateType=LocalTerraformStateImpl keeps its "
            "files below it");
    struct files *f = calloc(1, sizeof(*f));
    char *directory = df_strf("%s/.terraform-spring-boot/local", s->home);
    if (!f || !directory) {
        free(f);
        free(directory);
        return df_fail_oom(err);
    }
    *f = (struct files){{&ops}, directory};
    *ret = &f->store;
    return 0;
}
