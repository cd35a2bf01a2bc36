/*
 * control_world.h - a spawner without API and without processes: real store, vault, blobs and
 * states in a scratch directory, and an engine that does what the test says. The test plays the
 * runners. Include behind cmocka.h.
 */
#ifndef DF_TEST_CONTROL_WORLD_H
#define DF_TEST_CONTROL_WORLD_H

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>

#include "common/base/clock.h"
#include "common/bundle/bundle.h"
#include "common/crypto/crypto.h"
#include "spawner/control/control.h"
#include "spawner/identity/claim.h"
#include "spawner/identity/personal.h"
#include "spawner/journal/journal.h"
#include "spawner/journal/transitions.h"
#include "spawner/model/shared_pod.h"
#include "spawner/requests/new_docs.h"
#include "spawner/requests/requests.h"
#include "spawner/steps/steps.h"
#include "spawner/steps/waits.h"
#include "tests/unit/json_words.h"
#include "tests/unit/scratch.h"

/* ---- the engine ---- */

#define FAKE_STEPS 64

struct fake_step {
    char name[64], uid[40], token[65];
    struct df_engine_observation seen;
    char *result; /* JSON, or NULL; owned */
    char *log;    /* path of a log that was not handed over, or NULL; owned */
    char *state;  /* the same of an errored.tfstate */
    int creates, starts, cancels, cleanups;
    bool is_deleted; /* at the last cleanup(): its document goes, too */
    int state_looks; /* how often somebody asked for `state` */
    /* What a workflow has printed: names of parts and their texts, borrowed; the last one grows. */
    const char *parts[4][2];
};

struct fake_engine {
    struct df_engine engine;
    struct df_engine_kind kind;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct df_spawner *s;
    struct fake_step steps[FAKE_STEPS];
    size_t count;
    struct df_err create_error; /* cls != NONE: create() fails with it */
    struct df_err status_error; /* the same of status() */
    int unanswered;             /* how often status() failed */
    struct df_err pod_error;    /* the same of check_pod() */
    struct df_err output_error; /* the same of output(), behind the first part */
};

static struct fake_step *fake_find(struct fake_engine *f, const char *name)
{
    for (size_t i = 0; i < f->count; i++)
        if (df_streq(f->steps[i].name, name))
            return &f->steps[i];
    if (f->count == FAKE_STEPS)
        DF_BUG("too many steps");
    struct fake_step *s = &f->steps[f->count++];
    (void)snprintf(s->name, sizeof(s->name), "%s", name);
    s->seen = (struct df_engine_observation){.phase = DF_ENGINE_ABSENT, .exit_code = -1};
    return s;
}

static struct fake_engine *fake_of(struct df_engine *e)
{
    return (struct fake_engine *)(void *)e;
}

/* The entry of the step's resources: its own, or those of the step whose pod it shares. */
static struct fake_step *fake_resources(struct fake_engine *f, const struct df_engine_step *step)
{
    bool is_shared = df_shared_pod_host_of(step->ref) != NULL;
    return fake_find(f, is_shared ? df_json_str(step->ref, "name") : step->name);
}

static int fake_create(struct df_engine *e, const struct df_engine_step *step, cJSON **ret,
                       struct df_err *err)
{
    struct fake_engine *f = fake_of(e);
    (void)pthread_mutex_lock(&f->lock);
    struct fake_step *s = fake_find(f, step->name);
    struct df_err why = f->create_error;
    bool fails = why.cls != DF_ERR_NONE;
    s->creates++;
    if (!fails && s->seen.phase != DF_ENGINE_RUNNING) {
        (void)snprintf(s->uid, sizeof(s->uid), "%s", step->uid);
        (void)snprintf(s->token, sizeof(s->token), "%s",
                       step->runner.claim_token ? step->runner.claim_token : "");
        s->starts++;
        s->seen.phase = DF_ENGINE_RUNNING;
        s->seen.since_us = df_real_us();
    }
    (void)pthread_cond_broadcast(&f->changed);
    (void)pthread_mutex_unlock(&f->lock);
    if (fails) {
        *err = why;
        return -1;
    }
    *ret = cJSON_CreateObject();
    return df_json_add_str(*ret, "kind", "local", err) < 0 ||
                   df_json_add_str(*ret, "name", step->name, err) < 0
               ? -1
               : df_json_add_str(*ret, "uid", step->uid, err);
}

