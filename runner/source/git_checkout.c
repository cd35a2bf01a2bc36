/*
 * One commit of a repository, shallow: init, fetch of a ref or commit, checkout. A planned commit
 * is fetched by its id, even if the branch has moved on; if the server does not serve ids, the
 * history is deepened until it contains the commit. Read df_git_checkout() at the end first.
 */
#include "runner/source/git.h"

#include "common/base/fs.h"
#include "common/base/limits.h"

int df_git_init(const struct df_git *g, const struct df_git_repo *r, bool sha256,
                struct df_err *err)
{
    DF_FREE char *before = df_fs_join(r->directory, ".git");
    if (df_fs_remove_tree(before, err) < 0)
        return -1;
    return df_git_run(g, r,
                      DF_GIT_ARGS("init", "-q", "--template=",
                                  sha256 ? "--object-format=sha256" : "--object-format=sha1"),
                      NULL, err);
}

static int fetch_ref(const struct df_git *g, const struct df_git_repo *r, const char *depth,
                     const char *ref, struct df_err *err)
{
    return df_git_run(g, r,
                      DF_GIT_ARGS("fetch", "-q", "--no-tags", "--no-recurse-submodules", depth,
                                  "--", r->remote, ref),
                      NULL, err);
}

static bool has_commit(const struct df_git *g, const struct df_git_repo *r)
{
    DF_FREE char *name = df_strf("%s^{commit}", r->commit);
    return name && df_git_run(g, r, DF_GIT_ARGS("cat-file", "-e", name), NULL, NULL) == 0;
}

/* Fetches history until it contains the commit, for a server that serves no commits by id. */
static int deepen_to_commit(const struct df_git *g, const struct df_git_repo *r, struct df_err *err)
{
    static const char *const depths[] = {"--depth=100", "--depth=5000"};
    df_fetch_note(g->fetch, "the server serves no commits by id: searching the history");
    for (size_t i = 0; r->ref && i < DF_ARRAY_SIZE(depths); i++)
        if (fetch_ref(g, r, depths[i], r->ref, NULL) == 0 && has_commit(g, r))
            return 0;
    if (df_git_run(g, r,
                   DF_GIT_ARGS("fetch", "-q", "--no-tags", "--no-recurse-submodules",
                               DF_GIT_WHOLE_DEPTH, "--", r->remote,
                               "+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*"),
                   NULL, err) < 0)
        return -1;
    if (has_commit(g, r))
        return 0;
    return df_fail_reason(err, DF_ERR_NOT_FOUND, "SourceFailed",
                          "commit %s is not in %s (any more): was its history rewritten?",
                          r->commit, r->remote);
}

int df_git_explain_format(const struct df_git_repo *r, const struct df_err *why, struct df_err *err)
{
    if (df_streq(why->reason, DF_GIT_OTHER_FORMAT))
        return df_fail_reason(err, DF_ERR_NOT_FOUND, "SourceFailed",
                              "commit %s cannot be in %s, whose commits have %d digits", r->commit,
                              r->remote, df_git_is_sha256(r->commit) ? 40 : 64);
    return df_err_pass(err, why);
}

static int fetch_commit(const struct df_git *g, const struct df_git_repo *r, struct df_err *err)
{
    struct df_err why = {0};
    if (fetch_ref(g, r, "--depth=1", r->commit, &why) == 0)
        return 0;
    if (df_streq(why.reason, "CommitNotGiven"))
        return deepen_to_commit(g, r, err);
    return df_git_explain_format(r, &why, err);
}

/* Resolves a name to its commit, also through annotated tags. */
static int resolve_commit(const struct df_git *g, const struct df_git_repo *r, const char *name,
                          char ret[65], struct df_err *err)
{
    DF_BUF struct df_buf out = DF_BUF_INIT(256);
    DF_FREE char *peeled = df_strf("%s^{commit}", name);
    if (df_check_alloc(peeled, err) < 0 ||
        df_git_run(g, r, DF_GIT_ARGS("rev-parse", "--verify", "-q", "--end-of-options", peeled),
                   &out, err) < 0)
        return -1;
    char *line = out.data;
    if (line)
        line[strcspn(line, "\n")] = '\0';
    if (!line || df_source_commit_fault(line))
        return df_fail(err, DF_ERR_SYSTEM, "git rev-parse %s gave no commit", name);
    (void)snprintf(ret, 65, "%s", line);
    return 0;
}

