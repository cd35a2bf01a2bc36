#include "spawner/requests/retention.h"
#include "spawner/api/handlers.h"

int df_collect_garbage(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_JSON cJSON *removed = NULL;
    bool dry_run = false;
    if (df_request_flag(req, "dryRun", &dry_run, err) < 0 ||
        df_retention_apply(req->s, dry_run, &removed, err) < 0)
        return -1;
    return df_respond_list(res, DF_TAKE(removed), NULL, err);
}
