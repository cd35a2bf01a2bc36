/*
 * guard.c - read df_terrakube_guard() first: it asks the API for the job, and waits while another
 * pod runs the step. Then the step starts, or give_up() ends it: settle() tells the API what a lost
 * pod did not tell. df_terrakube_guard_change() asks again before resources change, and claims in
 * Redis a step that must run only once.
 */
#include "runner/terrakube/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/terrakube/rescue.h"
#include "common/terrakube/wire.h"
#include "runner/terrakube/flow.h"
#include "runner/terrakube/outcome.h"

enum { LOOK_MS = 1000 }; /* at another pod */

static const char lost[] =
    "dayfly: the pod that began this step is gone and did not report how the step "
    "ended. " DF_TERRAKUBE_NOT_AGAIN;

/* The lost pod may have saved its output. The sentence becomes the last line in any case. */
static int collect_output(const struct df_terrakube *t, const char *path, struct df_err *err)
{
    int got = df_terrakube_storage_get(t->storage, t->payload, DF_TERRAKUBE_OBJECT_OUTPUT, NULL,
                                       path, err);
    if (got < 0 && err->cls != DF_ERR_NOT_FOUND)
        return -1;
    DF_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return df_fail_errno(err, errno, "open %s", path);
    if (got < 0)
        df_terrakube_rescue_lines(t->settings, t->payload, fd);
    return df_fs_write_all(fd, lost, strlen(lost), err);
}

static void save_output(const struct df_context *c)
{
    struct df_terrakube *t = df_terrakube_of(c);
    DF_FREE char *path = df_fs_join(c->dirs->secret, "output");
    struct df_err why = {0};
    if (!path || !t->storage)
        return;
    if (collect_output(t, path, &why) < 0 ||
        df_terrakube_storage_put(t->storage, t->payload, DF_TERRAKUBE_OBJECT_OUTPUT, NULL, path,
                                 &why) < 0)
        df_warn("the step's output could not be given the reason of its failure: %s", why.message);
}

static void complete_history(const struct df_context *c)
{
    struct df_terrakube *t = df_terrakube_of(c);
    DF_FREE char *path = df_fs_join(c->dirs->secret, "state");
    struct df_err why = {0};
    if (path && t->storage &&
        df_terrakube_rescue_history(t->api, t->storage, t->payload, path, &why) < 0)
        df_warn("what the lost pod stored of the state is not in the workspace's history: %s",
                why.message);
}

/* The plan of a step that completed was stored before. */
static int name_plan(struct df_terrakube *t, struct df_err *err)
{
    if (!t->storage || !df_terrakube_is_plan(t->payload))
        return 0;
    return df_terrakube_storage_plan_place(t->storage, t->payload, &t->plan_place, err);
}

/* An earlier pod began the step. What it did not tell, this one does: a step that is still running
 * has failed; the job of a step that has ended goes on. */
static int settle(const struct df_context *c, struct df_err *err)
{
    struct df_terrakube *t = df_terrakube_of(c);
    bool ended = t->job.step_status != DF_TERRAKUBE_RUNNING;
    bool succeeded = t->job.step_status == DF_TERRAKUBE_COMPLETED;
    df_terrakube_await_queue(t, NULL);
    if (succeeded && name_plan(t, err) < 0)
        return -1;
    if (!ended) {
        complete_history(c);
        save_output(c); /* the stream, as the lost pod left it */
        df_terrakube_stream_add(t->stream, lost, strlen(lost));
    }
    return df_terrakube_tell_rest(t, ended, succeeded, err);
}

static bool has_ended(enum df_terrakube_status s)
{
    return s == DF_TERRAKUBE_COMPLETED || s == DF_TERRAKUBE_FAILED || s == DF_TERRAKUBE_CANCELLED ||
           s == DF_TERRAKUBE_NO_CHANGES || s == DF_TERRAKUBE_NOT_EXECUTED;
}

/* By its status: another pod began or ended the step. */
static bool has_begun(const struct df_terrakube *t)
{
    enum df_terrakube_status step = t->job.step_status;
    bool is_unbegun = step == DF_TERRAKUBE_FAILED && df_terrakube_is_refusal(t);
    return step == DF_TERRAKUBE_RUNNING || (has_ended(step) && !is_unbegun);
}

static bool may_start(const struct df_terrakube *t)
{
    return !has_begun(t) && !has_ended(t->job.status);
}

static int read_job(struct df_context *c, struct df_err *err)
{
    struct df_terrakube *t = df_terrakube_of(c);
    struct df_terrakube_api *api = NULL;
    if (df_terrakube_api_new(t->settings, t->payload, DF_TERRAKUBE_RETRY_MS, df_stop_flag(c->stop),
                             &api, err) < 0)
        return -1;
    df_terrakube_api_listen(api, &t->waits.calls);
    int failed = df_terrakube_api_job(api, &t->job, err);
    df_terrakube_api_free(api);
    if (!failed)
        return 0;
    t->is_told = err->cls == DF_ERR_NOT_FOUND; /* nobody waits for it any more */
    t->is_unheard = !t->is_told;
    return df_err_wrap(err, "job %s", t->payload->job);
}

