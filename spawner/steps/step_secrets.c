#include "spawner/steps/step_secrets.h"

#include "spawner/model/secret_use.h"

/* Fails with a class that tells whether the step can ever have the secret. */
static int fail_secret(const struct df_spawner *s, const char *name, const char *what,
                       const struct df_err *why, struct df_err *err)
{
    DF_FREE char *advice = df_vault_advice(s->vault, name, NULL);
    if (!advice)
        return df_fail_oom(err);
    if (why->cls == DF_ERR_NOT_FOUND)
        return df_fail_reason(err, DF_ERR_USER, "InvalidStep", "%s: %s; %s", what, why->message,
                              advice);
    (void)df_err_pass(err, why);
    if (df_streq(why->reason, "SecretNotAllowed"))
        err->cls = DF_ERR_USER; /* it was allowed when the executor was written */
    return df_err_wrap(err, "%s", what);
}

static int read_secret(struct df_spawner *s, const cJSON *task, const char *name, cJSON **ret,
                       struct df_err *err)
{
    DF_JSON cJSON *use = NULL;
    const char *executor = df_json_str(task, "spec.executorRef.name");
    if (df_vault_get_use(s->vault, name, &use, err) < 0 ||
        df_secret_use_check(use, DF_USED_SECRET(name), executor, err) < 0)
        return -1;
    return df_vault_get(s->vault, name, ret, err);
}

int df_step_secret(struct df_spawner *s, const cJSON *task, const char *name, const char *what,
                   cJSON **ret, struct df_err *err)
{
    struct df_err why = {0};
    return read_secret(s, task, name, ret, &why) < 0 ? fail_secret(s, name, what, &why, err) : 0;
}
