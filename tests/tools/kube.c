/*
 * kube - the Kubernetes client from a shell, for tests: what it does and says, one line each.
 *
 *   kube [-n NAMESPACE] [-c CONTEXT] VERB GROUP/VERSION/PLURAL [NAME] [KEY=VALUE...]
 *
 * get (metadata=true), list (page=, labels=, fields=), delete (uid=, version=, propagation=,
 * grace=); create, update, patch (type=merge|strategic|json|apply, manager=, force=) read the
 * object from stdin; name may be NAME/SUBRESOURCE. watch follows for ever: "begin", "apply NAME
 * VERSION", "remove NAME VERSION", "listed", "failed CLASS REASON MESSAGE"; as=engine reads Jobs
 * and pods as the engine does, and tells each whole before that. cache follows, too, and prints
 * "NAME" at each change. The core group is written "/v1/pods". On failure: "CLASS REASON
 * RETRY-AFTER MESSAGE" on stderr, exit code 1.
 */
#include <signal.h>

#include "common/http/http.h"
#include "common/kube/cache.h"
#include "spawner/engine/job/job_fields.h"

struct args {
    struct df_kube_resource resource;
    struct df_kube_at at;
    char *const *keys; /* KEY=VALUE, NULL-terminated */
};

static int show(const char *word, const cJSON *object)
{
    const char *name = df_kube_name(object), *version = df_kube_version(object);
    if (printf("%s%s%s%s%s\n", word, name ? " " : "", name ? name : "", version ? " " : "",
               version ? version : "") < 0)
        return -1;
    return fflush(stdout);
}

static const char *key(const struct args *a, const char *name)
{
    size_t n = strlen(name);
    for (char *const *k = a->keys; *k; k++)
        if (strncmp(*k, name, n) == 0 && (*k)[n] == '=')
            return *k + n + 1;
    return NULL;
}

static int64_t number(const struct args *a, const char *name, int64_t fallback)
{
    const char *value = key(a, name);
    return value ? strtoll(value, NULL, 10) : fallback;
}

/* ---- following --------------------------------------------------------------------------------
 */

static int on_begin(void *arg, const char *version, struct df_err *err)
{
    (void)arg, (void)version, (void)err;
    return show("begin", NULL);
}

static int on_apply(void *arg, cJSON **object, struct df_err *err)
{
    const struct args *a = arg;
    DF_FREE char *text = key(a, "as") ? df_json_print(*object) : NULL;
    (void)err;
    if (text && printf("object %s\n", text) < 0)
        return -1;
    return show("apply", *object);
}

static void on_remove(void *arg, cJSON **object)
{
    (void)arg;
    (void)show("remove", *object);
}

static void on_listed(void *arg)
{
    (void)arg;
    (void)show("listed", NULL);
}

static void on_failed(void *arg, const struct df_err *err)
{
    (void)arg;
    (void)printf("failed %s %s %s\n", df_err_class_name(err->cls),
                 err->reason[0] ? err->reason : "-", err->message);
    (void)fflush(stdout);
}

static void until_told(void)
{
    sigset_t set;
    int sig = 0;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigwait(&set, &sig);
}

static struct df_kube_select selection(const struct args *a)
{
    return (struct df_kube_select){key(a, "labels"), key(a, "fields")};
}

static int watch(struct df_kube *k, const struct args *a, struct df_err *err)
{
    struct df_kube_watch_options o = {
        .resource = &a->resource,
        .name_space = a->at.name_space,
        .select = selection(a),
        .page = (unsigned)number(a, "page", 0),
        .timeout_s = (int)number(a, "timeout", 0),
        .to = {on_begin, on_apply, on_remove, on_listed, on_failed, (void *)(uintptr_t)a}};
    if (key(a, "as"))
        o.fields = df_streq(a->resource.plural, "pods") ? df_pod_fields : df_job_fields;
    struct df_kube_watch *w = NULL;
    if (df_kube_watch_start(k, &o, &w, err) < 0)
        return -1;
    until_told();
    df_kube_watch_stop(w);
    return 0;
}

static void on_changed(void *arg, const struct df_kube_change *change)
{
    (void)arg;
    (void)printf("%s\n", change->name);
    (void)fflush(stdout);
}

static int cache(struct df_kube *k, const struct args *a, struct df_err *err)
{
    struct df_kube_cache_options o = {.resource = &a->resource,
                                      .name_space = a->at.name_space,
                                      .select = selection(a),
                                      .changed = on_changed,
                                      .failed = on_failed};
    struct df_kube_cache *c = NULL;
    if (df_kube_cache_start(k, &o, &c, err) < 0)
        return -1;
    int result = df_kube_cache_wait(c, 60000, NULL, err);
    if (result == 0) {
        (void)printf("synced %zu\n", df_kube_cache_count(c, NULL));
        (void)fflush(stdout);
        until_told();
    }
    df_kube_cache_stop(c);
    return result;
}

/* ---- verbs ------------------------------------------------------------------------------------
 */

static int on_item(void *arg, const cJSON *object, struct df_err *err)
{
    (void)arg, (void)err;
    return show("item", object);
}

static int on_list(void *arg, const char *version, struct df_err *err)
{
    (void)arg, (void)err;
    (void)printf("begin %s\n", version);
    return 0;
}

