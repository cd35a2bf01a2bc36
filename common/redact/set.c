#include "common/redact/set.h"

#include "common/base/limits.h"
#include "common/redact/forms.h"
#include "common/redact/members.h"
#include "common/redact/redact.h"

static int add_form(void *arg, const struct df_redact_form *form, struct df_err *err)
{
    struct df_redact_set *s = arg;
    return df_patterns_add(form->joined ? &s->joined : &s->plain, form, err);
}

static int add_value(void *arg, const char *value, struct df_err *err)
{
    return df_redact_forms(value, add_form, arg, err);
}

static int add_secrets(struct df_redact_set *s, const struct df_strs *secrets, struct df_err *err)
{
    if (secrets->len > DF_LIMIT_SECRETS_MASKED)
        return df_fail(err, DF_ERR_LIMIT, "%zu secrets to mask, at most %d are allowed",
                       secrets->len, DF_LIMIT_SECRETS_MASKED);
    for (size_t i = 0; i < secrets->len; i++) {
        if (add_value(s, secrets->items[i], err) < 0 ||
            df_redact_members(secrets->items[i], add_value, s, err) < 0)
            return -1;
    }
    return 0;
}

void df_redact_set_free(struct df_redact_set *s)
{
    if (!s)
        return;
    df_patterns_free(&s->plain);
    df_patterns_free(&s->joined);
    df_joints_free(&s->joints);
    free(s);
}

static void free_set(struct df_redact_set **s)
{
    df_redact_set_free(*s);
}

int df_redact_set_new(const struct df_strs *secrets, struct df_redact_set **ret, struct df_err *err)
{
    DF_CLEANUP(free_set) struct df_redact_set *s = calloc(1, sizeof *s);
    if (df_check_alloc(s, err) < 0 || add_secrets(s, secrets, err) < 0 ||
        df_patterns_seal(&s->plain, err) < 0 || df_patterns_seal(&s->joined, err) < 0 ||
        df_joints_new(&s->joined, &s->joints, err) < 0)
        return -1;
    *ret = DF_TAKE(s);
    return 0;
}
