/*
 * First one request with its token, then lists of several pages. Read df_awx_send() first: every
 * call goes through it.
 */
#include "spawner/engine/ansible/awx_request.h"

#include "common/base/clock.h"
#include "spawner/engine/ansible/awx_answer.h"

enum {
    TIMEOUT_MS = 30000,
    /* Of a page, unless it is of one item: in memory small items are twenty times as much. */
    PAGE_BYTES = 2 * DF_MIB,
};

/* ---- opening ---- */

static int check_url(const char *url, struct df_err *err)
{
    if (df_str_empty(url))
        return df_fail(err, DF_ERR_USER, "ansible.apiUrl: the baseURL of AWX must not be empty");
    return df_url_same_origin(url, url)
               ? 0
               : df_fail(err, DF_ERR_USER,
                         "ansible.apiUrl: must be an http or https URL without a user in it, such "
                         "as https://awx.example.com; the token comes from ansible.tokenSecretRef");
}

int df_awx_new(const struct df_awx_options *options, struct df_awx **ret, struct df_err *err)
{
    const struct df_http_options http = {.ca_file = options->ca_file,
                                         .insecure = options->insecure};
    if (check_url(options->url, err) < 0)
        return -1;
    DF_AWX struct df_awx *a = calloc(1, sizeof(*a));
    if (!a)
        return df_fail_oom(err);
    a->options = *options;
    a->options.organization = options->organization > 0 ? options->organization : 1;
    a->url_length = (int)strlen(options->url);
    while (options->url[a->url_length - 1] == '/')
        a->url_length--;
    if (df_http_new(&http, &a->http, err) < 0)
        return -1;
    *ret = DF_TAKE(a);
    return 0;
}

void df_awx_free(struct df_awx *a)
{
    if (!a)
        return;
    df_http_free(a->http);
    df_str_wipe(&a->token);
    df_awx_forget(a);
    free(a);
}

void df_awx_forget(struct df_awx *a)
{
    df_strs_wipe(&a->secrets);
}

/* ---- one request ---- */

bool df_awx_may_have_done(const struct df_awx *a)
{
    return !a->is_undone;
}

static int set_token(struct df_awx *a, const char *token, struct df_err *err)
{
    if (!*token)
        return df_fail(err, DF_ERR_USER, "ansible.tokenSecretRef: the token must not be empty");
    if (df_http_set_bearer(a->http, token, err) < 0)
        return -1;
    return df_check_alloc(a->token = strdup(token), err);
}

static int read_token(struct df_awx *a, struct df_err *err)
{
    static const char blanks[] = " \t\r\n";
    char *text = NULL;
    if (a->options.token(a->options.arg, &text, err) < 0)
        return df_err_wrap(err, "ansible.tokenSecretRef");
    char *token = text + strspn(text, blanks);
    size_t n = strlen(token);
    while (n && strchr(blanks, token[n - 1]))
        token[--n] = '\0';
    int result = set_token(a, token, err);
    df_str_wipe(&text);
    return result;
}

/* Of a refusal, whoever refuses. Proxies that did not wait say the other four (awx_answer.c). */
static bool is_refusal(int status)
{
    return status >= 300 && status < 500 && status != 408 && status != 425 && status != 499;
}

static int pass_gate(struct df_awx *a, const struct df_awx_request *c,
                     const struct df_http_request *req, struct df_http_response *ret,
                     struct df_err *err)
{
    int64_t from_us = df_real_us();
    if (c->method && a->options.may_write && !a->options.may_write(a->options.arg))
        return df_fail_reason(err, DF_ERR_RETRY, "NotLeader", "this replica does not lead");
    int result = df_http_send(a->http, req, ret, err);
    a->is_undone = result < 0 ? ret->is_unsent : is_refusal(ret->status);
    if (result < 0)
        return df_err_wrap(err, "AWX %s", c->what);
    (void)!df_http_clock_ahead(ret, from_us, &a->clock_ahead_us);
    return 0;
}

static int send_once(struct df_awx *a, const struct df_awx_request *c, const char *url,
                     const char *body, struct df_http_response *ret, struct df_err *err)
{
    struct df_http_request req = DF_HTTP_REQUEST(c->method ? c->method : "GET", url);
    req.body = body;
    req.body_len = body ? strlen(body) : 0;
    req.timeout_ms = TIMEOUT_MS;
    req.max_response = c->max;
    req.once = df_streq(c->method, "POST");
    req.stop = a->options.stop;
    if (!a->token && read_token(a, err) < 0)
        return -1;
    if (df_awx_gate_enter(a->options.gate, err) < 0)
        return df_err_wrap(err, "AWX %s", c->what);
    int64_t began_us = df_mono_us();
    int result = pass_gate(a, c, &req, ret, err);
    df_awx_gate_leave(a->options.gate, began_us, result == 0);
    return result;
}

