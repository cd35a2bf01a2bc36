#include "spawner/http/audit.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "spawner/http/problem.h"
#include "spawner/http/server.h"

/* So many refusals have an entry in a minute, of each caller and of all logins, so that nobody can
 * fill the disk, or in a cluster push the older entries out, with what is refused. */
enum { REFUSALS = 30, MINUTE_MS = 60 * 1000 };

/* The peer, which may be a proxy or another replica; "" if it is not known. */
static const char *address_of(const struct df_request *req, char out[INET6_ADDRSTRLEN])
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(req->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *peer = info ? info->client_addr : NULL;
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
                       DF_STR("token", df_json_str(req->caller.token, "name")),
                       DF_STR("role", df_role_name(req->caller.role)),
                       DF_STR("address", *address ? address : NULL), DF_STR("action", action),
                       DF_STR("kind", kind), DF_STR("name", name)) < 0
               ? -1
           : df_is_forwarded(req) ? df_json_put(entry, err, DF_BOOL("forwarded", true))
                                  : 0;
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

/* That of this caller; a new one takes the place of the one that has been quiet for longest. */
static struct df_audit_gate *gate_of(struct df_api *a, const char *caller)
{
    struct df_audit_gate *oldest = &a->refusals[0];
    for (size_t i = 0; i < DF_ARRAY_SIZE(a->refusals); i++) {
        struct df_audit_gate *gate = &a->refusals[i];
        if (gate->since_ms && df_streq(gate->caller, caller))
            return gate;
        if (gate->since_ms < oldest->since_ms)
            oldest = gate;
    }
    *oldest = (struct df_audit_gate){0};
    df_copy(oldest->caller, sizeof(oldest->caller), caller);
    return oldest;
}

/* True if this refusal is to be recorded. *ret_more: how many before it were not. caller NULL: it
 * is a login. */
static bool is_due(struct df_api *a, const char *caller, unsigned *ret_more)
{
    int64_t now = df_mono_ms();
    (void)pthread_mutex_lock(&a->lock);
    struct df_audit_gate *gate = caller ? gate_of(a, caller) : &a->logins;
    if (!gate->since_ms || now - gate->since_ms >= MINUTE_MS) {
        gate->since_ms = now;
        gate->noted = 0;
    }
    bool due = gate->noted < REFUSALS;
    *ret_more = gate->skipped;
    gate->noted += due;
    gate->skipped = due ? 0 : gate->skipped + 1;
    (void)pthread_mutex_unlock(&a->lock);
    return due;
}

struct refusal {
    const char *caller; /* NULL: a login */
    const char *action, *kind, *name;
};

static void note_refusal(const struct df_request *req, const struct refusal *r,
                         const struct df_err *why)
{
    unsigned more = 0;
    if (!is_due(req->api, r->caller, &more))
        return;
    char detail[sizeof(why->message) + 64];
    (void)snprintf(detail, sizeof(detail), "%s (and %u more before)", why->message, more);
    store_entry(req, r->action, r->kind, r->name, "refused", more ? detail : why->message);
}

static void refuse_login(const struct df_request *req, const struct df_err *why)
{
    const char *path = req->route ? req->route->pattern : "";
    df_metric_add(req->api->refused, NULL, 1);
    note_refusal(req, &(struct refusal){NULL, "login", "Path", path}, why);
}

/* Also of what is not recorded when it is allowed: reading. */
static void refuse_caller(const struct df_request *req, const char *action, const char *name,
                          const struct df_err *why)
{
    struct refusal r = {req->caller.name, action, req->route->kind, name};
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
    if (!req->route)
        return;
    if ((status == 403 && !is_step) || (action && status >= 400 && status < 500))
        refuse_caller(req, action, name, why);
    else if (action)
        store_entry(req, action, req->route->kind, name, status < 400 ? "done" : "failed",
                    res->audit_detail && status < 400 ? res->audit_detail : why->message);
}
