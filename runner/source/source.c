/*
 * Fetches a source by its kind, cleans the checkout of what the digest leaves out, finds the module
 * in it and computes the digest. Read df_source_fetch() at the end first.
 */
#include "runner/source/source.h"

#include <errno.h>
#include <fcntl.h>

#include "common/archive/tree.h"
#include "common/base/fs.h"
#include "common/hcl/calls.h"
#include "runner/source/fetch.h"
#include "runner/source/ignore.h"

void df_source_result_free(struct df_source_result *r)
{
    free(r->module_dir);
    free(r->origin_dir);
    df_listing_free(&r->listing);
    *r = (struct df_source_result){0};
}

static int fetch_by_kind(const struct df_fetch *f, char ret_commit[65], struct df_err *err)
{
    switch (f->spec->kind) {
    case DF_SOURCE_GIT:
        return df_fetch_git(f, ret_commit, err);
    case DF_SOURCE_ARCHIVE:
        return df_fetch_archive(f, err);
    case DF_SOURCE_DIRECTORY:
    default:
        return df_fetch_directory(f, err);
    }
}

struct cleaning {
    int root;
    const char *checkout;
    bool own_git;                           /* .git at the top was created by this fetch */
    const struct df_source_spec *directory; /* the source, if it may have a .terraformignore */
};

static int remove_entry(const struct cleaning *s, const struct df_tree_entry *e, struct df_err *err)
{
    DF_FREE char *path = df_fs_join(s->checkout, e->path);
    return df_fs_remove_tree(path, err);
}

/* The smallest directory that has the source and what a relative link in it names, for the caller
 * to free; NULL: there is none but the root, or it does not help. No file outside is looked at. */
static char *directory_with(const struct cleaning *s, const char *link)
{
    char target[4096];
    const char *own = s->directory->path, *slash = strrchr(link, '/');
    ssize_t n = readlinkat(s->root, link, target, sizeof(target) - 1);
    target[n < 0 ? 0 : n] = '\0';
    DF_FREE char *relative = df_strf("%.*s%s", slash ? (int)(slash - link) + 1 : 0, link, target);
    DF_FREE char *full = relative && own ? df_hcl_path(own, relative) : NULL;
    DF_FREE char *top = full && *target != '/' ? strdup(own) : NULL;
    while (top && *top && !df_fs_is_within(full, top))
        *strrchr(top, '/') = '\0';
    return df_str_empty(top) || df_streq(top, own) ? NULL : DF_TAKE(top);
}

static int fail_link(const struct cleaning *s, const char *link, const char *why,
                     struct df_err *err)
{
    DF_FREE char *top = directory_with(s, link);
    const char *inner = s->directory->folder;
    if (!top)
        return df_source_refuse(err, "%s: remove it, or name it in " DF_IGNORE_FILE, why);
    return df_source_refuse(err,
                            "%s: remove it, or name it in " DF_IGNORE_FILE
                            ", or take the directory that has both: `dayfly run %s --folder "
                            "%s%s%s --name EXECUTOR`",
                            why, top, s->directory->path + strlen(top) + 1, inner ? "/" : "",
                            inner ? inner : "");
}

static int check_link(const struct cleaning *s, const char *path, struct df_err *err)
{
    struct df_err why = {0};
    if (df_tree_link_stays(s->root, path, &why) == 0)
        return 0;
    if (!s->directory || !df_streq(why.reason, "SourceRefused"))
        return df_err_pass(err, &why);
    return fail_link(s, path, why.message, err);
}

/* Removes what the digest leaves out: a .terraform in the source could contain modules and
 * providers that nobody reviewed. Refuses symbolic links that lead out of the checkout. */
static enum df_tree_visit clean_visitor(void *arg, const struct df_tree_entry *e,
                                        struct df_err *err)
{
    const struct cleaning *s = arg;
    if (df_streq(e->name, ".git") && s->own_git)
        return DF_TREE_SKIP;
    if (df_streq(e->name, ".git") || df_streq(e->name, ".terraform"))
        return remove_entry(s, e, err) < 0 ? DF_TREE_FAIL : DF_TREE_SKIP;
    if (S_ISLNK(e->st->st_mode))
        return check_link(s, e->path, err) < 0 ? DF_TREE_FAIL : DF_TREE_GO_ON;
    return DF_TREE_GO_ON;
}

