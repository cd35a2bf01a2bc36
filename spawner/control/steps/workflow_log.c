/*
 * workflow_log.c - copies the output of a workflow into its stored log. The engine gives all of it,
 * part by part, each time; status.logParts has where each part begins in the log, and is written
 * before the part's first byte, so that after a crash no byte is stored twice. Read
 * df_workflow_keep_log() at the end first.
 */
#include "spawner/control/steps/workflow_log.h"

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "spawner/engine/workflow/workflow.h"
#include "spawner/steps/streams.h"
#include "spawner/steps/waits.h"

/* How long the end of a workflow waits for its output. */
#define END_US INT64_C(20000000)

struct copy {
    struct df_task_pass *p;
    const cJSON *parts; /* status.logParts as it is stored, of which `fresh` has the newest state */
    cJSON *fresh;       /* owned; NULL: the pass has added no part */
    int64_t at;         /* where the next byte of the current part belongs in the log */
    int64_t end;        /* of the stored log */
    struct df_buf more; /* what comes behind it */
};

static void free_copy(struct copy *c)
{
    cJSON_Delete(c->fresh);
    df_buf_free(&c->more);
}

/* ---- bytes ---- */

/* What is collected before it is written: for the stores of logs a few large pieces are better. */
#define WRITE_AT (256 * DF_KIB)

static int write_more(struct copy *c, struct df_err *err)
{
    const struct df_frame frame = {DF_STREAM_LOG, c->end, c->more.data, c->more.len};
    if (c->more.len && df_stream_append(c->p->c->s, &c->p->step, &frame, &c->end, err) < 0)
        return -1;
    df_buf_clear(&c->more);
    return 0;
}

static int add_bytes(void *arg, const char *bytes, size_t n, struct df_err *err)
{
    struct copy *c = arg;
    int64_t known = c->end + (int64_t)c->more.len - c->at;
    size_t at = known <= 0 ? 0 : known < (int64_t)n ? (size_t)known : n;
    c->at += (int64_t)n;
    while (at < n) {
        size_t room = WRITE_AT - c->more.len, piece = n - at < room ? n - at : room;
        if (df_buf_add(&c->more, bytes + at, piece) < 0)
            return df_buf_check(&c->more, err);
        if (c->more.len == WRITE_AT && write_more(c, err) < 0)
            return -1;
        at += piece;
    }
    return 0;
}

/* ---- parts ---- */

struct new_part {
    const char *name;
    int64_t offset;
};

/* A df_store_change */
static int set_part(cJSON *task, void *arg, struct df_err *err)
{
    const struct new_part *n = arg;
    cJSON *parts = df_json_array_at(df_json_object_at(task, "status"), "logParts");
    return df_json_append(
        parts, df_json_object(DF_STR("name", n->name), DF_NUM("offset", n->offset)), err);
}

/* Of a part whose beginning is not recorded: it begins where the log ends now. */
static int begin_new(struct copy *c, const char *name, struct df_err *err)
{
    DF_JSON cJSON *task = NULL;
    struct new_part n = {name, c->end};
    if (cJSON_GetArraySize(c->parts) >= DF_LIMIT_LOG_PARTS)
        return 1;
    if (df_task_modify(c->p->c->s, c->p->step.name, set_part, &n, &task, err) < 0)
        return -1;
    cJSON_Delete(c->fresh);
    c->fresh =
        cJSON_DetachItemFromObjectCaseSensitive(df_json_object_at(task, "status"), "logParts");
    c->parts = c->fresh;
    c->at = n.offset;
    return 0;
}

/* A part before the last one was copied to its end. */
static int begin_part(void *arg, const char *name, struct df_err *err)
{
    struct copy *c = arg;
    const cJSON *part;
    if (write_more(c, err) < 0)
        return -1;
    cJSON_ArrayForEach (part, c->parts) {
        if (!df_streq(df_json_str(part, "name"), name))
            continue;
        c->at = df_json_int(part, "offset", 0);
        return part->next ? 1 : 0;
    }
    return begin_new(c, name, err);
}

static int copy_all(struct df_task_pass *p, struct df_err *err)
{
    DF_CLEANUP(free_copy)
    struct copy c = {.p = p,
                     .parts = df_json_at(p->task, "status.logParts"),
                     .more = DF_BUF_INIT(DF_LIMIT_STREAM_FRAME)};
    const struct df_output_reader to = {begin_part, add_bytes, &c};
    struct df_err second = {0}; /* the first one says more */
    if (df_step_log_size(p->c->s, p->step.uid, &c.end, err) < 0)
        return -1;
    int result = p->engine->ops->workflow->output(p->engine, &p->step, &to, err);
    return write_more(&c, result < 0 ? &second : err) < 0 ? -1 : result;
}

/* ---- when ---- */

/* The workflow goes on without its log, and ends without the rest of it after a while. */
static int after_failure(struct df_task_pass *p, const struct df_err *why, struct df_err *err)
{
    static const char what[] = "the log of a workflow";
    const struct df_wait_case wait = {
        .kind = DF_KIND_TASK_ACTION, .name = p->step.name, .what = what, .is_optional = true};
    df_wait_failed(p->c->s, &wait, p->now_us, why);
    if (p->observed.phase != DF_ENGINE_ENDED) {
        df_debug("the log of %s is copied later: %s", p->step.name, why->message);
        return 0;
    }
    int64_t since_us = df_memory_add_wait(&p->c->s->memory, &wait, p->task, p->now_us);
    if (why->cls == DF_ERR_RETRY && p->now_us < since_us + END_US)
        return df_err_pass(err, why);
    df_warn("the end of the log of %s is lost: %s", p->step.name, why->message);
    return 0;
}

int df_workflow_keep_log(struct df_task_pass *p, struct df_err *err)
{
    struct df_err why = {0};
    bool runs = p->observed.phase == DF_ENGINE_RUNNING;
    if (df_task_is_final(p->task) || (!runs && p->observed.phase != DF_ENGINE_ENDED))
        return 0;
    int64_t due_us = df_memory_get_log_due(&p->c->s->memory, p->task);
    if (runs && p->now_us < due_us && !df_task_is_canceled(p->task)) {
        df_task_pass_wake(p, due_us);
        return 0;
    }
    if (copy_all(p, &why) < 0 && after_failure(p, &why, err) < 0)
        return -1;
    due_us = p->now_us + df_workflow_pace_us(df_task_age_us(p->task, p->now_us));
    df_memory_put_log_due(&p->c->s->memory, p->task, due_us);
    if (runs)
        df_task_pass_wake(p, due_us);
    return 0;
}
