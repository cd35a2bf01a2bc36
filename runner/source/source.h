/*
 * source.h - fetches a module from a directory, a git repository or an archive, and identifies it
 * by commit and digest.
 *
 * Sources are not trusted: see archive.h for archives. git runs without hooks, prompts, ext:: and
 * fd:: transports, user or system configuration, and LFS filters. It gets credentials through an
 * askpass helper and a key file in the step's private directory, never through argv, a URL or the
 * environment of tofu. Thread rule: any thread; one checkout, one thread.
 */
#ifndef DF_SOURCE_H
#define DF_SOURCE_H

#include "common/base/strs.h"
#include "common/json/json.h"
#include "common/process/wall.h"
#include "runner/source/listing.h"

struct df_source_result {
    char commit[65];      /* resolved commit, or "" */
    char tree_digest[65]; /* of df_tree_digest() */
    char *module_dir;     /* owned: checkout + folder */
    /* Owned: the directory that module_dir is a copy of, without states and .terraform; NULL for
     * git and archives. */
    char *origin_dir;
    struct df_listing listing; /* empty for git, where the commit says what it has */
};
void df_source_result_free(struct df_source_result *r);

/* Where people put what a source needs, if not into a secret of dayfly. */
struct df_source_advice {
    const char *ssh_key; /* what to do without a key */
    const struct df_source_words {
        const char *needle, *advice; /* what git says, as in git_explain.c */
    } * said;                        /* ended by {0} */
};

struct df_source_request {
    const cJSON *source; /* the member of the step document */
    /* git: fetch exactly this commit; NULL or "": that of the source. */
    const char *expected_commit;
    const char *checkout;      /* existing and empty; emptied after a failure */
    const char *private_dir;   /* existing, 0700, for keys and helpers; emptied at the end */
    int log_fd;                /* lines for people, or -1 */
    const volatile bool *stop; /* ends the fetch when true; or NULL */
    /* A source of this machine must have nothing to do with these paths; NULL: with any. */
    const struct df_wall *hidden;
    /* Of the git processes for such a source, whose repository may lead elsewhere (alternates,
     * submodules, a .git file); NULL: none. */
    const struct df_wall *git_wall;
    bool is_strict; /* the module must see nothing but its source: no link out of it is followed */
    const struct df_source_advice *advice; /* of messages; NULL: secrets of dayfly */
};

/* Reasons: SourceFailed (not available), SourceRefused (not allowed), DiskFull. */
int df_source_fetch(const struct df_source_request *q, struct df_source_result *ret,
                    struct df_err *err) DF_MUST_CHECK;

/* The host of a URL, without user and port; the caller frees. NULL: it has none, or no memory. */
char *df_source_host(const char *url);

/* Lets the git processes of the tool's `init` read modules from the host of the source as the
 * source itself was read: with its credentials and certificates, and no other host with them. Adds
 * variables to env, and files to private_dir (existing, 0700), which the caller removes after
 * `init`. */
int df_source_share(const cJSON *source, const char *private_dir, struct df_strs *env,
                    struct df_err *err) DF_MUST_CHECK;

/* SHA-256 over the sorted tree: paths, kinds, contents (digest.c), without `.git` and
 * `.terraform`. */
int df_tree_digest(const char *directory, char ret[65], struct df_err *err) DF_MUST_CHECK;
/* The same; adds the entries to a listing. */
int df_tree_digest_listed(const char *directory, struct df_listing *listing, char ret[65],
                          struct df_err *err) DF_MUST_CHECK;
/* The same over all of it. */
int df_tree_digest_all(const char *directory, char ret[65], struct df_err *err) DF_MUST_CHECK;

/* git starts this very program: to ask for a user name or password, with the first variable set to
 * the file that has the answer, and as ssh, with the second one set to the file that configures it.
 * A program that calls df_source_fetch() therefore begins its main() with
 * `if (df_source_is_helper()) return df_source_help(argc, argv);`. */
#define DF_ASKPASS_ENV "DAYFLY_ASKPASS"
#define DF_SSH_CONFIG_ENV "DAYFLY_SSH_CONFIG"
bool df_source_is_helper(void);
int df_source_help(int argc, char **argv);

#endif
