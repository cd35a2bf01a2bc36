/*
 * pages.c - a page of a list, for the query parameters that all lists have and those in `filters`.
 * Read df_request_page() first: without a filter the store makes the page. With one, or for a
 * caller who may view some executors only, list_matching() reads the store's pages and takes what
 * is wanted and may be viewed.
 */
#include "spawner/api/pages.h"

#include "spawner/http/rights.h"
#include "spawner/model/selector.h"

#define PAGE_DEFAULT 100
#define PAGE_MAX 1000
#define FILTERS_MAX 4      /* members of a kind by which a list is filtered */
#define PAGE_SCAN_MAX 1000 /* documents that one request with a filter reads: 20 ms */

/* ---- filters ---- */

/* What a request wants of a list. */
struct wanted {
    const struct df_selector *selector;   /* NULL: any label */
    const struct df_state_member *states; /* of the kind; NULL: it has none */
    const char *values[FILTERS_MAX];      /* of each of them; NULL: not asked for */
    const char *creator;                  /* NULL: any */
    const char *creator_at;               /* its path */
};

/* Is the word of n bytes one of these? */
static bool is_listed(const char *words, char separator, const char *word, size_t n)
{
    const char ends[] = {separator, '\0'};
    for (const char *w = words; *w; w += *w == separator) {
        size_t len = strcspn(w, ends);
        if (len == n && strncmp(w, word, n) == 0)
            return true;
        w += len;
    }
    return false;
}

static int check_value(const struct df_state_member *m, const char *value, struct df_err *err)
{
    for (const char *word = value;; word++) {
        size_t n = strcspn(word, ",");
        if (!is_listed(m->words, '|', word, n))
            return df_fail(err, DF_ERR_USER, "?%s=%.64s: must be of %s, separated by commas",
                           m->query, value, m->words);
        word += n;
        if (!*word)
            return 0;
    }
}

static int read_filters(const struct df_request *req, enum df_kind kind, struct wanted *ret,
                        bool *ret_any, struct df_err *err)
{
    const struct df_state_member *m = ret->states = df_kind_row(kind)->shown.states;
    for (size_t i = 0; m && m[i].path; i++) {
        if (i == FILTERS_MAX)
            DF_BUG("%s has more than %d states", df_kind_name(kind), FILTERS_MAX);
        const char *value = m[i].query ? df_request_query(req, m[i].query) : NULL;
        if (value && check_value(&m[i], value, err) < 0)
            return -1;
        ret->values[i] = value;
        *ret_any = *ret_any || value;
    }
    ret->creator = df_request_query(req, "creator");
    ret->creator_at = kind == DF_KIND_RUN ? "spec.requestedBy" : "status.creator";
    *ret_any = *ret_any || ret->creator;
    return ret->creator && !*ret->creator
               ? df_fail(err, DF_ERR_USER, "?creator=: must be the name of somebody")
               : 0;
}

static bool has_values(const struct wanted *w, const cJSON *item)
{
    for (size_t i = 0; w->states && w->states[i].path; i++) {
        const char *value = w->values[i] ? df_state_of(&w->states[i], item) : NULL;
        if (w->values[i] && !(value && is_listed(w->values[i], ',', value, strlen(value))))
            return false;
    }
    if (w->creator && !df_streq(df_json_str(item, w->creator_at), w->creator))
        return false;
    return !w->selector || df_selector_matches(w->selector, item);
}

/* ---- pages ---- */

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
    o->limit = (int)limit;
    o->cursor = df_request_query(req, "cursor");
    o->name_prefix = df_request_query(req, "namePrefix");
    return 0;
}

static int move_matching(const struct df_request *req, enum df_kind kind, const struct wanted *w,
                         cJSON *page, cJSON *all, struct df_err *err)
{
    for (cJSON *item = page->child, *next; item; item = next) {
        bool wanted = has_values(w, item);
        next = item->next;
        if (wanted && df_rights_views(req, kind, item, &wanted, err) < 0)
            return -1;
        if (wanted && df_json_append(all, cJSON_DetachItemViaPointer(page, item), err) < 0)
            return -1;
    }
    return 0;
}

/* A label of each executor that the caller may view, as a team has it with one grant; NULL: none is
 * known. With it the store reads only what has it. */
static char *label_of_all(const struct df_granted *g)
{
    const cJSON *only = NULL, *label = NULL;
    for (size_t i = 0; i < g->some_count && !g->ceiling; i++) {
        bool views = df_verbs_have(df_grant_verbs(g->some[i]), DF_VERB_VIEW);
        if (views && only)
            return NULL;
        only = views ? g->some[i] : only;
    }
    label = df_json_at(only, "on.matchLabels");
    return label ? df_strf("%s=%s", label->child->string, label->child->valuestring) : NULL;
}

/* Reads until the page is full or PAGE_SCAN_MAX documents were read. So a page may be short, or
 * empty, without being the last. */
static int list_matching(const struct df_request *req, enum df_kind kind,
                         struct df_store_list_options *o, const struct wanted *w, cJSON **ret,
                         char **ret_cursor, struct df_err *err)
{
    DF_JSON cJSON *all = cJSON_CreateArray();
    DF_FREE char *cursor = NULL;
    int wanted = o->limit, looked_at = 0;
    if (!all)
        return df_fail_oom(err);
    do {
        DF_JSON cJSON *page = NULL;
        char *next = NULL;
        o->limit = wanted - cJSON_GetArraySize(all);
        if (df_store_list(req->s->store, kind, o, &page, &next, err) < 0)
            return -1;
        free(cursor);
        o->cursor = cursor = next;
        looked_at += cJSON_GetArraySize(page);
        if (move_matching(req, kind, w, page, all, err) < 0)
            return -1;
    } while (cursor && looked_at < PAGE_SCAN_MAX && cJSON_GetArraySize(all) < wanted);
    *ret = DF_TAKE(all);
    *ret_cursor = DF_TAKE(cursor);
    return 0;
}

int df_request_page(const struct df_request *req, enum df_kind kind, const char *label,
                    bool newest_first, cJSON **ret, char **ret_cursor, struct df_err *err)
{
    struct df_store_list_options o = {.label = label, .newest_first = newest_first};
    const char *text = df_request_query(req, "label");
    struct df_selector *selector = NULL;
    struct wanted w = {0};
    bool filtered = text || !df_rights_view_all(req);
    if (read_options(req, &o, err) < 0 || read_filters(req, kind, &w, &filtered, err) < 0)
        return -1;
    if (!filtered)
        return df_store_list(req->s->store, kind, &o, ret, ret_cursor, err);
    if (text && df_selector_parse(text, &selector, err) < 0)
        return -1;
    w.selector = selector;
    DF_FREE char *own = !df_rights_view_all(req) && kind == DF_KIND_EXECUTOR
                            ? label_of_all(&req->caller.granted)
                            : NULL;
    o.label = label ? label : own ? own : selector ? df_selector_label(selector) : NULL;
    int result = list_matching(req, kind, &o, &w, ret, ret_cursor, err);
    df_selector_free(selector);
    return result;
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
