/*
 * pod_parts.h - where things stand in a pod, and the two halves of a verdict on it; inside
 * spawner/engine only. Thread rule: pure functions; what is returned is borrowed.
 */
#ifndef DF_POD_PARTS_H
#define DF_POD_PARTS_H

#include "spawner/engine/diagnosis/pod_diagnosis.h"

/* The item of the list (or NULL) whose member key is name; or NULL. */
const cJSON *df_pod_named(const cJSON *list, const char *key, const char *name);
/* The condition of this type of a Job or pod, or NULL; and whether it is True. */
const cJSON *df_pod_condition(const cJSON *object, const char *type);
bool df_pod_is_true(const cJSON *condition);
/* The status of this container, or NULL. */
const cJSON *df_pod_container(const cJSON *pod, const char *container);

/* Paths of the statuses of init containers and of containers: in the order in which they start. */
extern const char *const df_pod_status_lists[2];

/* Did any program of the container that counts run? */
bool df_pod_has_started(const struct df_pod_view *view);

/* "a|b", or the one that is not NULL. */
void df_pod_code(struct df_pod_diagnosis *v, const char *a, const char *b);
void df_pod_fail(struct df_pod_diagnosis *v, enum df_pod_class class, enum df_fault fault,
                 const char *code);

/* pod_start.c: a pod that is Pending; a Job without a pod; a container that waits in a pod that
 * runs. Each fills the verdict. */
void df_pod_judge_pending(const struct df_pod_view *view, struct df_pod_diagnosis *v);
void df_pod_judge_podless(const struct df_pod_view *view, struct df_pod_diagnosis *v);
void df_pod_judge_waiting(const struct df_pod_view *view, const cJSON *status,
                          struct df_pod_diagnosis *v);

/* pod_end.c: a container that terminated, a pod that Succeeded or Failed. */
void df_pod_judge_terminated(const struct df_pod_view *view, const cJSON *terminated,
                             struct df_pod_diagnosis *v);
void df_pod_judge_succeeded(const struct df_pod_view *view, struct df_pod_diagnosis *v);
void df_pod_judge_failed(const struct df_pod_view *view, struct df_pod_diagnosis *v);

#endif
