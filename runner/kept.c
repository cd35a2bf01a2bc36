/* The types of buckets first, then the two answers; read answer() at the end. */
#include "runner/kept.h"

#include <poll.h>
#include <unistd.h>

#include "common/base/backoff.h"
#include "common/base/exit.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/blob/backend.h"
#include "common/blob/gcs.h"
#include "common/blob/s3.h"
#include "common/http/http.h"
#include "common/json/json.h"
#include "runner/pulled.h"

enum { TRIES_MAX = 5, PAUSE_MIN_MS = 250, PAUSE_MAX_MS = 4000 };

/* ---- types of buckets ---- */

static int open_s3(const cJSON *config, struct df_bucket **ret, struct df_err *err);
static int open_gcs(const cJSON *config, struct df_bucket **ret, struct df_err *err);
static char *name_in_s3(const cJSON *config);
static char *name_in_gcs(const cJSON *config);

static const struct bucket_type {
    const char *name;
    /* Settings of the backend, and variables, that change whose credentials read the bucket, by
     * which way, or with which key. They are not read here: without them another account would be
     * asked. */
    const char *unread[16], *unread_variables[8];
    const char *provider; /* of the integration that has credentials */
    const char *on[2];    /* the command that turns versioning on, before and after the bucket */
    char *(*name_of)(const cJSON *config); /* of the object; the caller frees; NULL: no memory */
    int (*open)(const cJSON *config, struct df_bucket **ret, struct df_err *err);
} types[] = {
    {"s3",
     {"assume_role", "assume_role_with_web_identity", "profile", "shared_credentials_file",
      "shared_credentials_files", "shared_config_files", "sts_endpoint", "use_fips_endpoint",
      "use_dualstack_endpoint", "insecure", "http_proxy", "https_proxy", "no_proxy"},
     {"AWS_SSE_CUSTOMER_KEY"},
     "aws",
     {"aws s3api put-bucket-versioning --bucket ", " --versioning-configuration Status=Enabled"},
     name_in_s3,
     open_s3},
    {"gcs",
     {"impersonate_service_account", "impersonate_service_account_delegates"},
     {"GOOGLE_CREDENTIALS", "GOOGLE_BACKEND_CREDENTIALS", "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT",
      "GOOGLE_BACKEND_IMPERSONATE_SERVICE_ACCOUNT", "GOOGLE_ENCRYPTION_KEY"},
     "gcp",
     {"gcloud storage buckets update gs://", " --versioning"},
     name_in_gcs,
     open_gcs},
};

static int refuse_setting(const struct bucket_type *t, const char *name, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_USER, "VersionsUnavailable",
                          "the versions in the bucket cannot be read with %s: give the executor an "
                          "integration `%s` instead (spec.integrations), or use the tools of the "
                          "bucket",
                          name, t->provider);
}

static int check_settings(const struct bucket_type *t, const cJSON *config, struct df_err *err)
{
    for (const char *const *name = t->unread; *name; name++) {
        const cJSON *setting = cJSON_GetObjectItemCaseSensitive(config, *name);
        if (setting && !cJSON_IsFalse(setting))
            return refuse_setting(t, *name, err);
    }
    for (const char *const *name = t->unread_variables; *name; name++)
        if (!df_str_empty(getenv(*name)))
            return refuse_setting(t, *name, err);
    return 0;
}

/* The type of the bucket, if its versions can be read. */
static int find_type(const cJSON *state, const struct bucket_type **ret, struct df_err *err)
{
    const char *type = df_json_str(state, "type");
    for (size_t i = 0; i < DF_ARRAY_SIZE(types); i++) {
        if (!df_streq(type, types[i].name))
            continue;
        *ret = &types[i];
        return check_settings(&types[i], df_json_at(state, "config"), err);
    }
    return df_fail_reason(err, DF_ERR_USER, "VersionsUnavailable",
                          "versions of a state are read in buckets of the types s3 and gcs, not in "
                          "%s",
                          type ? type : "this storage");
}

/* ---- buckets ---- */

/* The first of these that is set: a setting of the backend (names), else a variable. */
static const char *setting(const cJSON *config, const char *const names[2],
                           const char *const variables[3])
{
    const char *found = NULL;
    for (size_t i = 0; i < 2 && names[i] && df_str_empty(found); i++)
        found = df_json_str(config, names[i]);
    for (size_t i = 0; i < 3 && variables[i] && df_str_empty(found); i++)
        found = getenv(variables[i]);
    return df_str_empty(found) ? NULL : found;
}