static int fake_status(struct df_engine *e, const struct df_engine_step *step,
                       struct df_engine_observation *ret, struct df_err *err)
{
    struct fake_engine *f = fake_of(e);
    (void)pthread_mutex_lock(&f->lock);
    struct df_err why = f->status_error;
    if (why.cls == DF_ERR_NONE)
        *ret = fake_resources(f, step)->seen;
    else
        f->unanswered++;
    (void)pthread_cond_broadcast(&f->changed);
    (void)pthread_mutex_unlock(&f->lock);
    if (why.cls == DF_ERR_NONE)
        return 0;
    *err = why;
    return -1;
}

static int fake_result(struct df_engine *e, const struct df_engine_step *step, cJSON **ret,
                       struct df_err *err)
{
    struct fake_engine *f = fake_of(e);
    (void)pthread_mutex_lock(&f->lock);
    const char *text = fake_resources(f, step)->result;
    int result = text ? df_json_parse(text, strlen(text), ret, err)
                      : df_fail(err, DF_ERR_NOT_FOUND, "no result");
    (void)pthread_mutex_unlock(&f->lock);
    return result;
}

static int fake_leftover(struct df_engine *e, const struct df_engine_step *step, const char *name,
                         char **ret, struct df_err *err)
{
    struct fake_engine *f = fake_of(e);
    (void)pthread_mutex_lock(&f->lock);
    struct fake_step *s = fake_find(f, step->name);
    const char *path = df_streq(name, "log") ? s->log : df_streq(name, "events") ? NULL : s->state;
    *ret = path ? strdup(path) : NULL;
    s->state_looks += path == s->state;
    (void)pthread_cond_broadcast(&f->changed);
    (void)pthread_mutex_unlock(&f->lock);
    return *ret ? 0 : df_fail(err, DF_ERR_NOT_FOUND, "nothing left");
}

static int fake_cancel(struct df_engine *e, const struct df_engine_step *step, struct df_err *err)
{
    (void)err;
    struct fake_engine *f = fake_of(e);
    (void)pthread_mutex_lock(&f->lock);
    fake_resources(f, step)->cancels++;
    (void)pthread_cond_broadcast(&f->changed);
    (void)pthread_mutex_unlock(&f->lock);
    return 0;
}

static int fake_cleanup(struct df_engine *e, const struct df_engine_step *step, struct df_err *err)
{
    (void)err;
    struct fake_engine *f = fake_of(e);
    (void)pthread_mutex_lock(&f->lock);
    struct fake_step *s = fake_find(f, step->name);
    s->cleanups++;
    s->is_deleted = step->is_deleted;
    if (!df_shared_pod_host_of(step->ref)) {
        s->seen.phase = DF_ENGINE_ABSENT;
        s->seen.has_result = false;
        free(s->result); /* it is gone with the pod */
        s->result = NULL;
    }
    (void)pthread_mutex_unlock(&f->lock);
    return 0;
}

static int fake_check_pod(struct df_engine *e, const struct df_engine_step *step,
                          const struct df_engine_pod *pod, struct df_err *err)
{
    struct fake_engine *f = fake_of(e);
    (void)step;
    (void)pod;
    (void)pthread_mutex_lock(&f->lock);
    struct df_err why = f->pod_error;
    (void)pthread_mutex_unlock(&f->lock);
    if (why.cls == DF_ERR_NONE)
        return 0;
    *err = why;
    return -1;
}

static void fake_close(struct df_engine *e)
{
    struct fake_engine *f = fake_of(e);
    for (size_t i = 0; i < f->count; i++) {
        free(f->steps[i].result);
        free(f->steps[i].log);
        free(f->steps[i].state);
    }
    (void)pthread_mutex_destroy(&f->lock);
    (void)pthread_cond_destroy(&f->changed);
}

