/*
 * policy.c - what holds the pod of a step back: placement.allow, in one line, and the Pod Security
 * Standard of its namespace.
 */
#include "spawner/doctor/checks.h"
#include "spawner/model/allow.h"

#define ENFORCE "pod-security.kubernetes.io/enforce"
#define STANDARD "restricted"

/* ---- placement.allow ---- */

static const char *const level_names[DF_ALLOW_LEVELS] = {"Executor", "Run", "workflow",
                                                         "workspace of Terrakube"};

static void add_role(const struct df_allow *allow, enum df_allow_role role, struct df_buf *line)
{
    int levels = role == DF_ALLOW_ADMIN ? DF_ALLOW_TERRAKUBE : DF_ALLOW_LEVELS;
    for (int level = 0; level < levels; level++) {
        const struct df_allow_cell cell = {role, (enum df_allow_level)level};
        (void)df_buf_addf(line, "%s%s: ", level ? "; " : "", level_names[level]);
        if (role == DF_ALLOW_ADMIN && !allow->rules[role][level])
            (void)df_buf_adds(line, "everything");
        else
            df_allow_describe(allow, &cell, line);
    }
}

int df_check_policy(struct df_doctor_context *p, struct df_err *err)
{
    const struct df_allow allow = df_config_allow(&p->config, &p->never);
    DF_BUF struct df_buf line = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    (void)df_buf_adds(&line, "write may set: ");
    add_role(&allow, DF_ALLOW_WRITE, &line);
    (void)df_buf_adds(&line, ". admin: ");
    add_role(&allow, DF_ALLOW_ADMIN, &line);
    if (df_buf_check(&line, err) < 0)
        return -1;
    df_finding(p, DF_LEVEL_OK, "%s", df_buf_str(&line));
    return 0;
}

/* ---- the Pod Security Standard ---- */

int df_check_pod_security(struct df_doctor_context *p, struct df_err *err)
{
    DF_FREE char *path = df_strf("/api/v1/namespaces/%s", p->name_space);
    DF_JSON cJSON *found = NULL;
    struct df_err why = {0};
    if (!path)
        return df_fail_oom(err);
    if (df_kube_get_raw(p->kube, path, &found, &why) < 0) {
        if (why.cls != DF_ERR_DENIED)
            return df_err_pass(err, &why);
        df_finding(
            p, DF_LEVEL_WARN,
            "these credentials may not read the namespace %s, so nothing is known of its Pod "
            "Security Standard: grant the Role of rbac/",
            p->name_space);
        return 0;
    }
    const cJSON *labels = df_json_at(found, "metadata.labels");
    const char *level = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(labels, ENFORCE));
    if (df_streq(level, STANDARD))
        df_finding(p, DF_LEVEL_OK,
                   "the namespace %s of steps enforces the Pod Security Standard %s", p->name_space,
                   level);
    else
        df_finding(p, DF_LEVEL_WARN,
                   "the namespace %s of steps enforces %s%s, not " STANDARD
                   ": what placement.allow lets through may take the node. Steps pass it: kubectl "
                   "label namespace %s " ENFORCE "=" STANDARD,
                   p->name_space, level ? "the Pod Security Standard " : "no Pod Security Standard",
                   level ? level : "", p->name_space);
    return 0;
}
