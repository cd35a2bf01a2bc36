/*
 * hiding.c - first df_hiding_find(): the real paths of all secrets, their folders if these hold
 * files alone and nothing that the wall shows, and the other names that mounts give them. Then they
 * are laid over what a wall shows. Directories above them that could be renamed are pinned
 * (pin_way()).
 */
#include "runner/tofu/hiding.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/base/fs.h"
#include "common/process/mounts.h"

/* A folder with more is no folder of keys and certificates, but one of programs. */
enum { FOLDER_FILES_MAX = 100 };

/* ---- folders ---- */

static bool is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Names that begin with ".." are the kubelet's: directories of a Secret, and links to them. */
static bool holds_only_files(const char *path)
{
    struct stat st;
    DIR *dir = opendir(path);
    bool only = dir != NULL;
    int n = 0;
    for (const struct dirent *e; only && (e = readdir(dir));) {
        if (strcmp(e->d_name, ".") == 0 || df_starts_with(e->d_name, ".."))
            continue;
        bool is_dir = fstatat(dirfd(dir), e->d_name, &st, 0) == 0 && S_ISDIR(st.st_mode);
        only = !is_dir && ++n <= FOLDER_FILES_MAX;
    }
    if (dir)
        (void)closedir(dir);
    return only;
}

static bool has_below(const char *folder, const char *path)
{
    DF_FREE char *real = path ? realpath(path, NULL) : NULL;
    return real && df_fs_is_within(real, folder);
}

/* Directories that every program uses count as shown. */
static bool has_shown(const char *folder, const struct df_wall *own)
{
    const char *const common[] = {getenv("HOME"), getenv("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(common); i++)
        if (has_below(folder, common[i]))
            return true;
    for (size_t i = 0; i < own->len; i++)
        if (has_below(folder, own->entries[i].path))
            return true;
    return false;
}

/* ---- what is hidden ---- */

static bool is_found(const struct df_strs *found, const char *path)
{
    for (size_t i = 0; i < found->len; i++)
        if (df_fs_is_within(path, found->items[i]))
            return true;
    return false;
}

static void add_found(struct df_strs *ret, const char *path)
{
    if (!is_found(ret, path))
        (void)df_strs_add(ret, path);
}

/* The folder that has this name, which may be a link to another one. */
static int add_folder(const char *file, const struct df_wall *own, struct df_strs *ret,
                      struct df_err *err)
{
    DF_FREE char *parent = strndup(file, (size_t)(strrchr(file, '/') - file));
    if (!parent)
        return df_fail_oom(err);
    DF_FREE char *folder = *parent ? realpath(parent, NULL) : NULL;
    if (folder && holds_only_files(folder) && !has_shown(folder, own))
        add_found(ret, folder);
    return 0;
}

/* A file may be a link: a renewal gives it another target, or puts a new file in its place. */
static int add_secret(const char *path, const struct df_wall *own, struct df_strs *ret,
                      struct df_err *err)
{
    DF_FREE char *real = realpath(path, NULL);
    if (own && (!real || !is_directory(real))) {
        if (add_folder(path, own, ret, err) < 0 || (real && add_folder(real, own, ret, err) < 0))
            return -1;
    }
    if (real)
        add_found(ret, real);
    return 0;
}

static int add_other_names(struct df_strs *found, struct df_err *err)
{
    DF_MOUNTS struct df_mounts mounts = {0};
    DF_STRS struct df_strs others = {0};
    if (df_mounts_read(&mounts, err) < 0)
        return -1;
    for (size_t i = 0; i < found->len; i++)
        df_mounts_other_names(&mounts, found->items[i], &others);
    for (size_t i = 0; i < others.len; i++)
        add_found(found, others.items[i]);
    return df_strs_check(&others, err);
}

int df_hiding_find(const struct df_strs *secrets, const struct df_wall *own, struct df_strs *ret,
                   struct df_err *err)
{
    for (size_t i = 0; i < secrets->len; i++)
        if (add_secret(secrets->items[i], own, ret, err) < 0)
            return -1;
    return add_other_names(ret, err) < 0 ? -1 : df_strs_check(ret, err);
}

/* ---- laying ---- */

/* place: where the wall shows the directory whose real path is given; both without the "/" at their
 * end. */
static int hide_at(struct df_wall *w, const char *place, const char *real,
                   const struct df_strs *found, struct df_err *err)
{
    size_t n = strlen(real);
    for (size_t i = 0; i < found->len; i++) {
        const char *path = found->items[i];
        if (strncmp(path, real, n) != 0 || path[n] != '/')
            continue;
        DF_FREE char *there = df_strf("%s%s", place, path + n);
        if (df_check_alloc(there, err) < 0 || df_wall_add(w, DF_WALL_HIDDEN, there, err) < 0)
            return -1;
    }
    return 0;
}

static bool is_in(const struct df_wall *w, const char *path)
{
    for (size_t i = 0; i < w->len; i++)
        if (df_streq(w->entries[i].path, path))
            return true;
    return false;
}

/* Lays each directory above path that this user may rename over itself, the outermost first: what
 * is mounted cannot be renamed. */
static int pin_way(struct df_wall *w, const char *path, struct df_err *err)
{
    DF_FREE char *part = strdup(path);
    bool may_rename = false;
    if (!part)
        return df_fail_oom(err);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (may_rename && !is_in(w, part) && df_wall_add(w, DF_WALL_WRITABLE, part, err) < 0)
            return -1;
        may_rename = access(part, W_OK) == 0;
        *slash = '/';
    }
    return 0;
}

int df_hiding_everywhere(struct df_wall *w, const struct df_strs *found, struct df_err *err)
{
    /* Root has other ways, and may have reasons to move what is in /var. */
    for (size_t i = 0; geteuid() != 0 && i < found->len; i++)
        if (pin_way(w, found->items[i], err) < 0)
            return -1;
    return hide_at(w, "", "", found, err);
}

int df_hiding_show(struct df_wall *w, enum df_wall_access access, const char *path,
                   const struct df_strs *found, struct df_err *err)
{
    DF_FREE char *real = path ? realpath(path, NULL) : NULL;
    if (df_wall_add(w, access, path, err) < 0)
        return -1;
    return real ? hide_at(w, path, real, found, err) : 0;
}
