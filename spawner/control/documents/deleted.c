/* One function for each kind. A document that was never accepted is removed at once. */
#include "spawner/control/documents/deleted.h"

#include "common/base/clock.h"
#include "spawner/control/documents/audit.h"
#include "spawner/model/accepted.h"
#include "spawner/requests/deletions.h"
#include "spawner/requests/purge.h"
#include "spawner/requests/requests.h"

#define WHY "it was deleted"
/* How soon the deletion of an executor that cannot be deleted yet is tried again. */
#define AGAIN_US INT64_C(5000000)

static const char *name_of(const cJSON *doc)
{
    return df_json_str(doc, "metadata.name");
}

/* A document that was never accepted owns nothing that would have to be cleaned up. */
static int remove_unaccepted(struct df_control *c, enum df_kind kind, const cJSON *doc,
                             struct df_err *err)
{
    return df_store_remove(c->s->store, kind, name_of(doc), df_json_str(doc, "metadata.uid"), err);
}

static void retry_soon(int64_t *ret_wake_us)
{
    *ret_wake_us = df_real_us() + AGAIN_US;
}

/* The entry comes first: whoever waits for the end of a deletion finds it, and no crash loses
 * it. */
static void note_deletion(void *arg, enum df_kind kind, const cJSON *doc)
{
    const struct df_control *c = arg;
    const char *uid = df_json_str(doc, "metadata.uid");
    const struct df_audit_event event = {df_deletions_take(c->s->deletions, uid, df_real_us()),
                                         "delete", "done", NULL};
    df_control_audit(c->s, kind, name_of(doc), &event);
}

/* ---- executors ---- */

/* A refusal stays: over a word of ours the refused spec would count as accepted. */
static int set_not_deleted(cJSON *executor, void *arg, struct df_err *err)
{
    if (df_doc_is_refused(executor) || df_streq(df_task_message(executor), arg))
        return 1;
    return df_set_conditions(executor, DF_OUTCOME_NONE, "Deleting", arg, df_real_us(), err);
}

/* The API has an entry of its own. */
int df_deleted_remove_executor(struct df_control *c, const cJSON *executor, struct df_err *err)
{
    const struct df_purge_note note = {note_deletion, c};
    bool by_kubectl = df_streq(df_json_str(executor, "status.deleting.by"), DF_STAMP_NOBODY);
    return df_purge_executor(c->s, executor, by_kubectl ? &note : NULL, err);
}

int df_deleted_executor(struct df_control *c, const cJSON *executor, bool *ret_done,
                        int64_t *ret_wake_us, struct df_err *err)
{
    DF_JSON cJSON *marked = NULL;
    struct df_err why = {0};
    if (!df_json_at(executor, "status")) {
        *ret_done = true;
        return remove_unaccepted(c, DF_KIND_EXECUTOR, executor, err);
    }
    if (df_json_at(executor, "status.deleting"))
        return 0;
    *ret_done = true;
    if (df_request_mark_executor(c->s, name_of(executor), DF_VERBS_ADMIN, NULL, DF_STAMP_NOBODY,
                                 &marked, &why) == 0)
        return df_deleted_remove_executor(c, marked, err);
    if (!df_streq(why.reason, "WrongState"))
        return df_err_pass(err, &why);
    retry_soon(ret_wake_us);
    return df_store_modify(c->s->store, DF_KIND_EXECUTOR, name_of(executor), set_not_deleted,
                           why.message, NULL, err);
}

/* ---- runs ---- */

int df_deleted_run(struct df_control *c, const cJSON *run, bool *ret_done, int64_t *ret_wake_us,
                   struct df_err *err)
{
    (void)ret_wake_us;
    if (!df_json_at(run, "status")) {
        *ret_done = true;
        return remove_unaccepted(c, DF_KIND_RUN, run, err);
    }
    if (df_run_is_final(run)) {
        const struct df_purge_note note = {note_deletion, c};
        *ret_done = true;
        return df_purge_run(c->s, run, &note, err);
    }
    if (df_json_at(run, "spec.cancel"))
        return 0;
    *ret_done = true;
    return df_request_cancel_run(c->s, name_of(run), DF_VERBS_ADMIN, DF_STAMP_NOBODY, WHY, NULL,
                                 err);
}

/* ---- revisions ---- */

int df_deleted_revision(struct df_control *c, const cJSON *revision, struct df_err *err)
{
    if (df_json_at(revision, "status"))
        note_deletion(c, DF_KIND_REVISION, revision);
    return remove_unaccepted(c, DF_KIND_REVISION, revision, err);
}

/* ---- TaskActions ---- */

/* An accepted TaskAction is ended by its own pass, which then removes it (DF_TASK_REMOVE). */
int df_deleted_task(struct df_control *c, const cJSON *task, bool *ret_done, struct df_err *err)
{
    *ret_done = !df_json_at(task, "status") || df_doc_is_refused(task);
    return *ret_done ? remove_unaccepted(c, DF_KIND_TASK_ACTION, task, err) : 0;
}

int df_deleted_remove(struct df_control *c, const cJSON *task, struct df_err *err)
{
    const struct df_purge_note note = {note_deletion, c};
    return df_purge_step(c->s, task, &note, err);
}
