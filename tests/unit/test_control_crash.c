/* The control loop of a spawner that dies. */
#include "tests/unit/jwt_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/pod_tokens.h"

#include "tests/unit/control_loop.h"

/* ---- a spawner that dies at every write ---- */

enum { ALIVE = INT32_MAX };

/* A store that stops answering before or after the n-th write, as a killed process does. */
struct mortal {
    struct df_store base;
    struct df_store *real;
    pthread_mutex_t lock;
    int writes_left;
    bool before; /* dies before the write, or after it */
    bool dead;
};

static struct mortal *mortal_of(struct df_store *s)
{
    return (struct mortal *)(void *)s;
}

static int dead(struct df_err *err)
{
    return df_fail(err, DF_ERR_SYSTEM, "the spawner is dead");
}

/* 0: go on; 1: die after the write; -1: dead. */
static int fate(struct mortal *m)
{
    (void)pthread_mutex_lock(&m->lock);
    bool last = !m->dead && m->writes_left != ALIVE && m->writes_left-- == 0;
    bool was_dead = m->dead;
    m->dead = m->dead || last;
    (void)pthread_mutex_unlock(&m->lock);
    if (was_dead || (last && m->before))
        return -1;
    return last;
}

static bool is_dead(struct mortal *m)
{
    (void)pthread_mutex_lock(&m->lock);
    bool d = m->dead;
    (void)pthread_mutex_unlock(&m->lock);
    return d;
}

typedef int (*store_write)(struct df_store *s, enum df_kind kind, const cJSON *doc, cJSON **ret,
                           struct df_err *err);

/* It dies before the write, or behind it: then it was done and nobody heard. */
static int mortal_write(struct df_store *s, store_write write, enum df_kind kind, const cJSON *doc,
                        cJSON **ret, struct df_err *err)
{
    struct mortal *m = mortal_of(s);
    int f = fate(m);
    if (f < 0)
        return dead(err);
    if (f == 0)
        return write(m->real, kind, doc, ret, err);
    (void)write(m->real, kind, doc, NULL, NULL);
    return dead(err);
}

static int mortal_create(struct df_store *s, enum df_kind kind, const cJSON *doc, cJSON **ret,
                         struct df_err *err)
{
    return mortal_write(s, df_store_create, kind, doc, ret, err);
}

static int mortal_update(struct df_store *s, enum df_kind kind, const cJSON *doc, cJSON **ret,
                         struct df_err *err)
{
    return mortal_write(s, df_store_update, kind, doc, ret, err);
}

static int mortal_look(struct df_store *s, enum df_kind kind, const char *name, const cJSON **ret,
                       struct df_err *err)
{
    struct mortal *m = mortal_of(s);
    return is_dead(m) ? dead(err) : df_store_look(m->real, kind, name, ret, err);
}

static int mortal_look_by_uid(struct df_store *s, enum df_kind kind, const char *uid,
                              const cJSON **ret, struct df_err *err)
{
    struct mortal *m = mortal_of(s);
    return is_dead(m) ? dead(err) : df_store_look_by_uid(m->real, kind, uid, ret, err);
}

static int mortal_list(struct df_store *s, enum df_kind kind, const struct df_store_list_options *o,
                       cJSON **ret, char **ret_cursor, struct df_err *err)
{
    struct mortal *m = mortal_of(s);
    return is_dead(m) ? dead(err) : df_store_list(m->real, kind, o, ret, ret_cursor, err);
}

static int mortal_count(struct df_store *s, enum df_kind kind, const char *label, int64_t *ret,
                        struct df_err *err)
{
    struct mortal *m = mortal_of(s);
    return is_dead(m) ? dead(err) : df_store_count(m->real, kind, label, ret, err);
}

static int mortal_names(struct df_store *s, enum df_kind kind, const char *label,
                        struct df_strs *to, struct df_err *err)
{
    struct mortal *m = mortal_of(s);
    return is_dead(m) ? dead(err) : df_store_names(m->real, kind, label, to, err);
}

static int mortal_audit(struct df_store *s, const cJSON *entry, struct df_err *err)
{
    struct mortal *m = mortal_of(s);
    int f = fate(m);
    if (f < 0)
        return dead(err);
    int result = df_store_audit(m->real, entry, err);
    return f == 0 ? result : dead(err);
}

static int mortal_audit_list(struct df_store *s, const struct df_audit_filter *filter,
                             const char *cursor, int limit, cJSON **ret, char **ret_cursor,
                             struct df_err *err)
{
    struct mortal *m = mortal_of(s);
    return is_dead(m) ? dead(err)
                      : df_store_audit_list(m->real, filter, cursor, limit, ret, ret_cursor, err);
}

static int mortal_watch(struct df_store *s, df_store_watcher fn, void *arg, struct df_err *err)
{
    return df_store_watch(mortal_of(s)->real, fn, arg, err);
}

static void mortal_unwatch(struct df_store *s, df_store_watcher fn, void *arg)
{
    df_store_unwatch(mortal_of(s)->real, fn, arg);
}

