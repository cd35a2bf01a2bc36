#include "runner/report/report.h"

#include "runner/report/backend.h"

void df_report_free(struct df_report *r)
{
    if (r)
        r->backend->free(r);
}

int df_report_claim(struct df_report *r, const volatile bool *stop, int64_t pending_ms, cJSON **ret,
                    struct df_err *err)
{
    return r->backend->claim(r, stop, pending_ms, ret, err);
}

int df_report_log(struct df_report *r, const char *bytes, size_t n, struct df_err *err)
{
    return r->backend->append(r, DF_STREAM_LOG, bytes, n, err);
}

int df_report_event(struct df_report *r, const char *lines, size_t n, struct df_err *err)
{
    return r->backend->append(r, DF_STREAM_EVENTS, lines, n, err);
}

void df_report_progress(struct df_report *r, const cJSON *body, bool hurries)
{
    r->backend->progress(r, body, hurries);
}

bool df_report_is_over(const struct df_report *r)
{
    return df_stopped(r->over);
}

int df_report_over_fd(const struct df_report *r)
{
    return r->over_fd;
}

void df_report_heed(struct df_report *r, const volatile bool *stop)
{
    r->stop = stop;
}

int df_report_put_artifact(struct df_report *r, const char *name, const char *path,
                           int64_t deadline_ms, struct df_err *err)
{
    return r->backend->put_artifact(r, name, path, deadline_ms, err);
}

int df_report_get_artifact(struct df_report *r, const char *name, const char *to_path,
                           int64_t deadline_ms, struct df_err *err)
{
    return r->backend->get_artifact(r, name, to_path, deadline_ms, err);
}

int df_report_result(struct df_report *r, const cJSON *result, struct df_err *err)
{
    return r->backend->result(r, result, err);
}

cJSON *df_report_result_document(const cJSON *result, uint64_t log_bytes, uint64_t event_bytes)
{
    DF_JSON cJSON *doc = cJSON_Duplicate(result, true);
    int failed =
        df_json_put(doc, NULL, DF_NUM("logBytes", log_bytes), DF_NUM("eventBytes", event_bytes));
    return failed ? NULL : DF_TAKE(doc);
}
