#include "runner/source/kept.h"

#include "common/archive/tree.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/providers/lockfile.h"

void df_kept_source_free(struct df_kept_source *k)
{
    df_strs_free(&k->paths);
    free(k->lock);
    *k = (struct df_kept_source){0};
}

/* ---- note ---- */

static enum df_tree_visit note_visitor(void *arg, const struct df_tree_entry *e, struct df_err *err)
{
    (void)df_strs_add(arg, e->path);
    return df_strs_check(arg, err) < 0 ? DF_TREE_FAIL : DF_TREE_GO_ON;
}

/* A lock file that cannot be kept so is not restored: the digest tells. */
static void note_lock(const struct df_source_result *source, struct df_kept_source *k)
{
    DF_FREE char *path = df_fs_join(source->module_dir, DF_LOCKFILE);
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    if (path && df_fs_read_plain(path, &text, NULL) == 0)
        k->lock = strdup(df_buf_str(&text));
}

int df_kept_source_note(const char *checkout, const struct df_source_result *source,
                        struct df_kept_source *ret, struct df_err *err)
{
    struct df_kept_source k = {0};
    if (df_tree_walk(checkout, note_visitor, &k.paths, err) < 0 ||
        df_tree_digest_all(checkout, k.digest, err) < 0) {
        df_kept_source_free(&k);
        return -1;
    }
    note_lock(source, &k);
    *ret = k;
    return 0;
}

/* ---- restore ---- */

struct restoring {
    const char *checkout;
    const struct df_strs *paths;
    size_t at;
};

static int remove_entry(const struct restoring *r, const struct df_tree_entry *e,
                        struct df_err *err)
{
    DF_FREE char *path = df_fs_join(r->checkout, e->path);
    return df_fs_remove_tree(path, err);
}

/* The walk has the order of the list, so an entry that is not the next of it was added, or follows
 * one that is missing. */
static bool is_next(struct restoring *r, const struct df_tree_entry *e)
{
    bool is_known = r->at < r->paths->len && df_streq(r->paths->items[r->at], e->path);
    r->at += is_known;
    return is_known;
}

static enum df_tree_visit restore_visitor(void *arg, const struct df_tree_entry *e,
                                          struct df_err *err)
{
    struct restoring *r = arg;
    if (is_next(r, e))
        return DF_TREE_GO_ON;
    return remove_entry(r, e, err) < 0 ? DF_TREE_FAIL : DF_TREE_SKIP;
}

static int restore_lock(const struct df_source_result *source, const struct df_kept_source *k,
                        struct df_err *err)
{
    DF_FREE char *path = df_fs_join(source->module_dir, DF_LOCKFILE);
    return k->lock ? df_fs_write(path, k->lock, strlen(k->lock), 0644, err) : 0;
}

int df_kept_source_restore(const char *checkout, const struct df_source_result *source,
                           const struct df_kept_source *k, bool *ret_same, struct df_err *err)
{
    char digest[65];
    struct restoring r = {.checkout = checkout, .paths = &k->paths};
    if (restore_lock(source, k, err) < 0 || df_tree_walk(checkout, restore_visitor, &r, err) < 0 ||
        df_tree_digest_all(checkout, digest, err) < 0)
        return -1;
    *ret_same = df_streq(digest, k->digest);
    return 0;
}
