/*
 * AWX's REST API: first one request with its token, then lists of several pages, then the calls.
 * Read send_call() first: every call goes through it.
 */
#include "spawner/engine/ansible/awx_client.h"

#include "common/base/clock.h"
#include "common/base/nearest.h"
#include "common/base/parse.h"
#include "common/base/strs.h"
#include "spawner/engine/ansible/awx_answer.h"

enum {
    TIMEOUT_MS = 30000,
    PAGE = 200, /* the most that AWX gives */
    /* Of a page, unless it is of one item: in memory small items are twenty times as much. */
    PAGE_BYTES = 2 * DF_MIB,
};

struct df_awx {
    struct df_awx_options options;
    int url_length; /* without slashes at the end */
    struct df_http *http;
    bool has_token;
    int64_t clock_ahead_us; /* AWX's, by the last answer that told */
    struct df_strs secrets; /* all that were sent */
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
    df_strs_wipe(&a->secrets);
    free(a);
}

/* ---- one request ---- */

struct call {
    const char *what;   /* as upstream's messages name it: "launch" */
    const char *method; /* NULL: GET */
    char *path;         /* behind /api/v2/; taken; NULL: no memory */
    bool has_body;      /* of a POST; false: an empty one */
    cJSON *body;        /* taken; NULL: no memory */
    int ok, also_ok;    /* statuses; ok 0: 200 */
    size_t max;         /* bytes of the answer; 0: the client's own limit */
};

