#include "common/base/limits.h"
#include "common/crypto/crypto.h"
#include "spawner/model/model.h"

static const char *const roles[] = {"none", "read", "write", "admin"};

const char *df_role_name(enum df_role role)
{
    return roles[role];
}

int df_role_parse(const char *name, enum df_role *ret, struct df_err *err)
{
    for (size_t i = DF_ROLE_READ; i < DF_ARRAY_SIZE(roles); i++) {
        if (df_streq(name, roles[i])) {
            *ret = (enum df_role)i;
            return 0;
        }
    }
    return df_fail(err, DF_ERR_USER, "\"%.64s\" is not a role: read, write or admin", name);
}

const char *const df_actions[] = {"provision", "dry-run", "destroy", "state", "validate", NULL};

const char *df_action_name(enum df_action action)
{
    return df_actions[action];
}

int df_action_parse(const char *name, enum df_action *ret, struct df_err *err)
{
    for (size_t i = 0; df_actions[i]; i++) {
        if (df_streq(name, df_actions[i])) {
            *ret = (enum df_action)i;
            return 0;
        }
    }
    return df_fail(err, DF_ERR_USER,
                   "\"%.64s\" is not an action: provision, dry-run, destroy or state", name);
}

int df_model_name(const char *base, const char *suffix, char ret[64], struct df_err *err)
{
    size_t n = strlen(base), m = strlen(suffix);
    char hash[DF_SHA256_HEX] = "", middle[1 + 8 + 1] = "";
    if (m > DF_LIMIT_NAME - 1 - sizeof(middle))
        DF_BUG("the suffix of a name is too long: %s", suffix);
    if (n + 1 + m > DF_LIMIT_NAME) {
        if (df_sha256_hex(base, n, hash, err) < 0)
            return -1;
        (void)snprintf(middle, sizeof(middle), "-%.8s", hash);
        n = DF_LIMIT_NAME - 1 - m - strlen(middle);
    }
    (void)snprintf(ret, DF_LIMIT_NAME + 1, "%.*s%s-%s", (int)n, base, middle, suffix);
    return 0;
}
