/*
 * extra_vars.h - the variables that a playbook gets, from parameters, owner and ConfigMaps.
 *
 * Contract: kubernaut's ansible executor. Parameters are texts, and Ansible shall get numbers and
 * booleans: what Go's strconv reads as one is sent as Go would print it. Unlike there, "nan" and
 * "inf" are refused by the parameter's name. Thread rule: pure functions, any thread.
 */
#ifndef DF_ENGINE_EXTRA_VARS_H
#define DF_ENGINE_EXTRA_VARS_H

#include "common/json/json.h"

/* What the playbook is told of its run. NULL: "". */
struct df_extra_owner {
    const char *name, *name_space;           /* of the action: WFE_NAME, WFE_NAMESPACE */
    const char *request, *request_namespace; /* RR_NAME, RR_NAMESPACE */
    const char *uid; /* of the action: DAYFLY_UID, by which its job is found again; NULL: none */
};

/* Appends a name as a part of a variable's name: upper-case, and "_" for "-". */
void df_extra_vars_add_part(struct df_buf *to, const char *name);

/* One parameter as a value of JSON; numbers are kept as text (cJSON_Raw). In this order: a whole
 * number of 64 bits, a number, a boolean, a JSON array or object, a string. USER: "nan" or "inf",
 * or JSON that is nested too deep. The caller owns *ret. */
int df_extra_vars_value(const char *text, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* All of them, to be printed by df_json_print_nul(). parameters: {NAME: "text"}, those that are
 * declared; or NULL. config_maps: objects of Kubernetes, or NULL; their data is given as texts:
 * KUBERNAUT_CONFIGMAP_<NAME>_<KEY>. Of the same name a key of a ConfigMap is stronger than the
 * owner, and that than a parameter. USER names the parameter, or the variable that two keys become.
 * The caller owns *ret. */
int df_extra_vars(const cJSON *parameters, const struct df_extra_owner *owner,
                  const cJSON *config_maps, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

#endif
