/*
 * audit.h - the audit trail in a cluster: AuditTrail resources, with many entries in each. The
 * oldest resources are removed.
 *
 * The trail does not use Events: the API server merges them, drops some and deletes them after an
 * hour. It does not use ConfigMaps: the right to write the trail would be the right to write every
 * ConfigMap of the namespace. Entries are appended to one resource until it is full, so that etcd
 * has hundreds of objects instead of tens of thousands. All replicas append to one chain
 * (model/audit_chain.h); nearly always it is the leader alone that has something to write.
 * Thread rule: any thread.
 */
#ifndef DF_AUDIT_H
#define DF_AUDIT_H

#include "common/kube/kube.h"
#include "spawner/model/audit_filter.h"

struct df_audit; /* opaque */

/* k and the strings are borrowed until df_audit_close(). */
int df_audit_open(struct df_kube *k, const char *group, const char *name_space,
                  struct df_audit **ret, struct df_err *err) DF_MUST_CHECK;
void df_audit_close(struct df_audit *a); /* NULL is fine */

/* See df_store_audit() and df_store_audit_list(). key: that of the seals, or NULL. */
int df_audit_add(struct df_audit *a, const cJSON *entry, const unsigned char *key,
                 struct df_err *err) DF_MUST_CHECK;
int df_audit_list(struct df_audit *a, const struct df_audit_filter *filter, const char *cursor,
                  int limit, cJSON **ret, char **ret_cursor, struct df_err *err) DF_MUST_CHECK;
int df_audit_size(struct df_audit *a, int64_t *ret_count, int64_t *ret_bytes,
                  struct df_err *err) DF_MUST_CHECK;

#endif
