/*
 * calls.c - the report of a failure that the runner cannot send, heartbeats and the bell in Redis.
 * Read df_terrakube_tell_failure() first: it asks the API, stores output and history of a step that
 * is not over there, and then marks it as failed.
 */
#include <errno.h>
#include <fcntl.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/parse.h"
#include "common/terrakube/api.h"
#include "common/terrakube/rescue.h"
#include "common/terrakube/storage.h"
#include "common/terrakube/wire.h"
#include "spawner/steps/steps.h"
#include "spawner/terrakube/terrakube.h"

/* As a runner's own. The API fails a job of which it has had no sign for a minute. */
enum { BEAT_S = 15 };

/* For about half a second the job that made room is pending without a step, and stands in front. */
#define RING_AGAIN_US INT64_C(2000000)

/* ---- what the API says of the step ---- */

static bool has_ended(enum df_terrakube_status status)
{
    return status == DF_TERRAKUBE_COMPLETED || status == DF_TERRAKUBE_FAILED ||
           status == DF_TERRAKUBE_NO_CHANGES || status == DF_TERRAKUBE_NOT_EXECUTED;
}

/* The commands of onReject: the API marks their step `failed` while it sends them. */
static bool is_refusal(const cJSON *task, const struct df_terrakube_job *job)
{
    return job->status == DF_TERRAKUBE_REJECTED_STATUS &&
           df_streq(df_json_str(task, "spec.terrakube.type"), "approval");
}

static bool is_over(const cJSON *task, const struct df_terrakube_job *job)
{
    return !is_refusal(task, job) &&
           (has_ended(job->step_status) || job->status == DF_TERRAKUBE_CANCELLED ||
            job->status == DF_TERRAKUBE_REJECTED_STATUS);
}

/* ---- the output of a lost step ---- */

/* The service has the step's log as well: of a runner on this machine all of it. */
static int copy_log(struct df_spawner *s, const char *uid, int fd, struct df_err *err)
{
    int64_t end = 1;
    for (int64_t offset = 0; offset < end && offset < (int64_t)DF_LIMIT_TERRAKUBE_RESCUE;) {
        DF_BUF struct df_buf piece = DF_BUF_INIT(DF_LIMIT_STREAM_FRAME);
        if (df_step_read(s, uid, DF_STREAM_LOG, offset, &piece, &end, err) < 0 ||
            df_fs_write_all(fd, df_buf_str(&piece), piece.len, err) < 0)
            return -1;
        if (!piece.len)
            return 0;
        offset += (int64_t)piece.len;
    }
    return 0;
}

/* Whichever has more: Redis has what people saw, and forgets; a pod's last lines may not have come
 * here. */
static int write_lines(struct df_spawner *s, const cJSON *task,
                       const struct df_terrakube_payload *p, int fd, struct df_err *err)
{
    const char *uid = df_json_str(task, "metadata.uid");
    int64_t size = 0;
    df_terrakube_rescue_lines(&df_terrakube_of(s)->settings, p, fd);
    if (df_step_log_size(s, uid, &size, err) < 0)
        return -1;
    if (size <= lseek(fd, 0, SEEK_CUR))
        return 0;
    if (ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0)
        return df_fail_errno(err, errno, "empty a file");
    return copy_log(s, uid, fd, err);
}

static void add_object(const cJSON *item, struct df_buf *out)
{
    const char *address = df_json_str(item, "address"), *id = df_json_str(item, "id");
    bool finished = df_json_bool(item, "finished", false);
    if (!address || df_has_control(address))
        return;
    (void)df_buf_addf(out, "  %s: %s", address, finished ? "was made" : "was begun, and may exist");
    if (finished && id && !df_has_control(id))
        (void)df_buf_addf(out, ", %s %s", df_json_str(item, "idKey"), id);
    (void)df_buf_addc(out, '\n');
}

/* What people must know: why it ended, what it began, and that nobody repeats it. */
static void add_reason(const cJSON *task, const char *why, struct df_buf *out)
{
    const cJSON *list = df_json_at(task, "status.unrecorded"), *item;
    int64_t more = df_json_int(list, "more", 0);
    (void)df_buf_addf(out, "dayfly: %s\n", why);
    if (!df_task_has_runner(task))
        return;
    if (list)
        (void)df_buf_adds(out, "dayfly: these objects were begun, and the state may have or lack "
                               "them (of the last moment the lines above may name more):\n");
    cJSON_ArrayForEach (item, df_json_at(list, "items"))
        add_object(item, out);
    if (more > 0)
        (void)df_buf_addf(out, "  and %lld more\n", (long long)more);
    (void)df_buf_adds(out, "dayfly: " DF_TERRAKUBE_NOT_AGAIN);
}

