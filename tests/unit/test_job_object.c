#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/limits.h"
#include "spawner/engine/job/job_object.h"
#include "tests/unit/kube_words.h"

#define UID "0f8fad5b-d9cb-469f-a165-70867728950e"
#define CA "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n"

static const struct df_job_spec plan = {
    .name = "net-3-plan",
    .namespace = "dayfly-jobs",
    .uid = UID,
    .run = "net-3",
    .executor = "net",
    .action = "plan",
    .image = "registry.example/dayfly-runner:1",
    .server_url = "https://dayfly.example:8030",
    .ca_pem = CA,
    .timeout_seconds = 3600,
    .grace_seconds = 900,
    .pending_seconds = 120,
    .ttl_seconds = 7200,
};

static cJSON *build(const struct df_job_spec *spec)
{
    struct df_err err = {0};
    cJSON *job = NULL;
    if (df_job_build(spec, &job, &err) < 0)
        fail_msg("%s", err.message);
    return job;
}

static cJSON *build_with(const char *placement)
{
    struct df_job_spec spec = plan;
    DF_JSON cJSON *p = json(placement);
    spec.placement = p;
    return build(&spec);
}

static const cJSON *runner_of(const cJSON *job)
{
    return named(job, "spec.template.spec.containers", DF_JOB_CONTAINER);
}

static void a_job_starts_its_step_once_and_ends_in_time(void **state)
{
    (void)state;
    DF_JSON cJSON *job = build(&plan);
    assert_at(job, "apiVersion", "'batch/v1'");
    assert_at(job, "kind", "'Job'");
    assert_at(job, "metadata.name", "'net-3-plan'");
    assert_at(job, "metadata.namespace", "'dayfly-jobs'");
    assert_at(job, "spec.backoffLimit", "0");
    assert_at(job, "spec.podReplacementPolicy", "'Failed'");
    assert_at(job, "spec.template.spec.restartPolicy", "'Never'");
    assert_at(job, "spec.ttlSecondsAfterFinished", "7200");
    /* Pending, timeout, grace, the offer of the result, and the margin. */
    assert_at(job, "spec.activeDeadlineSeconds", "6450");
    assert_at(job, "spec.template.spec.terminationGracePeriodSeconds", "900");
    assert_null(df_json_at(job, "spec.podFailurePolicy"));
    assert_null(df_json_at(job, "spec.suspend"));
}

/* The wait for the second step; its timeout, grace and the offer of its result. */
static void a_job_for_two_steps_has_time_for_both(void **state)
{
    (void)state;
    struct df_job_spec both = plan;
    both.apply_seconds = 1000;
    DF_JSON cJSON *job = build(&both);
    assert_at(job, "spec.activeDeadlineSeconds", "10270"); /* 6450 + 120 + 1000 + 900 + 1800 */
}

static void a_pod_is_as_restricted_as_the_standard_asks(void **state)
{
    (void)state;
    DF_JSON cJSON *job = build(&plan);
    const cJSON *runner = runner_of(job);
    assert_at(job, "spec.template.spec.securityContext",
              "{'runAsNonRoot':true,'runAsUser':65532,'runAsGroup':65532,'fsGroup':65532,"
              "'fsGroupChangePolicy':'OnRootMismatch','seccompProfile':{'type':'RuntimeDefault'}}");
    assert_at(runner, "securityContext",
              "{'runAsNonRoot':true,'allowPrivilegeEscalation':false,"
              "'readOnlyRootFilesystem':true,'capabilities':{'drop':['ALL']}}");
    assert_at(job, "spec.template.spec.automountServiceAccountToken", "false");
    assert_at(job, "spec.template.spec.enableServiceLinks", "false");
    assert_at(named(job, "spec.template.spec.volumes", "dayfly-work"), "emptyDir", "{}");
    assert_at(named(job, "spec.template.spec.volumes", "dayfly-tmp"), "emptyDir", "{}");
    assert_at(named(runner, "volumeMounts", "dayfly-work"), "mountPath", "'/work'");
    assert_at(named(runner, "volumeMounts", "dayfly-tmp"), "mountPath", "'/tmp'");
}