/* One line of `git ls-tree -l`: "<mode> <type> <id> <size or ->\t<path>". */
struct listed {
    const char *id, *path;
    size_t id_len;
    int64_t bytes;
    bool submodule;
};

static struct listed read_listed(const char *line)
{
    const char *type = line + strcspn(line, " "), *path = strchrnul(line, '\t');
    type += *type == ' ';
    const char *id = type + strcspn(type, " ");
    id += *id == ' ';
    const char *size = path;
    while (size > line && size[-1] != ' ')
        size--;
    return (struct listed){.id = id,
                           .id_len = strcspn(id, " "),
                           .path = path + (*path == '\t'),
                           .bytes = strtoll(size, NULL, 10),
                           .submodule = df_starts_with(type, "commit ")};
}

static int list_tree(const struct df_git *g, const struct df_git_repo *r, const char *commit,
                     struct df_buf *out, struct df_err *err)
{
    struct df_err why = {0};
    if (df_git_run(g, r, DF_GIT_ARGS("ls-tree", "-r", "-l", "-z", "--full-tree", commit), out,
                   &why) == 0)
        return 0;
    if (out->failed && why.cls == DF_ERR_LIMIT)
        return df_fail_reason(err, DF_ERR_LIMIT, "SourceRefused",
                              "commit %s of %s has too many files", commit, r->remote);
    return df_err_pass(err, &why);
}

/* A few hundred bytes of repository can hold a tree of a million files: check the size before
 * anything is written. Adds the submodules to links. */
static int check_tree(const struct df_git *g, const struct df_git_repo *r, const char *commit,
                      struct df_strs *links, struct df_err *err)
{
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_LIMIT_TREE_LISTING);
    if (list_tree(g, r, commit, &out, err) < 0)
        return -1;
    int64_t bytes = 0;
    for (size_t at = 0; at < out.len; at += strlen(out.data + at) + 1) {
        struct listed l = read_listed(out.data + at);
        bytes += l.bytes;
        if (l.submodule)
            (void)df_strs_addf(links, "%.*s %s", (int)l.id_len, l.id, l.path);
    }
    if (bytes > (int64_t)DF_LIMIT_ARCHIVE_BYTES)
        return df_fail_reason(err, DF_ERR_LIMIT, "SourceRefused",
                              "commit %s of %s has more than %lld bytes of files", commit,
                              r->remote, (long long)DF_LIMIT_ARCHIVE_BYTES);
    return df_strs_check(links, err);
}

/* A commit tells the format of the repository's ids; a name does not, and nearly all are SHA-1. */
static int fetch(const struct df_git *g, const struct df_git_repo *r, struct df_err *err)
{
    struct df_err why = {0};
    if (r->commit)
        return df_git_init(g, r, df_git_is_sha256(r->commit), err) < 0 ? -1
                                                                       : fetch_commit(g, r, err);
    if (df_git_init(g, r, false, err) < 0)
        return -1;
    if (fetch_ref(g, r, "--depth=1", r->ref, &why) == 0)
        return 0;
    if (!df_streq(why.reason, DF_GIT_OTHER_FORMAT))
        return df_err_pass(err, &why);
    return df_git_init(g, r, true, err) < 0 ? -1 : fetch_ref(g, r, "--depth=1", r->ref, err);
}

int df_git_checkout(const struct df_git *g, const struct df_git_repo *r, char ret_commit[65],
                    struct df_strs *links, struct df_err *err)
{
    char commit[65];
    if (fetch(g, r, err) < 0)
        return -1;
    if (resolve_commit(g, r, r->commit ? r->commit : "FETCH_HEAD", commit, err) < 0 ||
        check_tree(g, r, commit, links, err) < 0)
        return -1;
    if (df_git_run(g, r, DF_GIT_ARGS("checkout", "-q", "--force", "--detach", commit), NULL, err) <
        0)
        return -1;
    (void)snprintf(ret_commit, 65, "%s", commit);
    return 0;
}