/* Keeps it to mask it, too. */
static int set_token(struct df_awx *a, const char *token, struct df_err *err)
{
    if (!*token)
        return df_fail(err, DF_ERR_USER, "ansible.tokenSecretRef: the token must not be empty");
    (void)df_strs_add_new(&a->secrets, token);
    if (df_strs_check(&a->secrets, err) < 0 || df_http_set_bearer(a->http, token, err) < 0)
        return -1;
    a->has_token = true;
    return 0;
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

static int send_once(struct df_awx *a, const struct call *c, const char *url, const char *body,
                     struct df_http_response *ret, struct df_err *err)
{
    struct df_http_request req = DF_HTTP_REQUEST(c->method ? c->method : "GET", url);
    req.body = body;
    req.body_len = body ? strlen(body) : 0;
    req.timeout_ms = TIMEOUT_MS;
    req.max_response = c->max;
    req.once = df_streq(c->method, "POST");
    req.stop = a->options.stop;
    if (!a->has_token && read_token(a, err) < 0)
        return -1;
    int64_t from_us = df_real_us();
    if (c->method && a->options.may_write && !a->options.may_write(a->options.arg))
        return df_fail_reason(err, DF_ERR_RETRY, "NotLeader", "this replica does not lead");
    if (df_http_send(a->http, &req, ret, err) < 0)
        return df_err_wrap(err, "AWX %s", c->what);
    (void)!df_http_clock_ahead(ret, from_us, &a->clock_ahead_us);
    return 0;
}

/* The token may have been replaced since it was read. */
static int send_with_token(struct df_awx *a, const struct call *c, const char *url,
                           const char *body, struct df_http_response *ret, struct df_err *err)
{
    if (send_once(a, c, url, body, ret, err) < 0)
        return -1;
    if (ret->status != 401)
        return 0;
    df_http_response_free(ret);
    *ret = (struct df_http_response){0};
    a->has_token = false;
    return send_once(a, c, url, body, ret, err);
}

static int check(const struct df_awx *a, const struct call *c, const struct df_http_response *res,
                 struct df_err *err)
{
    int ok = c->ok ? c->ok : 200;
    return res->status == ok || res->status == c->also_ok
               ? 0
               : df_awx_fail_status(c->what, res, &a->secrets, err);
}

static int send_printed(struct df_awx *a, const struct call *c, const char *body,
                        struct df_http_response *ret, struct df_err *err)
{
    DF_FREE char *url = df_strf("%.*s/api/v2/%s", a->url_length, a->options.url, c->path);
    if (!url)
        return df_fail_oom(err);
    return send_with_token(a, c, url, body, ret, err) < 0 ? -1 : check(a, c, ret, err);
}

/* The caller frees *ret, also after a failure. */
static int send_call(struct df_awx *a, struct call c, struct df_http_response *ret,
                     struct df_err *err)
{
    DF_FREE char *path = c.path;
    DF_SECRET_JSON cJSON *document = c.body;
    bool posts = df_streq(c.method, "POST");
    char *body = !posts ? NULL : c.has_body ? df_json_print_nul(document) : strdup("");
    int result = path && (body || !posts) ? send_printed(a, &c, body, ret, err) : df_fail_oom(err);
    df_str_wipe(&body);
    return result;
}

/* what: as in struct call. The caller owns *ret. */
static int parse(const char *text, size_t n, const char *what, cJSON **ret, struct df_err *err)
{
    struct df_err why = {0};
    if (df_json_parse_nul(text, n, ret, &why) == 0)
        return 0;
    why.cls = why.cls == DF_ERR_USER ? DF_ERR_SYSTEM : why.cls;
    (void)df_err_wrap(&why, "the answer of AWX %s", what);
    return df_err_pass(err, &why);
}

/* *ret: the document that AWX answers; the caller owns it. */
static int ask(struct df_awx *a, struct call c, cJSON **ret, struct df_err *err)
{
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    return send_call(a, c, &res, err) < 0
               ? -1
               : parse(df_buf_str(&res.body), res.body.len, c.what, ret, err);
}

static int read_id(const cJSON *answer, const char *what, int64_t *ret, struct df_err *err)
{
    int64_t id = df_json_int(answer, "id", -1);
    if (id < 0)
        return df_fail(err, DF_ERR_SYSTEM, "the answer of AWX %s has no id", what);
    *ret = id;
    return 0;
}

static int add_id(cJSON *ids, const cJSON *item, const char *what, struct df_err *err)
{
    int64_t id;
    return read_id(item, what, &id, err) < 0
               ? -1
               : df_json_append(ids, cJSON_CreateNumber((double)id), err);
}

static int ask_for_id(struct df_awx *a, struct call c, int64_t *ret, struct df_err *err)
{
    DF_JSON cJSON *answer = NULL;
    return ask(a, c, &answer, err) < 0 ? -1 : read_id(answer, c.what, ret, err);
}

/* ---- lists ---- */

struct list {
    const char *what;
    char *path;                 /* with its query; taken; NULL: no memory */
    const char *const *members; /* of an item that are kept: AWX's items are large */
    int size;                   /* of a page, less if it is too large; 0: AWX's own */
    int most;                   /* items: the rest is left out; 0: there is no rest */
    const char *vars_have; /* text: of jobs without it in extra_vars nothing is kept; or NULL */
};

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
static bool is_wanted(const struct list *l, const cJSON *item)
{
    const char *vars = df_json_str(item, "extra_vars");
    return !l->vars_have || !vars || strstr(vars, l->vars_have);
}

static int keep_items(const struct list *l, cJSON *results, cJSON *items, struct df_err *err)
{
    cJSON *item;
    cJSON_ArrayForEach (item, results)
        if (is_wanted(l, item) && keep_members(item, l->members, items, err) < 0)
            return -1;
    return 0;
}

static char *page_path(const struct list *l, const struct place *p)
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
static int read_page(struct df_awx *a, const struct list *l, struct place *p, cJSON *items,
                     struct df_err *err)
{
    const struct call call = {.what = l->what,
                              .path = page_path(l, p),
                              .max = p->size == 1 ? DF_LIMIT_HTTP_RESPONSE : PAGE_BYTES};
    DF_JSON cJSON *page = NULL;
    if (ask(a, call, &page, err) < 0)
        return -1;
    cJSON *results = cJSON_GetObjectItemCaseSensitive(page, "results");
    int n = cJSON_GetArraySize(results);
    p->has_more = df_json_str(page, "next");
    if (!cJSON_IsArray(results) || (p->has_more && !n))
        return df_fail(err, DF_ERR_SYSTEM, "the answer of AWX %s has no results", l->what);
    if (n > (p->size ? p->size : PAGE))
        return df_fail(err, DF_ERR_SYSTEM, "the answer of AWX %s has more results than its page",
                       l->what);
    if (p->has_more)
        go_on(p, n);
    return keep_items(l, results, items, err);
}

static int read_pages(struct df_awx *a, const struct list *l, cJSON *items, struct df_err *err)
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
static int read_list(struct df_awx *a, struct list l, cJSON **ret, struct df_err *err)
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
static char *search_path(const char *kind, const char *key, const char *value)
{
    DF_BUF struct df_buf path = DF_BUF_INIT(DF_LIMIT_URL);
    (void)df_buf_addf(&path, "%s/", kind);
    df_url_add_parameter(&path, key, value);
    return df_buf_take(&path);
}

/* ---- job templates ---- */

struct near {
    const char *name; /* NULL: none */
    size_t distance;
};

static void insert_near(struct near best[DF_AWX_NEAREST], struct near candidate)
{
    for (int i = 0; i < DF_AWX_NEAREST; i++) {
        struct near old = best[i];
        if (old.name && old.distance <= candidate.distance)
            continue;
        best[i] = candidate;
        candidate = old;
        if (!candidate.name)
            return;
    }
}

static int fail_template(struct df_awx *a, const char *name, struct df_err *err)
{
    static const char *const members[] = {"name", NULL};
    struct near best[DF_AWX_NEAREST] = {0};
    DF_BUF struct df_buf names = DF_BUF_INIT(DF_AWX_BODY);
    DF_JSON cJSON *list = NULL;
    const cJSON *item;
    (void)!read_list(a,
                     (struct list){.what = "job template search",
                                   .path = strdup("job_templates/"),
                                   .members = members,
                                   .size = PAGE,
                                   .most = DF_AWX_ITEMS},
                     &list, NULL);
    cJSON_ArrayForEach (item, list) {
        const char *known = df_json_str(item, "name");
        if (known && !df_has_control(known))
            insert_near(best, (struct near){known, df_edit_distance(name, known)});
    }
    for (int i = 0; i < DF_AWX_NEAREST && best[i].name; i++)
        (void)df_buf_addf(&names, "%s\"%.80s\"", i ? ", " : "; its nearest are ", best[i].name);
    if (list && !list->child)
        (void)df_buf_adds(&names, "; its token may see no job template at all");
    return df_fail(err, DF_ERR_USER, "AWX job template \"%s\" not found%s", name,
                   df_buf_str(&names));
}

/* The one of our organization, or the only one; else NULL. */
static const cJSON *choose_template(const struct df_awx *a, const cJSON *list)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, list)
        if (df_json_int(item, "organization", -1) == a->options.organization)
            return item;
    return list->child->next ? NULL : list->child;
}