#define NAMES(...) ((const char *const[2]){__VA_ARGS__})
#define VARIABLES(...) ((const char *const[3]){__VA_ARGS__})

static char *name_in_s3(const cJSON *config)
{
    const char *key = df_json_str(config, "key");
    return strdup(key ? key : "");
}

static int open_s3(const cJSON *config, struct df_bucket **ret, struct df_err *err)
{
    const char *region =
        setting(config, NAMES("region"), VARIABLES("AWS_REGION", "AWS_DEFAULT_REGION"));
    const char *bucket = df_json_str(config, "bucket");
    const struct df_s3_options o = {
        .bucket = bucket ? bucket : "",
        .region = region ? region : "",
        .endpoint =
            setting(config, NAMES("endpoints.s3", "endpoint"),
                    VARIABLES("AWS_ENDPOINT_URL_S3", "AWS_S3_ENDPOINT", "AWS_ENDPOINT_URL")),
        .ca_file =
            setting(config, NAMES("custom_ca_bundle"), VARIABLES("AWS_CA_BUNDLE", "SSL_CERT_FILE")),
        .path_style = df_json_bool(config, "use_path_style", false) ||
                      df_json_bool(config, "force_path_style", false)};
    return df_s3_bucket_new(&o, ret, err);
}

static char *name_in_gcs(const cJSON *config)
{
    const char *prefix = df_json_str(config, "prefix");
    return df_strf("%s%sdefault.tfstate", prefix ? prefix : "", df_str_empty(prefix) ? "" : "/");
}

#define GCS_API "/storage/v1/"

static int open_gcs(const cJSON *config, struct df_bucket **ret, struct df_err *err)
{
    const char *bucket = df_json_str(config, "bucket");
    const char *e = setting(
        config, NAMES("storage_custom_endpoint"),
        VARIABLES("GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT", "GOOGLE_STORAGE_CUSTOM_ENDPOINT"));
    size_t n = e ? strlen(e) - (df_ends_with(e, GCS_API) ? strlen(GCS_API) : 0) : 0;
    DF_FREE char *endpoint = e ? strndup(e, n) : NULL;
    if (e && !endpoint)
        return df_fail_oom(err);
    const struct df_gcs_options o = {
        .bucket = bucket ? bucket : "",
        .endpoint = endpoint,
        .ca_file = setting(config, NAMES(NULL), VARIABLES("SSL_CERT_FILE")),
        .token = setting(config, NAMES(NULL), VARIABLES("GOOGLE_OAUTH_ACCESS_TOKEN"))};
    return df_gcs_bucket_new(&o, ret, err);
}

/* ---- the list ---- */

struct source {
    const struct bucket_type *type;
    struct df_bucket *bucket;
    const char *in;   /* the bucket's name */
    const char *name; /* of the object */
};

static int add_kept(void *arg, const struct df_bucket_kept *kept, struct df_err *err)
{
    cJSON *list = arg, *item = cJSON_CreateObject();
    if (df_json_append(list, item, err) < 0 ||
        df_json_put(item, err, DF_STR("version", kept->id), DF_NUM("size", kept->size)) < 0)
        return -1;
    return df_json_add_time(item, "createdAt", kept->made_us, err);
}

/* What is no state has neither serial nor lineage. */
static int add_head(const struct source *from, cJSON *item, struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_LIMIT_STATE_HEAD);
    struct df_pulled head = {0};
    struct df_err why = {0};
    if (df_json_num(item, "size", 0) <= 0)
        return 0;
    if (from->bucket->ops->get_kept(from->bucket, from->name, df_json_str(item, "version"),
                                    DF_LIMIT_STATE_HEAD, &text, &why) < 0)
        return why.cls == DF_ERR_NOT_FOUND ? 0 : df_err_pass(err, &why); /* it expired just now */
    if (df_pulled_read(&text, &head, NULL) < 0 || !head.exists)
        return 0;
    return df_json_add_num(item, "serial", (double)head.serial, err) < 0
               ? -1
               : df_json_add_str(item, "lineage", head.lineage, err);
}

/* A state that was never written has no version at all. */
static int check_kept(const struct source *from, const cJSON *list, struct df_err *err)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, list) {
        if (!df_streq(df_json_str(item, "version"), DF_BUCKET_UNVERSIONED))
            return 0;
    }
    if (!list->child)
        return 0;
    return df_fail_reason(err, DF_ERR_USER, "VersionsUnavailable",
                          "the bucket %s keeps no versions of the state: turn its versioning on "
                          "(`%s%s%s`); what is written from then on can be listed and rolled back",
                          from->in, from->type->on[0], from->in, from->type->on[1]);
}

