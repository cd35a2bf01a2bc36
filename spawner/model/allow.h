/*
 * allow.h - what a document may say about its pod: the operator's policy `placement.allow`. For
 * each role and level there is one rule (allow_rule.h): the fields that may be set, and lists of
 * names for what they refer to. docs/placement.md describes the rules and their defaults.
 *
 * A rule limits what a caller sets, not what a pod has: the placements of the configuration are not
 * checked. never.h has what nobody gets.
 * Thread rule: pure functions, any thread.
 */
#ifndef DF_ALLOW_H
#define DF_ALLOW_H

#include "common/base/buf.h"
#include "spawner/model/allow_rule.h"
#include "spawner/model/names.h"

/* Who asks for what. All borrowed. */
struct df_allow_ask {
    enum df_role role; /* less than ADMIN counts as WRITE */
    enum df_allow_level level;
    const char *class_name; /* its limits bind all but admins; or NULL */
    const char *where;      /* of the fields, in messages: "placement" */
};

/* Checks the fields of a placement that differ from those of `old`, which the document had before;
 * both may be NULL. Class USER, reason PlacementDenied; the message names every fault with field,
 * value, the key of the rule and who may. */
int df_allow_check(const struct df_allow *a, const struct df_allow_ask *ask, const cJSON *placement,
                   const cJSON *old, struct df_err *err) DF_MUST_CHECK;

/* The same for spec.workflow: its image, service account, resources and dependencies. */
int df_allow_check_workflow(const struct df_allow *a, const struct df_allow_ask *ask,
                            const cJSON *workflow, struct df_err *err) DF_MUST_CHECK;

/* Appends a rule in one line: "*, images *, volumes emptyDir secret". */
void df_allow_describe(const struct df_allow *a, const struct df_allow_cell *cell,
                       struct df_buf *to);

#endif