static int step_over(const struct df_terrakube *t, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_CONFLICT, "StepOver",
                          "job %s, step %s: it ended, or another pod began it; nothing was started "
                          "here",
                          t->payload->job, t->payload->step);
}

/* ---- another pod that lives ---- */

/* A failure is Redis': the heartbeat tells of it. */
static int ask_for_others(const struct df_terrakube *t, bool *ret, struct df_err *err)
{
    struct df_redis *redis = NULL;
    *ret = false;
    if (!df_terrakube_has_redis(t->settings))
        return 0;
    if (df_terrakube_wire_new(t->settings, &redis, err) < 0)
        return -1;
    int failed = df_terrakube_wire_lives_elsewhere(redis, t->payload->step, t->pod, ret, err);
    df_redis_free(redis);
    return failed;
}

/* Waits while another pod says that it runs the step: that one reports. One that was lost says it
 * for DF_TERRAKUBE_BEAT_LIFE_S seconds more. A Redis that is away does not end the wait, and begins
 * none. *ret_waited: what the API said of the step is old. */
static int await_others(struct df_context *c, bool *ret_waited, struct df_err *err)
{
    struct df_terrakube *t = df_terrakube_of(c);
    struct pollfd stop = {.fd = df_stop_fd(c->stop), .events = POLLIN};
    bool lives = false, waited = false;
    while ((ask_for_others(t, &lives, NULL) == 0 ? lives : waited)) {
        if (!waited)
            df_warn("another pod runs step %s: nothing is started or told here before it has ended",
                    t->payload->step);
        waited = true;
        (void)poll(&stop, 1, LOOK_MS);
        if (df_stop_cause(c->stop) != DF_STOP_NONE) {
            t->is_told = true; /* by the other one */
            return step_over(t, err);
        }
    }
    *ret_waited = waited;
    return 0;
}

static int read_job_again(struct df_context *c, struct df_err *err)
{
    df_terrakube_job_free(&df_terrakube_of(c)->job);
    df_terrakube_of(c)->job = (struct df_terrakube_job){0};
    return read_job(c, err);
}

/* The step is not this pod's. Of one that was waited for, the end was told by the other pod. */
static int give_up(struct df_context *c, bool waited, struct df_err *err)
{
    struct df_terrakube *t = df_terrakube_of(c);
    bool by_other = waited && has_ended(t->job.step_status);
    if (t->settings->acknowledges && !has_ended(t->job.status) && !by_other && settle(c, err) < 0)
        return -1;
    t->is_told = true;
    return step_over(t, err);
}

int df_terrakube_guard(struct df_context *c, struct df_err *err)
{
    struct df_terrakube *t = df_terrakube_of(c);
    bool waited = false;
    if (read_job(c, err) < 0 || await_others(c, &waited, err) < 0 ||
        (waited && read_job_again(c, err) < 0))
        return -1;
    return !t->settings->acknowledges || may_start(t) ? 0 : give_up(c, waited, err);
}

/* ---- what changes resources ---- */

/* Between the API's answer and the next request another pod may begin. True: it has. */
static bool is_claimed(const struct df_terrakube *t)
{
    struct df_redis *redis = NULL;
    struct df_err why = {0};
    bool taken = false;
    if (!df_terrakube_has_redis(t->settings))
        return false;
    if (df_terrakube_wire_new(t->settings, &redis, &why) < 0 ||
        df_terrakube_wire_claim(redis, t->payload->step, &taken, &why) < 0)
        df_warn("the step could not be reserved in Redis: %s", why.message);
    df_redis_free(redis);
    return taken;
}

/* What changes resources, or what people would hear of twice. */
static bool runs_once(const struct df_terrakube *t)
{
    enum df_terrakube_type type = t->payload->type;
    return type == DF_TERRAKUBE_APPLY || type == DF_TERRAKUBE_DESTROY || df_terrakube_is_refusal(t);
}

int df_terrakube_guard_change(struct df_context *c, struct df_err *err)
{
    struct df_terrakube *t = df_terrakube_of(c);
    bool is_once = runs_once(t), waited = false;
    if (await_others(c, &waited, err) < 0)
        return -1;
    if (!is_once && !waited)
        return 0;
    if (read_job_again(c, err) < 0)
        return -1;
    bool begun = t->settings->acknowledges && has_begun(t);
    if (!begun && !(is_once && is_claimed(t)))
        return 0;
    /* The pod that took it may not have told yet that it runs. The step of a refusal looks the same
     * before and after. */
    if (!begun && !df_terrakube_is_refusal(t))
        t->job.step_status = DF_TERRAKUBE_RUNNING;
    return give_up(c, waited || df_terrakube_is_refusal(t), err);
}
