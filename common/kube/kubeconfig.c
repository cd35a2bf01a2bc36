/*
 * Reads kubeconfig files the way kubectl merges them: the first file that has a name wins. Read
 * df_kubeconfig_load() at the end; the fields of cluster and user are tables before it.
 */
#include "common/kube/kubeconfig.h"

#include "common/base/fs.h"
#include "common/crypto/crypto.h"
#include "common/yaml/yaml.h"

struct file {
    char *path, *dir;
    cJSON *doc; /* may hold secrets */
};

struct files {
    struct file items[DF_LIMIT_KUBECONFIG_FILES];
    size_t len;
};

static void files_free(struct files *f)
{
    for (size_t i = 0; i < f->len; i++) {
        free(f->items[i].path);
        free(f->items[i].dir);
        df_json_wipe(f->items[i].doc);
    }
}

/* ---- reading -------------------------------------------------------------------------------- */

static char *dir_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return strdup(".");
    return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

static int parse_file(const char *path, cJSON **ret, struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_LIMIT_KUBECONFIG);
    if (df_fs_read(path, &text, err) < 0)
        return -1;
    DF_JSON cJSON *doc = NULL;
    if (df_yaml_parse(df_buf_str(&text), text.len, &doc, NULL, err) < 0)
        return df_err_wrap(err, "kubeconfig %s", path);
    if (cJSON_IsNull(doc)) { /* an empty file has no entries */
        cJSON_Delete(doc);
        doc = cJSON_CreateObject();
        if (!doc)
            return df_fail_oom(err);
    }
    if (!cJSON_IsObject(doc))
        return df_fail(err, DF_ERR_USER,
                       "kubeconfig %s: must be a mapping with clusters, users and contexts", path);
    *ret = DF_TAKE(doc);
    return 0;
}

static int add_file(struct files *f, const char *path, bool must_exist, struct df_err *err)
{
    if (!must_exist && !df_fs_exists(path))
        return 0;
    if (f->len == DF_ARRAY_SIZE(f->items))
        return df_fail(err, DF_ERR_LIMIT, "KUBECONFIG names more than %zu files", f->len);
    struct file *file = &f->items[f->len];
    if (parse_file(path, &file->doc, err) < 0)
        return -1;
    f->len++; /* from here on files_free() knows it */
    file->path = strdup(path);
    file->dir = dir_of(path);
    return file->path && file->dir ? 0 : df_fail_oom(err);
}

static int read_files(const char *paths, bool must_exist, struct files *f, struct df_err *err)
{
    for (const char *p = paths;;) {
        size_t n = strcspn(p, ":");
        DF_FREE char *path = strndup(p, n);
        if (df_check_alloc(path, err) < 0 || (n && add_file(f, path, must_exist, err) < 0))
            return -1;
        if (!p[n])
            break;
        p += n + 1;
    }
    if (!f->len)
        return df_fail(err, DF_ERR_NOT_FOUND, "kubeconfig %s: no such file", paths);
    return 0;
}

/* ---- finding -------------------------------------------------------------------------------- */

/* A named entry: {"name": ..., "cluster": {...}} of "clusters". */
struct entry {
    const struct file *file;
    const char *kind; /* "cluster", "user", "context": also the key of its body */
    const char *name;
    const cJSON *body; /* NULL: empty */
};

static int find_entry(const struct files *f, const char *kind, const char *name, struct entry *ret,
                      struct df_err *err)
{
    char list[16];
    (void)snprintf(list, sizeof(list), "%ss", kind);
    for (size_t i = 0; i < f->len; i++) {
        const cJSON *item, *items = cJSON_GetObjectItemCaseSensitive(f->items[i].doc, list);
        if (items && !cJSON_IsArray(items) && !cJSON_IsNull(items))
            return df_fail(err, DF_ERR_USER, "kubeconfig %s: \"%s\" must be a list",
                           f->items[i].path, list);
        cJSON_ArrayForEach (item, items) {
            if (!df_streq(df_json_str(item, "name"), name))
                continue;
            *ret = (struct entry){&f->items[i], kind, name,
                                  cJSON_GetObjectItemCaseSensitive(item, kind)};
            return 0;
        }
    }
    return df_fail(err, DF_ERR_NOT_FOUND, "no such %s", kind);
}

