/*
 * checks.h - the parts of validate: how an Application is, how its resources are, and what the
 * cluster says of its rules. Only get and list. Thread rule: main thread.
 */
#ifndef DF_PLATFORM_CHECKS_H
#define DF_PLATFORM_CHECKS_H

#include "runner/platform/application.h"
#include "runner/platform/platform.h"

struct df_verdict {
    enum df_component_state state; /* DONE, DEGRADED or FAILED */
    const char *cause;             /* static, or borrowed from the view; "": DONE */
    char message[400];
};
/* What an Application's words mean for its component. is_healthy: by Argo CD's word or by criteria
 * of health.yaml. commit: of gitRevision now; NULL: not known. A pure function. */
struct df_verdict df_check_judge(const struct df_application_view *v, const char *commit,
                                 bool is_healthy, bool is_critical);

/* Whether criteria of health.yaml (minReadyReplicas, ignoreResources) explain why Argo CD does not
 * call the component healthy: *ret is true if they excuse at least one of its resources and all
 * others are well. Argo CD itself gives one word for all of them. */
int df_check_resources(struct df_platform *p, const struct df_component *c, const cJSON *app,
                       bool *ret, struct df_err *err) DF_MUST_CHECK;

/* The Deployments, StatefulSets, DaemonSets and Jobs of a component's Application: fails the
 * component if one is not ready, and tells of its pods in the diagnostics. */
int df_check_workloads(struct df_platform *p, struct df_component *c, const cJSON *app,
                       struct df_err *err) DF_MUST_CHECK;

/* Tells in the diagnostics what is out of the ordinary about a pod. */
int df_check_pod(struct df_component *c, const cJSON *pod, struct df_err *err) DF_MUST_CHECK;

/* Fills p->compliance: results of policies, constraints of Gatekeeper, Pod Security labels of the
 * components' namespaces. Each is an object with status "assessed", or "not assessed" and why. */
int df_check_compliance(struct df_platform *p, struct df_err *err) DF_MUST_CHECK;

#endif
