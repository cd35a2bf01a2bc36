/*
 * Reads the files of /secrets and hands them on: as a Secret of Argo CD, as pull secrets, and as
 * the credentials of our own fetch.
 */
#include "runner/platform/credentials.h"

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/crypto/crypto.h"
#include "runner/platform/file.h"

#define REPOSITORY_SECRET "dayfly-repository-%s" /* the environment's name */

/* ---- files ---- */

/* Adds the file's text, or its base64, as a member. A file that is not there adds nothing. */
static int add_secret(cJSON *object, const char *key, const char *path, bool encoded,
                      struct df_err *err)
{
    struct df_buf text = DF_BUF_INIT(DF_LIMIT_SECRET_VALUE);
    struct df_buf base64 = DF_BUF_INIT(2 * DF_LIMIT_SECRET_VALUE);
    int failed = 0;
    if (path && df_fs_exists(path)) {
        failed = df_file_read(path, &text, err) < 0 ||
                 (encoded && df_base64_encode(text.data, text.len, false, &base64, err) < 0) ||
                 df_json_add_str(object, key, df_buf_str(encoded ? &base64 : &text), err) < 0;
    }
    df_buf_wipe(&text);
    df_buf_wipe(&base64);
    return failed ? -1 : 0;
}

/* Members of the repository's credentials, and the file of each. */
static const struct {
    const char *file, *argo, *source;
} parts[] = {
    {"git/username", "username", "username"},
    {"git/password", "password", "password"},
    {"git/ssh-privatekey", "sshPrivateKey", "sshPrivateKey"},
    {"git/known_hosts", NULL, "knownHosts"},
};

static int add_parts(const struct df_platform_input *in, bool for_argo, cJSON *to,
                     struct df_err *err)
{
    for (size_t i = 0; in->secrets_dir && i < DF_ARRAY_SIZE(parts); i++) {
        DF_FREE char *path = df_fs_join(in->secrets_dir, parts[i].file);
        const char *key = for_argo ? parts[i].argo : parts[i].source;
        if (key && (df_check_alloc(path, err) < 0 || add_secret(to, key, path, for_argo, err) < 0))
            return -1;
    }
    return 0;
}

char *df_credentials_repository_name(const struct df_platform_input *in)
{
    return df_strf(REPOSITORY_SECRET, in->name);
}

bool df_credentials_has_repository(const struct df_platform_input *in)
{
    for (size_t i = 0; in->secrets_dir && i < DF_ARRAY_SIZE(parts); i++) {
        DF_FREE char *path = parts[i].argo ? df_fs_join(in->secrets_dir, parts[i].file) : NULL;
        if (path && df_fs_exists(path))
            return true;
    }
    return false;
}

/* ---- Secrets ---- */

static cJSON *secret_of(const char *name, const char *name_space, const char *type, cJSON *data)
{
    return df_json_object(
        DF_STR("apiVersion", "v1"), DF_STR("kind", "Secret"), DF_STR("type", type),
        DF_ITEM("metadata", df_json_object(DF_STR("name", name), DF_STR("namespace", name_space))),
        DF_ITEM("data", data));
}

/* Takes the object over. */
static int apply(struct df_platform *p, cJSON *object, struct df_err *err)
{
    DF_SECRET_JSON cJSON *wanted = object;
    enum df_applied applied;
    return df_check_alloc(wanted, err) < 0
               ? -1
               : df_object_apply(&p->objects, wanted, NULL, &applied, err);
}

/* The list of an account is replaced as a whole, and may name what others pull images with: it is
 * read, extended and written as of the version that was read. */