static int clean_checkout(const struct df_fetch *f, struct df_err *err)
{
    DF_CLOSE int root = open(f->checkout, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return df_fail_errno(err, errno, "open directory %s", f->checkout);
    struct cleaning s = {root, f->checkout, f->spec->kind == DF_SOURCE_GIT,
                         f->spec->kind == DF_SOURCE_DIRECTORY ? f->spec : NULL};
    return df_tree_walk(f->checkout, clean_visitor, &s, err);
}

static int find_module(const struct df_fetch *f, char **ret, struct df_err *err)
{
    DF_FREE char *dir =
        f->spec->folder ? df_fs_join(f->checkout, f->spec->folder) : strdup(f->checkout);
    if (!dir)
        return df_fail_oom(err);
    /* Following links is safe: clean_checkout() verified that they stay inside. */
    DF_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        char has[DF_TREE_LISTING];
        return df_fail_reason(err, DF_ERR_NOT_FOUND, "SourceFailed",
                              "source.folder \"%s\" is not a folder of %s, which has: %s",
                              f->spec->folder ? f->spec->folder : "", f->spec->url,
                              df_tree_list(f->checkout, has));
    }
    *ret = realpath(dir, NULL);
    return *ret ? 0 : df_fail_errno(err, errno, "%s", dir);
}

static int name_origin(const struct df_fetch *f, char **ret, struct df_err *err)
{
    const struct df_source_spec *spec = f->spec;
    if (spec->kind != DF_SOURCE_DIRECTORY)
        return 0;
    return df_check_alloc(
        *ret = spec->folder ? df_fs_join(spec->path, spec->folder) : strdup(spec->path), err);
}

static int digest_checkout(const struct df_fetch *f, struct df_source_result *r, struct df_err *err)
{
    return f->spec->kind == DF_SOURCE_GIT
               ? df_tree_digest(f->checkout, r->tree_digest, err)
               : df_tree_digest_listed(f->checkout, &r->listing, r->tree_digest, err);
}

static int fetch_and_inspect(const struct df_fetch *f, struct df_source_result *ret,
                             struct df_err *err)
{
    struct df_source_result r = {0};
    if (fetch_by_kind(f, r.commit, err) < 0 || clean_checkout(f, err) < 0 ||
        find_module(f, &r.module_dir, err) < 0)
        return -1;
    if (digest_checkout(f, &r, err) < 0 || name_origin(f, &r.origin_dir, err) < 0) {
        df_source_result_free(&r);
        return -1;
    }
    *ret = r;
    return 0;
}

static int give_reason(struct df_err *err)
{
    bool full = err && (err->os_errno == ENOSPC || err->os_errno == EDQUOT);
    return df_err_reason(err, full ? "DiskFull" : "SourceFailed");
}

int df_source_fetch(const struct df_source_request *q, struct df_source_result *ret,
                    struct df_err *err)
{
    const char *commit = df_str_empty(q->expected_commit) ? NULL : q->expected_commit;
    if (commit && df_source_commit_fault(commit))
        return df_source_refuse(err, "the planned commit \"%s\" is not a commit id", commit);
    DF_SOURCE_SPEC struct df_source_spec spec = {0};
    if (df_source_spec_read(q->source, &spec, err) < 0)
        return give_reason(err);
    spec.follows_links = spec.follows_links && !q->is_strict;
    const struct df_fetch f = {.spec = &spec,
                               .commit = commit ? commit : spec.commit,
                               .checkout = q->checkout,
                               .private_dir = q->private_dir,
                               .log_fd = q->log_fd,
                               .stop = q->stop,
                               .hidden = q->hidden,
                               .git_wall = q->git_wall,
                               .advice = q->advice};
    int result = fetch_and_inspect(&f, ret, err);
    if (result < 0) {
        (void)give_reason(err);
        (void)!df_tree_empty(q->checkout, NULL);
    }
    /* Remove keys and passwords before tofu runs. */
    struct df_err late;
    if (df_tree_empty(q->private_dir, &late) < 0 && result == 0) {
        df_source_result_free(ret);
        (void)df_err_pass(err, &late);
        return df_err_wrap(err, "remove the credentials of the source");
    }
    return result;
}
