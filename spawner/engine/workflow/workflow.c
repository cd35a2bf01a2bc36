#include "spawner/engine/workflow/workflow.h"

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/crypto/crypto.h"

struct df_workflow df_workflow_of(const struct df_engine_step *step, const char *account)
{
    const cJSON *w = step->workflow.spec;
    const char *until = df_json_str(w, "timesOutAt");
    const char *named = df_json_str(w, "serviceAccountName");
    int64_t until_us = 0;
    if (!until || df_time_parse(until, &until_us, NULL) < 0)
        until_us = 0;
    return (struct df_workflow){
        .name = step->name,
        .source_namespace = step->workflow.name_space,
        .workflow_id = df_json_str(w, "workflowId"),
        .version = df_json_str(w, "version"),
        .target = step->workflow.target,
        .image = df_json_str(w, "executionBundle"),
        .service_account = df_str_empty(named) ? account : named,
        .parameters = df_json_at(w, "parameters"),
        .declared = df_json_at(w, "declaredParameterNames"),
        .secrets = df_json_at(w, "dependencies.secrets"),
        .config_maps = df_json_at(w, "dependencies.configMaps"),
        .resources = df_json_at(w, "resources"),
        .uid = step->uid,
        .deadline_seconds =
            until_us ? df_workflow_deadline(until_us, df_real_us()) : step->timeout_seconds,
    };
}

/* ---- names ---- */

int df_workflow_name(const char *target, char ret[21], struct df_err *err)
{
    char hash[DF_SHA256_HEX];
    if (df_sha256_hex(target, strlen(target), hash, err) < 0)
        return -1;
    (void)snprintf(ret, 21, DF_WORKFLOW_PREFIX "%.16s", hash);
    return 0;
}

void df_workflow_sanitize(const char *target, char ret[64])
{
    size_t n = 0;
    for (; *target && n < 63; target++) {
        ret[n++] = *target == '/' ? '_' : *target;
        if (*target == '/' && n < 63)
            ret[n++] = '_';
    }
    ret[n] = '\0';
}

int64_t df_workflow_deadline(int64_t timed_out_at_us, int64_t now_us)
{
    if (timed_out_at_us == 0)
        return DF_WORKFLOW_DEADLINE_SECONDS;
    int64_t seconds = (timed_out_at_us - now_us) / 1000000;
    return seconds < 1 ? 1 : seconds;
}

int64_t df_workflow_pace_us(int64_t age_us)
{
    int64_t pause_us = age_us / 10;
    return pause_us < DF_WORKFLOW_PACE_MIN_US   ? DF_WORKFLOW_PACE_MIN_US
           : pause_us > DF_WORKFLOW_PACE_MAX_US ? DF_WORKFLOW_PACE_MAX_US
                                                : pause_us;
}

/* ---- parameters ---- */

int df_workflow_parameters(const cJSON *parameters, const cJSON *declared, cJSON **ret,
                           struct df_err *err)
{
    DF_JSON cJSON *kept = NULL;
    if (parameters && !(kept = cJSON_CreateObject()))
        return df_fail_oom(err);
    for (const cJSON *p = parameters ? parameters->child : NULL; p; p = p->next) {
        const cJSON *row = cJSON_GetObjectItemCaseSensitive(declared, p->string);
        if ((!declared || cJSON_IsTrue(row)) &&
            df_json_add(kept, p->string, cJSON_Duplicate(p, true), err) < 0)
            return -1;
    }
    *ret = DF_TAKE(kept);
    return 0;
}

static int check_parameter(enum df_parameters as, const cJSON *p, struct df_err *err)
{
    const char *why = df_workflow_parameter_fault(as, p->string);
    if (!why && !cJSON_IsString(p))
        why = "is not a string; put it in quotes";
    return why ? df_fail_reason(err, DF_ERR_USER, "InvalidStep", "the parameter %.64s %s",
                                p->string, why)
               : 0;
}

int df_workflow_valid_parameters(const struct df_workflow *w, enum df_parameters as, cJSON **ret,
                                 struct df_err *err)
{
    DF_JSON cJSON *parameters = NULL;
    if (df_workflow_parameters(w->parameters, w->declared, &parameters, err) < 0)
        return -1;
    if (cJSON_GetArraySize(parameters) > DF_LIMIT_ENVIRONMENT)
        return df_fail_reason(err, DF_ERR_USER, "InvalidStep", "more than %d parameters",
                              DF_LIMIT_ENVIRONMENT);
    for (const cJSON *p = df_workflow_next_parameter(parameters, NULL); p;
         p = df_workflow_next_parameter(parameters, p->string))
        if (check_parameter(as, p, err) < 0)
            return -1;
    *ret = DF_TAKE(parameters);
    return 0;
}

const cJSON *df_workflow_next_parameter(const cJSON *parameters, const char *last)
{
    const cJSON *best = NULL;
    for (const cJSON *p = parameters ? parameters->child : NULL; p; p = p->next)
        if ((!last || strcmp(p->string, last) > 0) &&
            (!best || strcmp(p->string, best->string) < 0))
            best = p;
    return best;
}