static const struct df_store_ops mortal_ops = {.create = mortal_create,
                                               .update = mortal_update,
                                               .look = mortal_look,
                                               .look_by_uid = mortal_look_by_uid,
                                               .list = mortal_list,
                                               .count = mortal_count,
                                               .names = mortal_names,
                                               .audit = mortal_audit,
                                               .audit_list = mortal_audit_list,
                                               .watch = mortal_watch,
                                               .unwatch = mortal_unwatch};

/* A new spawner over what the dead one left. */
static void restart(struct world *w, struct mortal *m)
{
    df_control_stop(w->s.control, false);
    df_control_free(w->s.control);
    m->dead = false;
    m->writes_left = ALIVE;
    assert_int_equal(df_control_new(&w->s, &w->s.control, NULL), 0);
    start(w);
}

/* What a runner does until it works: its spawner may be dead for a while. */
typedef int (*attempt)(struct world *w, struct runner *r, struct df_err *err);

static void persist(struct world *w, struct mortal *m, attempt what, struct runner *r)
{
    for (;;) {
        struct df_err err = {0};
        if (is_dead(m))
            restart(w, m);
        if (what(w, r, &err) == 0)
            return;
        if (!is_dead(m) && err.cls != DF_ERR_RETRY)
            fail_msg("%s: %s", r->name, err.message);
    }
}

static int attempt_claim(struct world *w, struct runner *r, struct df_err *err)
{
    (void)pthread_mutex_lock(&w->engine.lock);
    struct fake_step s = *fake_find(&w->engine, r->name);
    (void)pthread_mutex_unlock(&w->engine.lock);
    if (s.seen.phase != DF_ENGINE_RUNNING) {
        (void)usleep(500);
        return df_fail(err, DF_ERR_RETRY, "not started yet");
    }
    cJSON *doc = NULL;
    if (try_claim_here(w, &s, &doc, err) < 0)
        return -1;
    *r = runner_of(w, &s, doc);
    df_json_wipe(doc);
    return 0;
}

static int attempt_put(struct world *w, struct runner *r, struct df_err *err)
{
    DF_FREE char *run = strndup(r->name, strlen("net-1"));
    DF_FREE char *path = make_bundle(r, run, "the plan");
    return df_step_put_plan(&w->s, r->uid, r->step_token, path, err);
}

static int attempt_get(struct world *w, struct runner *r, struct df_err *err)
{
    DF_CLOSE int fd = -1;
    int64_t size;
    return df_step_get_plan(&w->s, r->uid, r->step_token, &fd, &size, err);
}

static int attempt_planned(struct world *w, struct runner *r, struct df_err *err)
{
    (void)w;
    return try_result(r, PLANNED, err);
}

static int attempt_applied(struct world *w, struct runner *r, struct df_err *err)
{
    (void)w;
    return try_result(r, APPLIED, err);
}

static int attempt_settled(struct world *w, struct runner *r, struct df_err *err)
{
    (void)r;
    DF_JSON cJSON *run_doc = NULL, *step = NULL, *executor = NULL;
    if (df_store_get(w->s.store, DF_KIND_RUN, "net-1", &run_doc, err) < 0 ||
        df_store_get(w->s.store, DF_KIND_EXECUTOR, "net", &executor, err) < 0)
        return -1;
    if (df_run_is_final(run_doc) && !df_json_str(executor, "status.activeRun") &&
        df_store_get(w->s.store, DF_KIND_TASK_ACTION, "net-1-apply", &step, err) == 0 &&
        !cJSON_GetObjectItemCaseSensitive(df_json_at(step, "metadata.labels"),
                                          "dayfly.dev/unfinished"))
        return 0;
    (void)usleep(500);
    return df_fail(err, DF_ERR_RETRY, "not settled yet");
}

static void play_step(struct world *w, struct mortal *m, const char *name, attempt artifact,
                      attempt result)
{
    struct runner r = {.w = w};
    (void)snprintf(r.name, sizeof(r.name), "%s", name);
    persist(w, m, attempt_claim, &r);
    persist(w, m, artifact, &r);
    persist(w, m, result, &r);
    end_processes(w, name, 0, "exited with code 0");
}

/* Dies at the n-th write from here on. */
static void begin_to_die(struct world *w, struct mortal *m, int n, bool before)
{
    *m = (struct mortal){.base = {&mortal_ops}, .real = w->s.store, .writes_left = ALIVE};
    (void)pthread_mutex_init(&m->lock, NULL);
    df_control_free(w->s.control);
    w->s.store = &m->base;
    assert_int_equal(df_control_new(&w->s, &w->s.control, NULL), 0);
    m->writes_left = n;
    m->before = before;
    start(w);
}

/* The death may come behind all that was awaited: what is true is in the real store. False: it did
 * not come. */
static bool has_died(struct world *w, struct mortal *m)
{
    df_control_stop(w->s.control, false);
    df_control_free(w->s.control);
    bool died = m->dead || m->writes_left == ALIVE;
    w->s.store = m->real;
    assert_int_equal(df_control_new(&w->s, &w->s.control, NULL), 0);
    return died;
}

