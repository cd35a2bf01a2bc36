/*
 * references.h - finds what a placement, a workflow or a pod template refers to by name: service
 * accounts, images, Secrets and so on, wherever in the tree they are.
 *
 * The members are found by their names, which mean the same in all three forms and everywhere in a
 * pod. A form that is unknown here today (a volume kind with a secretRef, say) is therefore found,
 * too. Thread rule: pure functions, any thread.
 */
#ifndef DF_REFERENCES_H
#define DF_REFERENCES_H

#include "spawner/model/schema.h"

enum df_reference {
    DF_REFERENCE_ACCOUNT,
    DF_REFERENCE_IMAGE,
    DF_REFERENCE_SECRET,
    DF_REFERENCE_CONFIG_MAP,
    DF_REFERENCE_CLAIM, /* a PersistentVolumeClaim */
    DF_REFERENCE_PRIORITY,
    DF_REFERENCE_AUDIENCE, /* of a projected token */
};

/* In messages: "service account", "Secret". */
const char *df_reference_name(enum df_reference kind);

/* Called for each reference, with the path of its name. name is borrowed. */
typedef void df_reference_fn(void *arg, enum df_reference kind, const char *name,
                             const struct df_path *path);

/* Every reference in a tree; NULL has none. path: of the tree. */
void df_references(const cJSON *tree, const struct df_path *path, df_reference_fn *fn, void *arg);
/* The same in one member of an object. path: of the object. */
void df_references_of(const cJSON *member, const struct df_path *path, df_reference_fn *fn,
                      void *arg);

#endif
