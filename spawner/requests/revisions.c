#include "spawner/requests/revisions.h"

#include "spawner/model/revision.h"

/* *ret: what is stored under the name of the present revision, or NULL. */
static int look(struct df_spawner *s, const cJSON *executor, const cJSON **ret, struct df_err *err)
{
    char name[64];
    if (df_revision_name(df_json_str(executor, "metadata.name"),
                         df_json_int(executor, "status.revision", 0), name, err) < 0)
        return -1;
    return df_store_look_for(s->store, DF_KIND_REVISION, name, ret, err);
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
    if (!df_revision_is_due(executor))
        return 0;
    if (look(s, executor, &known, err) < 0)
        return -1;
    if (df_revision_is_of(known, executor))
        return 0;
    if (remove_other(s, known, err) < 0 || df_revision_new(executor, &doc, err) < 0)
        return -1;
    if (df_store_create(s->store, DF_KIND_REVISION, doc, NULL, &why) == 0 ||
        df_streq(why.reason, "AlreadyExists")) /* another thread was faster */
        return 0;
    return df_err_pass(err, &why);
}

bool df_revision_is_kept(struct df_spawner *s, const cJSON *executor)
{
    DF_SHARED const cJSON *known = NULL;
    if (!df_revision_is_due(executor))
        return true;
    return look(s, executor, &known, NULL) == 0 && df_revision_is_of(known, executor);
}