/* Returns "a, b, c", the names of all contexts. NULL if out of memory. */
static char *context_names(const struct files *f)
{
    DF_STRS struct df_strs names = {0};
    for (size_t i = 0; i < f->len; i++) {
        const cJSON *item, *items = cJSON_GetObjectItemCaseSensitive(f->items[i].doc, "contexts");
        cJSON_ArrayForEach (item, items) {
            const char *name = df_json_str(item, "name");
            if (name && !df_strs_has(&names, name))
                (void)df_strs_add(&names, name);
        }
    }
    return names.len ? df_strs_join(&names, ", ") : strdup("none");
}

static const char *current_context(const struct files *f)
{
    for (size_t i = 0; i < f->len; i++) {
        const char *name = df_json_str(f->items[i].doc, "current-context");
        if (!df_str_empty(name))
            return name;
    }
    return NULL;
}

static int find_context(const struct files *f, const char *paths, const char *wanted,
                        struct entry *ret, struct df_err *err)
{
    const char *name = wanted ? wanted : current_context(f);
    if (name && find_entry(f, "context", name, ret, NULL) == 0)
        return 0;
    DF_FREE char *names = context_names(f);
    if (!names)
        return df_fail_oom(err);
    if (!name)
        return df_fail(err, DF_ERR_USER,
                       "kubeconfig %s: no current-context; set it with `kubectl config use-context "
                       "NAME` (there are: %s)",
                       paths, names);
    return df_fail(err, DF_ERR_USER, "kubeconfig %s: there is no context \"%s\" (there are: %s)",
                   paths, name, names);
}

/* ---- fields --------------------------------------------------------------------------------- */

static int bad_field(const struct entry *e, const char *key, const char *what, struct df_err *err)
{
    return df_fail(err, DF_ERR_USER, "kubeconfig %s: %s \"%s\": \"%s\" %s", e->file->path, e->kind,
                   e->name, key, what);
}

/* *ret_value is NULL when the key is absent, null or empty. Borrowed. */
static int text_field(const struct entry *e, const cJSON *in, const char *key,
                      const char **ret_value, struct df_err *err)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(in, key);
    const char *value = cJSON_GetStringValue(v);
    if (v && !cJSON_IsNull(v) && !value)
        return bad_field(e, key, "must be a string; put it in quotes", err);
    *ret_value = df_str_empty(value) ? NULL : value;
    return 0;
}

static int bool_field(const struct entry *e, const cJSON *in, const char *key, bool *ret,
                      struct df_err *err)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(in, key);
    if (v && !cJSON_IsNull(v) && !cJSON_IsBool(v))
        return bad_field(e, key, "must be true or false", err);
    *ret = cJSON_IsTrue(v);
    return 0;
}

/* Decodes a PEM text from base64, which may contain line breaks. */
static int decode_pem(const struct entry *e, const char *key, const char *text, char **ret,
                      struct df_err *err)
{
    size_t n = strlen(text);
    DF_CLEANUP(df_buf_wipe) struct df_buf digits = DF_BUF_INIT(n + 1);
    DF_CLEANUP(df_buf_wipe) struct df_buf pem = DF_BUF_INIT(n + 1);
    for (const char *p = text; *p; p++)
        if (!strchr(" \r\n\t", *p))
            (void)df_buf_addc(&digits, *p);
    if (df_base64_decode(df_buf_str(&digits), digits.len, false, &pem, NULL) < 0 ||
        strlen(df_buf_str(&pem)) != pem.len || !strstr(df_buf_str(&pem), "-----BEGIN "))
        return bad_field(e, key, "must be base64 of a PEM text", err);
    return df_check_alloc(*ret = strdup(df_buf_str(&pem)), err);
}

enum field_type { TEXT, PATH, PEM };
struct field {
    const char *key;
    enum field_type type;
    size_t offset; /* of a char * in struct df_kube_config */
};
#define FIELD(key, type, member)                                                                   \
    {                                                                                              \
        key, type, offsetof(struct df_kube_config, member)                                         \
    }

static const struct field cluster_fields[] = {
    FIELD("server", TEXT, server),
    FIELD("certificate-authority", PATH, ca_file),
    FIELD("certificate-authority-data", PEM, ca_pem),
    FIELD("tls-server-name", TEXT, tls_server_name),
    FIELD("proxy-url", TEXT, proxy_url),
};

