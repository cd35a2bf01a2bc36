/*
 * One commit of a repository, shallow: init, fetch of one ref or commit, checkout. The commit that
 * was planned is fetched by its id even when the branch has moved; where a server will not hand out
 * an id, history is deepened until the commit is there.
 */
#include "runner/source/git.h"

#include "common/base/limits.h"

static int init(const struct df_git *g, const struct df_git_place *p, struct df_err *err)
{
    bool sha256 = p->commit && strlen(p->commit) == 64;
    return df_git_run(g, p,
                      DF_GIT_ARGS("init", "-q", "--template=",
                                  sha256 ? "--object-format=sha256" : "--object-format=sha1"),
                      NULL, err);
}

static int fetch_ref(const struct df_git *g, const struct df_git_place *p, const char *depth,
                     const char *ref, struct df_err *err)
{
    return df_git_run(g, p,
                      DF_GIT_ARGS("fetch", "-q", "--no-tags", "--no-recurse-submodules", depth,
                                  "--", p->remote, ref),
                      NULL, err);
}

static bool has_commit(const struct df_git *g, const struct df_git_place *p)
{
    DF_FREE char *name = df_strf("%s^{commit}", p->commit);
    return name && df_git_run(g, p, DF_GIT_ARGS("cat-file", "-e", name), NULL, NULL) == 0;
}

/* The server does not hand out commits by id: so their history must bring them. */
static int dig_for_commit(const struct df_git *g, const struct df_git_place *p, struct df_err *err)
{
    static const char *const depths[] = {"--depth=100", "--depth=5000"};
    df_fetch_note(g->fetch, "the server gives no commit by its id: looking through its history");
    for (size_t i = 0; p->ref && i < DF_ARRAY_SIZE(depths); i++)
        if (fetch_ref(g, p, depths[i], p->ref, NULL) == 0 && has_commit(g, p))
            return 0;
    static const char all[] = "--depth=2147483647"; /* git's word for no limit */
    if (df_git_run(g, p,
                   DF_GIT_ARGS("fetch", "-q", "--no-tags", "--no-recurse-submodules", all, "--",
                               p->remote, "+refs/heads/*:refs/remotes/origin/*",
                               "+refs/tags/*:refs/tags/*"),
                   NULL, err) < 0)
        return -1;
    if (has_commit(g, p))
        return 0;
    return df_fail_reason(err, DF_ERR_NOT_FOUND, "SourceFailed",
                          "commit %s is not in %s (any more): was its history rewritten?",
                          p->commit, p->remote);
}

static int fetch_commit(const struct df_git *g, const struct df_git_place *p, struct df_err *err)
{
    struct df_err why = {0};
    if (fetch_ref(g, p, "--depth=1", p->commit, &why) == 0)
        return 0;
    if (df_streq(why.reason, "CommitNotGiven"))
        return dig_for_commit(g, p, err);
    if (err)
        *err = why;
    return -1;
}

/* The commit behind a name, through annotated tags. */
static int resolve(const struct df_git *g, const struct df_git_place *p, const char *name,
                   char ret[65], struct df_err *err)
{
    DF_BUF struct df_buf out = DF_BUF_INIT(256);
    DF_FREE char *peeled = df_strf("%s^{commit}", name);
    if (!peeled)
        return df_fail_oom(err);
    if (df_git_run(g, p, DF_GIT_ARGS("rev-parse", "--verify", "-q", "--end-of-options", peeled),
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

static int list_tree(const struct df_git *g, const struct df_git_place *p, const char *commit,
                     struct df_buf *out, struct df_err *err)
{
    struct df_err why = {0};
    if (df_git_run(g, p, DF_GIT_ARGS("ls-tree", "-r", "-l", "-z", "--full-tree", commit), out,
                   &why) == 0)
        return 0;
    if (out->failed && why.cls == DF_ERR_LIMIT)
        return df_fail_reason(err, DF_ERR_LIMIT, "SourceRefused",
                              "commit %s of %s has too many files", commit, p->remote);
    if (err)
        *err = why;
    return -1;
}

/* A few hundred bytes of repository can hold a tree of a million files: nothing is written before
 * it is known how much it will be. Gives the submodules, too. */
static int check_tree(const struct df_git *g, const struct df_git_place *p, const char *commit,
                      struct df_strs *links, struct df_err *err)
{
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_LIMIT_TREE_LISTING);
    if (list_tree(g, p, commit, &out, err) < 0)
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
                              p->remote, (long long)DF_LIMIT_ARCHIVE_BYTES);
    return df_strs_check(links, err);
}

int df_git_take(struct df_git *g, const struct df_git_place *p, char ret_commit[65],
                struct df_err *err)
{
    char commit[65];
    DF_STRS struct df_strs links = {0};
    if (init(g, p, err) < 0)
        return -1;
    if ((p->commit ? fetch_commit(g, p, err) : fetch_ref(g, p, "--depth=1", p->ref, err)) < 0)
        return -1;
    if (resolve(g, p, p->commit ? p->commit : "FETCH_HEAD", commit, err) < 0 ||
        check_tree(g, p, commit, &links, err) < 0)
        return -1;
    if (df_git_run(g, p, DF_GIT_ARGS("checkout", "-q", "--force", "--detach", commit), NULL, err) <
        0)
        return -1;
    if (g->fetch->spec->submodules && df_git_submodules(g, p, &links, err) < 0)
        return -1;
    (void)snprintf(ret_commit, 65, "%s", commit);
    return 0;
}

static void note_start(const struct df_fetch *f)
{
    const struct df_source_spec *s = f->spec;
    if (f->commit)
        df_fetch_note(f, "fetching %s, commit %s", s->url, f->commit);
    else
        df_fetch_note(f, "fetching %s, %s %s", s->url, s->tag ? "tag" : "branch",
                      s->tag ? s->tag : s->branch);
}

/* "refs/tags/v1" or "refs/heads/main"; NULL in *ret when the source names a commit alone. */
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
    if (named_ref(f->spec, &ref, err) < 0 || df_git_open(f, &g, err) < 0)
        return -1;
    note_start(f);
    /* A path needs no percent-encoding; a URL is taken as it is. */
    const struct df_git_place p = {.directory = f->checkout,
                                   .remote = f->spec->path ? f->spec->path : f->spec->url,
                                   .ref = ref,
                                   .commit = f->commit};
    return df_git_take(&g, &p, ret_commit, err);
}
