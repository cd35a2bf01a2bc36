/* One function for each state type, chosen by make_state(); then the files and the lock's
 * heartbeat. */
#include "runner/terrakube/state.h"

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/http/http.h"
#include "common/terrakube/token.h"

/* The API fails a job six hours after its creation; no token need live longer. */
enum { BACKEND_TOKEN_SECONDS = 6 * 3600, BEAT_TOKEN_SECONDS = 300, BEAT_TIMEOUT_MS = 20000 };

static int needed(const char *value, const char *name, struct df_err *err)
{
    return value ? 0
                 : df_fail_reason(err, DF_ERR_USER, "SettingMissing",
                                  "%s is not set: the state type needs it", name);
}

/* "<before><organization>/<workspace><after>"; the caller frees. NULL: no memory. */
static char *place_of(const struct df_terrakube_payload *p, const char *before, const char *after)
{
    return df_strf("%s%s/%s%s", before, p->organization, p->workspace, after);
}

static int add_place(cJSON *config, const char *key, const struct df_terrakube_payload *p,
                     const char *before, const char *after, struct df_err *err)
{
    DF_FREE char *place = place_of(p, before, after);
    return df_json_put(config, err, DF_STR_ALLOC(key, place));
}

/* ---- s3 ---- */

static bool is_at_least(const struct df_version *v, int64_t major, int64_t minor)
{
    return v->number[0] > major || (v->number[0] == major && v->number[1] >= minor);
}

static int add_flags(cJSON *config, const char *const *names, size_t n, struct df_err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (df_json_add_bool(config, names[i], true, err) < 0)
            return -1;
    }
    return 0;
}

/* A storage that speaks S3 and is not Amazon's. Version 1.6 renamed the settings. */
static int add_endpoint(const char *endpoint, bool is_new, cJSON *config, struct df_err *err)
{
    static const char *const always[] = {"skip_credentials_validation", "skip_metadata_api_check",
                                         "skip_region_validation"};
    static const char *const since[] = {"skip_requesting_account_id", "skip_s3_checksum",
                                        "use_path_style"};
    static const char *const before[] = {"force_path_style"};
    cJSON *to = is_new ? df_json_object_at(config, "endpoints") : config;
    if (df_json_add_str(to, is_new ? "s3" : "endpoint", endpoint, err) < 0 ||
        add_flags(config, always, DF_ARRAY_SIZE(always), err) < 0)
        return -1;
    return is_new ? add_flags(config, since, DF_ARRAY_SIZE(since), err)
                  : add_flags(config, before, DF_ARRAY_SIZE(before), err);
}

static int add_s3(const struct df_terrakube_settings *s, const struct df_terrakube_payload *p,
                  const struct df_version *version, cJSON *config, struct df_err *err)
{
    if (needed(s->aws.bucket, "AwsTerraformStateBucketName", err) < 0 ||
        df_json_put(config, err, DF_STR("bucket", s->aws.bucket), DF_STR("region", s->aws.region)) <
            0 ||
        add_place(config, "key", p, "tfstate/", "/terraform.tfstate", err) < 0)
        return -1;
    if (s->aws.include_keys && (df_json_add_str(config, "access_key", s->aws.access_key, err) < 0 ||
                                df_json_add_str(config, "secret_key", s->aws.secret_key, err) < 0))
        return -1;
    if (s->aws.use_lockfile && is_at_least(version, 1, 10) &&
        df_json_add_bool(config, "use_lockfile", true, err) < 0)
        return -1;
    return s->aws.endpoint ? add_endpoint(s->aws.endpoint, is_at_least(version, 1, 6), config, err)
                           : 0;
}

/* ---- the other types ---- */

static int add_azurerm(const struct df_terrakube_settings *s, const struct df_terrakube_payload *p,
                       cJSON *config, struct df_err *err)
{
    if (needed(s->azure.account, "AzureTerraformStateStorageAccountName", err) < 0 ||
        needed(s->azure.container, "AzureTerraformStateStorageContainerName", err) < 0 ||
        df_json_put(config, err, DF_STR("resource_group_name", s->azure.resource_group),
                    DF_STR("storage_account_name", s->azure.account),
                    DF_STR("container_name", s->azure.container)) < 0 ||
        add_place(config, "key", p, "", "/terraform.tfstate", err) < 0)
        return -1;
    return df_json_add_str(config, "access_key", s->azure.access_key, err);
}

