/*
 * store_kube - the suites of the store over custom resources in a real cluster.
 *
 *   store_kube GROUP
 *
 * GROUP: an API group with the resources executors, runs, taskactions and audittrails, which take
 * any spec. Each test has a namespace of its own, with the label dayfly-test=GROUP; they are empty
 * in the end, and whoever calls removes them. The cluster is that of KUBECONFIG.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/http/http.h"
#include "common/kube/kube.h"
#include "tests/unit/store_crowd.h"
#include "tests/unit/store_suite.h"

static struct df_kube *kube;
static const char *group;
static struct df_strs used; /* namespaces */

static const struct df_kube_resource namespaces = {"", "v1", "namespaces"};

/* A name for the namespace of a scratch directory. */
static void namespace_of(const char *dir, char ret[64])
{
    const char *name = strrchr(dir, '/') + 1;
    size_t n = 0;
    for (; name[n] && n < 63; n++)
        ret[n] = name[n] >= 'A' && name[n] <= 'Z' ? (char)(name[n] - 'A' + 'a') : name[n];
    ret[n] = '\0';
}

static void make_namespace(const char *name)
{
    struct df_err err = {0};
    DF_FREE char *text = df_strf("{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{"
                                 "\"name\":\"%s\",\"labels\":{\"dayfly-test\":\"%s\"}}}",
                                 name, group);
    DF_JSON cJSON *object = json(text);
    const struct df_kube_at at = {.resource = &namespaces};
    if (df_kube_create(kube, &at, object, NULL, &err) < 0 && !df_streq(err.reason, "AlreadyExists"))
        fail_msg("%s", err.message);
}

static struct df_store *suite_open(const char *dir)
{
    struct df_err err = {0};
    struct df_store *s = NULL;
    char name[64];
    namespace_of(dir, name);
    if (!df_strs_has(&used, name)) {
        make_namespace(name);
        assert_int_equal(df_strs_add(&used, name), 0);
    }
    if (df_store_kube_open(kube, group, name, &s, &err) < 0 || df_store_kube_wait(s, &err) < 0)
        fail_msg("%s", err.message);
    return s;
}

/* A page of documents is removed; *ret_more: there was one. */
static int empty_page(struct df_store *s, enum df_kind kind, bool *ret_more, struct df_err *err)
{
    DF_JSON cJSON *list = NULL;
    const cJSON *doc;
    if (df_store_list(s, kind, NULL, &list, NULL, err) < 0)
        return -1;
    cJSON_ArrayForEach (doc, list) {
        if (df_store_remove(s, kind, df_json_str(doc, "metadata.name"), NULL, err) < 0)
            return -1;
    }
    *ret_more = cJSON_GetArraySize(list) > 0;
    return 0;
}

/* Through the store, which takes the finalizers away: else no namespace would go. */
static int empty(const char *name, struct df_err *err)
{
    STORE *s = NULL;
    if (df_store_kube_open(kube, group, name, &s, err) < 0 || df_store_kube_wait(s, err) < 0)
        return -1;
    for (int kind = 0; kind < DF_KIND_COUNT; kind++) {
        for (bool more = df_kind_row((enum df_kind)kind)->is_custom_resource; more;)
            if (empty_page(s, (enum df_kind)kind, &more, err) < 0)
                return -1;
    }
    return 0;
}

static int empty_all(void **state)
{
    struct df_err err = {0};
    int result = 0;
    (void)state;
    for (size_t i = 0; i < used.len && result == 0; i++)
        result = empty(used.items[i], &err);
    if (result < 0)
        print_error("%s\n", err.message);
    df_strs_free(&used);
    return result;
}

static int connect_to(struct df_err *err)
{
    struct df_kube_config config = {0};
    return df_kube_config_load(&(struct df_kube_config_options){0}, &config, err) < 0
               ? -1
               : df_kube_new(&config, &kube, err);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {STORE_SUITE, STORE_CROWD_SUITE};
    struct df_err err = {0};
    if (argc != 2) {
        (void)fprintf(stderr, "usage: store_kube GROUP\n");
        return 2;
    }
    group = argv[1];
    if (df_http_global_init(&err) < 0 || connect_to(&err) < 0) {
        (void)fprintf(stderr, "%s\n", err.message);
        return 2;
    }
    int failed = cmocka_run_group_tests_name("store_kube", tests, NULL, empty_all);
    df_kube_free(kube);
    return failed;
}
