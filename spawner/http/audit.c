#include "spawner/http/audit.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "spawner/http/problem.h"
#include "spawner/http/server.h"

static int fill_entry(cJSON *entry, const struct df_request *req, const char *action,
                      const char *kind, const char *name, struct df_err *err)
{
    return df_json_put(entry, err, DF_TIME("at", df_real_us()), DF_STR("actor", req->caller.name),
                       DF_STR("role", df_role_name(req->caller.role)), DF_STR("action", action),
                       DF_STR("kind", kind), DF_STR("name", name));
}

static void store_entry(const struct df_request *req, const char *action, const char *kind,
                        const char *name, const char *outcome, const char *detail)
{
    struct df_err err = {0};
    DF_JSON cJSON *entry = cJSON_CreateObject();
    if (!entry || fill_entry(entry, req, action, kind, name, &err) < 0 ||
        df_json_put(entry, &err, DF_STR("outcome", outcome), DF_STR("detail", detail)) < 0 ||
        df_store_audit(req->s->store, entry, &err) < 0)
        df_error("audit trail: %s", entry ? err.message : "out of memory");
}

/* True if this refused login is to be recorded. *ret_more: how many before it were not. */
static bool is_login_due(struct df_api *a, unsigned *ret_more)
{
    int64_t now = df_mono_ms();
    (void)pthread_mutex_lock(&a->lock);
    bool due = !a->denied_at_ms || now - a->denied_at_ms >= 1000;
    *ret_more = a->denied_skipped;
    a->denied_skipped = due ? 0 : a->denied_skipped + 1;
    if (due)
        a->denied_at_ms = now;
    (void)pthread_mutex_unlock(&a->lock);
    return due;
}

static void refused_login(const struct df_request *req, const struct df_err *why)
{
    unsigned more = 0;
    df_metric_add(req->api->refused, NULL, 1);
    if (!is_login_due(req->api, &more))
        return;
    char detail[sizeof(why->message) + 64];
    (void)snprintf(detail, sizeof(detail), "%s (and %u more before)", why->message, more);
    store_entry(req, "login", "Path", req->route ? req->route->pattern : "", "refused",
                more ? detail : why->message);
}

void df_audit_request(struct df_request *req, const struct df_response *res,
                      const struct df_err *why)
{
    int status = why->cls == DF_ERR_NONE ? res->status : df_problem_status(why);
    if (status == 401) {
        refused_login(req, why);
        return;
    }
    const char *action = res->audit ? res->audit : req->route ? req->route->audit : NULL;
    if (!action)
        return;
    const char *name = res->audit_name[0] ? res->audit_name : req->params[0];
    const char *outcome = status < 400 ? "done" : status < 500 ? "refused" : "failed";
    store_entry(req, action, req->route->kind, name ? name : "", outcome, why->message);
}