/* The token may have been replaced since it was read. */
static int send_with_token(struct df_awx *a, const struct df_awx_request *c, const char *url,
                           const char *body, struct df_http_response *ret, struct df_err *err)
{
    if (send_once(a, c, url, body, ret, err) < 0)
        return -1;
    if (ret->status != 401)
        return 0;
    df_http_response_free(ret);
    *ret = (struct df_http_response){0};
    df_str_wipe(&a->token);
    return send_once(a, c, url, body, ret, err);
}

static int check(struct df_awx *a, const struct df_awx_request *c,
                 const struct df_http_response *res, struct df_err *err)
{
    int ok = c->ok ? c->ok : 200;
    if (res->status == ok || res->status == c->also_ok)
        return 0;
    (void)df_strs_add_new(&a->secrets, a->token);
    if (df_strs_check(&a->secrets, err) < 0)
        return -1;
    return df_awx_fail_status(c->what, res, &a->secrets, err);
}

static int send_printed(struct df_awx *a, const struct df_awx_request *c, const char *body,
                        struct df_http_response *ret, struct df_err *err)
{
    DF_FREE char *url = df_strf("%.*s/api/v2/%s", a->url_length, a->options.url, c->path);
    if (!url)
        return df_fail_oom(err);
    return send_with_token(a, c, url, body, ret, err) < 0 ? -1 : check(a, c, ret, err);
}

/* The caller frees *ret, also after a failure. */
int df_awx_send(struct df_awx *a, struct df_awx_request c, struct df_http_response *ret,
                struct df_err *err)
{
    a->is_undone = true;
    DF_FREE char *path = c.path;
    DF_SECRET_JSON cJSON *document = c.body;
    bool posts = df_streq(c.method, "POST");
    char *body = !posts ? NULL : c.has_body ? df_json_print_nul(document) : strdup("");
    int result = path && (body || !posts) ? send_printed(a, &c, body, ret, err) : df_fail_oom(err);
    df_str_wipe(&body);
    return result;
}

/* what: as in struct df_awx_request. The caller owns *ret. */
int df_awx_parse(const char *text, size_t n, const char *what, cJSON **ret, struct df_err *err)
{
    struct df_err why = {0};
    if (df_json_parse_nul(text, n, ret, &why) == 0)
        return 0;
    why.cls = why.cls == DF_ERR_USER ? DF_ERR_SYSTEM : why.cls;
    (void)df_err_wrap(&why, "the answer of AWX %s", what);
    return df_err_pass(err, &why);
}

/* *ret: the document that AWX answers; the caller owns it. */
int df_awx_ask(struct df_awx *a, struct df_awx_request c, cJSON **ret, struct df_err *err)
{
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    return df_awx_send(a, c, &res, err) < 0
               ? -1
               : df_awx_parse(df_buf_str(&res.body), res.body.len, c.what, ret, err);
}

int df_awx_read_id(const cJSON *answer, const char *what, int64_t *ret, struct df_err *err)
{
    int64_t id = df_json_int(answer, "id", -1);
    if (id < 0)
        return df_fail(err, DF_ERR_SYSTEM, "the answer of AWX %s has no id", what);
    *ret = id;
    return 0;
}

int df_awx_add_id(cJSON *ids, const cJSON *item, const char *what, struct df_err *err)
{
    int64_t id;
    return df_awx_read_id(item, what, &id, err) < 0
               ? -1
               : df_json_append(ids, cJSON_CreateNumber((double)id), err);
}

int df_awx_ask_for_id(struct df_awx *a, struct df_awx_request c, int64_t *ret, struct df_err *err)
{
    DF_JSON cJSON *answer = NULL;
    return df_awx_ask(a, c, &answer, err) < 0 ? -1 : df_awx_read_id(answer, c.what, ret, err);
}

/* ---- lists ---- */

/* Where a list is read. */
struct place {
    int seen, pages;   /* so far; seen: with a size */
    int size, largest; /* of a page */
    bool has_more;
};

static int keep_members(cJSON *item, const char *const *members, cJSON *to, struct df_err *err)
{
    DF_JSON cJSON *kept = cJSON_CreateObject();
    if (df_check_alloc(kept, err) < 0)
        return -1;
    for (; *members; members++) {
        cJSON *member = cJSON_DetachItemFromObjectCaseSensitive(item, *members);
        if (member && df_json_add(kept, *members, member, err) < 0)
            return -1;
    }
    return df_json_append(to, DF_TAKE(kept), err);
}

