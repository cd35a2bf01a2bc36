/* The member `isolation` of the handoff of steps: mode and hidden paths. */
#include "common/base/limits.h"
#include "spawner/config/keys.h"
#include "spawner/model/secret_source.h"

/* Files that the service itself reads for credentials, if its environment names them. With `auto` a
 * step sees the files of the service's user, and callers may name these for their runs. */
static const char *const variables[] = {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
                                        "AWS_SHARED_CREDENTIALS_FILE",
                                        "AWS_WEB_IDENTITY_TOKEN_FILE",
                                        "AZURE_FEDERATED_TOKEN_FILE",
                                        "GOOGLE_APPLICATION_CREDENTIALS",
                                        "KUBECONFIG"};

/* list: paths with colons between them; all but one of the variables have one. */
static void add_absolute(const char *list, struct df_strs *ret)
{
    for (const char *at = list; at && *at;) {
        int n = (int)strcspn(at, ":");
        if (*at == '/')
            (void)df_strs_addf(ret, "%.*s", n, at);
        at += n + (at[n] == ':');
    }
}

static void add_key(const struct df_config *c, const struct df_key *k, struct df_strs *ret)
{
    const void *member = (const char *)c + k->offset;
    const struct df_strs *list = member;
    if (k->type == DF_KEY_PATH && *(char *const *)member)
        (void)df_strs_add(ret, *(char *const *)member);
    for (size_t i = 0; k->type == DF_KEY_PATHS && i < list->len; i++)
        (void)df_strs_add(ret, list->items[i]);
}

static int add_secrets(const struct df_config *c, struct df_strs *ret, struct df_err *err)
{
    for (size_t i = 0; i < df_key_count; i++)
        if (df_keys[i].is_secret)
            add_key(c, &df_keys[i], ret);
    df_secret_source_paths(c->secret_sources, ret);
    DF_FREE char *logins = NULL;
    if (df_config_home_path(environ, DF_LOGINS_PLACE, &logins, err) < 0)
        return -1;
    if (logins)
        (void)df_strs_add(ret, logins);
    for (size_t i = 0; df_streq(c->isolation, "strict") && i < DF_ARRAY_SIZE(variables); i++)
        add_absolute(getenv(variables[i]), ret);
    return df_strs_check(ret, err);
}

int df_config_isolation(const struct df_config *c, cJSON **ret, struct df_err *err)
{
    DF_STRS struct df_strs secrets = {0};
    DF_JSON cJSON *isolation = cJSON_CreateObject();
    cJSON *hidden = df_json_array_at(isolation, "hidden");
    if (df_check_alloc(hidden, err) < 0 || add_secrets(c, &secrets, err) < 0 ||
        df_json_add_str(isolation, "mode", c->isolation, err) < 0)
        return -1;
    for (size_t i = 0; i < secrets.len; i++)
        if (df_json_append_str(hidden, secrets.items[i], err) < 0)
            return -1;
    *ret = DF_TAKE(isolation);
    return 0;
}
