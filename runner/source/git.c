/* A git source: one commit (git_checkout.c), then its submodules (submodule.c). */
#include "runner/source/git.h"

static void note_start(const struct df_fetch *f)
{
    const struct df_source_spec *s = f->spec;
    if (f->commit)
        df_fetch_note(f, "fetching %s, commit %s", s->url, f->commit);
    else
        df_fetch_note(f, "fetching %s, %s %s", s->url, s->tag ? "tag" : "branch",
                      s->tag ? s->tag : s->branch);
}

/* "refs/tags/v1" or "refs/heads/main"; *ret is NULL if the source names only a commit. */
static int named_ref(const struct df_source_spec *s, char **ret, struct df_err *err)
{
    *ret = NULL;
    if (!s->tag && !s->branch)
        return 0;
    *ret = s->tag ? df_strf("refs/tags/%s", s->tag) : df_strf("refs/heads/%s", s->branch);
    return *ret ? 0 : df_fail_oom(err);
}

int df_fetch_git(const struct df_fetch *f, char ret_commit[65], struct df_err *err)
{
    DF_GIT struct df_git g = {0};
    DF_FREE char *ref = NULL;
    DF_STRS struct df_strs links = {0};
    char commit[65];
    if (named_ref(f->spec, &ref, err) < 0 || df_git_open(f, &g, err) < 0)
        return -1;
    note_start(f);
    /* git reads a path as it is, and decodes a URL. */
    const struct df_git_repo r = {.directory = f->checkout,
                                  .remote = f->spec->path ? f->spec->path : f->spec->url,
                                  .ref = ref,
                                  .commit = f->commit};
    if (df_git_checkout(&g, &r, commit, &links, err) < 0 ||
        (f->spec->submodules && df_git_submodules(&g, &r, &links, err) < 0))
        return -1;
    (void)snprintf(ret_commit, sizeof commit, "%s", commit);
    return 0;
}
