/*
 * audit.h - audit entries for requests that were made with kubectl. The API server has checked the
 * person's rights, but does not say who the person was. Thread rule: any thread.
 */
#ifndef DF_CONTROL_AUDIT_H
#define DF_CONTROL_AUDIT_H

#include "spawner/spawner.h"

#define DF_BY_KUBERNETES "kubernetes" /* the actor of every such entry */

/* Appends one entry to the audit trail. detail may be NULL. A failure is only logged. */
void df_control_audit(struct df_spawner *s, const char *action, enum df_kind kind, const char *name,
                      const char *outcome, const char *detail);

#endif
