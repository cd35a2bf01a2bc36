/*
 * workspace.h - makes a fetched module ready to run: where its state lives, its variables, its
 * credentials and its environment. Nothing is inherited from the machine but what is listed here.
 *
 * Into the module directory go `zzzz_dayfly_override.tf.json` (the backend; wins over the module's
 * own) and `zzzz_dayfly.auto.tfvars.json` (spec.variables; wins over the module's own); a
 * `.terraform` that came with the source is removed. Everything else lies outside of it.
 * The environment of tofu: PATH, locale, proxies and SSL_CERT_FILE, SSL_CERT_DIR of the runner;
 * HOME and TMPDIR of the step's own; what makes tofu quiet and unattended; the state's
 * address and password; the step's `environment` and `secretEnvironment`. `@files/<name>`
 * in a value there, with <name> a member of the step's `files`, becomes the path of that file.
 * Thread rule: one thread.
 */
#ifndef DF_WORKSPACE_H
#define DF_WORKSPACE_H

#include "common/base/strs.h"
#include "common/json/json.h"

/* The directories of a step, below its work directory. All owned. */
struct df_dirs {
    char *source;    /* the checkout */
    char *spool;     /* of the report */
    char *fetch;     /* keys and helpers of the fetch */
    char *secret;    /* 0700: plan, bundle, CLI configuration, files of the step */
    char *home;      /* HOME of tofu */
    char *temporary; /* TMPDIR of tofu; where it is: common/process/tmpdir.h */
};
/* Makes them below work_dir, which is made too; all but spool are emptied. */
int df_dirs_make(const char *work_dir, struct df_dirs *ret, struct df_err *err) DF_MUST_CHECK;
void df_dirs_free(struct df_dirs *d);

struct df_workspace {
    struct df_strs env; /* of tofu; wiped by df_workspace_free() */
};

/* step: the step document. Reasons: InvalidStep for what the document says wrong, InitFailed for a
 * module whose state is elsewhere. */
int df_workspace_prepare(const cJSON *step, const struct df_dirs *dirs, const char *module_dir,
                         struct df_workspace *ret, struct df_err *err) DF_MUST_CHECK;
void df_workspace_free(struct df_workspace *w);

#endif
