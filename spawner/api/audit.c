#include "spawner/api/handlers.h"

int df_list_audit(struct df_request *req, struct df_response *res, struct df_err *err)
{
    int64_t limit = 100;
    cJSON *items = NULL;
    DF_FREE char *cursor = NULL;
    if (df_request_number(req, "limit", 1, 1000, &limit, err) < 0)
        return -1;
    if (df_store_audit_list(req->s->store, df_request_query(req, "cursor"), (int)limit, &items,
                            &cursor, err) < 0)
        return -1;
    return df_respond_list(res, items, cursor, err);
}
