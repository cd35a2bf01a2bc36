#include "common/kube/client.h"

enum { MAX_RESTARTS = 5 }; /* per list; a list that expires more often needs larger pages */

struct list {
    struct df_kube *k;
    struct df_kube_conn *conn;
    const struct df_kube_at *at;
    const struct df_kube_select *select;
    const struct df_kube_sink *sink;
    unsigned page;
    char *next; /* continue token; NULL: the first page */
};

static void list_free(struct list *l)
{
    free(l->next);
}

static int get_page(struct list *l, cJSON **ret, struct df_err *err)
{
    char limit[16];
    (void)snprintf(limit, sizeof(limit), "%u", l->page);
    DF_BUF struct df_buf query = DF_BUF_INIT(DF_LIMIT_URL);
    /* Without a resourceVersion the server returns the newest state, not that of its cache. */
    df_kube_query(&query, "limit", limit);
    df_kube_query(&query, "continue", l->next);
    df_kube_query(&query, "labelSelector", l->select ? l->select->labels : NULL);
    df_kube_query(&query, "fieldSelector", l->select ? l->select->fields : NULL);
    if (df_buf_check(&query, err) < 0)
        return -1;
    struct df_kube_request r = {.verb = "list",
                                .method = "GET",
                                .at = l->at,
                                .query = df_buf_str(&query),
                                .max_response = DF_LIMIT_HTTP_RESPONSE,
                                .without = l->sink->without,
                                .conn = l->conn};
    return df_kube_request_json(l->k, &r, ret, err);
}

static int begin_list(struct list *l, const cJSON *page, struct df_err *err)
{
    const char *version = df_kube_version(page);
    if (df_str_empty(version) || !cJSON_HasObjectItem(page, "items"))
        return df_fail(err, DF_ERR_RETRY, "list %s: the answer is not a list",
                       l->at->resource->plural);
    return l->sink->begin ? l->sink->begin(l->sink->arg, version, err) : 0;
}

static int give_item(const struct df_kube_sink *to, cJSON **item, struct df_err *err)
{
    return to->take ? to->take(to->arg, item, err) : to->item(to->arg, *item, err);
}

static int take_page(struct list *l, const cJSON *page, struct df_err *err)
{
    if (!l->next && begin_list(l, page, err) < 0)
        return -1;
    cJSON *items = cJSON_GetObjectItemCaseSensitive(page, "items");
    while (items && items->child) {
        DF_SECRET_JSON cJSON *item = cJSON_DetachItemViaPointer(items, items->child);
        if (give_item(l->sink, &item, err) < 0)
            return -1;
    }
    const char *token = df_json_str(page, "metadata.continue");
    return df_str_set(&l->next, df_str_empty(token) ? NULL : token, err);
}

/* True if the list can continue or start again after this failure. */
static bool try_again(struct list *l, const struct df_err *why, int *restarts)
{
    if (why->cls == DF_ERR_LIMIT && l->page > 1) {
        l->page /= 2;
        return true;
    }
    if (!df_kube_is_expired(why) || !l->next || ++*restarts > MAX_RESTARTS)
        return false;
    free(DF_TAKE(l->next));
    return true;
}

/* Reads the next page. *restarts counts how often the list started again. */
static int next_page(struct list *l, int *restarts, struct df_err *err)
{
    DF_SECRET_JSON cJSON *page = NULL;
    struct df_err why = {0};
    while (get_page(l, &page, &why) < 0) {
        if (try_again(l, &why, restarts))
            continue;
        return df_err_pass(err, &why);
    }
    return take_page(l, page, err);
}

int df_kube_list_on(struct df_kube *k, struct df_kube_conn *conn, const struct df_kube_at *at,
                    const struct df_kube_select *select, unsigned page,
                    const struct df_kube_sink *sink, struct df_err *err)
{
    DF_CLEANUP(list_free)
    struct list l = {k, conn, at, select, sink, page ? page : DF_KUBE_PAGE, NULL};
    int restarts = 0;
    do {
        if (next_page(&l, &restarts, err) < 0)
            return -1;
    } while (l.next);
    return 0;
}

int df_kube_list(struct df_kube *k, const struct df_kube_at *at,
                 const struct df_kube_select *select, unsigned page,
                 const struct df_kube_sink *sink, struct df_err *err)
{
    return df_kube_list_on(k, NULL, at, select, page, sink, err);
}
