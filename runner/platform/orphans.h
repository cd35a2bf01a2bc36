/*
 * orphans.h - a look through all objects of the cluster for what a teardown left behind. Thread
 * rule: main thread.
 */
#ifndef DF_PLATFORM_ORPHANS_H
#define DF_PLATFORM_ORPHANS_H

#include "runner/platform/platform.h"

struct df_orphans {
    cJSON *list;            /* owned array of {kind, namespace, name, why} */
    struct df_strs used;    /* namespaces of components in which something is left */
    struct df_strs used_by; /* of each the first: "Secret login" */
    struct df_strs unread;  /* resources that could not be listed, and why */
    int left_out;           /* orphans beyond DF_LIMIT_PLATFORM_ORPHANS */
};
#define DF_ORPHANS DF_CLEANUP(df_orphans_free)
void df_orphans_free(struct df_orphans *o);

/* Objects that carry our labels or Argo CD's tracking, of the components in scope that were
 * removed, or could not be; Applications that hang. ret must be zero but for its empty list; the
 * caller frees it, also on failure. */
int df_orphans_find(struct df_platform *p, struct df_orphans *ret,
                    struct df_err *err) DF_MUST_CHECK;

/* Warns of the Applications of this environment that the DAG does not have any more, and notes them
 * in p->not_in_dag, if the scope is the platform. It fails no action. */
void df_orphans_tell_taken_out(struct df_platform *p);

/* Adds one. object: with its metadata. */
int df_orphans_add(struct df_orphans *o, const char *kind, const cJSON *object, const char *why,
                   struct df_err *err) DF_MUST_CHECK;

#endif