static void job_and_pod_say_whose_they_are(void **state)
{
    (void)state;
    DF_JSON cJSON *job = build(&plan);
    static const struct {
        const char *key, *value;
    } labels[] = {
        {"dayfly.dev/step-uid", UID},
        {"dayfly.dev/run", "net-3"},
        {"dayfly.dev/executor", "net"},
        {"dayfly.dev/action", "plan"},
        {"app.kubernetes.io/managed-by", "dayfly"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(labels); i++) {
        assert_string_equal(keyed(job, "metadata.labels", labels[i].key), labels[i].value);
        assert_string_equal(keyed(job, "spec.template.metadata.labels", labels[i].key),
                            labels[i].value);
    }
}

static void the_runner_is_told_where_its_handoff_lies(void **state)
{
    (void)state;
    DF_JSON cJSON *job = build(&plan);
    const cJSON *runner = runner_of(job);
    assert_at(runner, "image", "'registry.example/dayfly-runner:1'");
    assert_at(runner, "args",
              "['step','--handoff-file','" DF_JOB_HANDOFF_FILE "','--work-dir','" DF_JOB_WORK_DIR
              "']");
    assert_null(df_json_at(runner, "command"));
    assert_at(runner, "terminationMessagePath", "'/dev/termination-log'");
    assert_at(runner, "terminationMessagePolicy", "'File'");
    assert_at(named(runner, "volumeMounts", "dayfly-handoff"), "mountPath",
              "'/run/dayfly/handoff'");
    const cJSON *items =
        df_json_at(named(job, "spec.template.spec.volumes", "dayfly-handoff"), "downwardAPI.items");
    static const char *const files[][2] = {{"handoff.json", "dayfly.dev/handoff"},
                                           {"ca.pem", "dayfly.dev/ca"}};
    for (int i = 0; i < 2; i++) {
        const cJSON *item = cJSON_GetArrayItem(items, i);
        DF_FREE char *field = df_strf("metadata.annotations['%s']", files[i][1]);
        assert_string_equal(df_json_str(item, "path"), files[i][0]);
        assert_string_equal(df_json_str(item, "fieldRef.fieldPath"), field);
    }
}

static void the_token_of_a_pod_is_for_its_step_alone(void **state)
{
    (void)state;
    DF_JSON cJSON *job = build(&plan);
    DF_JSON cJSON *handoff = NULL;
    const char *text = keyed(job, "spec.template.metadata.annotations", "dayfly.dev/handoff");
    assert_int_equal(df_json_parse(text, strlen(text), &handoff, NULL), 0);
    assert_json(handoff,
                "{'uid':'" UID "','server':'https://dayfly.example:8030','tokenFile':"
                "'/run/dayfly/token/token','caFile':'/run/dayfly/handoff/ca.pem'}",
                "the handoff");
    assert_string_equal(keyed(job, "spec.template.metadata.annotations", "dayfly.dev/ca"), CA);
    assert_at(named(job, "spec.template.spec.volumes", "dayfly-token"), "projected",
              "{'sources':[{'serviceAccountToken':{'expirationSeconds':600,'path':'token',"
              "'audience':'dayfly/" UID "'}}]}");
    assert_at(named(runner_of(job), "volumeMounts", "dayfly-token"), "mountPath",
              "'/run/dayfly/token'");
    assert_null(named(job, "spec.template.spec.volumes", "dayfly-step"));
}

static void each_integration_that_exchanges_a_token_gets_one_of_its_audience(void **state)
{
    (void)state;
    struct df_job_spec spec = plan;
    DF_JSON cJSON *identities = json(
        "[{'name':'prod','audience':'sts.amazonaws.com'},{'name':'lake','audience':'https://x'}]");
    DF_JSON cJSON *stolen = json("[{'name':'prod','audience':'dayfly'}]"), *refused = NULL;
    struct df_err err = {0};
    DF_JSON cJSON *without = build(&spec);
    assert_null(named(without, "spec.template.spec.volumes", "dayfly-identity"));
    spec.identities = identities;
    DF_JSON cJSON *job = build(&spec);
    assert_at(named(job, "spec.template.spec.volumes", "dayfly-identity"), "projected",
              "{'sources':[{'serviceAccountToken':{'path':'prod','audience':'sts.amazonaws.com',"
              "'expirationSeconds':3600}},{'serviceAccountToken':{'path':'lake','audience':"
              "'https://x','expirationSeconds':3600}}]}");
    assert_at(named(runner_of(job), "volumeMounts", "dayfly-identity"), "mountPath",
              "'/run/dayfly/identity'");
    spec.identities = stolen; /* a token that is worth a role at the service itself */
    assert_int_equal(df_job_build(&spec, &refused, &err), -1);
    assert_string_equal(err.reason, "PlacementDenied");
}

static void without_a_ca_there_is_no_file_for_it(void **state)
{
    (void)state;
    struct df_job_spec spec = plan;
    spec.ca_pem = NULL;
    DF_JSON cJSON *job = build(&spec);
    const cJSON *volume = named(job, "spec.template.spec.volumes", "dayfly-handoff");
    const char *text = keyed(job, "spec.template.metadata.annotations", "dayfly.dev/handoff");
    assert_int_equal(cJSON_GetArraySize(df_json_at(volume, "downwardAPI.items")), 1);
    assert_null(strstr(text, "caFile"));
    assert_null(keyed(job, "spec.template.metadata.annotations", "dayfly.dev/ca"));
}

static void a_ca_that_no_annotation_can_hold_is_refused(void **state)
{
    (void)state;
    struct df_err err = {0};
    struct df_job_spec spec = plan;
    DF_FREE char *ca = calloc(1, DF_LIMIT_CA_ANNOTATION + 2);
    memset(ca, 'x', DF_LIMIT_CA_ANNOTATION);
    spec.ca_pem = ca;
    DF_JSON cJSON *fits = build(&spec);
    ca[DF_LIMIT_CA_ANNOTATION] = 'x';
    cJSON *job = NULL;
    assert_int_equal(df_job_build(&spec, &job, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
}

static void a_placement_adds_but_what_is_ours_stays(void **state)
{
    (void)state;
    DF_JSON cJSON *job = build_with(
        "{'image':'mine','labels':{'team':'net'},'annotations':{'a':'b'},'podAnnotations':{"
        "'cluster-autoscaler.kubernetes.io/safe-to-evict':'true'},'podTemplate':{'metadata':{"
        "'labels':{'dayfly.dev/step-uid':'forged'},'annotations':{'dayfly.dev/handoff':null}},"
        "'spec':{'containers':[{'name':'side','image':'s'}]}}}");
    assert_at(runner_of(job), "image", "'mine'");
    assert_string_equal(keyed(job, "metadata.labels", "team"), "net");
    assert_string_equal(keyed(job, "spec.template.metadata.labels", "team"), "net");
    assert_at(job, "metadata.annotations", "{'a':'b'}");
    assert_string_equal(keyed(job, "spec.template.metadata.annotations",
                              "cluster-autoscaler.kubernetes.io/safe-to-evict"),
                        "true");
    assert_string_equal(keyed(job, "spec.template.metadata.labels", "dayfly.dev/step-uid"), UID);
    assert_non_null(keyed(job, "spec.template.metadata.annotations", "dayfly.dev/handoff"));
    assert_non_null(named(job, "spec.template.spec.containers", "side"));
}

static void a_pod_template_cannot_make_a_step_run_twice_or_never(void **state)
{
    (void)state;
    static const struct {
        const char *placement, *message;
    } rows[] = {
        {"{'podTemplate':{'spec':{'restartPolicy':'OnFailure'}}}", "must be Never"},
        {"{'podTemplate':{'spec':{'restartPolicy':null}}}", "must be Never"},
        {"{'podTemplate':{'spec':{'containers':[{'name':'runner','$patch':'delete'}]}}}",
         "the container \"runner\" must stay"},
        {"{'podTemplate':{'spec':{'containers':[{'name':'runner','image':null}]}}}",
         "placement.image: no image is configured"},
        {"{'podTemplate':{'spec':{'containers':[{}]}}}", "an item has no \"name\""},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct df_err err = {0};
        struct df_job_spec spec = plan;
        DF_JSON cJSON *placement = json(rows[i].placement);
        cJSON *job = NULL;
        spec.placement = placement;
        assert_int_equal(df_job_build(&spec, &job, &err), -1);
        assert_null(job);
        assert_string_equal(err.reason, "InvalidPlacement");
        assert_message(&err, rows[i].message);
    }
}

/* The result is checked, whichever level of the placement asked for it. */
static void no_pod_gets_what_is_the_services_own(void **state)
{
    (void)state;
#define OTHER "7c9e6679-7425-40de-944b-e07fc1f90ae7"
#define SPEC(text) "{'podTemplate':{'spec':{" text "}}}"
#define VOLUME(text) SPEC("'volumes':[{'name':'v'," text "}]")
#define TOKEN(audience)                                                                            \
    VOLUME("'projected':{'sources':[{'serviceAccountToken':{'audience':'" audience                 \
           "','path':'t'}}]}")
    static const struct {
        const char *placement, *message; /* NULL: it gets it */
    } rows[] = {
        {"{'serviceAccountName':'dayfly'}", "spec.serviceAccountName: the service account"},
        {SPEC("'serviceAccountName':'dayfly-admin'"), "\"dayfly-admin\" belongs to dayfly itself"},
        {SPEC("'serviceAccount':'dayfly','automountServiceAccountToken':true"),
         "spec.serviceAccount: "},
        {SPEC("'serviceAccountName':'other','automountServiceAccountToken':true"), NULL},
        {"{'secretMounts':[{'name':'dayfly-key','mountPath':'/k'}]}", "the Secret \"dayfly-key\""},
        {"{'envFrom':[{'secretRef':{'name':'dfb-1'}}]}", "the Secret \"dfb-1\""},
        {VOLUME("'secret':{'secretName':'dayfly-authority'}"), "spec.volumes["},
        {VOLUME("'secret':{'secretName':'other'}"), NULL},
        {VOLUME("'persistentVolumeClaim':{'claimName':'dayfly-data'}"), "the volume claim"},
        {VOLUME("'projected':{'sources':[{'secret':{'name':'dayfly-key'}}]}"), "dayfly-key"},
        {SPEC("'initContainers':[{'name':'i','image':'i','env':[{'name':'A','valueFrom':{"
              "'secretKeyRef':{'name':'dayfly-key','key':'key'}}}]}]"),
         "spec.initContainers[0].env[0].valueFrom.secretKeyRef.name"},
        {SPEC("'containers':[{'name':'s','image':'i','envFrom':[{'secretRef':{'name':"
              "'dayfly-key'}}]}]"),
         "the Secret \"dayfly-key\""},
        {SPEC("'imagePullSecrets':[{'name':'dayfly-key'}]"), "the Secret \"dayfly-key\""},
        {TOKEN("dayfly"), "the token audience \"dayfly\""},
        {TOKEN("dayfly/" OTHER), "the token audience \"dayfly/" OTHER},
        {TOKEN("dayfly/"), "the token audience \"dayfly/\""},
        {TOKEN("vault"), NULL},
        {SPEC("'volumes':[{'name':'dayfly-token','projected':{'sources':[{'serviceAccountToken':{"
              "'audience':'dayfly','path':'token'}}]}}]"),
         "the token audience \"dayfly\""},
    };
    DF_CLEANUP(df_never_free) struct df_never never = {0};
    assert_int_equal(df_strs_add(&never.accounts, "dayfly"), 0);
    assert_int_equal(df_strs_add(&never.accounts, "dayfly-admin"), 0);
    assert_int_equal(df_strs_add(&never.claims, "dayfly-data"), 0);
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct df_err err = {0};
        struct df_job_spec spec = plan;
        DF_JSON cJSON *placement = json(rows[i].placement);
        DF_JSON cJSON *job = NULL;
        spec.placement = placement;
        spec.never = &never;
        int result = df_job_build(&spec, &job, &err);
        if ((result == 0) != !rows[i].message)
            fail_msg("%s: %s", rows[i].placement, result ? err.message : "is built");
        if (!rows[i].message)
            continue;
        assert_int_equal(err.cls, DF_ERR_USER);
        assert_string_equal(err.reason, "PlacementDenied");
        assert_message(&err, rows[i].message);
    }
}

static void a_pod_without_an_account_does_not_get_the_services_own(void **state)
{
    (void)state;
    struct df_err err = {0};
    struct df_job_spec spec = plan;
    DF_JSON cJSON *placement = json("{'serviceAccountName':'steps'}"), *job = NULL;
    DF_CLEANUP(df_never_free) struct df_never never = {0};
    assert_int_equal(df_strs_add(&never.accounts, "default"), 0);
    spec.never = &never;
    assert_int_equal(df_job_build(&spec, &job, &err), -1);
    assert_message(&err, "set kubernetes.placement.serviceAccountName");
    spec.placement = placement;
    assert_int_equal(df_job_build(&spec, &job, &err), 0);
}

static void a_step_keeps_its_own_token(void **state)
{
    (void)state;
    static const struct df_never never;
    struct df_job_spec spec = plan;
    spec.never = &never;
    DF_JSON cJSON *job = build(&spec);
    assert_non_null(named(job, "spec.template.spec.volumes", "dayfly-token"));
}

static void building_twice_makes_the_same_job(void **state)
{
    (void)state;
    DF_JSON cJSON *one = build(&plan), *two = build(&plan);
    assert_true(df_json_equal(one, two));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_starts_its_step_once_and_ends_in_time),
        cmocka_unit_test(a_job_for_two_steps_has_time_for_both),
        cmocka_unit_test(a_pod_is_as_restricted_as_the_standard_asks),
        cmocka_unit_test(job_and_pod_say_whose_they_are),
        cmocka_unit_test(the_runner_is_told_where_its_handoff_lies),
        cmocka_unit_test(the_token_of_a_pod_is_for_its_step_alone),
        cmocka_unit_test(each_integration_that_exchanges_a_token_gets_one_of_its_audience),
        cmocka_unit_test(without_a_ca_there_is_no_file_for_it),
        cmocka_unit_test(a_ca_that_no_annotation_can_hold_is_refused),
        cmocka_unit_test(a_placement_adds_but_what_is_ours_stays),
        cmocka_unit_test(a_pod_template_cannot_make_a_step_run_twice_or_never),
        cmocka_unit_test(no_pod_gets_what_is_the_services_own),
        cmocka_unit_test(a_pod_without_an_account_does_not_get_the_services_own),
        cmocka_unit_test(a_step_keeps_its_own_token),
        cmocka_unit_test(building_twice_makes_the_same_job),
    };
    return cmocka_run_group_tests_name("job_object", tests, NULL, NULL);
}
