/*
 * leftovers.h - the parts of retention that look at blobs instead of documents, and orphans: blobs
 * that no document names. Thread rule: any thread.
 */
#ifndef DF_REQUESTS_LEFTOVERS_H
#define DF_REQUESTS_LEFTOVERS_H

#include "spawner/spawner.h"

/* How much stays of an executor. */
struct df_retained {
    int64_t documents; /* ended runs; 0: all */
    int64_t versions;  /* of its state; 0: all */
    int64_t age_us;    /* of ended runs; 0: any */
    int64_t logs_us;   /* age of logs of ended steps; 0: any */
};

/* As its spec.retention says, else the configuration; all while an edit of it is refused. executor
 * may be NULL. */
struct df_retained df_retained_of(const struct df_config *c, const cJSON *executor);

/* Appends {kind, name} to removed; the second one with a count. */
int df_removed_note(cJSON *removed, const char *kind, const char *name,
                    struct df_err *err) DF_MUST_CHECK;
int df_removed_count(cJSON *removed, const char *kind, const char *name, int64_t count,
                     struct df_err *err) DF_MUST_CHECK;

/* Plans of ended runs: nobody applies them any more. */
int df_leftovers_plans(struct df_spawner *s, bool dry_run, cJSON *removed,
                       struct df_err *err) DF_MUST_CHECK;
/* Logs and events of ended steps that are older than retention.logs; the runs stay. */
int df_leftovers_logs(struct df_spawner *s, bool dry_run, cJSON *removed,
                      struct df_err *err) DF_MUST_CHECK;
/* The oldest entries of the audit trail, none that is younger than DF_AUDIT_LEAST_SECONDS. That
 * they were removed is an entry. */
int df_leftovers_audit(struct df_spawner *s, bool dry_run, cJSON *removed,
                       struct df_err *err) DF_MUST_CHECK;

/* Appends {kind: Orphan, name, bytes, age, kept} for blobs that belong to no executor or step any
 * more (a crash, an interrupted deletion), at most DF_LIMIT_ORPHANS that stay and as many that go,
 * and removes them if that is asked for: in a place that two installations share, they are the
 * other one's. kept says why one stays: "unasked", "young" (DF_ORPHAN_SECONDS), or "state": a state
 * is never removed in this way. */
int df_leftovers_orphans(struct df_spawner *s, bool asked, bool dry_run, cJSON *removed,
                         struct df_err *err) DF_MUST_CHECK;

#endif