static int fake_output(struct df_engine *e, const struct df_engine_step *step,
                       const struct df_output_reader *to, struct df_err *err)
{
    struct fake_engine *f = fake_of(e);
    (void)pthread_mutex_lock(&f->lock);
    const struct fake_step s = *fake_find(f, step->name);
    struct df_err why = f->output_error;
    (void)pthread_mutex_unlock(&f->lock);
    for (size_t i = 0; i < DF_ARRAY_SIZE(s.parts) && s.parts[i][0]; i++) {
        int known = to->begin(to->arg, s.parts[i][0], err);
        if (known < 0 ||
            (!known && to->add(to->arg, s.parts[i][1], strlen(s.parts[i][1]), err) < 0))
            return -1;
        if (why.cls != DF_ERR_NONE)
            return df_err_pass(err, &why);
    }
    return 0;
}

#define FAKE_STEP_OPS                                                                              \
    {                                                                                              \
        .create = fake_create, .status = fake_status, .result = fake_result,                       \
        .cancel = fake_cancel, .cleanup = fake_cleanup                                             \
    }

static const struct df_runner_ops fake_runner = {
    .step = FAKE_STEP_OPS, .leftover = fake_leftover, .check_pod = fake_check_pod};
static const struct df_workflow_ops fake_workflow = {.step = FAKE_STEP_OPS, .output = fake_output};

static const struct df_engine_ops fake_ops = {.close = fake_close, .runner = &fake_runner};

/* ---- the world ---- */

struct world;
typedef int (*world_claim)(struct world *w, const struct fake_step *s, const char *body,
                           cJSON **ret, struct df_err *err);

struct world {
    struct df_spawner s;
    struct df_subscription all; /* to every document */
    struct df_config config;
    struct fake_engine engine;
    world_claim claim; /* NULL: a runner claims with the claim token of its step */
    char *dir;
};

static char config_engine[] = "local";
static char server_url[] = "http://127.0.0.1:8030";

static inline void world_configure(struct world *w, const char *dir)
{
    *w = (struct world){.dir = strdup(dir)};
    w->config = (struct df_config){.engine = config_engine,
                                   .workers = 3,
                                   .limit_steps = 8,
                                   .limit_per_namespace = 10000,
                                   .timeout_plan_s = 3600,
                                   .timeout_apply_s = 3600,
                                   .timeout_grace_s = 900,
                                   .timeout_pending_s = 120,
                                   .plan_life_s = 3600};
    w->s.config = &w->config;
    w->s.server_url = server_url;
}

/* When its store, vault, blobs and states are open. */
static inline void world_populate(struct world *w)
{
    w->engine.kind = df_engine_kinds[DF_ENGINE_LOCAL];
    w->engine.engine = (struct df_engine){.ops = &fake_ops, .kind = &w->engine.kind};
    w->engine.s = &w->s;
    (void)pthread_mutex_init(&w->engine.lock, NULL);
    (void)pthread_cond_init(&w->engine.changed, NULL);
    assert_int_equal(df_engine_register(&w->s.engines, &w->engine.engine, NULL), 0);
    assert_int_equal(df_journal_new(w->s.store, &w->s.journal, NULL), 0);
    df_subscribe(w->s.journal, &w->all, NULL, 0, false);
    assert_int_equal(df_control_new(&w->s, &w->s.control, NULL), 0);
    assert_int_equal(df_personal_new(w->s.vault, &w->s.personal, NULL), 0);
}

static inline void world_open(struct world *w, const char *dir)
{
    struct df_err err = {0};
    world_configure(w, dir);
    DF_FREE char *db = df_fs_join(dir, "dayfly.db");
    DF_FREE char *key = df_fs_join(dir, "key");
    DF_FREE char *blobs = df_fs_join(dir, "blobs");
    if (df_store_sqlite_open(db, &w->s.store, &err) < 0 ||
        df_vault_open(db, key, &w->s.vault, &err) < 0 ||
        df_blob_open(blobs, &w->s.blobs, &err) < 0 ||
        df_states_open(w->s.blobs, w->s.vault, &w->s.states, &err) < 0)
        fail_msg("open the world: %s", err.message);
    world_populate(w);
}

/* Take the mark, read, and wait: no change of a document is missed in between. */
static inline uint64_t changes_mark(struct world *w)
{
    return df_subscription_mark(w->s.journal, &w->all);
}

