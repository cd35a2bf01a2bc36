/*
 * validate.c - df_request_validate() at the end of the file executes the checks in this order:
 * browser protection, route, caller, rights, query parameters, body, gate. Each check is a function
 * of its own. The first failure becomes the response.
 */
#include "spawner/http/validate.h"

#include <poll.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/crypto/jwt.h"
#include "common/yaml/yaml.h"
#include "spawner/http/forward.h"
#include "spawner/http/framing.h"
#include "spawner/http/rights.h"
#include "spawner/http/server.h"
#include "spawner/identity/oidc.h"
#include "spawner/identity/personal.h"

#define GATE_LAG_MS 2000 /* how far behind the leader a replica may be */
#define GATE_PAUSE_MS 20

enum media { MEDIA_JSON, MEDIA_YAML, MEDIA_PATCH, MEDIA_OTHER };

static enum media media_of(const struct df_request *req)
{
    static const struct {
        const char *name;
        enum media media;
    } known[] = {
        {"application/json", MEDIA_JSON}, {"application/merge-patch+json", MEDIA_PATCH},
        {"application/yaml", MEDIA_YAML}, {"application/x-yaml", MEDIA_YAML},
        {"text/yaml", MEDIA_YAML},
    };
    const char *type = df_request_header(req, "Content-Type");
    if (!type)
        return MEDIA_OTHER; /* a page of a browser may send that without asking */
    size_t n = strcspn(type, "; \t");
    for (size_t i = 0; i < DF_ARRAY_SIZE(known); i++)
        if (strlen(known[i].name) == n && strncasecmp(type, known[i].name, n) == 0)
            return known[i].media;
    return MEDIA_OTHER;
}

static int check_browser(const struct df_request *req, struct df_err *err)
{
    const char *host = df_request_header(req, "Host");
    const char *origin = df_request_header(req, "Origin");
    const char *site = df_request_header(req, "Sec-Fetch-Site");
    if (site && !df_streq(site, "same-origin") && !df_streq(site, "none"))
        return df_fail_reason(err, DF_ERR_DENIED, "Forbidden",
                              "requests of other web pages are refused");
    if (!req->api->is_local)
        return 0;
    if (!df_host_is_loopback(host))
        return df_fail_reason(err, DF_ERR_DENIED, "Forbidden",
                              "the Host header must name loopback (localhost, 127.0.0.1): this "
                              "server answers this machine alone");
    if (origin && !df_origin_is_host(origin, host, req->api->tls != NULL))
        return df_fail_reason(err, DF_ERR_DENIED, "Forbidden",
                              "requests of other web pages are refused");
    return 0;
}

static enum df_role role_needed(enum df_access access)
{
    switch (access) {
    case DF_ACCESS_READ:
        return DF_ROLE_READ;
    case DF_ACCESS_WRITE:
        return DF_ROLE_WRITE;
    case DF_ACCESS_ADMIN:
        return DF_ROLE_ADMIN;
    case DF_ACCESS_ANYONE:
    case DF_ACCESS_CALLER:
    case DF_ACCESS_EXECUTOR:
    case DF_ACCESS_STEP:
        return DF_ROLE_NONE;
    }
    return DF_ROLE_ADMIN;
}

static int find_caller(struct df_request *req, struct df_err *err)
{
    const struct df_config *config = req->s->config;
    const struct df_credentials *c = &req->credentials;
    bool bearer =
        c->scheme == DF_SCHEME_BEARER || (c->scheme == DF_SCHEME_BASIC && req->route->basic);
    bool is_jwt = bearer && df_jwt_is(c->secret);
    if (bearer && df_personal_is(c->secret)) {
        const struct df_personal_rules rules = {config->grants, req->api->tokens,
                                                req->s->oidc != NULL, df_leads(req->s)};
        return df_personal_caller(req->s->personal, &rules, c->secret, &req->caller, err);
    }
    if (is_jwt && req->s->oidc && df_oidc_is_issuer(req->s->oidc, c->secret))
        return df_oidc_caller(req->s->oidc, config->grants, c->secret, &req->caller, err);
    if (is_jwt && (config->accounts || df_grants_name_accounts(config->grants)))
        return df_auth_account(config->accounts, config->grants, req->s->claims, c->secret,
                               &req->caller, err);
    return df_auth_caller(req->api->tokens, c, req->route->basic, &req->caller, err);
}

/* Also of somebody who has come for nothing, because no grant names a group of theirs any more: so
 * their tokens end. Best effort: the next request tries it again. */
static void note_person(const struct df_request *req)
{
    const struct df_caller *c = &req->caller;
    struct df_err err = {0};
    if (c->known_by == DF_KNOWN_BY_OPENID && !c->token && df_leads(req->s) &&
        df_personal_note(req->s->personal, c, &err) < 0)
        df_debug("the groups of %s are not noted: %s", c->name, err.message);
}

static int identify(struct df_request *req, struct df_err *err)
{
    int result = find_caller(req, err);
    note_person(req);
    if (result < 0)
        return -1;
    req->caller.granted.creator = df_preset_verbs(req->s->config->creator);
    return 0;
}

