/*
 * audit.h - audit entries for requests that were made with kubectl. The API server has checked the
 * person's rights; it does not say who it was. Thread rule: any thread.
 */
#ifndef DF_CONTROL_AUDIT_H
#define DF_CONTROL_AUDIT_H

#include "spawner/spawner.h"

#define DF_BY_KUBERNETES "kubernetes" /* who asked */

/* One entry; detail may be NULL. A failure is logged. */
void df_control_audit(struct df_spawner *s, const char *action, enum df_kind kind, const char *name,
                      const char *outcome, const char *detail);

#endif