/* extra_vars may be an object: who needs them looks. */
static bool is_wanted(const struct df_awx_list *l, const cJSON *item)
{
    const char *vars = df_json_str(item, "extra_vars");
    return !l->vars_have || !vars || strstr(vars, l->vars_have);
}

static int keep_items(const struct df_awx_list *l, cJSON *results, cJSON *items, struct df_err *err)
{
    cJSON *item;
    cJSON_ArrayForEach (item, results)
        if (is_wanted(l, item) && keep_members(item, l->members, items, err) < 0)
            return -1;
    return 0;
}

static char *page_path(const struct df_awx_list *l, const struct place *p)
{
    int page = p->size ? p->seen / p->size : p->pages;
    DF_BUF struct df_buf path = DF_BUF_INIT(DF_LIMIT_URL);
    (void)df_buf_adds(&path, l->path);
    if (p->size)
        (void)df_buf_addf(&path, "%cpage_size=%d", strchr(l->path, '?') ? '&' : '?', p->size);
    if (page)
        (void)df_buf_addf(&path, "&page=%d", page + 1);
    return df_buf_take(&path);
}

/* n items came. A page of AWX that has fewer than were asked for, and is not the last, has the most
 * that it gives. Pages that were too large become larger again. */
static void go_on(struct place *p, int n)
{
    p->pages++;
    if (!p->size)
        return;
    p->seen = p->seen / p->size * p->size + n;
    if (n < p->size)
        p->size = p->largest = n;
    else if (2 * p->size <= p->largest && p->seen % (2 * p->size) == 0)
        p->size *= 2;
}

/* Only whether there is a next page is believed, not its address: the token would go there. */
static int read_page(struct df_awx *a, const struct df_awx_list *l, struct place *p, cJSON *items,
                     struct df_err *err)
{
    const struct df_awx_request call = {.what = l->what,
                                        .path = page_path(l, p),
                                        .max = p->size == 1 ? DF_LIMIT_HTTP_RESPONSE : PAGE_BYTES};
    DF_JSON cJSON *page = NULL;
    if (df_awx_ask(a, call, &page, err) < 0)
        return -1;
    cJSON *results = cJSON_GetObjectItemCaseSensitive(page, "results");
    int n = cJSON_GetArraySize(results);
    p->has_more = df_json_str(page, "next");
    if (!cJSON_IsArray(results) || (p->has_more && !n))
        return df_fail(err, DF_ERR_SYSTEM, "the answer of AWX %s has no results", l->what);
    if (n > (p->size ? p->size : DF_AWX_PAGE))
        return df_fail(err, DF_ERR_SYSTEM, "the answer of AWX %s has more results than its page",
                       l->what);
    if (p->has_more)
        go_on(p, n);
    return keep_items(l, results, items, err);
}

static int read_pages(struct df_awx *a, const struct df_awx_list *l, cJSON *items,
                      struct df_err *err)
{
    struct place p = {.size = l->size, .largest = l->size, .has_more = true};
    while (p.has_more && (!l->most || p.seen < l->most)) {
        struct df_err why = {0};
        if (!l->most && p.pages == DF_AWX_PAGES)
            return df_fail(err, DF_ERR_LIMIT, "AWX %s has more than %d pages", l->what, p.pages);
        if (read_page(a, l, &p, items, &why) == 0)
            continue;
        if (why.cls != DF_ERR_LIMIT || p.size <= 1)
            return df_err_pass(err, &why);
        p.size = p.size > 64 ? 64 : p.size / 2;
    }
    return 0;
}

/* All pages in one array. The caller owns *ret. */
int df_awx_read_list(struct df_awx *a, struct df_awx_list l, cJSON **ret, struct df_err *err)
{
    DF_FREE char *path = l.path;
    DF_JSON cJSON *items = cJSON_CreateArray();
    if (df_check_alloc(path, err) < 0 || df_check_alloc(items, err) < 0 ||
        read_pages(a, &l, items, err) < 0)
        return -1;
    *ret = DF_TAKE(items);
    return 0;
}

/* "job_templates/?name=restart%20pod"; NULL: no memory. */
char *df_awx_search_path(const char *kind, const char *key, const char *value)
{
    DF_BUF struct df_buf path = DF_BUF_INIT(DF_LIMIT_URL);
    (void)df_buf_addf(&path, "%s/", kind);
    df_url_add_parameter(&path, key, value);
    return df_buf_take(&path);
}
