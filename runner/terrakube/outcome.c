/*
 * The API's side of a step: `running` at its begin (tell_running), and at its end the saved output,
 * the step's status and the job's (tell_end), in this order: the API starts the next step when the
 * job's status changes.
 */
#include "runner/terrakube/outcome.h"

#include <fcntl.h>
#include <poll.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/log.h"

enum {
    QUEUE_WAIT_MS =
        20000, /* of the API's own transaction: milliseconds, but seconds for its first */
    QUEUE_PAUSE_MS = 50,
    UNSTARTED_MS = 20000, /* nothing is lost that another pod could not do */
    FLUSH_MS = 2000,      /* the saved output has every line */
    CLI_FLUSH_MS = 10000,
    LINGER_MS = 2500 /* a CLI asks for its log once a second or so */
};

/* ---- the begin ---- */

/* A job before its dispatch was committed. */
static bool is_undispatched(enum df_terrakube_status s)
{
    return s == DF_TERRAKUBE_PENDING || s == DF_TERRAKUBE_APPROVED;
}

static int look_at_job(struct df_terrakube *t, struct df_err *err)
{
    struct df_terrakube_job now = {0};
    if (df_terrakube_api_job(t->api, &now, err) < 0)
        return -1;
    df_terrakube_job_free(&t->job);
    t->job = now;
    return 0;
}

void df_terrakube_await_queue(struct df_terrakube *t, const volatile bool *stop)
{
    int64_t deadline = df_mono_ms() + QUEUE_WAIT_MS;
    struct df_err why = {0};
    while (t->settings->acknowledges && df_terrakube_has_queue(t->payload) &&
           is_undispatched(t->job.status) && df_mono_ms() < deadline && !df_stopped(stop)) {
        (void)poll(NULL, 0, QUEUE_PAUSE_MS);
        if (look_at_job(t, &why) < 0)
            break; /* what follows will meet the same fault, and tell it */
    }
    df_terrakube_stream_open(t->stream);
}

static int patch_running(struct df_terrakube *t, struct df_err *err)
{
    DF_JSON cJSON *attributes = cJSON_CreateObject();
    if (df_json_put(attributes, err, DF_STR("status", "running"), DF_STR("commitId", t->commit)) <
        0)
        return -1;
    return df_terrakube_api_patch_job(t->api, attributes, err);
}

int df_terrakube_tell_running(struct df_terrakube *t, struct df_err *err)
{
    t->is_announced = true;
    if (!t->settings->acknowledges)
        return 0;
    if (t->job.status == DF_TERRAKUBE_CANCELLED)
        return df_fail_reason(err, DF_ERR_CONFLICT, "JobOver", "the job was cancelled");
    if (t->job.status != DF_TERRAKUBE_REJECTED_STATUS && patch_running(t, err) < 0)
        return -1;
    return df_terrakube_api_patch_step(t->api, "running", err);
}

/* ---- the end ---- */

/* What was refused may have no type. */
static bool is_plan(const struct df_terrakube *t)
{
    return !t->refused && df_terrakube_is_plan(t->payload);
}

/* The job's status after this step: contract 3.3. */
static const char *next_status(const struct df_terrakube *t, bool succeeded)
{
    if (!succeeded)
        return "failed";
    if (!is_plan(t))
        return "pending"; /* the API runs the next step, or completes the job */
    switch (t->plan_code) {
    case 0: /* with planChanges false the old API ends the job, and the later one fails */
        return df_terrakube_has_queue(t->payload) ? "completed" : "pending";
    case 1: /* with ignoreError */
        return "failed";
    default:
        return t->job.steps == 1 && df_terrakube_has_queue(t->payload) ? "completed" : "pending";
    }
}

static bool plans_changes(const struct df_terrakube *t, bool succeeded)
{
    return !(succeeded && is_plan(t) && (t->plan_code == 0 || t->plan_code == 1));
}

static int add_job_output(const struct df_terrakube *t, cJSON *attributes, struct df_err *err)
{
    if (!t->job.output)
        return df_json_add_str(attributes, "output", "", err);
    DF_FREE char *text = df_strf("%s Step %s completed\n", t->job.output, t->payload->step);
    return df_json_put(attributes, err, DF_STR_ALLOC("output", text));
}

static int patch_job(struct df_terrakube *t, bool succeeded, struct df_err *err)
{
    DF_JSON cJSON *attributes = cJSON_CreateObject();
    const char *plan = succeeded && t->plan_place ? t->plan_place : "";
    if (add_job_output(t, attributes, err) < 0 ||
        df_json_put(attributes, err, DF_STR("status", next_status(t, succeeded)),
                    DF_BOOL("planChanges", plans_changes(t, succeeded))) < 0 ||
        (is_plan(t) && df_json_add_str(attributes, "terraformPlan", plan, err) < 0) ||
        (*t->commit && df_json_add_str(attributes, "commitId", t->commit, err) < 0))
        return -1;
    return df_terrakube_api_patch_job(t->api, attributes, err);
}

