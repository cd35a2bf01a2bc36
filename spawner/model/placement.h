/*
 * placement.h - the settings of a step's pod: spec.placement of Executor, Run and TaskAction, and
 * the instance's defaults. docs/placement.md describes every field. The fields have the shapes of
 * Kubernetes' pod (core/v1), so that a part of a manifest can be pasted.
 *
 * Settings that the API server would refuse are refused here at once, with key, value and reason.
 * What only the cluster knows (does this Secret exist?) makes the step fail later.
 * Thread rule: pure functions, any thread.
 */
#ifndef DF_PLACEMENT_MODEL_H
#define DF_PLACEMENT_MODEL_H

#include "spawner/model/schema.h"

extern const struct df_field df_placement_rows[];
extern const struct df_field df_resources_rows[]; /* its member resources */

/* Rules about several rows: every mount path is used once and is not one of the runner's own, and
 * the names of volumes are unique. */
df_rule df_rule_placement;

/* Checks a placement that is not part of a document. where: its name in the message
 * ("placement.defaults"). Class USER, reason InvalidPlacement; the message lists every fault.
 * Defaults are filled in, as in df_model_admit(). */
int df_placement_check(cJSON *placement, const char *where, struct df_err *err) DF_MUST_CHECK;

/* Parses a quantity of Kubernetes ("500m", "1.5Gi", "2e3"): its value in base units, rounded to a
 * double; -1 if it is invalid or negative. */
double df_quantity(const char *text);

/* A DNS-1123 subdomain, the form of most names in Kubernetes: labels joined by dots, 253 bytes. */
bool df_is_dns_subdomain(const char *s);

#endif
