/*
 * placement.h - what an operator may say about the pod of a step: spec.placement of Executor, Run
 * and TaskAction, and the instance's defaults. docs/placement.md describes every field; the shapes
 * are those of Kubernetes' pod (core/v1), so that a piece of a manifest can be pasted.
 *
 * What the API server would refuse is refused here, at once, with the key, the value and the
 * reason; what only the cluster knows (does this Secret exist?) shows in the step's end.
 * Thread rule: pure functions, any thread.
 */
#ifndef DF_PLACEMENT_MODEL_H
#define DF_PLACEMENT_MODEL_H

#include "spawner/model/schema.h"

extern const struct df_field df_placement_rows[];
extern const struct df_field df_resources_rows[]; /* its member resources */

/* What no row can say: every mount path is used once and is not one of the runner's own, and every
 * volume has its own name. */
df_rule df_rule_placement;

/* Checks a placement that stands outside of a document. where: what it is called in the message
 * ("placement.defaults"). Class USER, reason InvalidPlacement; every fault is named. The placement
 * may be given defaults, as with df_model_admit(). */
int df_placement_check(cJSON *placement, const char *where, struct df_err *err) DF_MUST_CHECK;

/* A quantity as Kubernetes writes it ("500m", "1.5Gi", "2e3"): its value in base units, rounded to
 * a double; or -1 when it is none or negative. */
double df_quantity(const char *text);

/* A DNS-1123 subdomain, the form of most names in Kubernetes: labels joined by dots, 253 bytes. */
bool df_is_dns_subdomain(const char *s);

#endif