static int list(struct df_kube *k, const struct args *a, struct df_err *err)
{
    struct df_kube_sink sink = {on_list, on_item, NULL};
    struct df_kube_select select = selection(a);
    return df_kube_list(k, &a->at, &select, (unsigned)number(a, "page", 0), &sink, err);
}

static int erase(struct df_kube *k, const struct args *a, struct df_err *err)
{
    struct df_kube_delete_options o = {key(a, "uid"), key(a, "version"), key(a, "propagation"),
                                       number(a, "grace", -1)};
    return df_kube_delete(k, &a->at, &o, err);
}

static int read_object(cJSON **ret, struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_KUBE_OBJECT);
    char bytes[4096];
    for (ssize_t n; (n = read(STDIN_FILENO, bytes, sizeof(bytes))) > 0;)
        (void)df_buf_add(&text, bytes, (size_t)n);
    return df_buf_check(&text, err) < 0 ? -1 : df_json_parse(df_buf_str(&text), text.len, ret, err);
}

static enum df_kube_patch_type patch_type(const struct args *a)
{
    static const char *const names[] = {[DF_KUBE_PATCH_MERGE] = "merge",
                                        [DF_KUBE_PATCH_STRATEGIC] = "strategic",
                                        [DF_KUBE_PATCH_JSON] = "json",
                                        [DF_KUBE_PATCH_APPLY] = "apply"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++)
        if (df_streq(key(a, "type"), names[i]))
            return (enum df_kube_patch_type)i;
    return DF_KUBE_PATCH_MERGE;
}

static int write_object(struct df_kube *k, const char *verb, const struct args *a, cJSON **ret,
                        struct df_err *err)
{
    DF_JSON cJSON *object = NULL;
    if (read_object(&object, err) < 0)
        return -1;
    if (df_streq(verb, "create"))
        return df_kube_create(k, &a->at, object, ret, err);
    if (df_streq(verb, "update"))
        return df_kube_update(k, &a->at, object, ret, err);
    struct df_kube_patch patch = {patch_type(a), object, key(a, "manager"),
                                  df_streq(key(a, "force"), "true")};
    return df_kube_patch(k, &a->at, &patch, ret, err);
}

static int run(struct df_kube *k, const char *verb, const struct args *a, struct df_err *err)
{
    DF_JSON cJSON *answer = NULL;
    if (df_streq(verb, "watch"))
        return watch(k, a, err);
    if (df_streq(verb, "cache"))
        return cache(k, a, err);
    if (df_streq(verb, "list"))
        return list(k, a, err);
    if (df_streq(verb, "delete"))
        return erase(k, a, err);
    if (df_streq(verb, "get") ? df_kube_get(k, &a->at, &answer, err) < 0
                              : write_object(k, verb, a, &answer, err) < 0)
        return -1;
    DF_FREE char *text = df_json_print(answer);
    return text && puts(text) >= 0 ? 0 : df_fail_oom(err);
}

/* ---- the command line -------------------------------------------------------------------------
 */

static const char *cut(char *text, char at)
{
    char *end = text ? strchr(text, at) : NULL;
    if (!end)
        return NULL;
    *end = '\0';
    return end + 1;
}

static int open_client(const char *context, const char **name_space, struct df_kube **ret,
                       struct df_err *err)
{
    DF_KUBE_CONFIG struct df_kube_config config = {0};
    struct df_kube_config_options o = {.context = context,
                                       .service_account = getenv("SERVICE_ACCOUNT_DIRECTORY")};
    if (df_http_global_init(err) < 0 || df_kube_config_load(&o, &config, err) < 0 ||
        df_kube_new(&config, ret, err) < 0)
        return -1;
    *name_space = *name_space ? *name_space : df_kube_namespace(*ret);
    return 0;
}

int main(int argc, char **argv)
{
    const char *name_space = NULL, *context = NULL;
    for (int c; (c = getopt(argc, argv, "+n:c:")) != -1;)
        *(c == 'n' ? &name_space : &context) = optarg;
    char **words = argv + optind;
    if (argc - optind < 2)
        return 2;
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &set, NULL); /* for until_told(); before any thread */

    struct df_err err = {0};
    DF_KUBE struct df_kube *k = NULL;
    struct args a = {.resource.group = words[1]};
    a.resource.version = cut(words[1], '/');
    a.resource.plural = a.resource.version ? cut(strchr(words[1], '\0') + 1, '/') : NULL;
    bool named = words[2] && !strchr(words[2], '=');
    a.keys = words + 2 + named;
    a.at.resource = &a.resource;
    a.at.name = named ? words[2] : NULL;
    a.at.subresource = named ? cut(words[2], '/') : NULL;
    a.at.metadata_only = df_streq(key(&a, "metadata"), "true");
    if (!a.resource.plural)
        return 2;
    int result = open_client(context, &name_space, &k, &err);
    a.at.name_space = df_streq(name_space, "-") ? NULL : name_space; /* -n -: the cluster's */
    if (result < 0 || run(k, words[0], &a, &err) < 0) {
        (void)fprintf(stderr, "%s %s %d %s\n", df_err_class_name(err.cls),
                      err.reason[0] ? err.reason : "-", err.retry_after_s, err.message);
        return 1;
    }
    return 0;
}