static int extend_pulls(struct df_platform *p, const struct df_kube_at *at, const cJSON *live,
                        struct df_err *err)
{
    const cJSON *one, *list = df_json_at(live, "imagePullSecrets");
    cJSON_ArrayForEach (one, list) {
        if (df_streq(df_json_str(one, "name"), DF_PULL_SECRET))
            return 0;
    }
    cJSON *pulls = list ? cJSON_Duplicate(list, true) : cJSON_CreateArray();
    DF_JSON cJSON *body = df_json_object(
        DF_ITEM("metadata", df_json_object(DF_STR("resourceVersion", df_kube_version(live)))),
        DF_ITEM("imagePullSecrets", pulls));
    const struct df_kube_patch patch = {
        .type = DF_KUBE_PATCH_MERGE, .body = body, .manager = DF_PLATFORM_MANAGER};
    if (df_check_alloc(body, err) < 0 ||
        df_json_append(pulls, df_json_object(DF_STR("name", DF_PULL_SECRET)), err) < 0)
        return -1;
    return df_object_patch(&p->objects, at, &patch, NULL, err);
}

/* Kubernetes makes the account a moment after its namespace: here it is made at once. */
static int let_pull(struct df_platform *p, const char *name_space, struct df_err *err)
{
    struct df_object_place place;
    enum df_applied applied;
    DF_JSON cJSON *live = NULL;
    DF_JSON cJSON *account =
        df_json_object(DF_STR("apiVersion", "v1"), DF_STR("kind", "ServiceAccount"),
                       DF_ITEM("metadata", df_json_object(DF_STR("name", "default"),
                                                          DF_STR("namespace", name_space))));
    if (df_check_alloc(account, err) < 0 ||
        df_object_place(&p->objects, account, NULL, &place, err) < 0)
        return -1;
    const struct df_kube_at at = df_object_at(&place);
    if (df_object_read(&p->objects, &at, &live, err) < 0)
        return -1;
    if (live)
        return extend_pulls(p, &at, live, err);
    cJSON *pulls = df_json_array_at(account, "imagePullSecrets");
    if (df_json_append(pulls, df_json_object(DF_STR("name", DF_PULL_SECRET)), err) < 0)
        return -1;
    return df_object_apply_over(&p->objects, &at, NULL, account, &applied, NULL, err);
}

static int apply_pull_secret(struct df_platform *p, const char *name_space, struct df_err *err)
{
    DF_SECRET_JSON cJSON *data = cJSON_CreateObject();
    if (add_secret(data, ".dockerconfigjson", p->in->registry_file, true, err) < 0)
        return -1;
    cJSON *secret =
        secret_of(DF_PULL_SECRET, name_space, "kubernetes.io/dockerconfigjson", DF_TAKE(data));
    return apply(p, secret, err) < 0 ? -1 : let_pull(p, name_space, err);
}

int df_credentials_namespace(struct df_platform *p, const char *name_space, struct df_err *err)
{
    if (apply(p,
              df_json_object(DF_STR("apiVersion", "v1"), DF_STR("kind", "Namespace"),
                             DF_ITEM("metadata", df_json_object(DF_STR("name", name_space)))),
              err) < 0)
        return -1;
    return p->in->registry_file ? apply_pull_secret(p, name_space, err) : 0;
}

int df_credentials_repository(struct df_platform *p, struct df_err *err)
{
    DF_SECRET_JSON cJSON *data = cJSON_CreateObject();
    struct df_buf url = DF_BUF_INIT(2 * DF_LIMIT_URL);
    DF_FREE char *name = df_credentials_repository_name(p->in);
    if (df_check_alloc(name, err) < 0 || df_check_alloc(data, err) < 0 ||
        add_parts(p->in, true, data, err) < 0)
        return -1;
    if (!data->child) /* a repository that everybody may read */
        return 0;
    int failed =
        df_base64_encode(p->in->git_repository, strlen(p->in->git_repository), false, &url, err) <
            0 ||
        df_json_put(data, err, DF_STR("type", "Z2l0"), DF_STR("url", df_buf_str(&url))) < 0;
    df_buf_free(&url);
    if (failed)
        return -1;
    cJSON *secret = secret_of(name, p->in->argocd_namespace, "Opaque", DF_TAKE(data));
    cJSON *labels = df_json_object(DF_STR("argocd.argoproj.io/secret-type", "repository"));
    if (df_json_add(df_json_object_at(secret, "metadata"), "labels", labels, err) < 0) {
        df_json_wipe(secret);
        return -1;
    }
    return apply(p, secret, err);
}

