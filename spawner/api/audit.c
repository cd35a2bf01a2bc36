#include "spawner/api/handlers.h"
#include "spawner/model/audit_chain.h"

/* *ret_any: does the query say anything of entries? */
static int read_filter(const struct df_request *req, struct df_audit_filter *ret, bool *ret_any,
                       struct df_err *err)
{
    static const char *const names[] = {"name",    "actor", "action", "kind",
                                        "outcome", "since", "until"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++) {
        const char *value = df_request_query(req, names[i]);
        if (df_audit_filter_set(ret, names[i], value, err) < 0)
            return df_err_wrap(err, "?%s", names[i]);
        *ret_any = *ret_any || value;
    }
    return 0;
}

int df_list_audit(struct df_request *req, struct df_response *res, struct df_err *err)
{
    int64_t limit = 100;
    cJSON *items = NULL;
    DF_FREE char *cursor = NULL;
    struct df_audit_filter filter = {0};
    bool any = false;
    if (df_request_number(req, "limit", 1, 1000, &limit, err) < 0 ||
        read_filter(req, &filter, &any, err) < 0)
        return -1;
    if (df_store_audit_list(req->s->store, any ? &filter : NULL, df_request_query(req, "cursor"),
                            (int)limit, &items, &cursor, err) < 0)
        return -1;
    return df_respond_list(res, items, cursor, err);
}

static int check_page(struct df_audit_check *check, const cJSON *page, struct df_err *err)
{
    const cJSON *entry;
    cJSON_ArrayForEach (entry, page) {
        if (df_audit_check_next(check, entry, err) < 0)
            return -1;
    }
    return 0;
}

/* Entries that come meanwhile are above the first page. */
static int check_all(struct df_store *store, struct df_audit_check *check, struct df_err *err)
{
    DF_FREE char *cursor = NULL;
    do {
        DF_JSON cJSON *page = NULL;
        DF_FREE char *before = cursor;
        cursor = NULL;
        if (df_store_audit_list(store, NULL, before, 1000, &page, &cursor, err) < 0 ||
            check_page(check, page, err) < 0)
            return -1;
    } while (cursor);
    df_audit_check_end(check);
    return 0;
}

/* What is broken is looked at once more: meanwhile retention may have cut the trail, with a
 * checkpoint above the first page. */
int df_verify_audit(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_JSON cJSON *report = NULL;
    for (int tries = 0; !report; tries++) {
        DF_AUDIT_CHECK check = {.key = df_store_audit_key(req->s->store)};
        if (check_all(req->s->store, &check, err) < 0 ||
            ((!check.broken || tries) && df_audit_check_report(&check, &report, err) < 0))
            return -1;
    }
    return df_respond_json(res, 200, report, err);
}
