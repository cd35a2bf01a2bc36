/*
 * The calls of AWX's REST API, each one request or one list (awx_request.h).
 */
#include "spawner/engine/ansible/awx_client.h"

#include "common/base/clock.h"
#include "common/base/nearest.h"
#include "common/base/parse.h"
#include "spawner/engine/ansible/awx_request.h"

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
    (void)!df_awx_read_list(a,
                            (struct df_awx_list){.what = "job template search",
                                                 .path = strdup("job_templates/"),
                                                 .members = members,
                                                 .size = DF_AWX_PAGE,
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

int df_awx_find_template(struct df_awx *a, const char *name, struct df_awx_template *ret,
                         struct df_err *err)
{
    static const char *const members[] = {"id",
                                          "organization",
                                          "ask_variables_on_launch",
                                          "ask_credential_on_launch",
                                          "survey_enabled",
                                          NULL};
    DF_JSON cJSON *list = NULL;
    if (!*name)
        return df_fail(err, DF_ERR_USER,
                       "jobTemplateName is required in ansible engineConfig for v1.0");
    const struct df_awx_list search = {.what = "job template search",
                                       .path = df_awx_search_path("job_templates", "name", name),
                                       .members = members};
    if (df_awx_read_list(a, search, &list, err) < 0)
        return -1;
    if (!list->child)
        return fail_template(a, name, err);
    const cJSON *found = choose_template(a, list);
    if (!found)
        return df_fail(err, DF_ERR_USER,
                       "AWX has several job templates \"%s\", and none in the organization %lld of "
                       "ansible.organizationId: rename one of them",
                       name, (long long)a->options.organization);
    ret->takes_variables = df_json_bool(found, "ask_variables_on_launch", true);
    ret->takes_credentials = df_json_bool(found, "ask_credential_on_launch", true);
    ret->has_survey = df_json_bool(found, "survey_enabled", false);
    return df_awx_read_id(found, search.what, &ret->id, err);
}

/* ---- what a launch would ignore ---- */

static bool is_asked(const cJSON *survey, const char *variable)
{
    const cJSON *question, *spec = df_json_at(survey, "spec");
    cJSON_ArrayForEach (question, spec)
        if (df_streq(df_json_str(question, "variable"), variable))
            return true;
    return false;
}

/* survey: or NULL. */
static int check_variables(const cJSON *survey, const cJSON *vars, struct df_err *err)
{
    DF_BUF struct df_buf names = DF_BUF_INIT(DF_AWX_BODY);
    const cJSON *var;
    cJSON_ArrayForEach (var, vars)
        if (!is_asked(survey, var->string))
            (void)df_buf_addf(&names, "%s%s", names.len ? ", " : "", var->string);
    if (!names.len)
        return 0;
    return df_fail(err, DF_ERR_USER,
                   "AWX would ignore the variables of the workflow: set \"Prompt on launch\" for "
                   "the variables of the job template%s; it does not take %s",
                   survey ? ", or add them to its survey" : "", df_buf_str(&names));
}

int df_awx_check_prompts(struct df_awx *a, const struct df_awx_template *t, const cJSON *vars,
                         bool has_credentials, struct df_err *err)
{
    DF_JSON cJSON *survey = NULL;
    if (has_credentials && !t->takes_credentials)
        return df_fail(err, DF_ERR_USER,
                       "AWX would ignore the Secrets of the workflow: set \"Prompt on launch\" for "
                       "the credentials of the job template");
    if (t->takes_variables)
        return 0;
    if (!t->has_survey)
        return check_variables(NULL, vars, err);
    const struct df_awx_request spec = {
        .what = "survey", .path = df_strf("job_templates/%lld/survey_spec/", (long long)t->id)};
    return df_awx_ask(a, spec, &survey, err) < 0 ? -1 : check_variables(survey, vars, err);
}

int df_awx_template_credentials(struct df_awx *a, int64_t template_id, cJSON **ret,
                                struct df_err *err)
{
    static const char *const members[] = {"id", NULL};
    DF_JSON cJSON *list = NULL, *ids = cJSON_CreateArray();
    const struct df_awx_list credentials = {
        .what = "credentials",
        .path = df_strf("job_templates/%lld/credentials/", (long long)template_id),
        .members = members,
        .size = DF_AWX_PAGE};
    const cJSON *item;
    if (df_awx_read_list(a, credentials, &list, err) < 0)
        return -1;
    cJSON_ArrayForEach (item, list)
        if (df_awx_add_id(ids, item, credentials.what, err) < 0)
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
    const struct df_awx_list jobs = {.what = "jobs",
                                     .path = df_buf_take(&path),
                                     .members = members,
                                     .size = DF_AWX_PAGE,
                                     .most = DF_AWX_ITEMS,
                                     .vars_have = uid};
    return df_awx_read_list(a, jobs, ret, err);
}

/* AWX gives extra_vars as text. What is no JSON is not ours, unless the uid is in it: then nobody
 * knows. *ret: not touched if it is none of ours. */
static int match_job(const cJSON *job, const char *uid, int64_t *ret, struct df_err *err)
{
    const cJSON *vars = df_json_at(job, "extra_vars");
    const char *text = cJSON_GetStringValue(vars);
    DF_JSON cJSON *parsed = NULL;
    if (text && strstr(text, uid) && df_awx_parse(text, strlen(text), "jobs", &parsed, err) < 0)
        return -1;
    if (!df_streq(df_json_str(text ? parsed : vars, "DAYFLY_UID"), uid))
        return 0;
    return df_awx_read_id(job, "jobs", ret, err);
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
    struct df_awx_request launch = {
        .what = "launch", .method = "POST", .has_body = true, .ok = 201};
    if (make_launch(vars, credentials, &launch.body, err) < 0)
        return -1;
    launch.path = df_strf("job_templates/%lld/launch/", (long long)template_id);
    if (df_awx_ask(a, launch, &answer, err) < 0)
        return -1;
    name_ignored(answer, ret->ignored, sizeof(ret->ignored));
    return df_awx_read_id(answer, launch.what, &ret->job, err);
}

int df_awx_job(struct df_awx *a, int64_t id, cJSON **ret, int64_t *ret_ahead_us, struct df_err *err)
{
    const struct df_awx_request status = {.what = "status",
                                          .path = df_strf("jobs/%lld/", (long long)id)};
    if (df_awx_ask(a, status, ret, err) < 0)
        return -1;
    *ret_ahead_us = a->clock_ahead_us;
    return 0;
}

/* 405: it has ended. */
int df_awx_cancel(struct df_awx *a, int64_t id, struct df_err *err)
{
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    struct df_err why = {0};
    const struct df_awx_request cancel = {.what = "cancel",
                                          .method = "POST",
                                          .path = df_strf("jobs/%lld/cancel/", (long long)id),
                                          .ok = 202,
                                          .also_ok = 200};
    if (df_awx_send(a, cancel, &res, &why) == 0 || res.status == 405)
        return 0;
    return df_err_pass(err, &why);
}

int df_awx_count_events(struct df_awx *a, int64_t id, struct df_awx_events *ret, struct df_err *err)
{
    DF_JSON cJSON *page = NULL;
    const struct df_awx_request newest = {
        .what = "job events",
        .path = df_strf("jobs/%lld/job_events/?order_by=-counter&page_size=1", (long long)id)};
    if (df_awx_ask(a, newest, &page, err) < 0)
        return -1;
    const cJSON *event = cJSON_GetArrayItem(df_json_at(page, "results"), 0);
    ret->count = df_json_int(page, "count", -1);
    ret->newest = df_json_int(event, "counter", 0);
    return 0;
}

/* As a download: where AWX would show more than a MiB, it answers with a sentence instead. */
int df_awx_stdout(struct df_awx *a, int64_t id, struct df_buf *to, struct df_err *err)
{
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    const struct df_awx_request output = {
        .what = "stdout",
        .path = df_strf("jobs/%lld/stdout/?format=txt_download", (long long)id),
        .max = to->max};
    if (df_awx_send(a, output, &res, err) < 0)
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
    const struct df_awx_list search = {
        .what = "credential type search", .path = path, .members = members};
    DF_JSON cJSON *list = NULL;
    if (df_awx_read_list(a, search, &list, err) < 0)
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
    return find_type(a, df_awx_search_path("credential_types", "name", name), shown, ret, err);
}

int df_awx_create_type(struct df_awx *a, const char *name, const cJSON *inputs,
                       const cJSON *injectors, int64_t *ret_id, struct df_err *err)
{
    const struct df_awx_request create = {
        .what = "create credential type",
        .method = "POST",
        .path = strdup("credential_types/"),
        .has_body = true,
        .body = df_json_object(DF_STR("name", name), DF_STR("kind", "cloud"),
                               DF_ITEM("inputs", cJSON_Duplicate(inputs, true)),
                               DF_ITEM("injectors", cJSON_Duplicate(injectors, true))),
        .ok = 201};
    return df_awx_ask_for_id(a, create, ret_id, err);
}

/* ---- credentials ---- */

int df_awx_find_credentials(struct df_awx *a, const char *name, cJSON **ret, struct df_err *err)
{
    static const char *const members[] = {"id", "organization", NULL};
    const struct df_awx_list search = {.what = "credential search",
                                       .path = df_awx_search_path("credentials", "name", name),
                                       .members = members};
    DF_JSON cJSON *list = NULL, *ids = cJSON_CreateArray();
    const cJSON *item;
    if (df_awx_read_list(a, search, &list, err) < 0)
        return -1;
    cJSON_ArrayForEach (item, list)
        if (df_json_int(item, "organization", -1) == a->options.organization &&
            df_awx_add_id(ids, item, search.what, err) < 0)
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
    const struct df_awx_request create = {
        .what = "create credential",
        .method = "POST",
        .path = strdup("credentials/"),
        .has_body = true,
        .body = df_json_object(DF_STR("name", name), DF_NUM("credential_type", type),
                               DF_NUM("organization", a->options.organization),
                               DF_ITEM("inputs", cJSON_Duplicate(inputs, true))),
        .ok = 201};
    return df_awx_ask_for_id(a, create, ret_id, err);
}

int df_awx_delete_credential(struct df_awx *a, int64_t id, struct df_err *err)
{
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    const struct df_awx_request remove = {.what = "delete credential",
                                          .method = "DELETE",
                                          .path = df_strf("credentials/%lld/", (long long)id),
                                          .ok = 204};
    return df_awx_send(a, remove, &res, err);
}
