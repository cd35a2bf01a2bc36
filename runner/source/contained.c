/*
 * Is a commit in the history of a branch or tag? A server gives more: commits of pull requests,
 * which anybody may open, and on many forges those of every fork, because forks share their
 * objects.
 *
 * First the tips are compared, which costs one request. Otherwise the history is fetched, commits
 * alone and no deeper than necessary. Read df_git_check_contained() at the end first.
 */
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "runner/source/git.h"

/* Only who may push to the repository writes below these. HEAD is one of a working copy's
 * commits. */
#define HEADS "refs/heads/"
#define TAGS "refs/tags/"
#define REMOTES "refs/remotes/" /* the branches that a working copy has fetched */

struct tips {
    bool has_it, has_head;
};

/* One line of `git ls-remote`: "<id>\t<name>". An annotated tag has a second one, of its commit. */
static void read_tip(const char *line, const char *commit, struct tips *t)
{
    const char *name = line + strcspn(line, "\t");
    size_t id_len = (size_t)(name - line);
    name += *name == '\t';
    bool is_head = df_streq(name, "HEAD");
    t->has_head = t->has_head || is_head;
    if (is_head || df_starts_with(name, HEADS) || df_starts_with(name, TAGS) ||
        df_starts_with(name, REMOTES))
        t->has_it = t->has_it || (id_len == strlen(commit) && strncmp(line, commit, id_len) == 0);
}

static int read_tips(const struct df_git *g, const struct df_git_repo *r, struct tips *ret,
                     struct df_err *err)
{
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_LIMIT_TREE_LISTING);
    char *rest = NULL;
    if (df_git_run(g, r,
                   DF_GIT_ARGS("ls-remote", "-q", "--", r->remote, "HEAD", HEADS "*", TAGS "*",
                               REMOTES "*"),
                   &out, err) < 0)
        return -1;
    for (char *line = out.data ? strtok_r(out.data, "\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\n", &rest))
        read_tip(line, r->commit, ret);
    return 0;
}

static int set_config(const struct df_git *g, const struct df_git_repo *r, const char *key,
                      const char *value, struct df_err *err)
{
    return df_git_run(g, r, DF_GIT_ARGS("config", key, value), NULL, err);
}

/* A repository of commits without files knows that these are missing. */
static int make_history(const struct df_git *g, const struct df_git_repo *r, struct df_err *err)
{
    return df_git_init(g, r, df_git_is_sha256(r->commit), err) < 0 ||
                   set_config(g, r, "remote.origin.url", r->remote, err) < 0 ||
                   set_config(g, r, "remote.origin.promisor", "true", err) < 0
               ? -1
               : set_config(g, r, "remote.origin.partialCloneFilter", "tree:0", err);
}

static int fetch_history(const struct df_git *g, const struct df_git_repo *r, const char *depth,
                         bool has_head, struct df_err *err)
{
    return df_git_run(
        g, r,
        DF_GIT_ARGS("fetch", "-q", "--no-tags", "--no-recurse-submodules", "--filter=tree:0", depth,
                    "--", "origin", "+" HEADS "*:refs/all/heads/*", "+" TAGS "*:refs/all/tags/*",
                    "+" REMOTES "*:refs/all/remotes/*", has_head ? "+HEAD:refs/all/head" : NULL),
        NULL, err);
}

/* Unlike every other command of git, rev-list can be told not to fetch what is missing: a server
 * gives a commit of a fork as readily as any. */
static bool is_here(const struct df_git *g, const struct df_git_repo *r)
{
    return df_git_run(
               g, r,
               DF_GIT_ARGS("rev-list", "--missing=allow-any", "--no-walk", "--quiet", r->commit),
               NULL, NULL) == 0;
}

static bool is_contained(const struct df_git *g, const struct df_git_repo *r)
{
    DF_BUF struct df_buf out = DF_BUF_INIT(4 * DF_KIB);
    return is_here(g, r) &&
           df_git_run(
               g, r,
               DF_GIT_ARGS("for-each-ref", "--count=1", "--format=found", "--contains", r->commit),
               &out, NULL) == 0 &&
           out.len > 0;
}

static int search_history(const struct df_git *g, const struct df_git_repo *r, bool has_head,
                          bool *ret, struct df_err *err)
{
    static const char *const depths[] = {"--depth=100", "--depth=5000", DF_GIT_WHOLE_DEPTH};
    struct df_err why = {0};
    if (make_history(g, r, err) < 0)
        return -1;
    for (size_t i = 0; !*ret && i < DF_ARRAY_SIZE(depths); i++) {
        if (fetch_history(g, r, depths[i], has_head, &why) < 0)
            return df_git_explain_format(r, &why, err);
        *ret = is_contained(g, r);
    }
    return 0;
}

int df_git_check_contained(const struct df_git *g, const struct df_git_repo *repo,
                           struct df_err *err)
{
    DF_FREE char *directory = df_fs_join(g->fetch->private_dir, "history");
    struct df_git_repo r = {.directory = directory, .remote = repo->remote, .commit = repo->commit};
    struct tips tips = {0};
    if (df_fs_mkdirs(directory, 0700, err) < 0 || read_tips(g, &r, &tips, err) < 0 ||
        (!tips.has_it && search_history(g, &r, tips.has_head, &tips.has_it, err) < 0))
        return df_err_wrap(err, "is commit %s in a branch or tag", r.commit);
    if (tips.has_it)
        return 0;
    return df_fail_reason(err, DF_ERR_DENIED, "CommitNotInBranch",
                          "commit %s is in no branch or tag of %s: anybody may have made it, in a "
                          "pull request or a fork. Push it to a branch; or who may edit the "
                          "executor sets its source.anyCommit",
                          r.commit, r.remote);
}
