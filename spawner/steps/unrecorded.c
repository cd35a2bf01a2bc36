/*
 * unrecorded.c - read compare_with_states() near the end of the file: it reads the events into a
 * table of created objects (creations.h), marks those that the stored states contain, and returns
 * the others.
 */
#include "spawner/steps/unrecorded.h"

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "spawner/model/recipe.h"
#include "spawner/model/storage.h"
#include "spawner/model/task_kinds.h"
#include "spawner/steps/creations.h"
#include "spawner/steps/steps.h"

static const char foreign_storage[] =
    "the state is not kept by dayfly: it was not compared with what was begun";
static const char too_large[] = "the state is too large to be compared with what was begun";
static const char unreadable[] = "the state could not be compared with what was begun";

/* An apply, or what another system calls so: its destroy can create what replaces others. */
static bool may_create(const cJSON *task)
{
    return df_recipe_step_of(task)->plan_of || df_task_kind(task)->may_create;
}

/* ---- events ---- */

/* Reads the complete lines at the start of b. Returns their length in bytes, or -1. */
static int64_t take_lines(struct df_creations *c, const struct df_buf *b, struct df_err *err)
{
    const char *from = df_buf_str(b), *end = from + b->len, *eol;
    for (const char *line = from;; line = eol + 1) {
        eol = memchr(line, '\n', (size_t)(end - line));
        if (!eol)
            return line - from;
        if (df_creations_event(c, line, (size_t)(eol - line), err) < 0)
            return -1;
    }
}

/* A line longer than DF_LIMIT_EVENT_LINE is read in pieces; none of them parses as an event. */
static int read_events(struct df_spawner *s, const char *uid, struct df_creations *c,
                       struct df_err *err)
{
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_LIMIT_EVENT_LINE);
    int64_t offset = 0, end = 0;
    do {
        size_t before = b.len;
        if (df_step_read(s, uid, DF_STREAM_EVENTS, offset, &b, &end, err) < 0)
            return -1;
        offset += (int64_t)(b.len - before);
        bool ends = b.len == before || offset >= end;
        int64_t lines = take_lines(c, &b, err);
        if (lines < 0)
            return -1;
        if (ends)
            return df_creations_event(c, df_buf_str(&b) + lines, b.len - (size_t)lines, err);
        df_buf_consume(&b, lines ? (size_t)lines : b.len == b.max ? b.len : 0);
    } while (true);
}

/* ---- states ---- */

/* Wipes the text, because states contain secrets. */
static void cleanup_secret_buf(struct df_buf *b)
{
    df_buf_wipe(b);
}

static int compare_file(struct df_creations *c, int fd, struct df_err *err)
{
    DF_CLEANUP(cleanup_secret_buf) struct df_buf text = DF_BUF_INIT(DF_LIMIT_STATE_COMPARED);
    DF_SECRET_JSON cJSON *state = NULL;
    if (df_fs_read_fd(fd, &text, err) < 0 ||
        df_json_parse_nul(df_buf_str(&text), text.len, &state, err) < 0)
        return -1;
    if (!cJSON_IsArray(df_json_at(state, "resources")))
        return df_fail(err, DF_ERR_USER, "it is encrypted, or not a state");
    return df_creations_compare(c, state, err);
}

static void compare(struct df_creations *c, int fd, int64_t size, const char *step)
{
    struct df_err err = {0};
    if (size > (int64_t)DF_LIMIT_STATE_COMPARED) {
        df_creations_incomparable(c, too_large);
    } else if (size > 0 && compare_file(c, fd, &err) < 0) {
        df_warn("what step %s created cannot be compared with its state: %s", step, err.message);
        df_creations_incomparable(c, unreadable);
    }
}

/* A state that this step did not write cannot contain what the step created: an object at the same
 * address is the one that the step was replacing. */
static bool is_from_step(struct df_spawner *s, const char *executor, const char *uid)
{
    DF_JSON cJSON *newest = NULL;
    if (df_state_meta(s->states, executor, 0, &newest, NULL) < 0)
        return true; /* unknown: compare with the state all the same */
    return df_streq(df_json_str(newest, "step"), uid);
}

/* Fails with RETRY if the storage does not answer: whoever asks later hears more. */
static int compare_states(struct df_spawner *s, const cJSON *task, struct df_creations *c,
                          struct df_err *err)
{
    const char *executor = df_json_str(task, "spec.executorRef.uid");
    const char *uid = df_json_str(task, "metadata.uid"), *name = df_json_str(task, "metadata.name");
    DF_CLOSE int current = -1, errored = -1;
    int64_t size = 0;
    struct df_err why = {0};
    if (df_state_open_errored(s->states, executor, uid, &errored, &size, &why) == 0)
        compare(c, errored, size, name);
    if (why.cls == DF_ERR_RETRY)
        return df_err_pass(err, &why);
    if (!df_creations_any(c) || !is_from_step(s, executor, uid))
        return 0;
    if (df_state_open(s->states, executor, 0, &current, &size, &why) == 0) {
        compare(c, current, size, name);
    } else if (why.cls == DF_ERR_RETRY) {
        return df_err_pass(err, &why);
    } else if (why.cls != DF_ERR_NOT_FOUND) {
        df_warn("what step %s created cannot be compared with its state: %s", name, why.message);
        df_creations_incomparable(c, unreadable);
    }
    return 0;
}

/* True if the step holds the state lock, or if nobody can tell. The tool locks before it begins,
 * and unlocks after its state is stored or written to a file, so a held lock shows that the tool
 * was killed. */
static bool holds_lock(struct df_spawner *s, const char *executor, const char *uid)
{
    DF_JSON cJSON *info = NULL;
    char holder[64] = "";
    return df_state_lock_info(s->states, executor, &info, NULL) < 0 ||
           (info && df_json_str(info, "ID") &&
            (df_state_lock_step(s->states, executor, df_json_str(info, "ID"), holder, NULL) < 0 ||
             df_streq(holder, uid)));
}

/* ---- events against states ---- */

static int compare_with_states(struct df_spawner *s, const cJSON *task, cJSON **ret,
                               struct df_err *err)
{
    DF_CREATIONS struct df_creations *c = df_creations_new();
    const char *uid = df_json_str(task, "metadata.uid");
    if (!c)
        return df_fail_oom(err);
    if (read_events(s, uid, c, err) < 0)
        return -1;
    if (!df_creations_any(c))
        return 0;
    if (!df_storage_is_managed(task)) {
        df_creations_incomparable(c, foreign_storage);
    } else {
        if (compare_states(s, task, c, err) < 0)
            return -1;
        if (!holds_lock(s, df_json_str(task, "spec.executorRef.uid"), uid))
            df_creations_tool_ended(c);
    }
    return df_creations_missing(c, ret, err);
}

int df_unrecorded_find(struct df_spawner *s, const cJSON *task, cJSON **ret, struct df_err *err)
{
    struct df_err why = {0};
    *ret = NULL;
    if (!may_create(task) || compare_with_states(s, task, ret, &why) == 0)
        return 0;
    if (why.cls == DF_ERR_RETRY)
        return df_err_pass(err, &why);
    df_warn("what step %s may have created is not known: %s", df_json_str(task, "metadata.name"),
            why.message);
    return 0;
}

int64_t df_unrecorded_count(const cJSON *unrecorded)
{
    return cJSON_GetArraySize(df_json_at(unrecorded, "items")) + df_json_int(unrecorded, "more", 0);
}

void df_unrecorded_warn(const char *step, const cJSON *unrecorded)
{
    df_warn("step %s: objects may exist that no state records (%lld)", step,
            (long long)df_unrecorded_count(unrecorded));
}
