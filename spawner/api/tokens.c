/* tokens.c - people make, list and revoke their personal tokens (identity/personal.h). */
#include "spawner/api/handlers.h"
#include "spawner/identity/personal.h"

static int refuse(struct df_err *err, const char *why)
{
    return df_fail_reason(err, DF_ERR_DENIED, "Forbidden", "%s", why);
}

/* Otherwise one that is found would make itself a longer life. */
static int check_token(const struct df_request *req, struct df_err *err)
{
    return !req->caller.token ? 0
                              : refuse(err, "a personal token makes, lists and revokes none: "
                                            "`dayfly whoami` shows this one, and its owner, "
                                            "signed in without it, does the rest");
}

/* Whose tokens the request is about: the caller's, or for an admin those of ?of. */
static int find_owner(const struct df_request *req, struct df_personal_owner *ret,
                      struct df_err *err)
{
    const char *of = df_request_query(req, "of"), *own = req->caller.name;
    bool is_own = !of || df_streq(of, own);
    if (check_token(req, err) < 0)
        return -1;
    if (of && (!*of || strlen(of) > DF_LIMIT_CALLER))
        return df_fail(err, DF_ERR_USER, "?of: must be a name of at most %d characters",
                       DF_LIMIT_CALLER);
    if (!is_own && req->caller.role < DF_ROLE_ADMIN)
        return refuse(err, "the tokens of others are for the role admin");
    *ret = (struct df_personal_owner){is_own ? own : of, NULL};
    if (is_own)
        ret->known_by = df_known_by_name(req->caller.known_by);
    return 0;
}

int df_list_tokens(struct df_request *req, struct df_response *res, struct df_err *err)
{
    struct df_personal_owner owner;
    cJSON *items = NULL;
    if (find_owner(req, &owner, err) < 0 ||
        df_personal_list(req->s->personal, &owner, &items, err) < 0)
        return -1;
    return df_respond_list(res, items, NULL, err);
}

static int check_maker(const struct df_request *req, struct df_err *err)
{
    if (check_token(req, err) < 0)
        return -1;
    if (req->caller.known_by == DF_KNOWN_BY_ACCOUNT)
        return refuse(err, "a service account has no personal tokens: the cluster makes its own");
    if (!req->credentials.secret)
        return refuse(err, "this service asks nobody for a token (auth.loopback), and takes none");
    return 0;
}

int df_create_token(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_SECRET_JSON cJSON *made = NULL;
    const char *name = df_json_str(req->json, "name");
    char verbs[DF_VERBS_TEXT];
    df_copy(res->audit_name, sizeof(res->audit_name), name ? name : "");
    if (!req->json)
        return df_fail(err, DF_ERR_USER, "a body that says what the token is to be is required");
    if (check_maker(req, err) < 0 ||
        df_personal_create(req->s->personal, &req->caller, req->json, &made, err) < 0)
        return -1;
    res->audit_detail = df_strf("until %s: %s", df_json_str(made, "expiresAt"),
                                df_verbs_say(df_grant_verbs(made), verbs));
    res->secret = true;
    return df_respond_json(res, 201, made, err);
}

int df_revoke_token(struct df_request *req, struct df_response *res, struct df_err *err)
{
    struct df_personal_owner owner;
    if (!req->params[0])
        df_copy(res->audit_name, sizeof(res->audit_name), "all");
    if (find_owner(req, &owner, err) < 0)
        return -1;
    res->audit_detail = df_strf("of %s", owner.name);
    if (df_check_alloc(res->audit_detail, err) < 0 ||
        df_personal_revoke(req->s->personal, &owner, req->params[0], err) < 0)
        return -1;
    df_respond_nothing(res);
    return 0;
}
