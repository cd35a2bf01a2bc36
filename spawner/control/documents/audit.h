/*
 * audit.h - audit entries for requests that were made with kubectl. Thread rule: any thread.
 */
#ifndef DF_CONTROL_AUDIT_H
#define DF_CONTROL_AUDIT_H

#include "spawner/model/stamp.h"
#include "spawner/spawner.h"

/* Appends one entry to the audit trail. by: who did it, df_stamp_nobody() if that is not known.
 * detail may be NULL. A failure is only logged. */
struct df_audit_event {
    struct df_stamp by;
    const char *action;
    const char *outcome; /* "done" or "refused" */
    const char *detail;
};
void df_control_audit(struct df_spawner *s, enum df_kind kind, const char *name,
                      const struct df_audit_event *event);

#endif
