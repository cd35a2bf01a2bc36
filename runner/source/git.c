/* A git source: one commit (git_checkout.c), then its submodules (submodule.c). */
#include "runner/source/git.h"

#include <errno.h>
#include <fcntl.h>

#include "common/base/fs.h"

static void note_start(const struct df_fetch *f)
{
    const struct df_source_spec *s = f->spec;
    if (f->commit)
        df_fetch_note(f, "fetching %s, commit %s", s->url, f->commit);
    else
        df_fetch_note(f, "fetching %s, %s %s", s->url,
                      s->tag   ? "tag"
                      : s->ref ? "branch or tag"
                               : "branch",
                      s->tag   ? s->tag
                      : s->ref ? s->ref
                               : s->branch);
}

/* "refs/tags/v1" or "refs/heads/main"; *ret is NULL if the source names only a commit. */
static int named_ref(const struct df_source_spec *s, char **ret, struct df_err *err)
{
    *ret = NULL;
    if (!s->tag && !s->branch && !s->ref)
        return 0;
    return df_check_alloc(*ret = s->tag ? df_strf("refs/tags/%s", s->tag)
                                        : df_strf("refs/heads/%s", s->ref ? s->ref : s->branch),
                          err);
}

/* Of a name that may be a branch or a tag, the branch. */
static int checkout_named(const struct df_git *g, struct df_git_repo *r, char ret_commit[65],
                          struct df_strs *links, struct df_err *err)
{
    const char *name = g->fetch->spec->ref;
    struct df_err why = {0};
    if (df_git_checkout(g, r, ret_commit, links, &why) == 0)
        return 0;
    if (!name || r->commit || why.cls != DF_ERR_NOT_FOUND)
        return df_err_pass(err, &why);
    DF_FREE char *tag = df_strf("refs/tags/%s", name);
    if (!tag)
        return df_fail_oom(err);
    r->ref = tag;
    int failed = df_git_checkout(g, r, ret_commit, links, err);
    r->ref = NULL;
    return failed;
}

static int check_repository(const struct df_fetch *f, struct df_err *err)
{
    DF_CLOSE int fd = f->spec->path ? open(f->spec->path, O_PATH | O_CLOEXEC) : -1;
    if (!f->spec->path)
        return 0;
    return fd < 0 ? df_fail_errno(err, errno, "open %s", f->spec->path)
                  : df_fetch_check_shown(f, fd, err);
}

int df_fetch_git(const struct df_fetch *f, char ret_commit[65], struct df_err *err)
{
    DF_GIT struct df_git g = {0};
    DF_FREE char *ref = NULL;
    DF_STRS struct df_strs links = {0};
    char commit[65];
    if (check_repository(f, err) < 0 || named_ref(f->spec, &ref, err) < 0 ||
        df_git_open(f, &g, err) < 0)
        return -1;
    note_start(f);
    /* git reads a path as it is, and decodes a URL. */
    struct df_git_repo r = {.directory = f->checkout,
                            .remote = f->spec->path ? f->spec->path : f->spec->url,
                            .ref = ref,
                            .commit = f->commit};
    if (f->spec->commit && !f->spec->any_commit && df_git_check_contained(&g, &r, err) < 0)
        return -1;
    if (checkout_named(&g, &r, commit, &links, err) < 0 ||
        (f->spec->submodules && df_git_submodules(&g, &r, &links, err) < 0))
        return -1;
    (void)snprintf(ret_commit, sizeof commit, "%s", commit);
    return 0;
}
