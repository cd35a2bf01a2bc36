/*
 * git.h - the git program on a short leash: its own configuration file, a composed environment, no
 * prompts, no hooks, only the transports that the source itself needs. Internal to runner/source.
 */
#ifndef DF_SOURCE_GIT_H
#define DF_SOURCE_GIT_H

#include "common/base/strs.h"
#include "runner/source/fetch.h"

struct df_git {
    const struct df_fetch *fetch;
    struct df_strs env;
    int submodules; /* taken so far */
};

/* Writes configuration, keys and the password file into the private dir. */
int df_git_open(const struct df_fetch *f, struct df_git *ret, struct df_err *err) DF_MUST_CHECK;
void df_git_close(struct df_git *g);
#define DF_GIT DF_CLEANUP(df_git_close)

/* A repository to be: the source itself, or one of its submodules. */
struct df_git_place {
    const char *directory; /* existing, empty */
    const char *remote;    /* URL or absolute path */
    const char *ref;       /* "refs/heads/main"; NULL: by commit alone */
    const char *commit;    /* this one and no other; NULL: the ref's */
    int depth;             /* 0, or how deep among submodules */
};

/* Checks the one commit out, with its submodules if the source asks for them. */
int df_git_take(struct df_git *g, const struct df_git_place *p, char ret_commit[65],
                struct df_err *err) DF_MUST_CHECK;

/* links: "<commit> <path>" for every submodule of the commit that is checked out at p. */
int df_git_submodules(struct df_git *g, const struct df_git_place *p, const struct df_strs *links,
                      struct df_err *err) DF_MUST_CHECK;

/* A submodule's URL as it stands in .gitmodules, made absolute with that of its parent. The caller
 * frees *ret. Class USER, reason SourceRefused, when it leads above the parent's host or root. */
int df_git_resolve_url(const char *parent, const char *url, char **ret,
                       struct df_err *err) DF_MUST_CHECK;

/* Runs "git <args>" at p; NULL ends args. out: stdout, or NULL. A failure is told in words that say
 * what to do. */
int df_git_run(const struct df_git *g, const struct df_git_place *p, const char *const *args,
               struct df_buf *out, struct df_err *err) DF_MUST_CHECK;
#define DF_GIT_ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* What git's stderr means: class, reason and message for the repository at url. */
int df_git_explain(const char *url, int code, const char *stderr_tail, struct df_err *err);

#endif