#define GCS_FILE "GCP_CREDENTIALS_FILE.json"

static int add_gcs(const struct df_terrakube_settings *s, const struct df_terrakube_payload *p,
                   cJSON *config, struct df_err *err)
{
    if (needed(s->gcp.bucket, "GcpTerraformStateBucketName", err) < 0 ||
        df_json_add_str(config, "bucket", s->gcp.bucket, err) < 0 ||
        add_place(config, "prefix", p, "tfstate/", "/terraform.tfstate", err) < 0)
        return -1;
    /* Relative: the apply of a saved plan runs in another directory. */
    return s->gcp.credentials ? df_json_add_str(config, "credentials", GCS_FILE, err) : 0;
}

static int local_directory(const struct df_terrakube_settings *s,
                           const struct df_terrakube_payload *p, char **ret, struct df_err *err)
{
    if (needed(s->home, "HOME", err) < 0)
        return -1;
    DF_FREE char *base = df_fs_join(s->home, ".terraform-spring-boot/local/backend/");
    return df_check_alloc(*ret = base ? place_of(p, base, "") : NULL, err);
}

static int add_local(const struct df_terrakube_settings *s, const struct df_terrakube_payload *p,
                     cJSON *config, struct df_err *err)
{
    DF_FREE char *dir = NULL;
    if (local_directory(s, p, &dir, err) < 0)
        return -1;
    DF_FREE char *path = df_fs_join(dir, "terraform.tfstate");
    return df_json_put(config, err, DF_STR_ALLOC("path", path));
}

/* ---- the API as state type ---- */

/* The caller frees; NULL: no memory. */
static char *api_place(const struct df_terrakube_settings *s, const struct df_terrakube_payload *p,
                       const char *what)
{
    DF_FREE char *base =
        df_strf("%.*s/tfstate/v1/http-backend/organization/",
                (int)(strlen(s->public_url) - df_ends_with(s->public_url, "/")), s->public_url);
    DF_FREE char *after = df_strf("/%s", what);
    return base && after
               ? df_strf("%s%s/workspace/%s%s", base, p->organization, p->workspace, after)
               : NULL;
}

static int add_http(const struct df_terrakube_settings *s, const struct df_terrakube_payload *p,
                    cJSON *config, struct df_err *err)
{
    if (needed(s->public_url, "TerrakubeApiUrl", err) < 0)
        return -1;
    DF_FREE char *state = api_place(s, p, "state");
    DF_FREE char *lock = api_place(s, p, "lock");
    return df_json_put(config, err, DF_STR_ALLOC("address", state),
                       DF_STR_ALLOC("lock_address", lock), DF_STR_ALLOC("unlock_address", lock),
                       DF_STR("lock_method", "POST"), DF_STR("unlock_method", "DELETE"),
                       DF_STR("username", "internal"));
}

static int make_token(const struct df_terrakube_settings *s, const struct df_terrakube_payload *p,
                      int64_t life_s, struct df_buf *ret, struct df_err *err)
{
    if (needed(s->internal_secret, "InternalSecret", err) < 0)
        return -1;
    return df_terrakube_token_make(s->internal_secret, p->workspace, df_real_us(), life_s, ret,
                                   err);
}

static int add_password(const struct df_terrakube_settings *s, const struct df_terrakube_payload *p,
                        cJSON *step, struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf token = DF_BUF_INIT(DF_LIMIT_TOKEN);
    cJSON *secrets = df_json_object_at(step, "secretEnvironment");
    if (df_check_alloc(secrets, err) < 0 ||
        make_token(s, p, BACKEND_TOKEN_SECONDS, &token, err) < 0)
        return -1;
    return df_json_set_str(secrets, "TF_HTTP_PASSWORD", df_buf_str(&token), err);
}

/* ---- all types ---- */

static const char *type_name(enum df_terrakube_state type)
{
    switch (type) {
    case DF_TERRAKUBE_STATE_LOCAL:
        return "local";
    case DF_TERRAKUBE_STATE_AWS:
        return "s3";
    case DF_TERRAKUBE_STATE_AZURE:
        return "azurerm";
    case DF_TERRAKUBE_STATE_GCP:
        return "gcs";
    case DF_TERRAKUBE_STATE_API:
        return "http";
    }
    DF_BUG("state type %d", (int)type);
}

