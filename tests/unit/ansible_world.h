/*
 * ansible_world.h - the engine `ansible` with an API server and an AWX that are played, and an
 * action we-1 with the job template test-template, number 10. Include behind cmocka.h.
 */
#ifndef DF_TEST_ANSIBLE_WORLD_H
#define DF_TEST_ANSIBLE_WORLD_H

#include <stdatomic.h>
#include <sys/random.h>

#include "common/crypto/crypto.h"
#include "spawner/engine/ansible/ansible.h"
#include "tests/unit/awx_memory.h"
#include "tests/unit/kube_memory.h"
#include "tests/unit/kube_words.h"

#define CONFIG                                                                                     \
    "'engineConfig':{'playbookPath':'playbooks/test.yml','jobTemplateName':'test-template'}"
#define LAUNCH "job_templates/10/launch/"

struct world {
    struct kube_memory memory;
    struct kube_server server;
    struct df_kube *kube;
    struct awx_memory awx;
    struct df_engine *engine;
    atomic_int notified;
    bool does_not_lead;
    cJSON *spec, *ref;
    struct df_engine_step step;
};

/* ---- a clock that a test moves on ---- */

static atomic_llong world_ahead_us;

static inline int64_t world_mono_us(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000 + atomic_load(&world_ahead_us);
}

