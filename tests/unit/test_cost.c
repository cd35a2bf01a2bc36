/* What a run asks of the API server: every request of the stores, counted. Its Jobs and Events are
 * not here: they are one Job a step and one Event a phase. */
#include "tests/unit/jwt_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/limits.h"
#include "tests/unit/control_loop.h"
#include "tests/unit/kube_memory.h"
#include "tests/unit/pod_tokens.h"

#define PROGRESS "{'timeline':[{'name':'initialized','at':'2026-01-01T00:00:00.000000Z'}]}"
#define FRAMES 5

struct cluster {
    struct kube_memory memory;
    struct kube_server server;
    struct df_kube *kube;
    struct world w;
};

static char group[] = "dayfly.dev";

static void open_world(struct cluster *c, const char *dir)
{
    struct df_err err = {0};
    DF_FREE char *blobs = df_fs_join(dir, "blobs");
    const struct df_blob_kube_options o = {
        .kube = c->kube, .name_space = "build", .directory = blobs};
    struct df_spawner *s = &c->w.s;
    world_configure(&c->w, dir);
    c->w.config.in_cluster = true;
    s->kube = c->kube;
    if (df_store_kube_open(c->kube, group, "build", &s->store, &err) < 0 ||
        df_store_kube_wait(s->store, &err) < 0 ||
        df_vault_kube_open(c->kube, "build", &s->vault, &err) < 0 ||
        df_blob_kube_open(&o, &s->blobs, &err) < 0 ||
        df_states_open(s->blobs, s->vault, &s->states, &err) < 0)
        fail_msg("open the world: %s", err.message);
    world_populate(&c->w);
    assert_int_equal(move_into_pods(&c->w), 0);
}

/* As kubectl would make it, before the service starts. */
static void apply(struct cluster *c, const char *plural, const char *text)
{
    DF_JSON cJSON *doc = json(text);
    DF_FREE char *target = df_strf("/apis/dayfly.dev/v1alpha1/namespaces/build/%s", plural);
    const struct kube_place p = kube_place_of(target);
    struct kube_reply a = {.bytes = DF_BUF_INIT(DF_MIB)};
    kube_create_object(&c->memory, &p, doc, &a);
    df_buf_free(&a.bytes);
}

#define DOC(kind, name, spec)                                                                      \
    "{'apiVersion':'dayfly.dev/v1alpha1','kind':'" kind "','metadata':{'name':'" name              \
    "'},'spec':{" spec "}}"

static int cluster_setup(void **state)
{
    void *dir = NULL;
    struct cluster *c = calloc(1, sizeof(*c));
    if (!c || enter_scratch(&dir) < 0)
        return -1;
    kube_memory_open(&c->memory, &c->server);
    c->kube = kube_client(&c->server);
    apply(c, "executors",
          DOC("Executor", "net", "'source':{'url':'file:///nowhere','kind':'directory'}"));
    apply(c, "runs",
          DOC("Run", "net-1",
              "'executorRef':{'name':'net'},'action':'provision','autoApprove':true"));
    open_world(c, dir);
    free(dir);
    *state = c;
    return 0;
}

static int cluster_teardown(void **state)
{
    struct cluster *c = *state;
    void *dir = strdup(c->w.dir);
    df_control_stop(c->w.s.control, false);
    world_close(&c->w);
    df_kube_free(c->kube);
    kube_memory_close(&c->memory, &c->server);
    free(c);
    return leave_scratch(&dir);
}

/* ---- a run ---- */

static void must(int result, const struct df_err *err)
{
    if (result < 0)
        fail_msg("%s", err->message);
}

static void write_log(const struct runner *r)
{
    struct df_err err = {0};
    int64_t end = 0;
    for (int i = 0; i < FRAMES; i++) {
        const struct df_frame frame = {DF_STREAM_LOG, end, "a line\n", 7};
        must(df_step_append(&r->w->s, r->uid, r->step_token, &frame, &end, &err), &err);
    }
}

static void report_progress(const struct runner *r)
{
    DF_JSON cJSON *body = json(PROGRESS);
    struct df_err err = {0};
    must(df_step_progress(&r->w->s, r->uid, r->step_token, body, &err), &err);
}

/* A file as an upload leaves it; the caller frees the path. */
static char *upload(const struct runner *r, const char *text)
{
    struct df_err err = {0};
    char *path = df_strf("%s/upload", df_blob_tmp_dir(r->w->s.blobs));
    must(df_fs_replace(path, text, strlen(text), 0600, &err), &err);
    return path;
}

static void get_plan(const struct runner *r)
{
    DF_CLOSE int fd = -1;
    struct df_err err = {0};
    int64_t size = 0;
    must(df_step_get_plan(&r->w->s, r->uid, r->step_token, &fd, &size, &err), &err);
}

