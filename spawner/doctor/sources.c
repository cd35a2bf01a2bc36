/*
 * sources.c - asks each source of secrets, and names the vault's own secrets that one hides.
 */
#include "spawner/doctor/checks.h"
#include "spawner/model/secret_source.h"
#include "spawner/store/vault/open_sources.h"

int df_check_sources(struct df_doctor_context *p, struct df_err *err)
{
    const struct df_sources_options o = {.sources = p->config.secret_sources,
                                         .kube = p->kube,
                                         .name_space = p->service_ns,
                                         .never = &p->never};
    DF_SOURCES struct df_sources *sources = NULL;
    if (df_sources_open(&o, &sources, err) < 0)
        return -1;
    for (size_t i = 0; sources && i < sources->len; i++) {
        const struct df_source *s = &sources->items[i];
        struct df_err why = {0};
        if (df_source_check(s, &why) < 0)
            df_finding(p, DF_LEVEL_FAIL, "%s", why.message);
        else
            df_finding(p, DF_LEVEL_OK, "the secrets %s-… can be read from %s", s->name, s->place);
    }
    return 0;
}

void df_find_hidden_secrets(struct df_doctor_context *p, const cJSON *secrets)
{
    const cJSON *secret, *source;
    cJSON_ArrayForEach (secret, secrets) {
        const char *name = df_json_str(secret, "name");
        cJSON_ArrayForEach (source, p->config.secret_sources) {
            if (name && df_secret_source_rest(source->string, name))
                df_finding(p, DF_LEVEL_WARN,
                           "the secret \"%s\" of the vault is not used: such names are those of "
                           "vault.sources.%s; store it under another name",
                           name, source->string);
        }
    }
}