int df_awx_find_template(struct df_awx *a, const char *name, int64_t *ret_id, struct df_err *err)
{
    static const char *const members[] = {"id", "organization", NULL};
    DF_JSON cJSON *list = NULL;
    if (!*name)
        return df_fail(err, DF_ERR_USER,
                       "jobTemplateName is required in ansible engineConfig for v1.0");
    const struct list search = {.what = "job template search",
                                .path = search_path("job_templates", "name", name),
                                .members = members};
    if (read_list(a, search, &list, err) < 0)
        return -1;
    if (!list->child)
        return fail_template(a, name, err);
    const cJSON *found = choose_template(a, list);
    if (!found)
        return df_fail(err, DF_ERR_USER,
                       "AWX has several job templates \"%s\", and none in the organization %lld of "
                       "ansible.organizationId: rename one of them",
                       name, (long long)a->options.organization);
    return read_id(found, search.what, ret_id, err);
}

int df_awx_template_credentials(struct df_awx *a, int64_t template_id, cJSON **ret,
                                struct df_err *err)
{
    static const char *const members[] = {"id", NULL};
    DF_JSON cJSON *list = NULL, *ids = cJSON_CreateArray();
    const struct list credentials = {
        .what = "credentials",
        .path = df_strf("job_templates/%lld/credentials/", (long long)template_id),
        .members = members,
        .size = PAGE};
    const cJSON *item;
    if (read_list(a, credentials, &list, err) < 0)
        return -1;
    cJSON_ArrayForEach (item, list)
        if (add_id(ids, item, credentials.what, err) < 0)
            return -1;
    *ret = DF_TAKE(ids);
    return df_check_alloc(*ret, err);
}