static int write_output(struct df_spawner *s, const cJSON *task,
                        const struct df_terrakube_payload *p, const char *why, int fd,
                        struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    struct df_err missing = {0};
    if (df_task_has_runner(task) && write_lines(s, task, p, fd, &missing) < 0)
        df_warn("the output of step %s of Terrakube's job %s lacks its lines: %s", p->step, p->job,
                missing.message);
    add_reason(task, why, &text);
    if (df_buf_check(&text, err) < 0)
        return -1;
    return df_fs_write_all(fd, df_buf_str(&text), text.len, err);
}

/* The output of the step, as its page shows it once the step has ended. */
static int save_output(struct df_spawner *s, const cJSON *task,
                       const struct df_terrakube_payload *p, struct df_terrakube_storage *storage,
                       const char *why, struct df_err *err)
{
    DF_FREE char *path = df_strf("%s/output-XXXXXX", df_blob_tmp_dir(s->blobs));
    if (!path)
        return df_fail_oom(err);
    DF_CLOSE int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return df_fail_errno(err, errno, "create %s", path);
    int result = write_output(s, task, p, why, fd, err);
    if (result == 0)
        result = df_terrakube_storage_put(storage, p, DF_TERRAKUBE_OBJECT_OUTPUT, NULL, path, err);
    (void)unlink(path);
    return result;
}

static int complete_history(struct df_spawner *s, const struct df_terrakube_payload *p,
                            struct df_terrakube_storage *storage, struct df_terrakube_api *api,
                            struct df_err *err)
{
    DF_FREE char *path = df_strf("%s/state-%s", df_blob_tmp_dir(s->blobs), p->step);
    return path ? df_terrakube_rescue_history(api, storage, p, path, err) : df_fail_oom(err);
}

/* What cannot be stored does not keep back the end, whose cause is in the job's own output, too. */
static void store_rest(struct df_spawner *s, const cJSON *task,
                       const struct df_terrakube_payload *p, struct df_terrakube_api *api,
                       const char *why)
{
    DF_TERRAKUBE_STORAGE struct df_terrakube_storage *storage = NULL;
    struct df_err err = {0};
    if (df_terrakube_storage_new(&df_terrakube_of(s)->settings, DF_TIMEOUT_TERRAKUBE_MS, NULL,
                                 &storage, &err) < 0 ||
        save_output(s, task, p, storage, why, &err) < 0)
        df_warn("the output of step %s of Terrakube's job %s is not stored: %s", p->step, p->job,
                err.message);
    if (storage && df_task_has_runner(task) && complete_history(s, p, storage, api, &err) < 0)
        df_warn("what step %s of Terrakube's job %s stored of the state is not in the workspace's "
                "history: %s",
                p->step, p->job, err.message);
}

/* ---- telling it ---- */

/* A refused job stays refused. */
static int set_failed(struct df_terrakube_api *api, bool is_refused, const char *text,
                      struct df_err *err)
{
    DF_JSON cJSON *attributes = cJSON_CreateObject();
    if (df_json_add_str(attributes, "status", "failed", err) < 0 ||
        df_json_add_str(attributes, "output", text, err) < 0 ||
        df_terrakube_api_patch_step(api, "failed", err) < 0)
        return -1;
    return is_refused ? 0 : df_terrakube_api_patch_job(api, attributes, err);
}

static int tell(struct df_spawner *s, const cJSON *task, const struct df_terrakube_payload *p,
                struct df_terrakube_api *api, const char *why, struct df_err *err)
{
    DF_FREE char *text = df_strf("dayfly: %s\n", why);
    DF_CLEANUP(df_terrakube_job_free) struct df_terrakube_job job = {0};
    if (!text)
        return df_fail_oom(err);
    if (df_terrakube_api_job(api, &job, err) < 0)
        return -1;
    if (is_over(task, &job))
        return 0;
    store_rest(s, task, p, api, why);
    return set_failed(api, is_refusal(task, &job), text, err);
}

