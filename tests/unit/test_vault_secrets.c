/* Which Secrets belong to the vault is asked of the API server, before a Job is created. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/engine/job/job_engine.h"
#include "tests/unit/kube_server.h"
#include "tests/unit/kube_words.h"

#define SECRET(name, labels)                                                                       \
    "{\"kind\":\"Secret\",\"metadata\":{\"name\":\"" name "\",\"labels\":{" labels "}},"           \
    "\"data\":{\"a\":\"aHVzaA==\"}}"

static void answer(struct kube_server *s, const struct kube_request *r, struct kube_reply *a)
{
    (void)s;
    if (strstr(r->target, "/secrets/plain"))
        kube_say(a, 200, "", SECRET("plain", ""));
    else if (strstr(r->target, "/secrets/ours"))
        kube_say(a, 200, "", SECRET("ours", "\"dayfly.dev/vault\":\"true\""));
    else if (strstr(r->target, "/secrets/of-run"))
        kube_say(a, 200, "", SECRET("of-run", "\"dayfly.dev/vault\":\"run\""));
    else if (strstr(r->target, "/secrets/closed"))
        kube_status(a, 403, "Forbidden", "secrets is forbidden");
    else if (strstr(r->target, "/secrets/broken"))
        kube_status(a, 500, "InternalError", "etcd is away");
    else
        kube_status(a, 404, "NotFound", "secrets not found");
}

#define SPEC(text) "{'spec':{'template':{'spec':{" text "}}}}"
#define MOUNT(name) SPEC("'volumes':[{'name':'v','secret':{'secretName':'" name "'}}]")

static void a_secret_of_the_vault_is_mounted_by_no_pod(void **state)
{
    (void)state;
    static const struct {
        const char *job;
        enum df_err_class cls; /* NONE: the pod may have it */
        bool has_vault;
    } rows[] = {
        {SPEC("'containers':[]"), DF_ERR_NONE, true},
        {MOUNT("plain"), DF_ERR_NONE, true},
        {MOUNT("ours"), DF_ERR_USER, true},
        {MOUNT("ours"), DF_ERR_NONE, false},
        {MOUNT("of-run"), DF_ERR_USER, true},
        {MOUNT("absent"), DF_ERR_NONE, true},
        {MOUNT("closed"), DF_ERR_NONE, true},
        {MOUNT("broken"), DF_ERR_RETRY, true},
        {SPEC("'initContainers':[{'envFrom':[{'secretRef':{'name':'plain'}},"
              "{'secretRef':{'name':'ours'}}]}]"),
         DF_ERR_USER, true},
        {SPEC("'volumes':[{'projected':{'sources':[{'secret':{'name':'ours'}}]}}]"), DF_ERR_USER,
         true},
        {SPEC("'imagePullSecrets':[{'name':'ours'}]"), DF_ERR_USER, true},
    };
    struct kube_server server;
    kube_start(&server, answer, NULL);
    struct df_kube *kube = kube_client(&server);
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        const struct df_job_options o = {
            .kube = kube, .name_space = "build", .has_vault = rows[i].has_vault};
        DF_JSON cJSON *job = json(rows[i].job);
        struct df_err err = {0};
        int result = df_job_check_vault(&o, job, &err);
        if ((result == 0) != (rows[i].cls == DF_ERR_NONE) || err.cls != rows[i].cls)
            fail_msg("%s: %d %s", rows[i].job, result, err.message);
        if (err.cls == DF_ERR_USER)
            assert_string_equal(err.reason, "PlacementDenied");
    }
    df_kube_free(kube);
    kube_stop(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_secret_of_the_vault_is_mounted_by_no_pod),
    };
    return cmocka_run_group_tests_name("vault_secrets", tests, NULL, NULL);
}