static int make_list(const struct source *from, struct df_buf *out, struct df_err *err)
{
    DF_JSON cJSON *doc = cJSON_CreateObject();
    cJSON *list = df_json_array_at(doc, "versions"), *item = NULL;
    const struct df_bucket_kept_sink sink = {add_kept, list};
    if (df_check_alloc(list, err) < 0 ||
        from->bucket->ops->list_kept(from->bucket, from->name, DF_LIMIT_STATE_HISTORY, &sink, err) <
            0 ||
        check_kept(from, list, err) < 0)
        return -1;
    cJSON_ArrayForEach (item, list) {
        if (add_head(from, item, err) < 0)
            return -1;
    }
    DF_FREE char *text = df_json_print(doc);
    return text && df_buf_adds(out, text) == 0 ? 0 : df_fail_oom(err);
}

/* ---- the answer ---- */

static int answer_once(const cJSON *request, const struct source *base, struct df_buf *out,
                       struct df_err *err)
{
    const char *id = df_json_str(request, "version");
    struct source from = *base;
    df_buf_clear(out);
    if (from.type->open(df_json_at(request, "state.config"), &from.bucket, err) < 0)
        return -1;
    int result = id ? from.bucket->ops->get_kept(from.bucket, from.name, id, 0, out, err)
                    : make_list(&from, out, err);
    from.bucket->ops->close(from.bucket);
    return result;
}

static int fail_answer(struct df_err *why, struct df_err *err)
{
    bool is_absent = why->cls == DF_ERR_NOT_FOUND;
    (void)df_err_reason(why, is_absent ? "NoSuchVersion" : "StateUnavailable");
    return df_err_pass(err, why);
}

static int try_answer(const cJSON *request, const struct source *from, struct df_buf *out,
                      struct df_err *err)
{
    for (int failures = 1;; failures++) {
        struct df_err why = {0};
        if (answer_once(request, from, out, &why) == 0)
            return 0;
        if (why.cls != DF_ERR_RETRY || failures == TRIES_MAX)
            return fail_answer(&why, err);
        (void)poll(NULL, 0, (int)df_backoff_pause(PAUSE_MIN_MS, PAUSE_MAX_MS, failures));
    }
}

static int answer(const cJSON *request, struct df_buf *out, struct df_err *err)
{
    const cJSON *config = df_json_at(request, "state.config");
    struct source from = {.in = df_json_str(config, "bucket")};
    if (find_type(df_json_at(request, "state"), &from.type, err) < 0)
        return -1;
    DF_FREE char *name = from.type->name_of(config);
    if (!name)
        return df_fail_oom(err);
    if (!df_blob_path_is_good(name))
        return df_fail_reason(err, DF_ERR_USER, "VersionsUnavailable",
                              "the versions of \"%.300s\" cannot be read: its name is not made of "
                              "A-Z a-z 0-9 . _ - and / alone. Use the tools of the bucket",
                              name);
    from.name = name;
    return try_answer(request, &from, out, err);
}

static int load_and_answer(const char *file, struct df_buf *out, struct df_err *err)
{
    DF_SECRET_JSON cJSON *request = NULL;
    if (df_http_global_init(err) < 0 ||
        df_json_load(file, DF_LIMIT_STEP_DOCUMENT, &request, err) < 0)
        return df_err_reason(err, "RunnerFailed");
    return answer(request, out, err);
}

/* Replaces what was to be printed. */
static int print_failure(const struct df_err *why, struct df_buf *out)
{
    DF_JSON cJSON *doc = cJSON_CreateObject();
    struct df_err err = {0};
    if (df_json_put(doc, &err, DF_STR("reason", why->reason), DF_STR("message", why->message)) < 0)
        return -1;
    DF_FREE char *text = df_json_print(doc);
    df_buf_clear(out);
    return text ? df_buf_adds(out, text) : -1;
}

int df_kept_command(const char *file)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf out = DF_BUF_INIT(DF_LIMIT_STATE);
    struct df_err err = {0};
    int result = load_and_answer(file, &out, &err);
    if ((result < 0 && print_failure(&err, &out) < 0) ||
        df_fs_write_all(STDOUT_FILENO, df_buf_str(&out), out.len, &err) < 0) {
        (void)fprintf(stderr, "dayfly-runner: " DF_KEPT_COMMAND ": %s\n", err.message);
        return DF_EXIT_FAILURE;
    }
    return result < 0 ? DF_EXIT_FAILURE : DF_EXIT_OK;
}
