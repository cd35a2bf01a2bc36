/*
 * policy.c - shows what callers may set in the pod of a step (placement.allow), in one line.
 */
#include "spawner/doctor/checks.h"
#include "spawner/model/allow.h"

static const char *const level_names[DF_ALLOW_LEVELS] = {"Executor", "Run", "workflow"};

static void add_role(const struct df_allow *allow, enum df_allow_role role, struct df_buf *line)
{
    for (int level = 0; level < DF_ALLOW_LEVELS; level++) {
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
