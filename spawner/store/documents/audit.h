/*
 * audit.h - the audit trail in a cluster: resources AuditTrail with some entries each, of which the
 * oldest go.
 *
 * Not Events: those are merged, thinned out and forgotten after an hour. Not ConfigMaps: the right
 * to write the trail would be the right to write every ConfigMap of the namespace. Entries are
 * collected in one resource until it is full, so that etcd has hundreds of objects and not tens of
 * thousands; every process has one of its own under way, so that replicas do not wait for each
 * other.
 * Thread rule: any thread.
 */
#ifndef DF_AUDIT_H
#define DF_AUDIT_H

#include "common/kube/kube.h"

struct df_audit; /* opaque */

/* Strings are borrowed and must live on. */
int df_audit_open(struct df_kube *k, const char *group, const char *name_space,
                  struct df_audit **ret, struct df_err *err) DF_MUST_CHECK;
void df_audit_close(struct df_audit *a); /* NULL is fine */

/* As of store.h. */
int df_audit_add(struct df_audit *a, const cJSON *entry, struct df_err *err) DF_MUST_CHECK;
int df_audit_list(struct df_audit *a, const char *cursor, int limit, cJSON **ret, char **ret_cursor,
                  struct df_err *err) DF_MUST_CHECK;

#endif