static inline void wait_for_change(struct world *w, uint64_t mark)
{
    df_subscription_wait(w->s.journal, &w->all, mark, 1000);
}

static void world_close(struct world *w)
{
    df_engine_registry_close(&w->s.engines);
    df_control_free(w->s.control);
    df_unsubscribe(w->s.journal, &w->all);
    df_journal_free(w->s.journal);
    df_states_close(w->s.states);
    df_blob_close(w->s.blobs);
    df_personal_free(w->s.personal);
    df_vault_close(w->s.vault);
    df_store_close(w->s.store);
    df_claims_free(w->s.claims);
    df_memory_free(&w->s.memory);
    free(w->dir);
}

/* How many memories of this kind there are. */
static inline size_t memories(struct world *w, enum df_memory_of of)
{
    (void)pthread_mutex_lock(&w->s.memory.lock);
    size_t n = w->s.memory.counts[of];
    (void)pthread_mutex_unlock(&w->s.memory.lock);
    return n;
}

/* A world for one test, in a scratch directory of its own; its loop is not started. */
static inline int world_setup(void **state)
{
    void *dir = NULL;
    struct world *w = malloc(sizeof(*w));
    if (!w || enter_scratch(&dir) < 0)
        return -1;
    world_open(w, dir);
    free(dir);
    *state = w;
    return 0;
}

static inline int world_teardown(void **state)
{
    struct world *w = *state;
    void *dir = strdup(w->dir);
    df_control_stop(w->s.control, false);
    world_close(w);
    free(w);
    return leave_scratch(&dir);
}

/* An Executor as the API would store it. spec: JSON members besides the source, or "". */
static inline void make_executor(struct world *w, const char *name, const char *spec)
{
    DF_FREE char *text = df_strf("{'apiVersion':'dayfly.dev/v1alpha1','kind':'Executor',"
                                 "'metadata':{'name':'%s'},'spec':{'source':{'url':"
                                 "'file:///nowhere','kind':'directory'}%s%s}}",
                                 name, *spec ? "," : "", spec);
    DF_JSON cJSON *doc = json(text);
    struct df_err err = {0};
    if (df_new_executor_status(doc, "tester", &err) < 0 ||
        df_store_create(w->s.store, DF_KIND_EXECUTOR, doc, NULL, &err) < 0)
        fail_msg("%s", err.message);
}

/* Creates a run and returns its document. */
static inline cJSON *make_run(struct world *w, const char *executor, const char *body)
{
    DF_JSON cJSON *request = json(body);
    cJSON *run = NULL;
    struct df_err err = {0};
    if (df_request_create_run(
            &w->s, executor,
            &(struct df_run_request){request, NULL, {DF_VERBS_ADMIN, DF_ROLE_ADMIN}, "tester"},
            &run, &err) < 0)
        fail_msg("%s", err.message);
    return run;
}

static cJSON *get(struct world *w, enum df_kind kind, const char *name)
{
    cJSON *doc = NULL;
    struct df_err err = {0};
    if (df_store_get(w->s.store, kind, name, &doc, &err) < 0 && err.cls != DF_ERR_NOT_FOUND)
        fail_msg("%s", err.message);
    return doc;
}

/* The value at a path of a document, as text; "" when there is none. The caller frees. */
static char *value_of(struct world *w, enum df_kind kind, const char *name, const char *path)
{
    DF_JSON cJSON *doc = get(w, kind, name);
    const cJSON *item = df_json_at(doc, path);
    if (cJSON_IsString(item))
        return strdup(item->valuestring);
    return item ? df_json_print(item) : strdup("");
}

#define assert_value(w, kind, name, path, expected)                                                \
    do {                                                                                           \
        char *found_ = value_of(w, kind, name, path);                                              \
        assert_string_equal(found_, expected);                                                     \
        free(found_);                                                                              \
    } while (0)

/* Waits until a document says so; tests/run ends what never comes. */
static inline void await_value(struct world *w, enum df_kind kind, const char *name,
                               const char *path, const char *expected)
{
    for (;;) {
        uint64_t mark = changes_mark(w);
        DF_FREE char *found = value_of(w, kind, name, path);
        if (df_streq(found, expected))
            return;
        wait_for_change(w, mark);
    }
}

