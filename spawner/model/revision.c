#include "spawner/model/revision.h"

#include "common/base/clock.h"
#include "common/base/parse.h"
#include "spawner/model/accepted.h"
#include "spawner/model/labels.h"
#include "spawner/model/model.h"

int df_revision_set(cJSON *status, int64_t number, const char *author, const char *at,
                    struct df_err *err)
{
    if (df_json_set(status, "revision", cJSON_CreateNumber((double)number), err) < 0)
        return -1;
    return df_json_set(status, "revised", df_json_object(DF_STR("by", author), DF_STR("at", at)),
                       err);
}

int df_revision_name(const char *executor, int64_t number, char ret[64], struct df_err *err)
{
    char suffix[24];
    (void)snprintf(suffix, sizeof(suffix), "r%lld", (long long)number);
    return df_model_name(executor, suffix, ret, err);
}

bool df_revision_is_name(const char *name)
{
    const char *suffix = strrchr(name, '-');
    int64_t number;
    return suffix && suffix[1] == 'r' && df_parse_i64(suffix + 2, 1, INT64_MAX, &number, NULL) == 0;
}

bool df_revision_is_due(const cJSON *executor)
{
    return df_json_int(executor, "status.revision", 0) > 0 && df_executor_is_accepted(executor) &&
           !df_doc_is_refused(executor) && !df_json_at(executor, "status.deleting");
}

/* Names are reused: an executor that was deleted and made again also has a first revision. One
 * without status was written by somebody else, or by a write that a crash cut off. */
bool df_revision_is_of(const cJSON *revision, const cJSON *executor)
{
    return df_json_at(revision, "status") &&
           df_streq(df_json_str(revision, "spec.executorRef.uid"),
                    df_json_str(executor, "metadata.uid")) &&
           df_json_int(revision, "spec.number", 0) == df_json_int(executor, "status.revision", -1);
}

/* In a cluster only the service writes a status. Who wrote a spec of before this kind is not known,
 * nor when: its revision is as old as its document. */
static int add_status(cJSON *doc, const cJSON *executor, struct df_err *err)
{
    const char *at = df_json_str(executor, "status.revised.at");
    cJSON *status = df_json_object_at(doc, "status");
    if (df_json_put(status, err, DF_STR("author", df_json_str(executor, "status.revised.by")),
                    DF_STR("at", at)) < 0)
        return -1;
    return at ? 0 : df_json_add_time(status, "at", df_real_us(), err);
}

static int add_spec(cJSON *doc, const cJSON *executor, struct df_err *err)
{
    cJSON *ref = df_json_object(DF_STR("name", df_json_str(executor, "metadata.name")),
                                DF_STR("uid", df_json_str(executor, "metadata.uid")));
    return df_json_put(df_json_object_at(doc, "spec"), err, DF_ITEM("executorRef", ref),
                       DF_NUM("number", df_json_int(executor, "status.revision", 0)),
                       DF_ITEM("executor", cJSON_Duplicate(df_json_at(executor, "spec"), true)));
}

int df_revision_new(const cJSON *executor, cJSON **ret, struct df_err *err)
{
    const char *owner = df_json_str(executor, "metadata.name");
    DF_JSON cJSON *doc = cJSON_CreateObject();
    cJSON *metadata = df_json_object_at(doc, "metadata");
    char name[64];
    if (df_check_alloc(metadata, err) < 0 ||
        df_json_put(doc, err, DF_STR("apiVersion", DF_API_VERSION),
                    DF_STR("kind", df_kind_name(DF_KIND_REVISION))) < 0 ||
        df_revision_name(owner, df_json_int(executor, "status.revision", 0), name, err) < 0 ||
        df_json_put(metadata, err, DF_STR("name", name),
                    DF_STR("namespace", df_json_str(executor, "metadata.namespace"))) < 0 ||
        df_label_set(doc, DF_LABEL_EXECUTOR, owner, err) < 0 || add_spec(doc, executor, err) < 0 ||
        add_status(doc, executor, err) < 0)
        return -1;
    *ret = DF_TAKE(doc);
    return 0;
}