int df_terrakube_tell_failure(struct df_spawner *s, const cJSON *task, const char *reason,
                              const char *message, struct df_err *err)
{
    struct df_terrakube_payload p;
    struct df_terrakube_api *api = NULL;
    struct df_err why = {0};
    DF_FREE char *text = df_strf("%s: %s", reason, message);
    if (!text)
        return df_fail_oom(err);
    df_terrakube_task_payload(task, &p);
    if (df_terrakube_api_new(&df_terrakube_of(s)->settings, &p, DF_TIMEOUT_TERRAKUBE_MS, NULL, &api,
                             err) < 0)
        return -1;
    int result = tell(s, task, &p, api, text, &why);
    df_terrakube_api_free(api);
    if (result < 0 && why.cls == DF_ERR_NOT_FOUND) { /* the job was deleted */
        df_warn("Terrakube's API knows no job %s any more: nobody is told of its end", p.job);
        return 0;
    }
    return result < 0 ? df_err_pass(err, &why) : 0;
}

/* ---- Redis ---- */

static int set_heartbeat(struct df_spawner *s, const char *job, struct df_err *err)
{
    struct df_redis *redis = NULL;
    if (df_terrakube_wire_new(&df_terrakube_of(s)->settings, &redis, err) < 0)
        return -1;
    int result = df_terrakube_wire_beat(redis, job, err);
    df_redis_free(redis);
    return result;
}

bool df_terrakube_beat_is_due(struct df_terrakube_beats *b, const char *job, int64_t now_us,
                              int64_t *ret_next_us)
{
    enum { MARK_SHIFT = 40 };
    uint64_t hash = df_hash_str(DF_HASH_BEGIN, job), mark = hash >> MARK_SHIFT;
    uint64_t *place = &b->at[hash % DF_ARRAY_SIZE(b->at)];
    uint64_t last = __atomic_load_n(place, __ATOMIC_RELAXED);
    int64_t now_s = now_us / 1000000;
    int64_t last_s = (int64_t)(last & ((UINT64_C(1) << MARK_SHIFT) - 1));
    bool is_due = last >> MARK_SHIFT != mark || now_s - last_s >= BEAT_S || now_s < last_s;
    if (is_due) {
        __atomic_store_n(place, mark << MARK_SHIFT | (uint64_t)now_s, __ATOMIC_RELAXED);
        last_s = now_s;
    }
    *ret_next_us = (last_s + BEAT_S) * 1000000;
    return is_due;
}

int df_terrakube_beat(struct df_spawner *s, const cJSON *task, int64_t now_us, int64_t *ret_next_us,
                      bool *ret_over, struct df_err *err)
{
    struct df_terrakube_payload p;
    struct df_terrakube_api *api = NULL;
    DF_CLEANUP(df_terrakube_job_free) struct df_terrakube_job job = {0};
    df_terrakube_task_payload(task, &p);
    if (!df_terrakube_beat_is_due(&df_terrakube_of(s)->beats, p.job, now_us, ret_next_us)) {
        *ret_over = false;
        return 0;
    }
    if (set_heartbeat(s, p.job, err) < 0 ||
        df_terrakube_api_new(&df_terrakube_of(s)->settings, &p, DF_TIMEOUT_TERRAKUBE_MS, NULL, &api,
                             err) < 0)
        return -1;
    int result = df_terrakube_api_job(api, &job, err);
    df_terrakube_api_free(api);
    if (result == 0)
        *ret_over = is_over(task, &job);
    return result;
}

static int ring(struct df_spawner *s, struct df_err *err)
{
    struct df_redis *redis = NULL;
    if (!df_terrakube_has_redis(&df_terrakube_of(s)->settings))
        return 0;
    if (df_terrakube_wire_new(&df_terrakube_of(s)->settings, &redis, err) < 0)
        return -1;
    int result = df_terrakube_wire_ring(redis, err);
    df_redis_free(redis);
    return result;
}

int df_terrakube_ring(struct df_spawner *s, struct df_err *err)
{
    if (!__atomic_exchange_n(&df_terrakube_of(s)->turned_away, false, __ATOMIC_RELAXED))
        return 0;
    __atomic_store_n(&df_terrakube_of(s)->ring_us, df_real_us() + RING_AGAIN_US, __ATOMIC_RELAXED);
    return ring(s, err);
}

int df_terrakube_ring_again(struct df_spawner *s, struct df_err *err)
{
    int64_t due_us = __atomic_load_n(&df_terrakube_of(s)->ring_us, __ATOMIC_RELAXED);
    if (!due_us || df_real_us() < due_us ||
        !__atomic_compare_exchange_n(&df_terrakube_of(s)->ring_us, &due_us, 0, false,
                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return 0;
    return ring(s, err);
}
