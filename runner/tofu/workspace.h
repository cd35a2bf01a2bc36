/*
 * workspace.h - prepares a fetched module: its backend, variables, credentials and environment.
 * The tool inherits nothing else from the machine than the environment below.
 *
 * In the module's directory it writes `zzzz_dayfly_override.tf.json` (the backend, which wins over
 * the module's; not for the state type "module") and `zzzz_dayfly.auto.tfvars.json` (the variables,
 * which win over the module's). All other files are outside.
 *
 * The environment of tofu consists of PATH, locale, proxies, SSL_CERT_FILE and SSL_CERT_DIR of the
 * runner (with the spawner's host in NO_PROXY); HOME and TMPDIR of the step; settings that make
 * tofu quiet and unattended; the state's address and password; the step's `environment` and
 * `secretEnvironment`. `@files/<name>` in their values, with <name> a member of the step's `files`,
 * becomes the path of that file. Thread rule: one thread.
 */
#ifndef DF_WORKSPACE_H
#define DF_WORKSPACE_H

#include "common/base/strs.h"
#include "runner/tofu/tool.h"

/* The directories of a step, below its work directory. All owned. */
struct df_dirs {
    char *source;    /* the checkout */
    char *spool;     /* of the report */
    char *fetch;     /* keys and helpers for the fetch */
    char *secret;    /* 0700: plan, bundle, CLI configuration, files of the step */
    char *home;      /* HOME of tofu */
    char *temporary; /* TMPDIR of tofu (common/process/tmpdir.h) */
};
/* Creates them below work_dir, which is created, too. Empties all but spool. */
int df_dirs_make(const char *work_dir, struct df_dirs *ret, struct df_err *err) DF_MUST_CHECK;
/* For another step with the same source, after code of the module: all but the source are new and
 * empty, whatever was put in their place. CONFLICT if a link leads to the source. */
int df_dirs_renew(const struct df_dirs *d, struct df_err *err) DF_MUST_CHECK;
void df_dirs_free(struct df_dirs *d);

#define DF_OVERRIDE_FILE "zzzz_dayfly_override.tf.json"

struct df_workspace {
    struct df_strs env;         /* of tofu; wiped by df_workspace_free() */
    const struct df_tool *tool; /* borrowed */
};

/* True if the spawner stores the state of this step. */
bool df_workspace_is_managed(const cJSON *step);

/* step: the step document; tool: that reads the files. Reason InvalidStep for a fault of the
 * document. */
int df_workspace_prepare(const cJSON *step, const struct df_tool *tool, const struct df_dirs *dirs,
                         const char *module_dir, struct df_workspace *ret,
                         struct df_err *err) DF_MUST_CHECK;
/* Points the module and the environment at another state (an object like `state` of the step
 * document); the next `init` begins anew. Its strings may be freed afterwards. */
int df_workspace_use_state(struct df_workspace *w, const cJSON *state, const char *module_dir,
                           struct df_err *err) DF_MUST_CHECK;
void df_workspace_free(struct df_workspace *w);

#endif
