#include "runner/source/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

#include "common/archive/tree.h"
#include "common/base/fs.h"
#include "runner/source/fetch.h"

void df_source_result_free(struct df_source_result *r)
{
    free(r->module_dir);
    *r = (struct df_source_result){0};
}

void df_fetch_note(const struct df_fetch *f, const char *fmt, ...)
{
    if (f->log_fd < 0)
        return;
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    (void)dprintf(f->log_fd, "dayfly: %s\n", line);
}

int df_fetch_private_file(const struct df_fetch *f, const char *name, const char *text, char **ret,
                          struct df_err *err)
{
    DF_FREE char *path = df_fs_join(f->private_dir, name);
    if (!path)
        return df_fail_oom(err);
    /* Not durable: it lives as long as the fetch. */
    DF_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return df_fail_errno(err, errno, "create %s", path);
    if (df_fs_write_all(fd, text, strlen(text), err) < 0)
        return df_err_wrap(err, "%s", path);
    *ret = DF_TAKE(path);
    return 0;
}

static int fetch(const struct df_fetch *f, char ret_commit[65], struct df_err *err)
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

struct settling {
    int root;
    const char *checkout;
    bool own_git; /* .git at the top was made by our git */
};

static int remove_entry(const struct settling *s, const struct df_tree_entry *e, struct df_err *err)
{
    DF_FREE char *path = df_fs_join(s->checkout, e->path);
    return path ? df_fs_remove_tree(path, err) : df_fail_oom(err);
}

/* Whatever the digest leaves out must not come from outside: a planted .terraform could bring
 * modules and providers that nobody looked at. */
static enum df_tree_visit settle_visitor(void *arg, const struct df_tree_entry *e,
                                         struct df_err *err)
{
    const struct settling *s = arg;
    if (df_streq(e->name, ".git") && s->own_git)
        return DF_TREE_SKIP;
    if (df_streq(e->name, ".git") || df_streq(e->name, ".terraform"))
        return remove_entry(s, e, err) < 0 ? DF_TREE_FAIL : DF_TREE_SKIP;
    if (S_ISLNK(e->st->st_mode))
        return df_tree_link_stays(s->root, e->path, err) < 0 ? DF_TREE_FAIL : DF_TREE_GO_ON;
    return DF_TREE_GO_ON;
}

static int settle(const struct df_fetch *f, struct df_err *err)
{
    DF_CLOSE int root = open(f->checkout, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return df_fail_errno(err, errno, "open directory %s", f->checkout);
    struct settling s = {root, f->checkout, f->spec->kind == DF_SOURCE_GIT};
    return df_tree_walk(f->checkout, settle_visitor, &s, err);
}

/* What lies at the top, for a message: "a, b, c". */
struct listing {
    char text[256];
};

static enum df_tree_visit list_visitor(void *arg, const struct df_tree_entry *e, struct df_err *err)
{
    (void)err;
    struct listing *l = arg;
    size_t used = strlen(l->text);
    if (!df_streq(e->name, ".git"))
        (void)snprintf(l->text + used, sizeof(l->text) - used, "%s%s%s", used ? ", " : "", e->name,
                       S_ISDIR(e->st->st_mode) ? "/" : "");
    return DF_TREE_SKIP;
}

static int find_module(const struct df_fetch *f, char **ret, struct df_err *err)
{
    DF_FREE char *dir =
        f->spec->folder ? df_fs_join(f->checkout, f->spec->folder) : strdup(f->checkout);
    if (!dir)
        return df_fail_oom(err);
    /* Links inside were found to stay inside: following them is fine. */
    DF_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        struct listing l = {""};
        (void)!df_tree_walk(f->checkout, list_visitor, &l, NULL);
        return df_fail_reason(err, DF_ERR_NOT_FOUND, "SourceFailed",
                              "source.folder \"%s\" is no folder of %s, which has: %s",
                              f->spec->folder ? f->spec->folder : "", f->spec->url, l.text);
    }
    *ret = DF_TAKE(dir);
    return 0;
}

static int fetch_and_look(const struct df_fetch *f, struct df_source_result *ret,
                          struct df_err *err)
{
    struct df_source_result r = {0};
    if (fetch(f, r.commit, err) < 0 || settle(f, err) < 0 || find_module(f, &r.module_dir, err) < 0)
        return -1;
    if (df_tree_digest(f->checkout, r.tree_digest, err) < 0) {
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
        return df_source_refuse(err, "the planned commit \"%s\" is no commit", commit);
    DF_SOURCE_SPEC struct df_source_spec spec = {0};
    if (df_source_spec_read(q->source, &spec, err) < 0)
        return give_reason(err);
    const struct df_fetch f = {.spec = &spec,
                               .commit = commit ? commit : spec.commit,
                               .checkout = q->checkout,
                               .private_dir = q->private_dir,
                               .log_fd = q->log_fd,
                               .stop = q->stop};
    int result = fetch_and_look(&f, ret, err);
    if (result < 0) {
        (void)give_reason(err);
        (void)!df_tree_empty(q->checkout, NULL);
    }
    /* Keys and passwords do not lie around while tofu runs. */
    struct df_err late;
    if (df_tree_empty(q->private_dir, &late) < 0 && result == 0) {
        df_source_result_free(ret);
        if (err)
            *err = late;
        return df_err_wrap(err, "remove the credentials of the source");
    }
    return result;
}
