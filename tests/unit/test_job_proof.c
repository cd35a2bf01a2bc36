/* Jobs that somebody else made, with the labels of this service: no step gets their pods. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/crypto/crypto.h"
#include "spawner/engine/job/job.h"
#include "spawner/engine/job/job_object.h"
#include "tests/unit/kube_server.h"
#include "tests/unit/kube_words.h"

/* A cluster with one Job, and one that refuses a second one of its name. */
struct world {
    struct kube_server server;
    struct df_kube *kube;
    struct df_engine *engine;
    cJSON *job; /* NULL: none yet; guarded by the lock of the server */
};

/* The API server gives a Job its uid and its time. */
static void make(struct world *w, const char *body, struct kube_reply *a)
{
    char now[DF_TIME_LEN];
    if (w->job) {
        kube_status(a, 409, "AlreadyExists", "it exists");
        return;
    }
    assert_int_equal(df_json_parse(body, strlen(body), &w->job, NULL), 0);
    cJSON *metadata = df_json_object_at(w->job, "metadata");
    assert_int_equal(
        df_json_set_str(metadata, "creationTimestamp", df_time_format(df_real_us(), now), NULL), 0);
    assert_int_equal(df_json_set_str(metadata, "uid", "j1", NULL), 0);
    assert_int_equal(df_json_set_str(metadata, "resourceVersion", "11", NULL), 0);
    DF_FREE char *text = df_json_print(w->job);
    kube_say(a, 201, "", text);
}

static void tell(const struct world *w, bool is_one, struct kube_reply *a)
{
    DF_FREE char *job = w->job ? df_json_print(w->job) : strdup("");
    DF_FREE char *list = df_strf("{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[%s]}", job);
    if (is_one && !w->job)
        kube_status(a, 404, "NotFound", "there is none");
    else
        kube_say(a, 200, "", is_one ? job : list);
}

static void answer(struct kube_server *s, const struct kube_request *r, struct kube_reply *a)
{
    struct world *w = s->arg;
    if (strstr(r->target, "watch=true")) {
        kube_stream(a);
        a->hold = true;
    } else if (df_streq(r->method, "POST")) {
        make(w, r->body, a);
    } else if (strstr(r->target, "/jobs")) {
        tell(w, strstr(r->target, "/jobs/"), a);
    } else {
        kube_say(a, 200, "", "{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[]}");
    }
}

/* The service with this key; NULL: somebody else. */
static void begin_service(struct world *w, const char *key)
{
    unsigned char bytes[DF_KEY_LEN] = {0};
    const struct df_job_options o = {
        .kube = w->kube, .name_space = "build", .image = "runner", .key = key ? bytes : NULL};
    if (key)
        bytes[0] = (unsigned char)key[0];
    if (w->engine)
        w->engine->ops->close(w->engine);
    assert_int_equal(df_engine_job_new(&o, &w->engine, NULL), 0);
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    if (!w)
        return -1;
    kube_start(&w->server, answer, w);
    w->kube = kube_client(&w->server);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    w->engine->ops->close(w->engine);
    df_kube_free(w->kube);
    kube_stop(&w->server);
    cJSON_Delete(w->job);
    free(w);
    return 0;
}

/* ---- steps ---- */

static const struct df_engine_step apply = {.name = "net-1-apply",
                                            .uid = "u1",
                                            .timeout_seconds = 3600,
                                            .pending_seconds = 120,
                                            .runner = {.run = "net-1",
                                                       .executor = "net",
                                                       .action = "apply",
                                                       .server_url = "https://dayfly.example:8030",
                                                       .grace_seconds = 900}};

static void must_create(struct world *w, const struct df_engine_step *step)
{
    DF_JSON cJSON *ref = NULL;
    struct df_err err = {0};
    if (w->engine->ops->runner->step.create(w->engine, step, &ref, &err) < 0)
        fail_msg("%s", err.message);
    assert_string_equal(df_json_str(ref, "uid"), "j1");
}

static void assert_taken(struct world *w)
{
    DF_JSON cJSON *ref = NULL;
    struct df_err err = {0};
    assert_int_equal(w->engine->ops->runner->step.create(w->engine, &apply, &ref, &err), -1);
    assert_int_equal(err.cls, DF_ERR_CONFLICT);
    assert_string_equal(err.reason, "NameTaken");
}

/* The engine's lists may be asking for it. */
static void remove_job(struct world *w)
{
    (void)pthread_mutex_lock(&w->server.lock);
    cJSON_Delete(DF_TAKE(w->job));
    (void)pthread_mutex_unlock(&w->server.lock);
}

static void a_leader_finds_the_job_that_one_before_it_has_made(void **state)
{
    struct world *w = *state;
    begin_service(w, "a");
    must_create(w, &apply);
    begin_service(w, "a");
    must_create(w, &apply);
}

static void a_job_that_somebody_else_made_is_not_that_of_the_step_it_names(void **state)
{
    static const char *const others[] = {NULL, "b"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(others); i++) {
        struct world *w = *state;
        begin_service(w, others[i]);
        must_create(w, &apply);
        begin_service(w, "a");
        assert_taken(w);
        remove_job(w);
    }
}

static void set_time(struct world *w, const char *time)
{
    (void)pthread_mutex_lock(&w->server.lock);
    assert_int_equal(
        df_json_set_str(df_json_object_at(w->job, "metadata"), "creationTimestamp", time, NULL), 0);
    (void)pthread_mutex_unlock(&w->server.lock);
}

/* Who may read Jobs has read it. */
static void the_proof_of_an_old_job_is_none_for_a_new_one_of_its_name(void **state)
{
    struct world *w = *state;
    begin_service(w, "a");
    must_create(w, &apply);
    set_time(w, "2099-11-21T12:00:00Z");
    assert_taken(w);
}

/* ---- standby runners ---- */

static int count(void *arg, const cJSON *ref, const struct df_standby_form *form, int64_t age_ms,
                 struct df_err *err)
{
    (void)ref, (void)form, (void)age_ms, (void)err;
    ++*(int *)arg;
    return 0;
}

static int runners_found(struct world *w)
{
    int n = 0;
    assert_int_equal(w->engine->ops->runner->standbys(w->engine, count, &n, NULL), 0);
    return n;
}

static void a_leader_takes_over_only_runners_of_its_service(void **state)
{
    static const struct {
        const char *maker;
        int found;
    } rows[] = {{"a", 1}, {"b", 0}, {NULL, 0}};
    struct df_engine_step waits = apply;
    waits.name = waits.uid = "standby-1";
    waits.runner.standby = "d1";
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct world *w = *state;
        begin_service(w, rows[i].maker);
        must_create(w, &waits);
        begin_service(w, "a");
        assert_int_equal(runners_found(w), rows[i].found);
        remove_job(w);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    df_log_setup(DF_LOG_ERROR, false, "test");
    const struct CMUnitTest tests[] = {
        TEST(a_leader_finds_the_job_that_one_before_it_has_made),
        TEST(a_job_that_somebody_else_made_is_not_that_of_the_step_it_names),
        TEST(the_proof_of_an_old_job_is_none_for_a_new_one_of_its_name),
        TEST(a_leader_takes_over_only_runners_of_its_service),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
