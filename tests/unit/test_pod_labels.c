/* A NetworkPolicy selects pods by their labels: every pod of ours has them, whatever its placement
 * says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/engine/job/job_object.h"
#include "spawner/engine/job/workflow_job.h"
#include "tests/unit/kube_words.h"

static const char *const placements[] = {
    "{}",
    "{'labels':{'app.kubernetes.io/name':'mine','app.kubernetes.io/managed-by':'me'}}",
    "{'podTemplate':{'metadata':{'labels':{'app.kubernetes.io/name':'mine',"
    "'app.kubernetes.io/managed-by':'me','dayfly.dev/step-uid':'other'}}}}",
    "{'podTemplate':{'metadata':{'labels':{'app.kubernetes.io/name':null,"
    "'app.kubernetes.io/managed-by':null}}}}",
    "{'podTemplate':{'metadata':{'labels':null}}}",
    "{'podTemplate':{'metadata':null}}",
    "{'podTemplate':{'metadata':{'labels':{'$patch':'delete'}}}}",
};

static void check_labels(const cJSON *job, const char *placement)
{
    static const struct {
        const char *key, *value;
    } labels[] = {
        {"app.kubernetes.io/name", "dayfly-runner"},
        {"app.kubernetes.io/managed-by", "dayfly"},
        {"dayfly.dev/step-uid", "u1"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(labels); i++) {
        const char *value = keyed(job, "spec.template.metadata.labels", labels[i].key);
        if (!df_streq(value, labels[i].value))
            fail_msg("%s is %s with %s", labels[i].key, value ? value : "absent", placement);
    }
}

static void no_placement_takes_a_tofu_step_out_of_the_network_policies(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(placements); i++) {
        DF_JSON cJSON *placement = json(placements[i]);
        DF_JSON cJSON *job = NULL;
        const struct df_job_spec spec = {.name = "net-1-plan",
                                         .namespace = "steps",
                                         .uid = "u1",
                                         .action = "plan",
                                         .image = "runner",
                                         .placement = placement};
        assert_int_equal(df_job_build(&spec, &job, NULL), 0);
        check_labels(job, placements[i]);
    }
}

static void no_placement_takes_a_workflow_out_of_the_network_policies(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(placements); i++) {
        DF_JSON cJSON *placement = json(placements[i]);
        DF_JSON cJSON *job = NULL;
        const struct df_workflow w = {.name = "restart",
                                      .target = "default/deployment/my-app",
                                      .image = "restart",
                                      .namespace = "steps",
                                      .uid = "u1",
                                      .placement = placement,
                                      .deadline_seconds = 60};
        assert_int_equal(df_workflow_job_build(&w, &job, NULL), 0);
        check_labels(job, placements[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_placement_takes_a_tofu_step_out_of_the_network_policies),
        cmocka_unit_test(no_placement_takes_a_workflow_out_of_the_network_policies),
    };
    return cmocka_run_group_tests_name("pod_labels", tests, NULL, NULL);
}
