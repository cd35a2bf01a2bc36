/*
 * source.h - brings a module to the work dir: directory, git or archive, and says exactly what it
 * brought.
 *
 * Everything from outside is hostile: see archive.h for archives; git runs without hooks, prompts,
 * ext:: or fd:: transports, user or system configuration, LFS filters; credentials reach git
 * through an askpass helper and a key file inside the step's private dir, never through argv, URL
 * or the environment of tofu.
 */
#ifndef DF_SOURCE_H
#define DF_SOURCE_H

#include "common/base/strs.h"
#include "common/json/json.h"

struct df_source_result {
    char commit[65];      /* resolved commit, or "" */
    char tree_digest[65]; /* SHA-256 over the sorted tree: path, mode, type, content (without .git
                             and .terraform) */
    char *module_dir;     /* owned: checkout + folder */
};
void df_source_result_free(struct df_source_result *r);

struct df_source_request {
    const cJSON *source; /* the member of the step document */
    const char
        *expected_commit;      /* git: fetch exactly this one; NULL or "": what the source names */
    const char *checkout;      /* an existing empty directory; empty again after a failure */
    const char *private_dir;   /* 0700, for keys and helpers; emptied before the return */
    int log_fd;                /* lines for people, or -1 */
    const volatile bool *stop; /* ends it when true, or NULL */
};

/* Reasons: SourceFailed (cannot be had), SourceRefused (will not be taken), DiskFull. */
int df_source_fetch(const struct df_source_request *q, struct df_source_result *ret,
                    struct df_err *err) DF_MUST_CHECK;

/* The digest alone. */
int df_tree_digest(const char *directory, char ret[65], struct df_err *err) DF_MUST_CHECK;

/* git asks for a user name or password by starting a program: this very one, with this variable
 * set to the file that holds the answer. A program that calls df_source_fetch() therefore begins
 * its main() with `if (df_source_is_askpass()) return df_source_askpass(argc, argv);`. */
#define DF_ASKPASS_ENV "DAYFLY_ASKPASS"
bool df_source_is_askpass(void);
int df_source_askpass(int argc, char **argv);

#endif
