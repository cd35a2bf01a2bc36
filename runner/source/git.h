/*
 * git.h - runs the git program under control: with its own configuration file and a composed
 * environment, without prompts and hooks, and only with the transports that the source needs.
 * Internal to runner/source.
 */
#ifndef DF_SOURCE_GIT_H
#define DF_SOURCE_GIT_H

#include "common/base/strs.h"
#include "runner/source/fetch.h"

struct df_git {
    const struct df_fetch *fetch;
    struct df_strs env;
    int submodules; /* checked out so far */
};

/* Writes configuration, keys and the password file into the private dir. */
int df_git_open(const struct df_fetch *f, struct df_git *ret, struct df_err *err) DF_MUST_CHECK;
void df_git_close(struct df_git *g);
#define DF_GIT DF_CLEANUP(df_git_close)

/* A repository to check out: the source itself, or one of its submodules. */
struct df_git_repo {
    const char *directory; /* existing, empty */
    const char *remote;    /* URL or absolute path */
    const char *ref;       /* "refs/heads/main"; NULL: by commit alone */
    const char *commit;    /* exactly this one; NULL: that of ref */
    int depth;             /* 0; of a submodule its nesting */
};

/* Makes an empty repository in r->directory, with ids of that format, in place of the one of an
 * earlier attempt. */
int df_git_init(const struct df_git *g, const struct df_git_repo *r, bool sha256,
                struct df_err *err) DF_MUST_CHECK;
/* Is this full commit of a repository with SHA-256 ids? Others have SHA-1. */
static inline bool df_git_is_sha256(const char *commit)
{
    return strlen(commit) == 64;
}
#define DF_GIT_WHOLE_DEPTH "--depth=2147483647" /* git's value for no limit */

/* Is r->commit in the history of a branch or tag of r->remote? Class DENIED, reason
 * CommitNotInBranch: it is not. */
int df_git_check_contained(const struct df_git *g, const struct df_git_repo *r,
                           struct df_err *err) DF_MUST_CHECK;

/* Checks out the commit. Adds "<commit> <path>" to links for each of its submodules. */
int df_git_checkout(const struct df_git *g, const struct df_git_repo *r, char ret_commit[65],
                    struct df_strs *links, struct df_err *err) DF_MUST_CHECK;

/* Checks out the submodules that links names, and theirs; r: the repository that has them. */
int df_git_submodules(struct df_git *g, const struct df_git_repo *r, const struct df_strs *links,
                      struct df_err *err) DF_MUST_CHECK;

/* Resolves a submodule's URL of .gitmodules against that of its parent. The caller frees *ret.
 * Class USER, reason SourceRefused, if it leads above the parent's host or root. */
int df_git_resolve_url(const char *parent, const char *url, char **ret,
                       struct df_err *err) DF_MUST_CHECK;

/* Runs "git <args>" in r->directory; NULL ends args. out: stdout, or NULL. The message of a failure
 * says what to do. */
int df_git_run(const struct df_git *g, const struct df_git_repo *r, const char *const *args,
               struct df_buf *out, struct df_err *err) DF_MUST_CHECK;
#define DF_GIT_ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* The reason when the ids of the server's repository are of another format. */
#define DF_GIT_OTHER_FORMAT "OtherFormat"
/* Fails with *why, of a fetch of r->commit; says which format the commit should have if it is
 * that. */
int df_git_explain_format(const struct df_git_repo *r, const struct df_err *why,
                          struct df_err *err);

/* Fails with the class, reason and message for the end of git's stderr. url: the repository;
 * advice: as in struct df_source_request. */
int df_git_explain(const char *url, int code, const char *stderr_tail,
                   const struct df_source_advice *advice, struct df_err *err);

#endif
