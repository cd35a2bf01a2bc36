/* Standby runners of the engine `job`: the form of a pod, the Job that is made for no step, and the
 * list of such Jobs. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/limits.h"
#include "spawner/engine/job/job.h"
#include "spawner/engine/job/job_object.h"
#include "tests/unit/kube_server.h"
#include "tests/unit/kube_words.h"

#define ID "standby-1"

/* ---- the world: a cluster with these Jobs ---- */

struct world {
    struct kube_server server;
    struct df_kube *kube;
    struct df_engine *engine;
};

/* arg: the items of a list of Jobs. */
static void answer(struct kube_server *s, const struct kube_request *r, struct kube_reply *a)
{
    bool is_jobs = strstr(r->target, "/jobs");
    if (strstr(r->target, "watch=true")) {
        kube_stream(a);
        a->hold = true;
        return;
    }
    DF_FREE char *body = df_strf("{'metadata':{'resourceVersion':'10'},'items':[%s]}",
                                 is_jobs ? (const char *)s->arg : "");
    for (char *p = body; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    kube_say(a, 200, "", body);
}

static void open_world(struct world *w, const char *jobs)
{
    kube_start(&w->server, answer, (void *)(uintptr_t)jobs);
    w->kube = kube_client(&w->server);
    const struct df_job_options o = {.kube = w->kube, .name_space = "build", .image = "runner"};
    assert_int_equal(df_engine_job_new(&o, &w->engine, NULL), 0);
}

static void close_world(struct world *w)
{
    w->engine->ops->close(w->engine);
    df_kube_free(w->kube);
    kube_stop(&w->server);
}

/* ---- the form ---- */

static const struct df_engine_step plan = {.name = "net-1-plan",
                                           .uid = "u1",
                                           .timeout_seconds = 3600,
                                           .pending_seconds = 120,
                                           .runner = {.run = "net-1",
                                                      .executor = "net",
                                                      .action = "plan",
                                                      .server_url = "https://dayfly.example:8030",
                                                      .grace_seconds = 900}};

static struct df_standby_form form_of(struct world *w, const struct df_engine_step *step)
{
    struct df_standby_form form = {.seconds = -1};
    struct df_err err = {0};
    if (w->engine->ops->runner->form(w->engine, step, &form, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(strlen(form.digest), 32);
    return form;
}

static void steps_that_differ_in_names_alone_have_one_form(void **state)
{
    (void)state;
    struct world w;
    struct df_engine_step other = plan;
    open_world(&w, "");
    other.name = "dns-7-apply";
    other.uid = "u2";
    other.runner.run = "dns-7";
    other.runner.executor = "dns";
    other.runner.action = "apply";
    struct df_standby_form one = form_of(&w, &plan), two = form_of(&w, &other);
    assert_string_equal(one.digest, two.digest);
    assert_int_equal(one.seconds, two.seconds);
    assert_string_equal(one.run, "net-1");
    assert_string_equal(two.run, "dns-7");
    other.runner.run = NULL;
    assert_string_equal(form_of(&w, &other).run, "");
    close_world(&w);
}

static void a_longer_timeout_needs_more_time_of_the_same_form(void **state)
{
    (void)state;
    struct world w;
    struct df_engine_step longer = plan;
    open_world(&w, "");
    longer.timeout_seconds += 100;
    struct df_standby_form one = form_of(&w, &plan), two = form_of(&w, &longer);
    assert_string_equal(one.digest, two.digest);
    assert_int_equal(two.seconds, one.seconds + 100);
    close_world(&w);
}

static void a_step_that_needs_another_pod_has_another_form(void **state)
{
    (void)state;
    static const char *const placements[] = {
        "{'image':'other'}",
        "{'serviceAccountName':'other'}",
        "{'secretMounts':[{'name':'keys','mountPath':'/keys'}]}",
        "{'nodeSelector':{'disk':'fast'}}",
        "{'labels':{'team':'net'}}",
        "{'annotations':{'team':'net'}}",
    };
    enum { COUNT = DF_ARRAY_SIZE(placements) + 3 };
    struct df_standby_form forms[COUNT];
    struct df_engine_step step = plan;
    DF_JSON cJSON *identities = json("[{'name':'prod','audience':'sts.amazonaws.com'}]");
    struct world w;
    size_t n = 0;
    open_world(&w, "");
    forms[n++] = form_of(&w, &plan);
    step.runner.grace_seconds++;
    forms[n++] = form_of(&w, &step);
    step = plan;
    step.runner.identities = identities;
    forms[n++] = form_of(&w, &step);
    step = plan;
    for (size_t i = 0; i < DF_ARRAY_SIZE(placements); i++) {
        DF_JSON cJSON *placement = json(placements[i]);
        step.placement.executor = placement;
        forms[n++] = form_of(&w, &step);
    }
    for (size_t i = 0; i < COUNT; i++)
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(forms[i].digest, forms[k].digest);
    close_world(&w);
}

static void the_form_of_a_placement_that_cannot_be_is_refused(void **state)
{
    (void)state;
    DF_JSON cJSON *placement = json("{'resources':{'requests':{'cpu':'2'},'limits':{'cpu':'1'}}}");
    struct df_engine_step step = plan;
    struct df_standby_form form;
    struct df_err err = {0};
    struct world w;
    open_world(&w, "");
    step.placement.executor = placement;
    assert_int_equal(w.engine->ops->runner->form(w.engine, &step, &form, &err), -1);
    assert_string_equal(err.reason, "InvalidPlacement");
    close_world(&w);
}

/* ---- the Job ---- */

static cJSON *render(const struct df_engine_step *step)
{
    static const struct df_job_options o = {.name_space = "build", .image = "runner"};
    struct df_err err = {0};
    cJSON *job = NULL;
    if (df_job_render(&o, step, &job, &err) < 0)
        fail_msg("%s", err.message);
    return job;
}

static void the_job_of_a_standby_runner_says_what_it_is(void **state)
{
    (void)state;
    struct df_engine_step step = plan;
    step.name = step.uid = ID;
    step.runner.standby = "d1";
    DF_JSON cJSON *job = render(&step), *handoff = NULL;
    const char *text = keyed(job, "spec.template.metadata.annotations", "dayfly.dev/handoff");
    assert_int_equal(df_json_parse(text, strlen(text), &handoff, NULL), 0);
    assert_json(handoff,
                "{'standby':'" ID "','server':'https://dayfly.example:8030','tokenFile':"
                "'/run/dayfly/token/token'}",
                "the handoff");
    assert_at(named(job, "spec.template.spec.volumes", "dayfly-token"), "projected",
              "{'sources':[{'serviceAccountToken':{'expirationSeconds':600,'path':'token',"
              "'audience':'dayfly/" ID "'}}]}");
    assert_at(job, "metadata.name", "'" ID "'");
    static const char *const labels[][2] = {{"dayfly.dev/standby", "d1"},
                                            {"dayfly.dev/step-uid", ID},
                                            {"dayfly.dev/run", "net-1"},
                                            {"app.kubernetes.io/managed-by", "dayfly"}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(labels); i++) {
        assert_string_equal(keyed(job, "metadata.labels", labels[i][0]), labels[i][1]);
        assert_string_equal(keyed(job, "spec.template.metadata.labels", labels[i][0]),
                            labels[i][1]);
    }
}

static void the_job_of_a_standby_runner_has_an_hour_more(void **state)
{
    (void)state;
    struct df_engine_step waits = plan;
    waits.runner.standby = "d1";
    DF_JSON cJSON *of_step = render(&plan), *of_runner = render(&waits);
    assert_null(keyed(of_step, "metadata.labels", "dayfly.dev/standby"));
    assert_int_equal(df_json_int(of_runner, "spec.activeDeadlineSeconds", 0),
                     df_json_int(of_step, "spec.activeDeadlineSeconds", 0) +
                         DF_STANDBY_LIFE_SECONDS);
}

/* ---- the list ---- */

#define JOB(name, labels, metadata, status)                                                        \
    "{'metadata':{'name':'" name "','namespace':'build','uid':'j-" name                            \
    "','resourceVersion':'5','creationTimestamp':'2026-11-21T12:00:00Z','labels':{" labels         \
    "}" metadata "},'spec':{'activeDeadlineSeconds':10050,'template':{'spec':{"                    \
    "'serviceAccountName':'runner'}}},'status':{" status "}}"
#define ID_OF(id) "'dayfly.dev/step-uid':'" id "'"
#define OF(id) ID_OF(id) ",'dayfly.dev/standby':'d1'"
#define ENDED(how) "'conditions':[{'type':'" how "','status':'True'}]"
#define DELETED ",'deletionTimestamp':'2026-11-21T12:00:09Z'"

/* clang-format off */
static const char jobs[] =
    JOB("standby-1", OF("standby-1"), "", "") ","
    JOB("standby-2", OF("standby-2") ",'dayfly.dev/run':'net-1'", "", "'active':1") ","
    JOB("standby-3", OF("standby-3"), "", ENDED("Complete")) ","
    JOB("standby-4", OF("standby-4"), "", ENDED("Failed")) ","
    JOB("standby-5", OF("standby-5"), DELETED, "") ","
    JOB("net-2-apply", OF("standby-6"), "", "") ","
    JOB("standby-7", "'dayfly.dev/standby':'d1'", "", "") ","
    JOB("net-2-plan", ID_OF("u2"), "", "");
/* clang-format on */

struct seen {
    cJSON *refs;
    struct df_standby_form forms[8];
    int64_t ages_ms[8];
};

static int see(void *arg, const cJSON *ref, const struct df_standby_form *form, int64_t age_ms,
               struct df_err *err)
{
    struct seen *s = arg;
    int n = cJSON_GetArraySize(s->refs);
    s->forms[n] = *form;
    s->ages_ms[n] = age_ms;
    return df_json_append(s->refs, cJSON_Duplicate(ref, true), err);
}

static void the_list_has_the_jobs_of_runners_that_have_not_ended(void **state)
{
    (void)state;
    struct seen s = {.refs = cJSON_CreateArray()};
    struct df_err err = {0};
    struct world w;
    open_world(&w, jobs);
    if (w.engine->ops->runner->standbys(w.engine, see, &s, &err) < 0)
        fail_msg("%s", err.message);
    assert_json(s.refs,
                "[{'kind':'Job','name':'standby-1','namespace':'build','uid':'j-standby-1',"
                "'serviceAccountName':'runner','hostUid':'standby-1'},"
                "{'kind':'Job','name':'standby-2','namespace':'build','uid':'j-standby-2',"
                "'serviceAccountName':'runner','hostUid':'standby-2'}]",
                "the references");
    static const char *const runs[] = {"", "net-1"};
    for (int i = 0; i < 2; i++) {
        assert_string_equal(s.forms[i].digest, "d1");
        assert_string_equal(s.forms[i].run, runs[i]);
        assert_int_equal(s.forms[i].seconds, 10050 - DF_STANDBY_LIFE_SECONDS);
        assert_true(s.ages_ms[i] >= 0);
    }
    (void)pthread_mutex_lock(&w.server.lock);
    assert_non_null(strstr(df_buf_str(&w.server.seen), "dayfly.dev%2Fstandby"));
    (void)pthread_mutex_unlock(&w.server.lock);
    cJSON_Delete(s.refs);
    close_world(&w);
}

static int refuse(void *arg, const cJSON *ref, const struct df_standby_form *form, int64_t age_ms,
                  struct df_err *err)
{
    (void)arg;
    (void)ref;
    (void)form;
    (void)age_ms;
    return df_fail(err, DF_ERR_LIMIT, "enough");
}

static void a_list_that_is_not_taken_in_fails(void **state)
{
    (void)state;
    struct df_err err = {0};
    struct world w;
    open_world(&w, jobs);
    assert_int_equal(w.engine->ops->runner->standbys(w.engine, refuse, NULL, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    close_world(&w);
}

#define TEST(f) cmocka_unit_test(f)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(steps_that_differ_in_names_alone_have_one_form),
        TEST(a_longer_timeout_needs_more_time_of_the_same_form),
        TEST(a_step_that_needs_another_pod_has_another_form),
        TEST(the_form_of_a_placement_that_cannot_be_is_refused),
        TEST(the_job_of_a_standby_runner_says_what_it_is),
        TEST(the_job_of_a_standby_runner_has_an_hour_more),
        TEST(the_list_has_the_jobs_of_runners_that_have_not_ended),
        TEST(a_list_that_is_not_taken_in_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