static int check_caller(struct df_request *req, struct df_err *err)
{
    const struct df_route *route = req->route;
    if (route->access == DF_ACCESS_ANYONE)
        return 0;
    if (route->token_in_path)
        return df_check_alloc(req->credentials.secret = strdup(req->params[1]), err);
    const char *header = df_request_header(req, "Authorization");
    if (df_credentials_parse(header, &req->credentials, err) < 0)
        return -1;
    if (route->access == DF_ACCESS_STEP) {
        enum df_scheme wanted = route->basic ? DF_SCHEME_BASIC : DF_SCHEME_BEARER;
        if (req->credentials.scheme != wanted)
            return df_fail_reason(err, DF_ERR_DENIED, "Unauthorized", "the step's own %s is needed",
                                  route->basic ? "user and password" : "bearer token");
        return 0;
    }
    if (identify(req, err) < 0)
        return -1;
    return df_auth_require(&req->caller, role_needed(route->access), err);
}

/* Only the leader knows every executor: it checks what another replica forwards. */
static int check_rights(struct df_request *req, struct df_err *err)
{
    return df_forwards(req) ? 0 : df_rights_check(req, err);
}

static int check_query(const struct df_request *req, struct df_err *err)
{
    for (size_t i = 0; i < req->target.query_count; i++)
        if (!df_route_has_query(req->route, req->target.query[i].name))
            return df_fail_reason(err, DF_ERR_USER, "UnknownParameter",
                                  "?%.64s: this path has no such parameter",
                                  req->target.query[i].name);
    return 0;
}

static int check_media(const struct df_request *req, struct df_err *err)
{
    enum media media = media_of(req);
    const char *wanted = NULL;
    if (req->route->body == DF_BODY_JSON && media != MEDIA_JSON)
        wanted = "application/json";
    else if (req->route->body == DF_BODY_DOCUMENT && media != MEDIA_JSON && media != MEDIA_YAML)
        wanted = "application/json or application/yaml";
    else if (req->route->body == DF_BODY_PATCH && media != MEDIA_JSON && media != MEDIA_PATCH)
        wanted = "application/merge-patch+json or application/json";
    if (!wanted)
        return 0;
    return df_fail_reason(err, DF_ERR_USER, "UnsupportedMediaType",
                          "the body's Content-Type must be %s", wanted);
}

static int check_body(const struct df_request *req, uint64_t length, struct df_err *err)
{
    if (length == 0)
        return 0;
    if (req->route->body == DF_BODY_NONE)
        return df_fail(err, DF_ERR_USER, "this path and method take no body");
    if (length != DF_BODY_UNKNOWN && length > req->route->body_max)
        return df_fail(err, DF_ERR_LIMIT, "the body has %llu bytes; at most %zu are taken",
                       (unsigned long long)length, req->route->body_max);
    return check_media(req, err);
}

/* A refused token of a step is a 401. An errno means that this server may not read its own file. */
static int pass_gate(struct df_request *req, struct df_err *err)
{
    if (req->route->gate(req, err) == 0)
        return 0;
    if (err->cls == DF_ERR_DENIED && !err->os_errno)
        (void)df_err_reason(err, "Unauthorized");
    return -1;
}

/* A replica that does not lead learns of a step and its tokens a moment after the leader. Its word
 * against a token is not final: another replica may be asked. */
static int check_gate(struct df_request *req, struct df_err *err)
{
    int64_t until_ms = df_mono_ms() + GATE_LAG_MS;
    while (pass_gate(req, err) < 0) {
        bool unknown = err->cls == DF_ERR_NOT_FOUND ||
                       (err->cls == DF_ERR_DENIED && !df_streq(err->reason, "Forbidden"));
        if (!df_forwards(req) || !unknown)
            return -1;
        if (df_mono_ms() >= until_ms)
            return df_fail_reason(err, DF_ERR_RETRY, "NoLeader",
                                  "this replica does not lead and does not know the step's token; "
                                  "try again");
        *err = (struct df_err){0};
        (void)poll(NULL, 0, GATE_PAUSE_MS);
    }
    return 0;
}

int df_request_validate(struct df_request *req, struct df_response *res, uint64_t length,
                        struct df_err *err)
{
    if (check_browser(req, err) < 0)
        return -1;
    if (df_route_find(req->api->routes, req->method, &req->target, &req->route, req->params,
                      res->allow, err) < 0 ||
        check_caller(req, err) < 0 || check_rights(req, err) < 0 || check_query(req, err) < 0 ||
        check_body(req, length, err) < 0)
        return -1;
    return req->route->gate ? check_gate(req, err) : 0;
}

int df_request_parse_body(struct df_request *req, struct df_err *err)
{
    enum df_body_kind kind = req->route->body;
    bool document = kind == DF_BODY_JSON || kind == DF_BODY_DOCUMENT || kind == DF_BODY_PATCH;
    if (!document || req->body.len == 0)
        return 0;
    DF_JSON cJSON *json = NULL;
    const char *text = df_buf_str(&req->body);
    int failed = media_of(req) == MEDIA_YAML ? df_yaml_parse(text, req->body.len, &json, NULL, err)
                                             : df_json_parse(text, req->body.len, &json, err);
    if (failed < 0)
        return df_err_wrap(err, "body");
    if (!cJSON_IsObject(json))
        return df_fail_reason(err, DF_ERR_USER, "InvalidDocument", "the body must be an object");
    req->json = DF_TAKE(json);
    df_buf_wipe(&req->body);
    return 0;
}