static const struct field user_fields[] = {
    FIELD("token", TEXT, token),
    FIELD("tokenFile", PATH, token_file),
    FIELD("client-certificate", PATH, cert_file),
    FIELD("client-certificate-data", PEM, cert_pem),
    FIELD("client-key", PATH, key_file),
    FIELD("client-key-data", PEM, key_pem),
};

static char *resolve_path(const struct file *file, const char *path)
{
    return *path == '/' ? strdup(path) : df_fs_join(file->dir, path);
}

static int take_fields(const struct entry *e, const struct field *fields, size_t n,
                       struct df_kube_config *ret, struct df_err *err)
{
    if (e->body && !cJSON_IsObject(e->body) && !cJSON_IsNull(e->body))
        return bad_field(e, e->kind, "must be a mapping", err);
    for (size_t i = 0; i < n; i++) {
        char **to = (char **)((char *)ret + fields[i].offset);
        const char *value = NULL;
        if (text_field(e, e->body, fields[i].key, &value, err) < 0)
            return -1;
        if (!value)
            continue;
        if (fields[i].type == PEM) {
            if (decode_pem(e, fields[i].key, value, to, err) < 0)
                return -1;
            continue;
        }
        *to = fields[i].type == PATH ? resolve_path(e->file, value) : strdup(value);
        if (!*to)
            return df_fail_oom(err);
    }
    return 0;
}

/* ---- cluster, user, plug-in ----------------------------------------------------------------- */

static int take_cluster(const struct entry *e, struct df_kube_config *ret, struct df_err *err)
{
    if (take_fields(e, cluster_fields, DF_ARRAY_SIZE(cluster_fields), ret, err) < 0 ||
        bool_field(e, e->body, "insecure-skip-tls-verify", &ret->insecure, err) < 0)
        return -1;
    if (!ret->server)
        return bad_field(e, "server", "is missing: the API server's URL", err);
    if (!df_starts_with(ret->server, "https://") && !df_starts_with(ret->server, "http://"))
        return bad_field(e, "server", "must begin with https://", err);
    for (size_t n = strlen(ret->server); ret->server[n - 1] == '/'; n--)
        ret->server[n - 1] = '\0';
    if (ret->insecure && (ret->ca_file || ret->ca_pem))
        return bad_field(e, "insecure-skip-tls-verify",
                         "contradicts the certificate authority beside it; take one of them out",
                         err);
    return 0;
}

static int take_exec_lists(const struct entry *e, const cJSON *exec, struct df_kube_exec *ret,
                           struct df_err *err)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, cJSON_GetObjectItemCaseSensitive(exec, "args")) {
        if (!cJSON_IsString(item))
            return bad_field(e, "exec.args", "must be a list of strings", err);
        (void)df_strs_add(&ret->args, item->valuestring);
    }
    cJSON_ArrayForEach (item, cJSON_GetObjectItemCaseSensitive(exec, "env")) {
        const char *name = df_json_str(item, "name"), *value = df_json_str(item, "value");
        if (!name || !value)
            return bad_field(e, "exec.env", "must be a list of {name, value}", err);
        (void)df_strs_set_env(&ret->env, name, value);
    }
    return df_strs_check(&ret->args, err) < 0 ? -1 : df_strs_check(&ret->env, err);
}

static int take_exec(const struct entry *e, const cJSON *exec, struct df_kube_exec *ret,
                     struct df_err *err)
{
    const char *command = NULL, *version = NULL, *hint = NULL, *mode = NULL;
    if (text_field(e, exec, "command", &command, err) < 0 ||
        text_field(e, exec, "apiVersion", &version, err) < 0 ||
        text_field(e, exec, "installHint", &hint, err) < 0 ||
        text_field(e, exec, "interactiveMode", &mode, err) < 0 ||
        bool_field(e, exec, "provideClusterInfo", &ret->provide_cluster_info, err) < 0)
        return -1;
    if (!command)
        return bad_field(e, "exec.command", "is missing", err);
    if (!df_streq(version, "client.authentication.k8s.io/v1") &&
        !df_streq(version, "client.authentication.k8s.io/v1beta1"))
        return bad_field(e, "exec.apiVersion",
                         "must be client.authentication.k8s.io/v1 or v1beta1; newer plug-ins "
                         "write it with their `update-kubeconfig`",
                         err);
    if (df_streq(mode, "Always"))
        return bad_field(e, "exec.interactiveMode",
                         "is Always, but nobody is there to answer; use a user with a token or "
                         "certificate",
                         err);
    /* A command without a slash is searched in PATH; a relative path starts at the file's
     * directory. */
    ret->command = strchr(command, '/') ? resolve_path(e->file, command) : strdup(command);
    ret->api_version = strdup(version);
    ret->install_hint = hint ? strdup(hint) : NULL;
    if (!ret->command || !ret->api_version || (hint && !ret->install_hint))
        return df_fail_oom(err);
    return take_exec_lists(e, exec, ret, err);
}