static int add_config(const struct df_terrakube_settings *s, const struct df_terrakube_payload *p,
                      const struct df_version *version, cJSON *config, struct df_err *err)
{
    switch (s->state) {
    case DF_TERRAKUBE_STATE_LOCAL:
        return add_local(s, p, config, err);
    case DF_TERRAKUBE_STATE_AWS:
        return add_s3(s, p, version, config, err);
    case DF_TERRAKUBE_STATE_AZURE:
        return add_azurerm(s, p, config, err);
    case DF_TERRAKUBE_STATE_GCP:
        return add_gcs(s, p, config, err);
    case DF_TERRAKUBE_STATE_API:
        return add_http(s, p, config, err);
    }
    DF_BUG("state type %d", (int)s->state);
}

int df_terrakube_state_add(const struct df_terrakube_settings *s,
                           const struct df_terrakube_payload *p, const struct df_version *version,
                           cJSON *step, struct df_err *err)
{
    DF_SECRET_JSON cJSON *state = cJSON_CreateObject();
    cJSON *config = df_json_object_at(state, "config");
    if (df_check_alloc(config, err) < 0 ||
        df_json_put(state, err, DF_STR("type", type_name(s->state)),
                    DF_BOOL("overrideBackend", true)) < 0 ||
        add_config(s, p, version, config, err) < 0)
        return -1;
    if (s->state == DF_TERRAKUBE_STATE_API && add_password(s, p, step, err) < 0)
        return -1;
    return df_json_set(step, "state", DF_TAKE(state), err);
}

int df_terrakube_state_write(const struct df_terrakube_settings *s,
                             const struct df_terrakube_payload *p, const char *module_dir,
                             struct df_err *err)
{
    DF_FREE char *path = NULL;
    if (s->state == DF_TERRAKUBE_STATE_LOCAL)
        return local_directory(s, p, &path, err) < 0 ? -1 : df_fs_mkdirs(path, 0755, err);
    if (s->state != DF_TERRAKUBE_STATE_GCP || !s->gcp.credentials)
        return 0;
    path = df_fs_join(module_dir, GCS_FILE);
    return df_fs_write(path, s->gcp.credentials, strlen(s->gcp.credentials), 0600, err);
}

static int send_beat(const char *url, const char *token, struct df_err *err)
{
    const struct df_http_options o = {.bearer = token};
    DF_HTTP struct df_http *http = NULL;
    DF_HTTP_RESPONSE struct df_http_response r = {0};
    struct df_http_request q = DF_HTTP_REQUEST("POST", url);
    q.timeout_ms = BEAT_TIMEOUT_MS;
    if (df_http_new(&o, &http, err) < 0 || df_http_send(http, &q, &r, err) < 0)
        return -1;
    if (r.status == 410)
        return df_fail_reason(
            err, DF_ERR_CONFLICT, "StateLockLost",
            "the API released the lock of the state, because no heartbeat reached "
            "it for too long: run the job again");
    return df_http_check(&r, "keep the lock of the state", err);
}

int df_terrakube_state_beat(const struct df_terrakube_settings *s,
                            const struct df_terrakube_payload *p, struct df_err *err)
{
    if (s->state != DF_TERRAKUBE_STATE_API)
        return 0;
    DF_CLEANUP(df_buf_wipe) struct df_buf token = DF_BUF_INIT(DF_LIMIT_TOKEN);
    if (needed(s->public_url, "TerrakubeApiUrl", err) < 0 ||
        make_token(s, p, BEAT_TOKEN_SECONDS, &token, err) < 0)
        return -1;
    DF_FREE char *url = api_place(s, p, "lock/heartbeat");
    return url ? send_beat(url, df_buf_str(&token), err) : df_fail_oom(err);
}

bool df_terrakube_beats_lost(struct df_terrakube_beats *b, unsigned command, bool missed)
{
    if (!command || command != b->command)
        *b = (struct df_terrakube_beats){.command = command};
    if (!command)
        return false;
    b->held = b->held || !missed;
    b->missed = missed && b->held ? b->missed + 1 : 0;
    return b->missed >= 2;
}
