/*
 * scripts.h - the commands of a step of Terrakube: what its template runs before, after and instead
 * of the tool. Contract: section 3.11.
 *
 * A script gets the variables that Terrakube documents (workingDirectory, terrakubeToken, ...),
 * those of the workspace, the Terraform variables, and no variable of the platform. It runs as a
 * child behind the wall of the step; a stop ends it and what it started. The tools repository is
 * cloned once a step, when the first command needs it. All commands of equal priority run. Thread
 * rule: main thread.
 */
#ifndef DF_RUNNER_TERRAKUBE_SCRIPTS_H
#define DF_RUNNER_TERRAKUBE_SCRIPTS_H

#include "common/terrakube/payload.h"
#include "common/terrakube/settings.h"
#include "runner/context.h"

struct df_terrakube_scripts {
    /* Borrowed. */
    const struct df_terrakube_settings *settings;
    const struct df_terrakube_payload *payload;
    const char *directory; /* absolute: the module's; the checkout for customScripts, onReject */
    const char *terraform_output; /* of `output -json` after an apply; or NULL */
    /* Inside. */
    char *tools;    /* where the clone of the tools repository waits; owned */
    bool has_tools; /* it was tried */
};

enum df_terrakube_phase {
    DF_TERRAKUBE_BEFORE_INIT,
    DF_TERRAKUBE_BEFORE, /* and not before_init */
    DF_TERRAKUBE_AFTER,
    DF_TERRAKUBE_ALL /* customScripts, onFailure, onReject */
};

/* Where a script finds the tools repository and its own tools, below the directory. */
#define DF_TERRAKUBE_TOOLS ".terrakube/tools"
#define DF_TERRAKUBE_TOOLS_REPOSITORY ".terrakube/toolsRepository"
#define DF_TERRAKUBE_TEMP_ENV ".terrakube_temp_env"

/* Runs the commands of the list (payload.commands or payload.on_failure; NULL: none) that belong to
 * the phase. c needs output, stop, dirs, walls; its commander is that of the tool. Stops at the
 * first that fails: class USER, reason ScriptFailed; RETRY if the step must stop. */
int df_terrakube_scripts_run(struct df_context *c, struct df_terrakube_scripts *s,
                             const cJSON *list, enum df_terrakube_phase phase,
                             struct df_err *err) DF_MUST_CHECK;

/* True if the list has a command of the phase. */
bool df_terrakube_scripts_has(const cJSON *list, enum df_terrakube_phase phase);

/* Puts the lines NAME=VALUE that scripts left in <directory>/.terrakube_temp_env into an
 * environment: to be called before each command of the tool. A value may have "=" in it. */
int df_terrakube_temp_env(const char *directory, struct df_strs *env,
                          struct df_err *err) DF_MUST_CHECK;

/* Frees what is inside; the clone ends with the work directory. */
void df_terrakube_scripts_free(struct df_terrakube_scripts *s);

#endif
