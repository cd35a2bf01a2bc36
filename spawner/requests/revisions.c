#include "spawner/requests/revisions.h"

#include "common/base/clock.h"
#include "spawner/model/accepted.h"
#include "spawner/model/labels.h"
#include "spawner/model/revision.h"

/* ---- the document ---- */

/* True if its present spec was accepted, and so is a revision. */
static bool is_due(const cJSON *executor)
{
    return df_json_int(executor, "status.revision", 0) > 0 && df_executor_is_accepted(executor) &&
           !df_doc_is_refused(executor) && !df_json_at(executor, "status.deleting");
}

/* Names are reused: an executor that was deleted and made again also has a first revision. One
 * without status was written by somebody else, or by a write that a crash cut off. */
static bool is_of(const cJSON *revision, const cJSON *executor)
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

/* Builds the document of the present revision. */
static int new_revision(const cJSON *executor, cJSON **ret, struct df_err *err)
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

/* ---- the store ---- */

/* *ret: what is stored under the name of the present revision, or NULL. */
static int look(struct df_spawner *s, const cJSON *executor, const cJSON **ret, struct df_err *err)
{
    char name[64];
    if (df_revision_name(df_json_str(executor, "metadata.name"),
                         df_json_int(executor, "status.revision", 0), name, err) < 0)
        return -1;
    return df_store_look_for(s->store, DF_KIND_REVISION, name, ret, err);
}

/* Long names are shortened, so that another executor may have a revision of this name. */
static bool is_of_other_name(const cJSON *revision, const cJSON *executor)
{
    return df_json_at(revision, "status") &&
           !df_streq(df_json_str(revision, "spec.executorRef.name"),
                     df_json_str(executor, "metadata.name"));
}

/* A document that is not the service's, or is of an executor that had the name before. */
static int remove_other(struct df_spawner *s, const cJSON *other, struct df_err *err)
{
    struct df_err why = {0};
    if (!other || df_store_remove(s->store, DF_KIND_REVISION, df_json_str(other, "metadata.name"),
                                  df_json_str(other, "metadata.uid"), &why) == 0)
        return 0;
    return why.cls == DF_ERR_NOT_FOUND ? 0 : df_err_pass(err, &why);
}

int df_revision_keep(struct df_spawner *s, const cJSON *executor, struct df_err *err)
{
    DF_SHARED const cJSON *known = NULL;
    DF_JSON cJSON *doc = NULL;
    struct df_err why = {0};
    if (!is_due(executor))
        return 0;
    if (look(s, executor, &known, err) < 0)
        return -1;
    if (is_of(known, executor) || is_of_other_name(known, executor))
        return 0;
    if (remove_other(s, known, err) < 0 || new_revision(executor, &doc, err) < 0)
        return -1;
    if (df_store_create(s->store, DF_KIND_REVISION, doc, NULL, &why) == 0 ||
        df_streq(why.reason, "AlreadyExists")) /* another thread was faster */
        return 0;
    return df_err_pass(err, &why);
}

bool df_revision_is_kept(struct df_spawner *s, const cJSON *executor)
{
    DF_SHARED const cJSON *known = NULL;
    if (!is_due(executor))
        return true;
    return look(s, executor, &known, NULL) == 0 && is_of(known, executor);
}
