/*
 * pod_parts.h - access to the parts of a pod, and the two halves of its diagnosis; for
 * spawner/engine only. Thread rule: pure functions; returned pointers are borrowed.
 */
#ifndef DF_POD_PARTS_H
#define DF_POD_PARTS_H

#include "spawner/engine/diagnosis/pod_diagnosis.h"

/* The item of the list whose member `key` has the value name; or NULL. list may be NULL. */
const cJSON *df_pod_named(const cJSON *list, const char *key, const char *name);
/* The condition of this type in a Job or pod, or NULL. df_pod_is_true(): is its status True? */
const cJSON *df_pod_condition(const cJSON *object, const char *type);
bool df_pod_is_true(const cJSON *condition);
/* The status of this container, or NULL. */
const cJSON *df_pod_container(const cJSON *pod, const char *container);

/* Paths of the statuses of init containers and of containers, in the order of their start. */
extern const char *const df_pod_status_lists[2];

/* Did the main container ever run? */
bool df_pod_has_started(const struct df_pod_view *view);

/* Sets the code to "a|b", or to the one that is not NULL. */
void df_pod_code(struct df_pod_diagnosis *v, const char *a, const char *b);
void df_pod_fail(struct df_pod_diagnosis *v, enum df_pod_class class, enum df_fault fault,
                 const char *code);

/* pod_start.c. Each function fills the diagnosis: of a Pending pod, of a Job without a pod, of a
 * waiting container. */
void df_pod_diagnose_pending(const struct df_pod_view *view, struct df_pod_diagnosis *v);
void df_pod_diagnose_no_pod(const struct df_pod_view *view, struct df_pod_diagnosis *v);
void df_pod_diagnose_waiting(const struct df_pod_view *view, const cJSON *status,
                             struct df_pod_diagnosis *v);

/* pod_end.c: of a terminated container, of a pod that is Succeeded or Failed. */
void df_pod_diagnose_terminated(const struct df_pod_view *view, const cJSON *terminated,
                                struct df_pod_diagnosis *v);
void df_pod_diagnose_succeeded(const struct df_pod_view *view, struct df_pod_diagnosis *v);
void df_pod_diagnose_failed(const struct df_pod_view *view, struct df_pod_diagnosis *v);

#endif
