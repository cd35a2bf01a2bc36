#include "spawner/http/audit.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "spawner/http/problem.h"
#include "spawner/http/server.h"

/* Entries a second, so that nobody can fill the disk with what is refused. */
enum { LOGINS = 1, REFUSALS = 10 };

/* Where the request comes from; "" if another replica has forwarded it, or it is not known. */
static const char *address_of(const struct df_request *req, char out[INET6_ADDRSTRLEN])
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(req->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *peer = info && !df_is_forwarded(req) ? info->client_addr : NULL;
    const void *address = NULL;
    out[0] = '\0';
    if (peer && peer->sa_family == AF_INET)
        address = &((const struct sockaddr_in *)(const void *)peer)->sin_addr;
    else if (peer && peer->sa_family == AF_INET6)
        address = &((const struct sockaddr_in6 *)(const void *)peer)->sin6_addr;
    return address && inet_ntop(peer->sa_family, address, out, INET6_ADDRSTRLEN) ? out : "";
}

static int fill_entry(cJSON *entry, const struct df_request *req, const char *action,
                      const char *kind, const char *name, struct df_err *err)
{
    char text[INET6_ADDRSTRLEN];
    const char *address = address_of(req, text);
    return df_json_put(entry, err, DF_TIME("at", df_real_us()), DF_STR("actor", req->caller.name),
                       DF_STR("role", df_role_name(req->caller.role)),
                       DF_STR("address", *address ? address : NULL), DF_STR("action", action),
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

/* True if this refusal is to be recorded. *ret_more: how many before it were not. */
static bool is_due(struct df_api *a, struct df_audit_gate *gate, unsigned most, unsigned *ret_more)
{
    int64_t now = df_mono_ms();
    (void)pthread_mutex_lock(&a->lock);
    if (!gate->since_ms || now - gate->since_ms >= 1000) {
        gate->since_ms = now;
        gate->noted = 0;
    }
    bool due = gate->noted < most;
    *ret_more = gate->skipped;
    gate->noted += due;
    gate->skipped = due ? 0 : gate->skipped + 1;
    (void)pthread_mutex_unlock(&a->lock);
    return due;
}

struct refusal {
    struct df_audit_gate *gate;
    unsigned most; /* entries a second */
    const char *action, *kind, *name;
};

static void note_refusal(const struct df_request *req, const struct refusal *r,
                         const struct df_err *why)
{
    unsigned more = 0;
    if (!is_due(req->api, r->gate, r->most, &more))
        return;
    char detail[sizeof(why->message) + 64];
    (void)snprintf(detail, sizeof(detail), "%s (and %u more before)", why->message, more);
    store_entry(req, r->action, r->kind, r->name, "refused", more ? detail : why->message);
}

static void refuse_login(const struct df_request *req, const struct df_err *why)
{
    const char *path = req->route ? req->route->pattern : "";
    df_metric_add(req->api->refused, NULL, 1);
    note_refusal(req, &(struct refusal){&req->api->logins, LOGINS, "login", "Path", path}, why);
}

/* Also of what is not recorded when it is allowed: reading. */
static void refuse_caller(const struct df_request *req, const char *action, const char *name,
                          const struct df_err *why)
{
    struct refusal r = {&req->api->refusals, REFUSALS, action, req->route->kind, name};
    if (!action) {
        r.action = df_streq(req->route->method, "GET") ? "read" : "write";
        r.kind = "Path";
        r.name = req->route->pattern;
    }
    note_refusal(req, &r, why);
}

void df_audit_request(struct df_request *req, const struct df_response *res,
                      const struct df_err *why)
{
    int status = why->cls == DF_ERR_NONE ? res->status : df_problem_status(why);
    const char *action = res->audit ? res->audit : req->route ? req->route->audit : NULL;
    const char *name = res->audit_name[0] ? res->audit_name : req->params[0];
    bool is_step = req->route && req->route->access == DF_ACCESS_STEP;
    name = name ? name : "";
    if (status == 401) {
        refuse_login(req, why);
        return;
    }
    if (status == 403 && req->route && !is_step) {
        refuse_caller(req, action, name, why);
        return;
    }
    if (!action || !req->route)
        return;
    const char *outcome = status < 400 ? "done" : status < 500 ? "refused" : "failed";
    store_entry(req, action, req->route->kind, name, outcome, why->message);
}