static void write_state(const struct runner *r)
{
    struct df_err err = {0};
    struct df_states *states = r->w->s.states;
    DF_FREE char *uid = value_of(r->w, DF_KIND_TASK_ACTION, r->name, "spec.executorRef.uid");
    DF_FREE char *path = upload(r, "{\"version\":4,\"serial\":1,\"lineage\":\"L\","
                                   "\"outputs\":{\"a\":{\"value\":1}}}");
    DF_JSON cJSON *info = json("{'ID':'lock','Operation':'apply'}");
    const struct df_state_writer by = {.lock_id = "lock", .run = "net-1", .step_uid = r->uid};
    const struct df_state_unlocker owner = {.step_uid = r->uid};
    must(df_state_lock(states, uid, info, r->uid, NULL, &err), &err);
    must(df_state_put(states, uid, path, NULL, &by, &err), &err);
    must(df_state_unlock(states, uid, "lock", &owner, NULL, &err), &err);
}

/* As they are, because they hold no secret. */
static void show_outputs(const struct runner *r)
{
    struct df_err err = {0};
    DF_JSON cJSON *missing = NULL;
    must(df_step_get_shown(&r->w->s, r->uid, r->step_token, &missing, &err), &err);
    assert_int_equal(cJSON_GetArraySize(missing), 1);
    DF_FREE char *text = df_json_print(missing);
    DF_FREE char *path = upload(r, text);
    must(df_step_put_shown(&r->w->s, r->uid, r->step_token, path, &err), &err);
}

static void play_run(struct world *w)
{
    struct runner r = claim(w, "net-1-plan");
    report_progress(&r);
    write_log(&r);
    put_plan(&r, "net-1");
    report(&r, PLANNED);
    r = claim(w, "net-1-apply");
    get_plan(&r);
    report_progress(&r);
    write_log(&r);
    write_state(&r);
    show_outputs(&r);
    report(&r, APPLIED);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
    await_settled(w);
}

/* ---- what it asked for ---- */

/* docs/internals/cost.md says why each. A pass that comes late finds more news at once, and writes
 * less often. */
static const struct {
    const char *request;
    int least, most;
} asked[] = {
    {"PUT executors", 1, 1},
    {"PUT executors/status", 5, 5},
    {"POST revisions", 1, 1},
    {"PUT revisions/status", 1, 1},
    {"PUT runs", 1, 1},
    {"PUT runs/status", 4, 6},
    {"POST taskactions", 2, 2},
    {"PUT taskactions", 0, 0},
    {"PUT taskactions/status", 12, 12},
    {"POST audittrails", 1, 1},
    {"PUT audittrails", 2, 2},
    {"POST secrets(logs)", 2, 2},
    {"GET secrets(logs)", 0, 0},
    {"PUT secrets(logs)", 2 * (FRAMES - 1), 2 * (FRAMES - 1)},
    {"POST secrets(plans)", 1, 1},
    {"GET secrets(plans)", 1, 1},
    {"DELETE secrets(plans)", 1, 1},
    {"POST secrets(state)", 2, 2},
    {"PUT secrets(state)", 0, 0},
    {"DELETE secrets(state)", 1, 1},
    {"GET secrets(state)", 3, 3},
    {"POST secrets(shown)", 2, 2},
    {"GET secrets(shown)", 0, 0},
    {"GET secrets", 7, 7},  /* what is not there; two at the start */
    {"LIST secrets", 9, 9}, /* six at the start: one is that for personal tokens */
    {"POST configmaps", 0, 0},
};

/* The last request of a run: nobody waits for it. */
static void await_plan_removed(struct cluster *c)
{
    (void)pthread_mutex_lock(&c->server.lock);
    while (!cJSON_GetObjectItemCaseSensitive(c->memory.counts, "DELETE secrets(plans)"))
        (void)pthread_cond_wait(&c->server.changed, &c->server.lock);
    (void)pthread_mutex_unlock(&c->server.lock);
}

static void a_run_asks_for_what_the_page_about_cost_says_and_no_more(void **state)
{
    struct cluster *c = *state;
    start(&c->w);
    play_run(&c->w);
    await_plan_removed(c);
    (void)pthread_mutex_lock(&c->server.lock);
    DF_JSON cJSON *counts = cJSON_Duplicate(c->memory.counts, true);
    (void)pthread_mutex_unlock(&c->server.lock);
    DF_FREE char *all = cJSON_Print(counts);
    for (size_t i = 0; i < DF_ARRAY_SIZE(asked); i++) {
        const cJSON *n = cJSON_GetObjectItemCaseSensitive(counts, asked[i].request);
        int found = n ? n->valueint : 0;
        if (found < asked[i].least || found > asked[i].most)
            fail_msg("%s: %d, not %d to %d: %s", asked[i].request, found, asked[i].least,
                     asked[i].most, all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_run_asks_for_what_the_page_about_cost_says_and_no_more,
                                        cluster_setup, cluster_teardown),
    };
    return cmocka_run_group_tests_name("cost", tests, make_keys, free_keys);
}
