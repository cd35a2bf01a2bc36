#include "runner/terrakube/open.h"

#include "common/base/clock.h"
#include "common/http/http.h"

_Static_assert(offsetof(struct df_terrakube_opened, flow) == 0, "df_terrakube_of()");

struct df_terrakube_opened *df_terrakube_opened_new(void)
{
    struct df_terrakube_opened *o = calloc(1, sizeof *o);
    if (o)
        o->flow.plan_code = -1;
    return o;
}

void df_terrakube_close(void *opened)
{
    struct df_terrakube_opened *o = opened;
    if (!o)
        return;
    df_terrakube_context_free(o->flow.context, 0); /* the report has sent it */
    df_terrakube_storage_free(o->flow.storage);
    df_terrakube_api_free(o->flow.api);
    df_terrakube_stream_free(o->flow.stream);
    df_terrakube_flow_free(&o->flow);
    df_terrakube_payload_free(&o->payload);
    df_terrakube_settings_free(&o->settings);
    df_strs_wipe(&o->all);
    df_strs_wipe(&o->rest);
    free(o);
}

static void refuse(struct df_terrakube_opened *o, const struct df_err *why)
{
    if (o->flow.refused)
        return;
    o->refused = *why;
    o->flow.refused = &o->refused;
}

static int read_payload(struct df_terrakube_opened *o, const char *text, bool is_base64,
                        struct df_err *err)
{
    struct df_err why = {0};
    if ((is_base64 ? df_terrakube_payload_decode(text, &o->payload, &why)
                   : df_terrakube_payload_read(text, strlen(text), &o->payload, &why)) == 0)
        return 0;
    if (!o->payload.organization || !o->payload.job || !o->payload.step)
        return df_err_pass(err, &why);
    refuse(o, &why);
    return 0;
}

static int open_storage(struct df_terrakube_opened *o, struct df_err *err)
{
    struct df_err why = {0};
    if (df_terrakube_storage_new(&o->settings, DF_TERRAKUBE_RETRY_MS, NULL, &o->flow.storage,
                                 &why) == 0)
        return 0;
    if (why.cls != DF_ERR_USER)
        return df_err_pass(err, &why);
    refuse(o, &why);
    return 0;
}

/* The heartbeat first: the API gives a job that has none a minute. Until 2.28 (only there a payload
 * has an agentUrl) it knows no context. */
static int connect_platform(struct df_terrakube_opened *o, struct df_err *err)
{
    struct df_terrakube *t = &o->flow;
    df_terrakube_waits_init(&t->waits);
    if (df_http_global_init(err) < 0 || df_uuid(t->pod, err) < 0 ||
        df_terrakube_stream_new(t->settings, t->payload, t->pod, &t->waits.threads, &t->stream,
                                err) < 0 ||
        df_terrakube_api_new(t->settings, t->payload, DF_TERRAKUBE_RETRY_MS, NULL, &t->api, err) <
            0 ||
        open_storage(o, err) < 0)
        return -1;
    df_terrakube_api_listen(t->api, &t->waits.calls);
    if (t->storage)
        df_terrakube_storage_listen(t->storage, &t->waits.calls);
    if (t->refused || !df_terrakube_has_queue(t->payload))
        return 0;
    return df_terrakube_context_new(t->settings, t->payload, t->stream, &t->context, err);
}

int df_terrakube_open(struct df_terrakube_opened *o, const char *payload, bool is_base64,
                      struct df_err *err)
{
    o->flow.settings = &o->settings;
    o->flow.payload = &o->payload;
    o->flow.environment = &o->rest;
    if (df_terrakube_settings_read(&o->all, &o->settings, err) < 0 ||
        read_payload(o, payload, is_base64, err) < 0)
        return -1;
    return connect_platform(o, err);
}
