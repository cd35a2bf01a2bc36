/*
 * secret_source.c - the sources of secrets in the configuration: rules of fields, a table for each
 * type, the check, then questions. A secret "corp-db" is of the source "corp". So no source may
 * have a name that could be that of a secret of another one (check_names()).
 */
#include "spawner/model/secret_source.h"

#include "common/base/parse.h"
#include "spawner/model/rows.h"

#define EVERY "*"

/* ---- rules of the fields --------------------------------------------------------------------- */

/* A token must not travel in the clear, unless it stays on this machine. */
static void rule_url(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    const char *url = value->valuestring;
    if (!df_starts_with(url, "https://") && !df_starts_with(url, "http://127.0.0.1:") &&
        !df_starts_with(url, "http://localhost:"))
        df_fault(f, path, "\"%.100s\" must be an https:// URL", url);
    else if (strpbrk(url, "?#@ ") || url[strlen(url) - 1] == '/')
        df_fault(f, path, "\"%.100s\" must be scheme, host and port: https://vault.example:8200",
                 url);
}

static void rule_path(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    if (*value->valuestring != '/')
        df_fault(f, path, "\"%.100s\" must be an absolute path", value->valuestring);
}

/* Parts of a URL. They are not escaped, so they contain nothing that would need it. */
static void rule_segments(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./";
    const char *text = value->valuestring;
    size_t n = strlen(text);
    if (strspn(text, good) != n || *text == '/' || text[n - 1] == '/' || strstr(text, "//") ||
        strstr(text, ".."))
        df_fault(f, path, "\"%.100s\" must be names of A-Z, a-z, 0-9, -, _ and ., joined by /",
                 text);
}

static void rule_executor(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    if (!df_is_dns_label(value->valuestring) && !df_streq(value->valuestring, EVERY))
        df_fault(f, path, "\"%.64s\" is not the name of an executor, nor \"*\" for every one",
                 value->valuestring);
}

static void rule_pattern(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    const char *star = strchr(value->valuestring, '*');
    if (star && (star[1] || star == value->valuestring))
        df_fault(f, path,
                 "\"%.64s\": a * is possible at the end only, behind the beginning of names",
                 value->valuestring);
}

/* ---- the tables ------------------------------------------------------------------------------ */

#define PATH(field, ...) STRING(field, 1024, .rule = rule_path, __VA_ARGS__)
#define SEGMENTS(field, ...) STRING(field, 256, .rule = rule_segments, __VA_ARGS__)
#define COMMON                                                                                     \
    WORD("type", types, .flags = DF_REQUIRED),                                                     \
        LIST("executors", &executor_item, DF_LIMIT_SECRET_EXECUTORS, .flags = DF_REQUIRED)

static const char *const types[] = {"kv2", "files", "kubernetes", NULL};
static const struct df_field executor_item = STRING(NULL, 63, .rule = rule_executor);
static const struct df_field secret_item = STRING(NULL, 253, .rule = rule_pattern);

static const struct df_field kubernetes_auth[] = {
    SEGMENTS("role", .flags = DF_REQUIRED),
    SEGMENTS("mount", .fallback = "\"kubernetes\""),
    PATH("tokenFile", .fallback = "\"/var/run/secrets/kubernetes.io/serviceaccount/token\""),
    {0}};
static const struct df_field auth[] = {
    PATH("tokenFile"), OBJECT("kubernetes", kubernetes_auth), {0}};
static const struct df_field kv2[] = {COMMON,
                                      STRING("url", 256, .rule = rule_url, .flags = DF_REQUIRED),
                                      PATH("caFile"),
                                      SEGMENTS("namespace"),
                                      SEGMENTS("mount", .fallback = "\"secret\""),
                                      SEGMENTS("path"),
                                      OBJECT("auth", auth, .flags = DF_REQUIRED),
                                      {0}};
static const struct df_field files[] = {COMMON, PATH("directory", .flags = DF_REQUIRED), {0}};
static const struct df_field kubernetes[] = {
    COMMON,
    NAME("namespace"),
    LIST("secrets", &secret_item, DF_LIMIT_ALLOWED, .flags = DF_REQUIRED),
    {0}};