/* The newest jobs of a template in whose variables this uid is. */
static int read_jobs(struct df_awx *a, int64_t template_id, int64_t since_us, const char *uid,
                     cJSON **ret, struct df_err *err)
{
    static const char *const members[] = {"id", "extra_vars", NULL};
    char since[DF_TIME_LEN];
    DF_BUF struct df_buf path = DF_BUF_INIT(DF_LIMIT_URL);
    (void)df_buf_addf(&path, "job_templates/%lld/jobs/?order_by=-id", (long long)template_id);
    if (since_us)
        df_url_add_parameter(&path, "created__gt", df_time_format(since_us, since));
    const struct list jobs = {.what = "jobs",
                              .path = df_buf_take(&path),
                              .members = members,
                              .size = PAGE,
                              .most = DF_AWX_ITEMS,
                              .vars_have = uid};
    return read_list(a, jobs, ret, err);
}

/* AWX gives extra_vars as text. What is no JSON is not ours, unless the uid is in it: then nobody
 * knows. *ret: not touched if it is none of ours. */
static int match_job(const cJSON *job, const char *uid, int64_t *ret, struct df_err *err)
{
    const cJSON *vars = df_json_at(job, "extra_vars");
    const char *text = cJSON_GetStringValue(vars);
    DF_JSON cJSON *parsed = NULL;
    if (text && strstr(text, uid) && parse(text, strlen(text), "jobs", &parsed, err) < 0)
        return -1;
    if (!df_streq(df_json_str(text ? parsed : vars, "DAYFLY_UID"), uid))
        return 0;
    return read_id(job, "jobs", ret, err);
}

int df_awx_find_job(struct df_awx *a, int64_t template_id, int64_t since_us, const char *uid,
                    int64_t *ret, struct df_err *err)
{
    DF_JSON cJSON *jobs = NULL;
    int64_t found = -1;
    if (read_jobs(a, template_id, since_us, uid, &jobs, err) < 0)
        return -1;
    for (const cJSON *job = jobs->child; job && found < 0; job = job->next)
        if (match_job(job, uid, &found, err) < 0)
            return -1;
    *ret = found;
    return 0;
}

/* ---- jobs ---- */

static int make_launch(const cJSON *vars, const cJSON *credentials, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *body = cJSON_CreateObject();
    if (df_check_alloc(body, err) < 0)
        return -1;
    if (vars && vars->child &&
        df_json_add(body, "extra_vars", cJSON_Duplicate(vars, true), err) < 0)
        return -1;
    if (credentials && credentials->child &&
        df_json_add(body, "credentials", cJSON_Duplicate(credentials, true), err) < 0)
        return -1;
    *ret = DF_TAKE(body);
    return 0;
}

static void name_ignored(const cJSON *answer, char *to, size_t size)
{
    DF_BUF struct df_buf names = DF_BUF_INIT(size - 1);
    const cJSON *field;
    cJSON_ArrayForEach (field, df_json_at(answer, "ignored_fields"))
        (void)df_buf_addf(&names, "%s%s", names.len ? ", " : "", field->string);
    df_copy(to, size, df_buf_str(&names));
}

int df_awx_launch(struct df_awx *a, int64_t template_id, const cJSON *vars,
                  const cJSON *credentials, struct df_awx_launched *ret, struct df_err *err)
{
    DF_JSON cJSON *answer = NULL;
    struct call launch = {.what = "launch", .method = "POST", .has_body = true, .ok = 201};
    if (make_launch(vars, credentials, &launch.body, err) < 0)
        return -1;
    launch.path = df_strf("job_templates/%lld/launch/", (long long)template_id);
    if (ask(a, launch, &answer, err) < 0)
        return -1;
    name_ignored(answer, ret->ignored, sizeof(ret->ignored));
    return read_id(answer, launch.what, &ret->job, err);
}

int df_awx_job(struct df_awx *a, int64_t id, cJSON **ret, int64_t *ret_ahead_us, struct df_err *err)
{
    const struct call status = {.what = "status", .path = df_strf("jobs/%lld/", (long long)id)};
    if (ask(a, status, ret, err) < 0)
        return -1;
    *ret_ahead_us = a->clock_ahead_us;
    return 0;
}

/* 405: it has ended. */
int df_awx_cancel(struct df_awx *a, int64_t id, struct df_err *err)
{
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    struct df_err why = {0};
    const struct call cancel = {.what = "cancel",
                                .method = "POST",
                                .path = df_strf("jobs/%lld/cancel/", (long long)id),
                                .ok = 202,
                                .also_ok = 200};
    if (send_call(a, cancel, &res, &why) == 0 || res.status == 405)
        return 0;
    return df_err_pass(err, &why);
}

