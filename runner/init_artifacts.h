/*
 * init_artifacts.h - what `init` made, from the plan to its apply: an apply whose machine has the
 * providers runs no `init` of its own.
 *
 * Fetched modules and the note of the backend go into the bundle. They are taken before the tool
 * runs code of the module, which could change them, and the bundle's digests bind them to the
 * approved plan like its plan file. Providers do not: tofu/packages.h finds them again by the lock
 * file. Thread rule: main thread.
 */
#ifndef DF_RUNNER_INIT_ARTIFACTS_H
#define DF_RUNNER_INIT_ARTIFACTS_H

#include "runner/context.h"

struct df_init_artifacts {
    bool is_needed;     /* an apply cannot do without it */
    bool is_restorable; /* the bundle has all of it but the providers */
    int modules_fd;     /* a tar archive of .terraform/modules, or -1; owned */
    int backend_fd;     /* a copy of .terraform/terraform.tfstate, or -1; owned */
};
#define DF_INIT_ARTIFACTS_NONE ((struct df_init_artifacts){.modules_fd = -1, .backend_fd = -1})
void df_init_artifacts_free(struct df_init_artifacts *i);
#define DF_INIT_ARTIFACTS DF_CLEANUP(df_init_artifacts_free) struct df_init_artifacts

/* Takes it, right after `init`, and sets has_plugins. What cannot be taken (too large, say) is
 * fetched again. */
int df_init_artifacts_keep(struct df_context *c, struct df_init_artifacts *ret,
                           struct df_err *err) DF_MUST_CHECK;

/* In the pod of the plan: moves the providers that it installed out of the source, to where
 * df_init_artifacts_restore() looks for them. Those that cannot be moved are installed again. */
void df_init_artifacts_keep_providers(const struct df_context *c);

/* Does without `init` or runs it, and sets has_plugins: header and fd are the bundle's; the lock
 * file is in place. */
int df_init_artifacts_restore(struct df_context *c, const cJSON *header, int fd,
                              struct df_err *err) DF_MUST_CHECK;

#endif
