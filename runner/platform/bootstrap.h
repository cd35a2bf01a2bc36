/*
 * bootstrap.h - Argo CD and Argo Workflows themselves: installed where they are absent, from the
 * manifests in the image or a mounted folder. Thread rule: main thread.
 */
#ifndef DF_PLATFORM_BOOTSTRAP_H
#define DF_PLATFORM_BOOTSTRAP_H

#include "runner/platform/platform.h"

/* Installs what is absent, applies again what an earlier deploy installed, and leaves alone what
 * others installed; waits until it is available. Then the components with `bootstrap: true` from
 * p->checkout, and the Secrets that Argo CD and the components' namespaces need. Reason
 * BootstrapFailed. */
int df_bootstrap(struct df_platform *p, struct df_err *err) DF_MUST_CHECK;

/* Removes Argo CD and Argo Workflows as df_bootstrap() installed them, in reverse order and
 * definitions last: only objects with the label of this environment, and only of a system that
 * nothing uses. Namespaces, claims and volumes stay, and a definition as long as there are objects
 * of its kind. Lines of p->bootstrap say what was deleted, and what stays and why. */
int df_bootstrap_remove(struct df_platform *p, struct df_err *err) DF_MUST_CHECK;
/* The same for the objects of a component with `bootstrap: true`. */
int df_bootstrap_remove_component(struct df_platform *p, const struct df_component *c,
                                  struct df_err *err) DF_MUST_CHECK;
/* The systems that may be installed: the folder of their manifests below manifests_dir. */
struct df_system {
    const char *folder, *name; /* "argocd", "Argo CD" */
    const char *name_space;    /* borrowed from the input */
    bool is_needed;            /* nothing can be deployed without it */
};
/* ret: two of them. */
void df_bootstrap_systems(const struct df_platform_input *in, struct df_system ret[2]);

#endif
