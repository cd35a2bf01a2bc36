/*
 * remains.h - what a teardown looks at when the components are gone. Thread rule: main thread.
 */
#ifndef DF_PLATFORM_REMAINS_H
#define DF_PLATFORM_REMAINS_H

#include "runner/platform/platform.h"

/* Fills p->removal: {orphans, volumes, namespaces, systems}. Of a whole platform it removes the
 * repository's Secret, the namespaces of components in which nothing is left, and Argo CD and
 * Workflows if we installed them and nothing else uses them. Orphans besides retained volumes,
 * and resources that could not be searched for them, are told in p->left. A dry run only
 * adds what would become of the components' namespaces. */
int df_remains_settle(struct df_platform *p, struct df_err *err) DF_MUST_CHECK;

#endif