/* Refuses settings that are not supported and that would change who the requests come from. */
static int refuse_unsupported(const struct entry *e, struct df_err *err)
{
    static const struct {
        const char *key, *way_out;
    } unspoken[] = {
        {"username", "is basic auth, which Kubernetes gave up in 1.19; use a token or certificate"},
        {"password", "is basic auth, which Kubernetes gave up in 1.19; use a token or certificate"},
        {"auth-provider", "was taken out of Kubernetes in 1.26; use the provider's exec plug-in"},
        {"as", "is impersonation, which is not spoken here; use a user of its own"},
        {"as-uid", "is impersonation, which is not spoken here; use a user of its own"},
        {"as-groups", "is impersonation, which is not spoken here; use a user of its own"},
        {"as-user-extra", "is impersonation, which is not spoken here; use a user of its own"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(unspoken); i++) {
        const cJSON *v = cJSON_GetObjectItemCaseSensitive(e->body, unspoken[i].key);
        if (v && !cJSON_IsNull(v))
            return bad_field(e, unspoken[i].key, unspoken[i].way_out, err);
    }
    return 0;
}

static int take_user(const struct entry *e, struct df_kube_config *ret, struct df_err *err)
{
    if (refuse_unsupported(e, err) < 0 ||
        take_fields(e, user_fields, DF_ARRAY_SIZE(user_fields), ret, err) < 0)
        return -1;
    const cJSON *exec = cJSON_GetObjectItemCaseSensitive(e->body, "exec");
    if (exec && !cJSON_IsNull(exec) && take_exec(e, exec, &ret->exec, err) < 0)
        return -1;
    bool cert = ret->cert_file || ret->cert_pem, key = ret->key_file || ret->key_pem;
    if (cert != key)
        return bad_field(e, cert ? "client-key" : "client-certificate",
                         "is missing beside its counterpart", err);
    return 0;
}

static int take_context(const struct files *f, const char *paths, const struct entry *context,
                        struct df_kube_config *ret, struct df_err *err)
{
    const char *cluster = NULL, *user = NULL, *name_space = NULL;
    if (text_field(context, context->body, "cluster", &cluster, err) < 0 ||
        text_field(context, context->body, "user", &user, err) < 0 ||
        text_field(context, context->body, "namespace", &name_space, err) < 0)
        return -1;
    ret->source = df_strf("%s (context \"%s\")", paths, context->name);
    ret->name_space = strdup(name_space ? name_space : "default");
    if (!ret->source || !ret->name_space)
        return df_fail_oom(err);
    struct entry e;
    if (!cluster || find_entry(f, "cluster", cluster, &e, NULL) < 0)
        return bad_field(context, "cluster", "must name one of the clusters", err);
    if (take_cluster(&e, ret, err) < 0)
        return -1;
    if (!user)
        return 0;
    if (find_entry(f, "user", user, &e, NULL) < 0)
        return bad_field(context, "user", "must name one of the users", err);
    return take_user(&e, ret, err);
}

int df_kubeconfig_load(const char *paths, bool must_exist, const char *context,
                       struct df_kube_config *ret, struct df_err *err)
{
    DF_CLEANUP(files_free) struct files f = {.len = 0};
    struct entry e;
    if (read_files(paths, must_exist, &f, err) < 0 || find_context(&f, paths, context, &e, err) < 0)
        return -1;
    return take_context(&f, paths, &e, ret, err);
}
