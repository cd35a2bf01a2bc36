/* who.c - where people sign in, and as whom the service sees a caller. */
#include "spawner/api/handlers.h"

/* Nobody has a token yet who asks that: nothing of it is secret. */
int df_get_login(struct df_request *req, struct df_response *res, struct df_err *err)
{
    const struct df_openid *p = &req->s->config->oidc;
    if (!p->issuer)
        return df_fail(
            err, DF_ERR_NOT_FOUND,
            "this service has no OpenID provider (auth.oidc): its callers have tokens of "
            "its token file or of service accounts");
    DF_JSON cJSON *doc = df_json_object(
        DF_STR("issuer", p->issuer), DF_STR("clientId", p->audience), DF_STR("scopes", p->scopes));
    return df_check_alloc(doc, err) < 0 ? -1 : df_respond_json(res, 200, doc, err);
}

static int add_groups(const struct df_request *req, cJSON *doc, struct df_err *err)
{
    const struct df_caller *c = &req->caller;
    const struct df_grantee who = {.user = c->known_by == DF_KNOWN_BY_OPENID ? c->name : NULL,
                                   .groups = c->groups,
                                   .account = c->known_by == DF_KNOWN_BY_ACCOUNT ? c->name : NULL};
    DF_JSON cJSON *grants = cJSON_CreateArray();
    cJSON *groups = c->groups ? cJSON_Duplicate(c->groups, true) : cJSON_CreateArray();
    if (df_json_add(doc, "groups", groups, err) < 0 || df_check_alloc(grants, err) < 0 ||
        df_grants_naming(req->s->config->grants, &who, grants, err) < 0)
        return -1;
    return df_json_add(doc, "grants", DF_TAKE(grants), err);
}

int df_get_whoami(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_JSON cJSON *doc = df_json_object(DF_STR("name", req->caller.name),
                                        DF_STR("role", df_role_name(req->caller.role)),
                                        DF_STR("knownBy", df_known_by_name(req->caller.known_by)));
    const cJSON *token = req->caller.token;
    if (df_check_alloc(doc, err) < 0 || add_groups(req, doc, err) < 0 ||
        (token && df_json_add(doc, "token", cJSON_Duplicate(token, true), err) < 0))
        return -1;
    return df_respond_json(res, 200, doc, err);
}
