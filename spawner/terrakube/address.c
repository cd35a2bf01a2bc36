/*
 * address.c - the address where Terrakube's API finds its executor: the routes of the
 * Java one, on a listener of their own (terrakube.listen). Contract: executor/service/mode/online,
 * plugin/scheduler of the API.
 */
#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/terrakube/token.h"
#include "spawner/http/forward.h"
#include "spawner/http/server.h"
#include "spawner/terrakube/terrakube.h"

/* ---- who asks ---- */

/* The API sends a token since 2.31; terrakube.requireToken is false for older ones. */
static int check_token(struct df_request *req, struct df_err *err)
{
    static const char scheme[] = "Bearer ";
    const char *header = df_request_header(req, "Authorization");
    if (!header && !req->s->config->terrakube_requires_token)
        return 0;
    if (!header || !df_starts_with(header, scheme))
        return df_fail_reason(
            err, DF_ERR_DENIED, "Unauthorized",
            "the request has no token signed with InternalSecret. Terrakube sends "
            "none before 2.31: set terrakube.requireToken to false for it");
    return df_terrakube_token_check(df_terrakube_of(req->s)->settings.internal_secret,
                                    header + strlen(scheme), df_real_us(), err);
}

static int check_leads(struct df_request *req, struct df_err *err)
{
    return df_leads(req->s) && !df_api_is_stopping(req->api)
               ? 0
               : df_fail_no_leader(
                     err, "this replica takes no steps: another one leads, or it is stopping");
}

/* Terrakube's API shows the answer to nobody: its operator looks here. */
static int refuse(struct df_request *req, const struct df_err *why, struct df_err *err)
{
    unsigned skipped;
    if (df_log_gate_passes(&df_terrakube_of(req->s)->refused, df_mono_us(), &skipped))
        df_warn("a step of Terrakube is refused: %s (%u refusals before it were not logged)",
                why->message, skipped);
    return df_err_pass(err, why);
}

static int gate(struct df_request *req, struct df_err *err)
{
    struct df_err why = {0};
    if (check_token(req, &why) == 0)
        return check_leads(req, err);
    return refuse(req, &why, err);
}

/* ---- a step ---- */

/* The body is small: the API reads at most 256 KiB of it. */
static int take_step(struct df_request *req, struct df_response *res, struct df_err *err)
{
    struct df_err why = {0};
    if (df_request_terrakube_step(req->s, df_buf_str(&req->body), req->body.len, &why) < 0)
        return why.cls == DF_ERR_USER ? refuse(req, &why, err) : df_err_pass(err, &why);
    df_buf_wipe(&req->body);
    res->status = 202;
    res->content_type = "application/json";
    return df_buf_adds(&res->body, "{}") < 0 ? df_fail_oom(err) : 0;
}

/* ---- health, as Spring tells it ---- */

static int tell_health(struct df_response *res, bool is_up, struct df_err *err)
{
    res->status = is_up ? 200 : 503;
    res->content_type = "application/vnd.spring-boot.actuator.v3+json";
    (void)df_buf_addf(&res->body, "{\"status\":\"%s\"}", is_up ? "UP" : "OUT_OF_SERVICE");
    return df_buf_check(&res->body, err);
}

static int get_liveness(struct df_request *req, struct df_response *res, struct df_err *err)
{
    (void)req;
    return tell_health(res, true, err);
}

static int get_readiness(struct df_request *req, struct df_response *res, struct df_err *err)
{
    return tell_health(res, check_leads(req, NULL) == 0, err);
}

/* ---- routes ---- */

#define PROBE(path, function)                                                                      \
    {                                                                                              \
        .method = "GET", .pattern = (path), .access = DF_ACCESS_ANYONE, .handler = (function)      \
    }
static const struct df_route routes[] = {
    {.method = "POST",
     .pattern = "/api/v1/terraform-rs",
     .access = DF_ACCESS_ANYONE,
     .body = DF_BODY_BYTES,
     .body_max = DF_LIMIT_TERRAKUBE_PAYLOAD,
     .gate = gate,
     .handler = take_step},
    PROBE("/actuator/health", get_readiness),
    PROBE("/actuator/health/liveness", get_liveness),
    PROBE("/actuator/health/readiness", get_readiness),
};

const struct df_route_table df_terrakube_routes = {routes, DF_ARRAY_SIZE(routes)};
