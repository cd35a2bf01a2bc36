/* What a cluster can make large is cut: lists, lines about pods, objects that offend, orphans. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runner/platform/checks.h"
#include "runner/platform/lists.h"
#include "runner/platform/orphans.h"
#include "tests/unit/json_words.h"
#include "tests/unit/kube_server.h"

struct world {
    struct kube_server server;
    struct df_platform_input in;
    struct df_platform platform;
};

/* The list has so many times this item. */
static void say_list(struct kube_reply *a, int count, const char *item)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(8 * DF_MIB);
    (void)df_buf_adds(&text, "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[");
    for (int i = 0; i < count; i++)
        (void)df_buf_addf(&text, "%s%s", i ? "," : "", item);
    (void)df_buf_adds(&text, "]}");
    kube_say(a, 200, "", df_buf_str(&text));
}

#define POD                                                                                        \
    "{\"metadata\":{\"name\":\"web-1\"},\"status\":{\"containerStatuses\":[{\"name\":\"main\","    \
    "\"restartCount\":3,\"lastState\":{\"terminated\":{\"exitCode\":1,\"reason\":\"Error\"}}}]}}"

#define REPORT                                                                                     \
    "{\"results\":[{\"policy\":\"a\",\"result\":\"fail\",\"resources\":[{\"name\":\"x\"}]},"       \
    "{\"policy\":\"b\",\"result\":\"objects\"}]}"

static void answer(struct kube_server *s, const struct kube_request *r, struct kube_reply *a)
{
    (void)s;
    if (strstr(r->target, "/configmaps"))
        say_list(a,
                 strstr(r->target, "/namespaces/many/") ? DF_LIMIT_PLATFORM_LIST + 1
                                                        : DF_LIMIT_PLATFORM_LIST,
                 "{\"metadata\":{\"name\":\"a\"}}");
    else if (strstr(r->target, "/policyreports"))
        say_list(a, 80, REPORT);
    else if (strstr(r->target, "/pods"))
        say_list(a, DF_LIMIT_PLATFORM_DIAGNOSTICS + 10, POD);
    else if (strstr(r->target, "/deployments/web"))
        kube_say(a, 200, "",
                 "{\"kind\":\"Deployment\",\"metadata\":{\"name\":\"web\",\"namespace\":\"web\"},"
                 "\"spec\":{\"selector\":{\"matchLabels\":{\"app\":\"web\"}}}}");
    else if (strstr(r->target, "/apis/apps/v1"))
        kube_say(a, 200, "",
                 "{\"resources\":[{\"name\":\"deployments\",\"kind\":\"Deployment\"}]}");
    else
        kube_status(a, 404, "NotFound", "there is none");
}

static int begin(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    kube_start(&w->server, answer, NULL);
    w->platform = (struct df_platform){.in = &w->in, .kube = kube_client(&w->server)};
    w->platform.objects.kube = w->platform.kube;
    assert_int_equal(df_stop_new(-1, &w->platform.stop, NULL), 0);
    *state = w;
    return 0;
}

static int end(void **state)
{
    struct world *w = *state;
    df_kinds_free(&w->platform.objects.kinds);
    cJSON_Delete(w->platform.compliance);
    df_kube_free(w->platform.kube);
    df_stop_free(w->platform.stop);
    kube_stop(&w->server);
    free(w);
    return 0;
}

static void a_list_of_too_many_objects_is_refused(void **state)
{
    struct world *w = *state;
    struct df_kube_at at = {.resource = &df_kube_config_maps, .name_space = "enough"};
    struct df_err err = {0};
    DF_JSON cJSON *list = NULL, *other = NULL;
    assert_int_equal(df_list_objects(&w->platform, &at, NULL, &list, &err), 0);
    assert_int_equal(cJSON_GetArraySize(list), DF_LIMIT_PLATFORM_LIST);
    at.name_space = "many";
    assert_int_equal(df_list_objects(&w->platform, &at, NULL, &other, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    assert_string_equal(err.message, "list configmaps: there are more than 5000 objects");
}

static void objects_that_offend_are_listed_up_to_a_limit_and_counted_beyond(void **state)
{
    struct world *w = *state;
    assert_int_equal(df_check_compliance(&w->platform, NULL), 0);
    const cJSON *seen = df_json_at(w->platform.compliance, "policyReports");
    assert_int_equal(df_json_int(seen, "fail", 0), 80);
    assert_int_equal(cJSON_GetArraySize(df_json_at(seen, "objects")), DF_LIMIT_PLATFORM_OFFENDERS);
    assert_int_equal(df_json_int(seen, "notShown", 0), 160 - DF_LIMIT_PLATFORM_OFFENDERS);
}

static void lines_about_the_pods_of_a_component_end_at_a_limit(void **state)
{
    struct world *w = *state;
    struct df_node node = {.name = (char[]){"web"}};
    struct df_component c = {.node = &node};
    DF_JSON cJSON *app =
        json("{'status': {'resources': [{'group': 'apps', 'version': 'v1', 'kind': "
             "'Deployment', 'namespace': 'web', 'name': 'web'}]}}");
    assert_int_equal(df_check_workloads(&w->platform, &c, app, NULL), 0);
    assert_int_equal(c.state, DF_COMPONENT_FAILED);
    assert_int_equal(cJSON_GetArraySize(c.diagnostics), DF_LIMIT_PLATFORM_DIAGNOSTICS);
    assert_string_equal(
        cJSON_GetArrayItem(c.diagnostics, 1)->valuestring,
        "pod web-1: container main: 3 restarts; it ended last with code 1 (Error): ");
    df_component_free(&c);
}

static void orphans_are_listed_up_to_a_limit_and_counted_beyond(void **state)
{
    (void)state;
    DF_ORPHANS struct df_orphans o = {.list = cJSON_CreateArray()};
    DF_JSON cJSON *object = json("{'metadata': {'name': 'a', 'namespace': 'b'}}");
    for (int i = 0; i < DF_LIMIT_PLATFORM_ORPHANS + 3; i++)
        assert_int_equal(df_orphans_add(&o, "ConfigMap", object, "it is left", NULL), 0);
    assert_int_equal(cJSON_GetArraySize(o.list), DF_LIMIT_PLATFORM_ORPHANS);
    assert_int_equal(o.left_out, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_list_of_too_many_objects_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(
            objects_that_offend_are_listed_up_to_a_limit_and_counted_beyond, begin, end),
        cmocka_unit_test_setup_teardown(lines_about_the_pods_of_a_component_end_at_a_limit, begin,
                                        end),
        cmocka_unit_test(orphans_are_listed_up_to_a_limit_and_counted_beyond),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