/* The Terraform CLI reads its log from Redis alone, and the API drops it once the job goes on. */
static void let_read(const struct df_terrakube *t)
{
    bool is_cli = df_terrakube_is_remote_content(t->payload);
    struct df_err why = {0};
    if (!df_terrakube_stream_flush(t->stream, is_cli ? CLI_FLUSH_MS : FLUSH_MS, &why))
        df_warn("some lines are missing in the live log; the saved output has them: %s",
                why.message);
    if (is_cli)
        (void)poll(NULL, 0, LINGER_MS);
}

int df_terrakube_tell_rest(struct df_terrakube *t, bool step_is_told, bool succeeded,
                           struct df_err *err)
{
    bool rejected = t->job.status == DF_TERRAKUBE_REJECTED_STATUS;
    const char *status = succeeded && !rejected ? "completed" : "failed";
    if (!step_is_told && df_terrakube_api_patch_step(t->api, status, err) < 0)
        return -1;
    if (look_at_job(t, err) < 0)
        return -1;
    if (!rejected && t->job.status != DF_TERRAKUBE_REJECTED_STATUS &&
        t->job.status != DF_TERRAKUBE_CANCELLED) {
        let_read(t);
        if (patch_job(t, succeeded, err) < 0)
            return -1;
    }
    return 0;
}

/* Until the pod must end: the API has not heard of the step's end yet, which is worth more. */
static void save_output(struct df_terrakube *t, const char *log_path)
{
    struct df_err why = {0};
    if (!t->storage)
        return;
    df_terrakube_storage_stop(t->storage, t->stop);
    if (df_terrakube_storage_put(t->storage, t->payload, DF_TERRAKUBE_OBJECT_OUTPUT, NULL, log_path,
                                 &why) < 0)
        df_error(
            "the output of the step is not saved: Terrakube shows none once the step has ended, "
            "and this log is the only copy: %s",
            why.message);
}

int df_terrakube_tell_end(struct df_terrakube *t, bool succeeded, const char *log_path,
                          struct df_err *err)
{
    df_terrakube_await_queue(t, NULL);
    save_output(t, log_path);
    if (!t->settings->acknowledges) {
        t->is_told = true;
        return 0;
    }
    if (look_at_job(t, err) < 0 || df_terrakube_tell_rest(t, false, succeeded, err) < 0)
        return -1;
    t->is_told = true;
    return 0;
}

/* ---- a step that could not start ---- */

/* There is no directory of the step, and the storage takes files. */
static void save_text(struct df_terrakube *t, const char *text)
{
    static const char *const places[] = {"/tmp", "/dev/shm"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(places); i++) {
        DF_FREE char *path = df_strf("%s/dayfly-output-XXXXXX", places[i]);
        DF_CLOSE int fd = path ? mkostemp(path, O_CLOEXEC) : -1;
        if (fd < 0)
            continue;
        if (df_fs_write_all(fd, text, strlen(text), NULL) == 0)
            save_output(t, path);
        (void)unlink(path);
        return;
    }
    df_warn("there is no place for the output of the step: only this log says why it failed");
}

static bool is_unbegun(const struct df_terrakube *t)
{
    if (df_terrakube_is_refusal(t) && t->job.step_status == DF_TERRAKUBE_FAILED)
        return true;
    return t->job.step_status == DF_TERRAKUBE_PENDING &&
           (is_undispatched(t->job.status) || t->job.status == DF_TERRAKUBE_QUEUE ||
            t->job.status == DF_TERRAKUBE_REJECTED_STATUS);
}

static int tell_unstarted(struct df_terrakube *t, const char *why, struct df_err *err)
{
    DF_FREE char *text = df_strf("Failed to prepare work dir\ndayfly: RunnerFailed: %s\n", why);
    if (!text)
        return df_fail_oom(err);
    df_terrakube_api_free(DF_TAKE(t->api));
    if (df_terrakube_api_new(t->settings, t->payload, UNSTARTED_MS, NULL, &t->api, err) < 0 ||
        look_at_job(t, err) < 0)
        return -1;
    if (!is_unbegun(t))
        return df_fail(err, DF_ERR_CONFLICT, "the step is not one that waits for its begin");
    df_terrakube_await_queue(t, NULL);
    df_terrakube_stream_add(t->stream, text, strlen(text));
    save_text(t, text);
    return df_terrakube_tell_rest(t, false, false, err);
}

void df_terrakube_tell_unstarted(struct df_terrakube *t, const char *why)
{
    struct df_err err = {0};
    if (t->is_told || !t->settings->acknowledges)
        return;
    if (tell_unstarted(t, why, &err) < 0)
        df_error("Terrakube's API does not know that the step failed: %s", err.message);
    else
        t->is_told = true;
}