/* As a download: where AWX would show more than a MiB, it answers with a sentence instead. */
int df_awx_stdout(struct df_awx *a, int64_t id, struct df_buf *to, struct df_err *err)
{
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    const struct call output = {.what = "stdout",
                                .path =
                                    df_strf("jobs/%lld/stdout/?format=txt_download", (long long)id),
                                .max = to->max};
    if (send_call(a, output, &res, err) < 0)
        return -1;
    (void)df_buf_add(to, df_buf_str(&res.body), res.body.len);
    return df_buf_check(to, err);
}

/* ---- credential types ---- */

/* path: taken; NULL: no memory. shown: what was asked for, in the message. */
static int find_type(struct df_awx *a, char *path, const char *shown, cJSON **ret,
                     struct df_err *err)
{
    static const char *const members[] = {"id", "name", "kind", "inputs", "injectors", NULL};
    const struct list search = {.what = "credential type search", .path = path, .members = members};
    DF_JSON cJSON *list = NULL;
    if (read_list(a, search, &list, err) < 0)
        return -1;
    if (!list->child)
        return df_fail(err, DF_ERR_NOT_FOUND, "AWX credential type %s not found", shown);
    *ret = cJSON_DetachItemFromArray(list, 0);
    return 0;
}

int df_awx_find_type(struct df_awx *a, const char *name, cJSON **ret, struct df_err *err)
{
    DF_FREE char *shown = df_strf("\"%s\"", name);
    if (!shown)
        return df_fail_oom(err);
    return find_type(a, search_path("credential_types", "name", name), shown, ret, err);
}

int df_awx_create_type(struct df_awx *a, const char *name, const cJSON *inputs,
                       const cJSON *injectors, int64_t *ret_id, struct df_err *err)
{
    const struct call create = {
        .what = "create credential type",
        .method = "POST",
        .path = strdup("credential_types/"),
        .has_body = true,
        .body = df_json_object(DF_STR("name", name), DF_STR("kind", "cloud"),
                               DF_ITEM("inputs", cJSON_Duplicate(inputs, true)),
                               DF_ITEM("injectors", cJSON_Duplicate(injectors, true))),
        .ok = 201};
    return ask_for_id(a, create, ret_id, err);
}

/* ---- credentials ---- */

int df_awx_find_credentials(struct df_awx *a, const char *name, cJSON **ret, struct df_err *err)
{
    static const char *const members[] = {"id", "organization", NULL};
    const struct list search = {.what = "credential search",
                                .path = search_path("credentials", "name", name),
                                .members = members};
    DF_JSON cJSON *list = NULL, *ids = cJSON_CreateArray();
    const cJSON *item;
    if (read_list(a, search, &list, err) < 0)
        return -1;
    cJSON_ArrayForEach (item, list)
        if (df_json_int(item, "organization", -1) == a->options.organization &&
            add_id(ids, item, search.what, err) < 0)
            return -1;
    *ret = DF_TAKE(ids);
    return df_check_alloc(*ret, err);
}

int df_awx_create_credential(struct df_awx *a, const char *name, int64_t type, const cJSON *inputs,
                             int64_t *ret_id, struct df_err *err)
{
    const cJSON *input;
    cJSON_ArrayForEach (input, inputs)
        (void)df_strs_add_new(&a->secrets, input->valuestring);
    if (df_strs_check(&a->secrets, err) < 0)
        return -1;
    const struct call create = {
        .what = "create credential",
        .method = "POST",
        .path = strdup("credentials/"),
        .has_body = true,
        .body = df_json_object(DF_STR("name", name), DF_NUM("credential_type", type),
                               DF_NUM("organization", a->options.organization),
                               DF_ITEM("inputs", cJSON_Duplicate(inputs, true))),
        .ok = 201};
    return ask_for_id(a, create, ret_id, err);
}

int df_awx_delete_credential(struct df_awx *a, int64_t id, struct df_err *err)
{
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    const struct call remove = {.what = "delete credential",
                                .method = "DELETE",
                                .path = df_strf("credentials/%lld/", (long long)id),
                                .ok = 204};
    return send_call(a, remove, &res, err);
}
