#include "spawner/model/waiting.h"

#include "common/base/clock.h"

const cJSON *df_waiting_of(const cJSON *doc)
{
    return df_json_at(doc, "status.waiting");
}

int64_t df_waiting_since(const cJSON *doc)
{
    const char *text = df_json_str(doc, "status.waiting.since");
    int64_t since_us;
    return text && df_time_parse(text, &since_us, NULL) == 0 ? since_us : 0;
}

int df_waiting_set(cJSON *doc, int64_t since_us, const char *reason, const char *message,
                   struct df_err *err)
{
    DF_JSON cJSON *waiting = cJSON_CreateObject();
    cJSON *status = df_json_object_at(doc, "status");
    if (df_json_put(waiting, err, DF_TIME("since", since_us), DF_STR("reason", reason),
                    DF_STR("message", message)) < 0)
        return -1;
    return df_json_set(status, "waiting", DF_TAKE(waiting), err);
}

bool df_waiting_clear(cJSON *doc)
{
    if (!df_waiting_of(doc))
        return false;
    cJSON_DeleteItemFromObjectCaseSensitive(df_json_object_at(doc, "status"), "waiting");
    return true;
}

char *df_waiting_text(const cJSON *waiting, bool in_vain)
{
    const char *since = df_json_str(waiting, "since"), *message = df_json_str(waiting, "message");
    return df_strf("%s%s%s: %s", in_vain ? "waited in vain" : "waits", since ? " since " : "",
                   since ? since : "", message ? message : "");
}