static struct df_kube_at repository_at(const struct df_platform *p, const char *name)
{
    return (struct df_kube_at){.resource = &df_kube_secrets,
                               .name_space = p->in->argocd_namespace,
                               .name = name,
                               .stop = df_stop_flag(p->stop),
                               .metadata_only = true};
}

int df_credentials_find(struct df_platform *p, bool *ret, struct df_err *err)
{
    DF_FREE char *name = df_credentials_repository_name(p->in);
    const struct df_kube_at at = repository_at(p, name);
    DF_JSON cJSON *live = NULL;
    if (df_check_alloc(name, err) < 0 || df_object_read(&p->objects, &at, &live, err) < 0)
        return -1;
    *ret = live && df_object_is_ours(&p->objects, live);
    return 0;
}

int df_credentials_remove(struct df_platform *p, struct df_err *err)
{
    DF_FREE char *name = df_credentials_repository_name(p->in);
    const struct df_kube_at at = repository_at(p, name);
    DF_JSON cJSON *live = NULL;
    if (df_check_alloc(name, err) < 0 || df_object_read(&p->objects, &at, &live, err) < 0)
        return -1;
    return live && df_object_is_ours(&p->objects, live)
               ? df_object_delete(&p->objects, &at, df_kube_uid(live), err)
               : 0;
}

#define ARGO_KEY "server.secretkey"

static int patch_argocd_key(struct df_platform *p, const struct df_kube_at *at, struct df_err *err)
{
    unsigned char bytes[32];
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(128);
    int made = df_random(bytes, sizeof bytes, err) < 0
                   ? -1
                   : df_base64_encode(bytes, sizeof bytes, false, &text, err);
    explicit_bzero(bytes, sizeof bytes);
    if (made < 0)
        return -1;
    cJSON *data = df_json_object(DF_STR(ARGO_KEY, df_buf_str(&text)));
    DF_SECRET_JSON cJSON *body = df_json_object(DF_ITEM("data", data));
    const struct df_kube_patch patch = {
        .type = DF_KUBE_PATCH_MERGE, .body = body, .manager = DF_PLATFORM_MANAGER};
    return df_check_alloc(body, err) < 0 ? -1 : df_object_patch(&p->objects, at, &patch, NULL, err);
}

int df_credentials_argocd_key(struct df_platform *p, struct df_err *err)
{
    const struct df_kube_at at = {.resource = &df_kube_secrets,
                                  .name_space = p->in->argocd_namespace,
                                  .name = "argocd-secret",
                                  .stop = df_stop_flag(p->stop)};
    DF_SECRET_JSON cJSON *live = NULL;
    if (df_object_read(&p->objects, &at, &live, err) < 0)
        return -1;
    if (!live || cJSON_GetObjectItemCaseSensitive(df_json_at(live, "data"), ARGO_KEY))
        return 0;
    return patch_argocd_key(p, &at, err);
}

/* ---- our own fetch ---- */

int df_credentials_source(const struct df_platform_input *in, cJSON **ret, struct df_err *err)
{
    DF_SECRET_JSON cJSON *credentials = cJSON_CreateObject();
    if (df_check_alloc(credentials, err) < 0 || add_parts(in, false, credentials, err) < 0)
        return -1;
    *ret = df_json_object(DF_STR("kind", "git"), DF_STR("url", in->git_repository),
                          DF_STR(df_input_is_pinned(in) ? "commit" : "ref", in->git_revision),
                          DF_BOOL("anyCommit", true), DF_BOOL("acceptsHttp", true),
                          DF_ITEM("credentials", DF_TAKE(credentials)));
    return df_check_alloc(*ret, err);
}