/* Until the step's document has the reference to what the engine made for this attempt. Nobody has
 * to wait until it is due. */
static inline void await_ref(struct world *w, const char *step)
{
    for (bool has_ref = false; !has_ref;) {
        (void)!df_task_write_ref(&w->s, step, NULL);
        DF_JSON cJSON *task = get(w, DF_KIND_TASK_ACTION, step);
        has_ref = df_streq(df_json_str(task, "status.engineRef.name"), step) &&
                  !df_json_bool(task, "status.engineRef.lost", false);
        if (!has_ref)
            (void)sched_yield();
    }
}

/* ---- playing the runner ---- */

#define CLAIM_A "{'claimId':'00000000000000000000000000000aaa','host':'h','pid':7}"
#define CLAIM_B "{'claimId':'00000000000000000000000000000bbb','host':'h','pid':8}"

/* ---- what the engine has ----
 * The test looks at it and changes it under its lock: the workers of the control do so too. */

static inline void lock(struct world *w)
{
    (void)pthread_mutex_lock(&w->engine.lock);
}

/* What the test has changed is seen. */
static inline void unlock(struct world *w)
{
    (void)pthread_cond_broadcast(&w->engine.changed);
    (void)pthread_mutex_unlock(&w->engine.lock);
}

/* Waits until it is true; it is about what the lock of the engine guards. */
#define await_true(w, condition)                                                                   \
    do {                                                                                           \
        lock(w);                                                                                   \
        while (!(condition))                                                                       \
            (void)pthread_cond_wait(&(w)->engine.changed, &(w)->engine.lock);                      \
        unlock(w);                                                                                 \
    } while (0)

/* A copy of its entry; what it points to may change. */
static inline struct fake_step fake_look(struct world *w, const char *step)
{
    lock(w);
    struct fake_step s = *fake_find(&w->engine, step);
    unlock(w);
    return s;
}

static inline void await_cancel(struct world *w, const char *step)
{
    await_true(w, fake_find(&w->engine, step)->cancels > 0);
}

/* Its resources are gone. */
static inline void set_gone(struct world *w, const char *step)
{
    lock(w);
    fake_find(&w->engine, step)->seen.is_gone = true;
    unlock(w);
    df_control_notify(w->s.control, step);
}

/* Waits until the engine was asked to start the step; returns its entry. */
static struct fake_step *await_start(struct world *w, const char *name)
{
    struct fake_engine *f = &w->engine;
    (void)pthread_mutex_lock(&f->lock);
    struct fake_step *s;
    while ((s = fake_find(f, name))->seen.phase != DF_ENGINE_RUNNING)
        (void)pthread_cond_wait(&f->changed, &f->lock);
    (void)pthread_mutex_unlock(&f->lock);
    return s;
}

/* Waits until the engine was asked so often. */
static inline void await_creates(struct world *w, const char *name, int times)
{
    struct fake_engine *f = &w->engine;
    (void)pthread_mutex_lock(&f->lock);
    while (fake_find(f, name)->creates < times)
        (void)pthread_cond_wait(&f->changed, &f->lock);
    (void)pthread_mutex_unlock(&f->lock);
}

struct runner {
    struct world *w;
    char name[64], uid[40], action[32], step_token[65], state_password[65];
    bool lists_changes; /* its document asks for them */
};

static int try_claim(struct world *w, const struct fake_step *s, const char *body, cJSON **ret,
                     struct df_err *err)
{
    DF_JSON cJSON *request = json(body);
    return df_step_claim(&w->s, s->uid, s->token, request, ret, err);
}

/* As the runners of this world do. */
static int try_claim_here(struct world *w, const struct fake_step *s, cJSON **ret,
                          struct df_err *err)
{
    return (w->claim ? w->claim : try_claim)(w, s, CLAIM_A, ret, err);
}

