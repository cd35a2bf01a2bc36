/*
 * diagnose.h - why a component is not healthy: what Argo CD says of its resources, events, and the
 * last lines of pods that are not ready. Thread rule: main thread.
 */
#ifndef DF_PLATFORM_DIAGNOSE_H
#define DF_PLATFORM_DIAGNOSE_H

#include "runner/platform/platform.h"

/* Fills c->diagnostics, as far as the account may read; never fails. What did not become healthy
 * because a pod has no image gets the cause ImagePullFailed. */
void df_diagnose(struct df_platform *p, struct df_component *c);

#endif
