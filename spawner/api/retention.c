#include "spawner/requests/retention.h"

#include "spawner/api/handlers.h"
#include "spawner/requests/leftovers.h"
#include "spawner/requests/usage.h"

int df_collect_garbage(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_JSON cJSON *removed = NULL;
    bool dry_run = false, orphans = false;
    if (df_request_flag(req, "dryRun", &dry_run, err) < 0 ||
        df_request_flag(req, "orphans", &orphans, err) < 0 ||
        df_retention_apply(req->s, dry_run, &removed, err) < 0 ||
        df_leftovers_orphans(req->s, orphans, dry_run, removed, err) < 0)
        return -1;
    return df_respond_list(res, DF_TAKE(removed), NULL, err);
}

int df_get_storage(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_JSON cJSON *usage = NULL;
    if (df_usage(req->s, df_request_query(req, "executor"), &usage, err) < 0)
        return -1;
    return df_respond_json(res, 200, usage, err);
}
