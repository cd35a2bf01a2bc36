#include "spawner/model/verbs.h"

const char *const df_verb_names[] = {"view", "plan",  "apply",       "approve", "destroy", "cancel",
                                     "edit", "state", "state-write", "secrets", "grant",   NULL};

const char *const df_preset_names[] = {"read", "plan", "write", "approver", "admin", NULL};
static const df_verbs presets[] = {DF_VERBS_READ, DF_VERB_VIEW | DF_VERB_PLAN, DF_VERBS_WRITE,
                                   DF_VERB_VIEW | DF_VERB_APPROVE, DF_VERBS_ADMIN};

_Static_assert(DF_ARRAY_SIZE(presets) + 1 == DF_ARRAY_SIZE(df_preset_names), "a set for each name");
_Static_assert(DF_VERBS_ADMIN == (1U << (DF_ARRAY_SIZE(df_verb_names) - 1)) - 1, "a name for each");

df_verbs df_verb_parse(const char *name)
{
    for (size_t i = 0; df_verb_names[i]; i++)
        if (df_streq(name, df_verb_names[i]))
            return 1U << i;
    return 0;
}

df_verbs df_preset_verbs(const char *name)
{
    for (size_t i = 0; df_preset_names[i]; i++)
        if (df_streq(name, df_preset_names[i]))
            return presets[i];
    return 0;
}

df_verbs df_role_verbs(enum df_role role)
{
    return df_preset_verbs(df_role_name(role));
}

enum df_role df_verbs_role(df_verbs verbs)
{
    enum df_role role = DF_ROLE_ADMIN;
    while (role > DF_ROLE_NONE && !df_verbs_have(verbs, df_role_verbs(role)))
        role--;
    return role;
}

static const char *list(df_verbs verbs, char ret[DF_VERBS_TEXT])
{
    size_t n = 0;
    ret[0] = '\0';
    for (size_t i = 0; df_verb_names[i]; i++)
        if (verbs & (1U << i))
            n += (size_t)snprintf(ret + n, DF_VERBS_TEXT - n, "%s%s", n ? ", " : "",
                                  df_verb_names[i]);
    return ret;
}

cJSON *df_verbs_list(df_verbs verbs)
{
    const char *names[sizeof(df_verbs) * 8];
    int count = 0;
    for (size_t i = 0; df_verb_names[i]; i++)
        if (verbs & (1U << i))
            names[count++] = df_verb_names[i];
    return cJSON_CreateStringArray(names, count);
}

const char *df_verbs_say(df_verbs verbs, char ret[DF_VERBS_TEXT])
{
    enum df_role role = df_verbs_role(verbs);
    return df_role_verbs(role) == verbs ? df_role_name(role) : list(verbs, ret);
}

int df_verbs_require(df_verbs has, df_verbs needed, const char *what, const char *executor,
                     struct df_err *err)
{
    enum df_role least = DF_ROLE_READ;
    char lacking[DF_VERBS_TEXT], yours[DF_VERBS_TEXT];
    if (df_verbs_have(has, needed))
        return 0;
    while (least < DF_ROLE_ADMIN && !df_verbs_have(df_role_verbs(least), needed))
        least++;
    return df_fail_reason(err, DF_ERR_DENIED, "Forbidden",
                          "%s needs the role %s; yours is %s: on %s%s you may not %s", what,
                          df_role_name(least), df_verbs_say(has, yours),
                          executor ? "executor " : "this executor", executor ? executor : "",
                          list(needed & ~has, lacking));
}
