#include "spawner/api/pages.h"

#define PAGE_DEFAULT 100
#define PAGE_MAX 1000

static int read_order(const struct df_request *req, bool *newest_first, struct df_err *err)
{
    const char *order = df_request_query(req, "order");
    if (!order)
        return 0;
    if (!df_streq(order, "name") && !df_streq(order, "newest"))
        return df_fail(err, DF_ERR_USER, "?order=%.64s: must be name or newest", order);
    *newest_first = df_streq(order, "newest");
    return 0;
}

static int read_options(const struct df_request *req, struct df_store_list_options *o,
                        struct df_err *err)
{
    int64_t limit = PAGE_DEFAULT;
    if (df_request_number(req, "limit", 1, PAGE_MAX, &limit, err) < 0 ||
        read_order(req, &o->newest_first, err) < 0)
        return -1;
    const char *label = df_request_query(req, "label");
    if (label && !strchr(label, '='))
        return df_fail(err, DF_ERR_USER, "?label=%.64s: must be key=value", label);
    o->limit = (int)limit;
    o->label = o->label ? o->label : label;
    o->cursor = df_request_query(req, "cursor");
    o->name_prefix = df_request_query(req, "namePrefix");
    return 0;
}

int df_request_page(const struct df_request *req, enum df_kind kind, const char *label,
                    bool newest_first, cJSON **ret, char **ret_cursor, struct df_err *err)
{
    struct df_store_list_options o = {.label = label, .newest_first = newest_first};
    if (read_options(req, &o, err) < 0)
        return -1;
    return df_store_list(req->s->store, kind, &o, ret, ret_cursor, err);
}

int df_respond_page(const struct df_request *req, struct df_response *res, enum df_kind kind,
                    const char *label, bool newest_first, struct df_err *err)
{
    DF_JSON cJSON *items = NULL;
    DF_FREE char *cursor = NULL;
    if (df_request_page(req, kind, label, newest_first, &items, &cursor, err) < 0)
        return -1;
    cJSON *item;
    cJSON_ArrayForEach (item, items) {
        df_hide_private(item);
    }
    return df_respond_list(res, DF_TAKE(items), cursor, err);
}