static void end_world(struct world *w, struct mortal *m)
{
    for (size_t i = 0; i < w->engine.count; i++)
        assert_int_equal(w->engine.steps[i].starts, 1); /* each runner once */
    world_close(w);
    (void)pthread_mutex_destroy(&m->lock);
}

/* A whole provision with one death. False: it did not come to the n-th write any more. */
static bool provision_with_death(const char *dir, int n, bool before, bool in_pods)
{
    struct world w;
    struct mortal m;
    world_open(&w, dir);
    if (in_pods)
        assert_int_equal(move_into_pods(&w), 0);
    make_executor(&w, "net", "");
    run(&w, "net", AUTO);
    begin_to_die(&w, &m, n, before);
    play_step(&w, &m, "net-1-plan", attempt_put, attempt_planned);
    play_step(&w, &m, "net-1-apply", attempt_get, attempt_applied);
    struct runner none = {.w = &w};
    persist(&w, &m, attempt_settled, &none);
    bool died = has_died(&w, &m);
    assert_value(&w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
    assert_value(&w, DF_KIND_EXECUTOR, "net", "status.state", "provisioned");
    assert_value(&w, DF_KIND_EXECUTOR, "net", "status.status", "done");
    assert_value(&w, DF_KIND_EXECUTOR, "net", "status.activeRun", "");
    end_world(&w, &m);
    return died;
}

static int attempt_both_stand(struct world *w, struct runner *r, struct df_err *err)
{
    (void)r;
    DF_JSON cJSON *asks = NULL, *dry = NULL;
    if (df_store_get(w->s.store, DF_KIND_RUN, "net-1", &asks, err) < 0 ||
        df_store_get(w->s.store, DF_KIND_RUN, "net-2", &dry, err) < 0)
        return -1;
    if (df_run_is_final(dry) && df_streq(df_run_phase(asks), "WaitingApproval"))
        return 0;
    (void)usleep(500);
    return df_fail(err, DF_ERR_RETRY, "not there yet");
}

/* A dry run beside a run that comes to its question, with one death. */
static bool dry_run_with_death(const char *dir, int n, bool before, bool in_pods)
{
    struct world w;
    struct mortal m;
    world_open(&w, dir);
    if (in_pods)
        assert_int_equal(move_into_pods(&w), 0);
    make_executor(&w, "net", "");
    run(&w, "net", "{'action':'provision'}");
    run(&w, "net", "{'action':'dry-run'}");
    begin_to_die(&w, &m, n, before);
    play_step(&w, &m, "net-2-plan", attempt_put, attempt_planned);
    play_step(&w, &m, "net-1-plan", attempt_put, attempt_planned);
    struct runner none = {.w = &w};
    persist(&w, &m, attempt_both_stand, &none);
    bool died = has_died(&w, &m);
    assert_value(&w, DF_KIND_RUN, "net-1", "status.phase", "WaitingApproval");
    assert_value(&w, DF_KIND_RUN, "net-2", "status.phase", "Succeeded");
    assert_value(&w, DF_KIND_RUN, "net-2", "status.beside", "net-1");
    assert_value(&w, DF_KIND_EXECUTOR, "net", "status.activeRun", "net-1");
    assert_value(&w, DF_KIND_EXECUTOR, "net", "status.lastRun.name", "net-1");
    end_world(&w, &m);
    return died;
}

typedef bool (*with_death)(const char *dir, int n, bool before, bool in_pods);

static void die_at_each_write(const char *scratch, with_death what, bool in_pods)
{
    int n = 0;
    for (int before = 0; before < 2; before++) {
        bool died = true;
        for (n = 0; died; n++) {
            DF_FREE char *dir = df_strf("%s/%d-%d", scratch, before, n);
            assert_int_equal(df_fs_mkdirs(dir, 0700, NULL), 0);
            died = what(dir, n, before, in_pods);
        }
    }
    assert_true(n > 12); /* or nothing was tried */
}

static void a_spawner_that_dies_at_any_write_comes_to_the_same_end(void **state)
{
    die_at_each_write(*state, provision_with_death, false);
}

static void so_does_one_whose_steps_run_in_pods(void **state)
{
    die_at_each_write(*state, provision_with_death, true);
}

static void so_does_one_with_a_dry_run_beside_a_run_that_asks(void **state)
{
    die_at_each_write(*state, dry_run_with_death, false);
}

static void so_does_that_in_pods(void **state)
{
    die_at_each_write(*state, dry_run_with_death, true);
}

int main(void)
{
    df_log_setup(DF_LOG_ERROR, false, "test");
    const struct CMUnitTest tests[] = {
        scratch_test(a_spawner_that_dies_at_any_write_comes_to_the_same_end),
        scratch_test(so_does_one_whose_steps_run_in_pods),
        scratch_test(so_does_one_with_a_dry_run_beside_a_run_that_asks),
        scratch_test(so_does_that_in_pods),
    };
    return cmocka_run_group_tests_name("control_crash", tests, make_keys, free_keys);
}