static struct runner runner_of(struct world *w, const struct fake_step *s, const cJSON *doc)
{
    struct runner r = {.w = w};
    const char *password = df_json_str(doc, "state.password");
    (void)snprintf(r.name, sizeof(r.name), "%s", s->name);
    (void)snprintf(r.uid, sizeof(r.uid), "%s", s->uid);
    r.lists_changes = df_json_bool(doc, "listsChanges", false);
    (void)snprintf(r.action, sizeof(r.action), "%s", df_json_str(doc, "action"));
    (void)snprintf(r.step_token, sizeof(r.step_token), "%s", df_json_str(doc, "stepToken"));
    (void)snprintf(r.state_password, sizeof(r.state_password), "%s", password ? password : "");
    return r;
}

static struct runner claim(struct world *w, const char *name)
{
    struct fake_step *s = await_start(w, name);
    cJSON *doc = NULL;
    struct df_err err = {0};
    if (try_claim_here(w, s, &doc, &err) < 0)
        fail_msg("claim of %s: %s", name, err.message);
    struct runner r = runner_of(w, s, doc);
    df_json_wipe(doc);
    return r;
}

/* A bundle in the blobs' tmp dir, as a runner uploads it. The caller frees the path. */
static char *make_bundle(const struct runner *r, const char *run, const char *plan_text)
{
    struct df_err err = {0};
    const char *tmp = df_blob_tmp_dir(r->w->s.blobs);
    DF_FREE char *plan = df_strf("%s/plan-file", tmp);
    char *path = df_strf("%s/bundle-%s", tmp, r->uid);
    DF_FREE char *header_text =
        df_strf("{'run':'%s','step':'%s','action':'%s'}", run, r->uid, r->action);
    DF_JSON cJSON *header = json(header_text);
    const struct df_bundle_part parts[] = {{.name = "plan", .path = plan}};
    DF_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || df_fs_replace(plan, plan_text, strlen(plan_text), 0600, &err) < 0 ||
        df_bundle_write(fd, header, parts, 1, &err) < 0)
        fail_msg("bundle: %s", err.message);
    assert_int_equal(unlink(plan), 0);
    return path;
}

static void put_plan(const struct runner *r, const char *run)
{
    DF_FREE char *path = make_bundle(r, run, "the plan");
    struct df_err err = {0};
    if (df_step_put_plan(&r->w->s, r->uid, r->step_token, path, &err) < 0)
        fail_msg("put plan: %s", err.message);
}

static int try_result(const struct runner *r, const char *body, struct df_err *err)
{
    DF_JSON cJSON *result = json(body);
    return df_step_result(&r->w->s, r->uid, r->step_token, result, err);
}

/* The processes of a step are gone, and the engine says so. */
static void end_processes(struct world *w, const char *name, int exit_code, const char *cause)
{
    (void)pthread_mutex_lock(&w->engine.lock);
    struct fake_step *s = fake_find(&w->engine, name);
    s->seen.phase = DF_ENGINE_ENDED;
    s->seen.exit_code = exit_code;
    s->seen.has_result = s->result != NULL;
    (void)snprintf(s->seen.cause, sizeof(s->seen.cause), "%s", cause);
    (void)pthread_mutex_unlock(&w->engine.lock);
    df_control_notify(w->s.control, name);
}

static void report(const struct runner *r, const char *body)
{
    struct df_err err = {0};
    if (try_result(r, body, &err) < 0)
        fail_msg("result of %s: %s", r->name, err.message);
    end_processes(r->w, r->name, 0, "exited with code 0");
}

#define PLANNED                                                                                    \
    "{'exitCode':0,'reason':'Planned','hasChanges':true,'planSummary':{'add':1,"                   \
    "'change':0,'destroy':0,'import':0}}"
#define NOTHING_TO_DO "{'exitCode':0,'reason':'NoChanges','hasChanges':false}"
#define APPLIED "{'exitCode':0,'reason':'Applied'}"

/* As POST /v1/runs/{name}/approve or …/discard. */
static inline int decide(struct world *w, const char *run, bool approves, df_verbs verbs,
                         const char *actor, struct df_err *err)
{
    const struct df_decision d = {
        .approves = approves, .verbs = verbs, .actor = actor, .role = df_verbs_role(verbs)};
    return df_request_decide(&w->s, run, &d, NULL, err);
}

static inline void play_plan(struct world *w, const char *run, const char *step)
{
    struct runner r = claim(w, step);
    put_plan(&r, run);
    report(&r, PLANNED);
}

#endif