static inline int64_t world_real_us(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static inline int world_random(void *bytes, size_t n)
{
    return getrandom(bytes, n, 0) == (ssize_t)n ? 0 : -1;
}

/* seconds 0: the clock is that of the test from now on. */
static inline void world_later(int seconds)
{
    static const struct df_clock clock = {world_mono_us, world_real_us, world_random};
    if (seconds == 0)
        df_clock_install(&clock);
    atomic_fetch_add(&world_ahead_us, seconds * INT64_C(1000000));
}

static inline void count_notice(void *arg, const char *step_name)
{
    struct world *w = arg;
    assert_string_equal(step_name, "we-1");
    atomic_fetch_add(&w->notified, 1);
}

static inline bool may_write(void *arg)
{
    const struct world *w = arg;
    return !w->does_not_lead;
}

/* data: {key: "text"} with ' for ". */
static inline void put_object(const struct world *w, const struct df_kube_resource *resource,
                              const char *name, const char *data)
{
    const struct df_kube_at at = {.resource = resource, .name_space = "build"};
    DF_JSON cJSON *object = cJSON_CreateObject();
    cJSON *texts = json(data), *key;
    cJSON_ArrayForEach (key, texts) {
        DF_BUF struct df_buf coded = DF_BUF_INIT(DF_KIB);
        if (resource != &df_kube_secrets)
            continue;
        assert_int_equal(
            df_base64_encode(key->valuestring, strlen(key->valuestring), false, &coded, NULL), 0);
        assert_non_null(cJSON_SetValuestring(key, df_buf_str(&coded)));
    }
    assert_int_equal(df_json_set_str(df_json_object_at(object, "metadata"), "name", name, NULL), 0);
    assert_int_equal(df_json_add(object, "data", texts, NULL), 0);
    assert_int_equal(df_kube_create(w->kube, &at, object, NULL, NULL), 0);
}

static inline void remove_object(const struct world *w, const struct df_kube_resource *resource,
                                 const char *name)
{
    const struct df_kube_at at = {.resource = resource, .name_space = "build", .name = name};
    assert_int_equal(df_kube_delete(w->kube, &at, &DF_KUBE_DELETE_OPTIONS, NULL), 0);
}

/* spec.workflow with ' for ". */
static inline void plan(struct world *w, const char *spec)
{
    cJSON_Delete(w->spec);
    w->step.workflow.spec = w->spec = json(spec);
}

/* Another action. */
static inline void be(struct world *w, const char *name, const char *uid)
{
    w->step.name = name;
    w->step.uid = uid;
    w->step.ref = NULL;
}

static inline int open_world(void **state)
{
    static const struct df_engine_kind kind = {"ansible", .takes_workflows = true};
    struct world *w = calloc(1, sizeof(*w));
    struct df_err err = {0};
    kube_memory_open(&w->memory, &w->server);
    w->kube = kube_client(&w->server);
    awx_open(&w->awx);
    (void)awx_keep(&w->awx, "job_templates", json("{'id':10,'name':'test-template'}"));
    put_object(w, &df_kube_secrets, "awx", "{'api.token':'test-token'}");
    const struct df_ansible_options o = {.kind = &kind,
                                         .kube = w->kube,
                                         .name_space = "build",
                                         .sees_pipelines = true,
                                         .url = w->awx.url,
                                         .token_secret = {"awx", "api.token", "build"},
                                         .may_write = may_write,
                                         .may_write_arg = w,
                                         .notify = count_notice,
                                         .notify_arg = w};
    world_later(0);
    if (df_engine_ansible_new(&o, &w->engine, &err) < 0)
        fail_msg("%s", err.message);
    be(w, "we-1", "uid-1");
    w->step.pending_seconds = 600;
    w->step.was_created = true;
    w->step.workflow.name_space = "kw";
    w->step.workflow.target = "kw/deployment/test-app";
    plan(w, "{" CONFIG "}");
    *state = w;
    return 0;
}

static inline int close_world(void **state)
{
    struct world *w = *state;
    w->engine->ops->close(w->engine);
    df_kube_free(w->kube);
    kube_memory_close(&w->memory, &w->server);
    awx_close(&w->awx);
    cJSON_Delete(w->spec);
    cJSON_Delete(w->ref);
    free(w);
    df_clock_install(NULL);
    return 0;
}

static const struct df_step_ops *ops_of(const struct world *w)
{
    return &w->engine->ops->workflow->step;
}

static inline void start(struct world *w)
{
    struct df_err err = {0};
    cJSON_Delete(w->ref);
    w->ref = NULL;
    w->step.ref = NULL;
    if (ops_of(w)->create(w->engine, &w->step, &w->ref, &err) < 0)
        fail_msg("%s", err.message);
    w->step.ref = w->ref;
}

static inline void assert_failed(int result, const struct df_err *err, enum df_err_class cls,
                                 const char *reason, const char *text)
{
    assert_int_equal(result, -1);
    if (err->cls != cls || strcmp(err->reason, reason) != 0 || !strstr(err->message, text))
        fail_msg("%s %s: %s, not %s %s: %s", df_err_class_name(err->cls), err->reason, err->message,
                 df_err_class_name(cls), reason, text);
}

static inline void assert_no_start(struct world *w, enum df_err_class cls, const char *reason,
                                   const char *text)
{
    struct df_err err = {0};
    cJSON *ref = NULL;
    w->step.ref = NULL;
    assert_failed(ops_of(w)->create(w->engine, &w->step, &ref, &err), &err, cls, reason, text);
    assert_null(ref);
}

#define GITEA "'dependencies':{'secrets':[{'name':'gitea-repo-creds'}]}"

static inline void plan_gitea(struct world *w)
{
    put_object(w, &df_kube_secrets, "gitea-repo-creds",
               "{'username':'admin','password':'secret123'}");
    plan(w, "{" CONFIG "," GITEA "}");
}

static inline struct df_engine_observation observe(struct world *w)
{
    struct df_engine_observation o = {0};
    struct df_err err = {0};
    if (ops_of(w)->status(w->engine, &w->step, &o, &err) < 0)
        fail_msg("%s", err.message);
    return o;
}

static inline int release(struct world *w, struct df_err *err)
{
    return w->engine->ops->workflow->release(w->engine, &w->step, err);
}

static inline int clean(struct world *w, struct df_err *err)
{
    return ops_of(w)->cleanup(w->engine, &w->step, err);
}

#endif