static const struct df_field *const tables[] = {kv2, files, kubernetes}; /* as types */
static const struct df_field unknown[] = {WORD("type", types, .flags = DF_REQUIRED), {0}};

/* ---- the check ------------------------------------------------------------------------------- */

static void check_auth(const cJSON *source, const struct df_path *path, struct df_faults *f)
{
    const struct df_path at = {path, "auth", 0};
    bool has_file = df_json_at(source, "auth.tokenFile"),
         has_account = df_json_at(source, "auth.kubernetes");
    if (cJSON_IsObject(df_json_at(source, "auth")) && has_file == has_account)
        df_fault(f, &at, "must have either tokenFile or kubernetes");
}

static void check_source(cJSON *source, const struct df_path *path, struct df_faults *f)
{
    const char *type = df_json_str(source, "type");
    const struct df_field *table = unknown;
    for (size_t i = 0; type && types[i]; i++)
        if (strcmp(types[i], type) == 0)
            table = tables[i];
    if (!cJSON_IsObject(source)) {
        df_fault(f, path, "must be a mapping");
        return;
    }
    df_schema_check(table, source, NULL, path, f);
    if (table == kv2)
        check_auth(source, path, f);
}

/* "corp-eu-db" must be of one source alone. */
static void check_names(const cJSON *sources, const cJSON *source, const struct df_path *path,
                        struct df_faults *f)
{
    const cJSON *other;
    if (!df_is_dns_label(source->string))
        df_fault(f, path, "the name of a source is a DNS label (a-z, 0-9, -)");
    cJSON_ArrayForEach (other, sources) {
        if (df_secret_source_rest(other->string, source->string))
            df_fault(f, path,
                     "names of its secrets would be names of the source \"%.64s\" as well; choose "
                     "another name",
                     other->string);
    }
}

int df_secret_sources_check(cJSON *sources, struct df_err *err)
{
    struct df_faults f = {0};
    const struct df_path root = {0};
    cJSON *source;
    if (cJSON_GetArraySize(sources) > DF_LIMIT_SECRET_SOURCES)
        df_fault(&f, &root, "there are at most %d sources", DF_LIMIT_SECRET_SOURCES);
    cJSON_ArrayForEach (source, sources) {
        const struct df_path path = {&root, source->string, 0};
        check_names(sources, source, &path, &f);
        check_source(source, &path, &f);
    }
    return df_faults_fail(&f, "", "", err);
}

/* ---- what it says ---------------------------------------------------------------------------- */

int df_secret_source_use(const cJSON *source, cJSON **ret, struct df_err *err)
{
    const cJSON *executors = df_json_at(source, "executors");
    DF_JSON cJSON *use = cJSON_CreateObject();
    if (!df_json_has_string(executors, EVERY) &&
        df_json_add(use, "executors", cJSON_Duplicate(executors, true), err) < 0)
        return -1;
    if (df_json_add_str(use, "source", source->string, err) < 0)
        return -1;
    return df_check_alloc(*ret = DF_TAKE(use), err);
}

const char *df_secret_source_rest(const char *source, const char *secret)
{
    size_t n = strlen(source);
    return strncmp(secret, source, n) == 0 && secret[n] == '-' && secret[n + 1] ? secret + n + 1
                                                                                : NULL;
}

void df_secret_source_paths(const cJSON *sources, struct df_strs *ret)
{
    static const char *const members[] = {"directory", "auth.tokenFile",
                                          "auth.kubernetes.tokenFile"};
    const cJSON *source;
    cJSON_ArrayForEach (source, sources) {
        for (size_t i = 0; i < DF_ARRAY_SIZE(members); i++) {
            const char *path = df_json_str(source, members[i]);
            if (path)
                (void)df_strs_add(ret, path);
        }
    }
}

bool df_secret_source_allows(const cJSON *source, const char *secret)
{
    const cJSON *pattern;
    cJSON_ArrayForEach (pattern, df_json_at(source, "secrets")) {
        const char *text = pattern->valuestring;
        size_t n = strlen(text);
        if (text[n - 1] == '*' ? strncmp(text, secret, n - 1) == 0 : strcmp(text, secret) == 0)
            return true;
    }
    return false;
}
