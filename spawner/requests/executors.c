/*
 * executors.c - requests on executors: create, change, delete.
 *
 * A deletion first sets a mark, so that after a crash the next start continues it; then everything
 * that belongs to the executor is removed.
 */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "spawner/model/accepted.h"
#include "spawner/model/access.h"
#include "spawner/model/approval.h"
#include "spawner/model/labels.h"
#include "spawner/model/policy.h"
#include "spawner/model/revision.h"
#include "spawner/model/stamp.h"
#include "spawner/requests/integrations.h"
#include "spawner/requests/new_docs.h"
#include "spawner/requests/purge.h"
#include "spawner/requests/requests.h"
#include "spawner/requests/reserved.h"
#include "spawner/requests/revisions.h"
#include "spawner/requests/secrets.h"
#include "spawner/requests/storage.h"

static int check_document(cJSON *doc, const cJSON *old, struct df_err *err)
{
    if (!doc)
        return df_fail(err, DF_ERR_USER, "a body with the executor is required");
    if (df_model_admit(DF_KIND_EXECUTOR, doc, old, err) < 0)
        return -1;
    return df_keep_reserved(doc, old, err);
}

/* Stores the executor, unless another one keeps its state at the same location. old: NULL for a new
 * one. */
static int store_alone(struct df_spawner *s, const cJSON *doc, const cJSON *old, cJSON **ret,
                       struct df_err *err)
{
    df_storage_lock();
    int result = df_storage_check(s, doc, err);
    if (result == 0)
        result = old ? df_store_update(s->store, DF_KIND_EXECUTOR, doc, ret, err)
                     : df_store_create(s->store, DF_KIND_EXECUTOR, doc, ret, err);
    df_storage_unlock();
    return result;
}

/* Stores the executor and then its revision, of which the control loop makes up for a failure. */
static int store_revision(struct df_spawner *s, const cJSON *doc, const cJSON *old, cJSON **ret,
                          struct df_err *err)
{
    DF_JSON cJSON *stored = NULL;
    struct df_err later = {0};
    if (store_alone(s, doc, old, &stored, err) < 0)
        return -1;
    if (df_revision_keep(s, stored, &later) < 0)
        df_info("executor %s has its revision later: %s", df_json_str(stored, "metadata.name"),
                later.message);
    if (ret)
        *ret = DF_TAKE(stored);
    return 0;
}

/* ---- create ---- */

int df_request_create_executor(struct df_spawner *s, const struct df_document_request *request,
                               cJSON **ret, struct df_err *err)
{
    cJSON *doc = request->doc;
    if (check_document(doc, NULL, err) < 0 ||
        df_allowed_executor(s, doc, NULL, request->role, err) < 0 ||
        df_request_check_secrets(s, doc, request->role, request->actor, err) < 0 ||
        df_request_check_integrations(s, doc, request->role, request->actor, err) < 0 ||
        df_add_reserved(doc, request->marks, err) < 0 ||
        df_new_executor_status(doc, request->actor, err) < 0)
        return -1;
    return store_revision(s, doc, NULL, ret, err);
}

/* ---- change ---- */

/* Keeps the server-side parts of the old document; spec, labels and annotations are the new ones. A
 * refusal (accepted.h) is of the old spec. */
static int carry_over(cJSON *doc, const cJSON *old, struct df_err *err)
{
    cJSON *metadata = cJSON_Duplicate(df_json_at(old, "metadata"), true);
    cJSON *status = cJSON_Duplicate(df_json_at(old, "status"), true);
    cJSON *sent = cJSON_DetachItemFromObjectCaseSensitive(doc, "metadata");
    int failed = !metadata || !status || !sent;
    static const char *const maps[] = {"labels", "annotations"};
    if (df_doc_is_refused(old))
        cJSON_DeleteItemFromObjectCaseSensitive(status, "conditions");
    for (size_t i = 0; !failed && i < DF_ARRAY_SIZE(maps); i++) {
        cJSON *map = cJSON_DetachItemFromObjectCaseSensitive(sent, maps[i]);
        cJSON_DeleteItemFromObjectCaseSensitive(metadata, maps[i]);
        failed = map && df_json_add(metadata, maps[i], map, err) < 0;
    }
    cJSON_Delete(sent);
    if (df_json_put(doc, err, DF_ITEM("metadata", metadata), DF_ITEM("status", status)) < 0 ||
        failed)
        return df_fail_oom(err);
    return df_executor_set_refused(doc, false, err);
}

/* The old revision is certain to be stored before another spec takes its place: a crash may have
 * prevented that when it was new. */
static int raise_revision(struct df_spawner *s, cJSON *doc, const cJSON *old, const char *author,
                          struct df_err *err)
{
    char at[DF_TIME_LEN];
    if (df_json_equal(df_json_at(doc, "spec"), df_json_at(old, "spec")))
        return 0;
    return df_revision_keep(s, old, err) < 0
               ? -1
               : df_revision_set(df_json_object_at(doc, "status"),
                                 df_json_int(old, "status.revision", 0) + 1, author,
                                 df_time_format(df_real_us(), at), err);
}

/* A source that was confirmed once need not be confirmed again. */
static int note_source(cJSON *doc, struct df_err *err)
{
    cJSON *status = df_json_object_at(doc, "status");
    if (!df_json_at(status, "provisionedFrom"))
        return 0;
    return df_json_set_str(status, "provisionedFrom", df_json_str(doc, "spec.source.url"), err);
}

/* "metadata.labels.a, metadata.labels.b: a change that leads to ..." */
static int say_labels(const cJSON *labels, struct df_buf *out, struct df_err *err)
{
    const cJSON *label;
    cJSON_ArrayForEach (label, labels)
        (void)df_buf_addf(out, "%smetadata.labels.%s", out->len ? ", " : "", label->valuestring);
    (void)df_buf_adds(out, ": a change that leads to other grants of auth.grants");
    return df_buf_check(out, err);
}

/* Whoever may only edit changes neither who may what, which labels lead to, nor what keeps a run
 * from being applied. */
static int check_rules(const struct df_spawner *s, const cJSON *doc, const cJSON *old,
                       df_verbs verbs, struct df_err *err)
{
    const char *what = df_approval_loosened(old, doc);
    DF_JSON cJSON *labels = cJSON_CreateArray();
    DF_BUF struct df_buf said = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    if (df_check_alloc(labels, err) < 0 ||
        df_access_changes(s->config->grants, old, doc, labels, NULL, err) < 0 ||
        say_labels(labels, &said, err) < 0)
        return -1;
    if (labels->child)
        what = df_buf_str(&said);
    else if (!df_policies_are_same(s->config->policies, old, doc))
        what = "metadata.labels: a change that leads to other policies";
    return what ? df_verbs_require(verbs, DF_VERB_GRANT, what, df_json_str(old, "metadata.name"),
                                   err)
                : 0;
}

/* Who may edit an executor may have its next run do anything with the secrets and integrations that
 * are for it, so these are checked as for an admin. */
int df_request_change_executor(struct df_spawner *s, const struct df_document_request *request,
                               const cJSON *old, bool confirmed, cJSON **ret, struct df_err *err)
{
    const cJSON *accepted = df_doc_is_refused(old) ? NULL : old;
    enum df_role role = request->role;
    cJSON *doc = request->doc;
    if (df_executor_check_edit(old, request->verbs, err) < 0 || check_document(doc, old, err) < 0 ||
        check_rules(s, doc, old, request->verbs, err) < 0 ||
        df_allowed_executor(s, doc, accepted, role, err) < 0 ||
        df_request_check_secrets(s, doc, DF_ROLE_ADMIN, NULL, err) < 0 ||
        df_request_check_integrations(s, doc, DF_ROLE_ADMIN, NULL, err) < 0 ||
        df_executor_check_source(old, doc, confirmed, err) < 0 || carry_over(doc, old, err) < 0 ||
        note_source(doc, err) < 0 || raise_revision(s, doc, old, request->actor, err) < 0)
        return -1;
    df_stamp_drop(doc, DF_STAMP_REQUESTED);
    return store_revision(s, doc, old, ret, err);
}

/* ---- delete ---- */

struct deletion {
    struct df_spawner *s;
    df_verbs verbs;
    const struct df_forget *forget;
    const char *actor;
};

/* A df_store_visit. */
static int refuse_unfinished(const cJSON *run, void *arg, struct df_err *err)
{
    (void)arg;
    if (!df_label_has(run, DF_LABEL_UNFINISHED))
        return 0;
    return df_fail_reason(err, DF_ERR_CONFLICT, "WrongState",
                          "executor %s has unfinished runs: wait for them, or cancel them",
                          df_json_str(run, "spec.executorRef.name"));
}

/* Checks the same version that is written. */
static int check_deletion(const struct deletion *d, const cJSON *executor, struct df_err *err)
{
    const char *name = df_json_str(executor, "metadata.name");
    DF_FREE char *label = df_strf(DF_LABEL_EXECUTOR "=%s", name);
    if (!label)
        return df_fail_oom(err);
    return df_holdings_check_delete(d->s, executor, d->verbs, d->forget, err) < 0
               ? -1
               : df_store_each(d->s->store, DF_KIND_RUN, label, refuse_unfinished, NULL, err);
}

static int set_deleting(cJSON *executor, void *arg, struct df_err *err)
{
    const struct deletion *d = arg;
    if (df_json_at(executor, "status.deleting"))
        return 1;
    if (check_deletion(d, executor, err) < 0)
        return -1;
    cJSON *status = df_json_object_at(executor, "status");
    cJSON *deleting = df_json_object_at(status, "deleting");
    if (df_json_put(deleting, err, DF_STR("by", d->actor), DF_TIME("at", df_real_us())) < 0)
        return -1;
    return df_label_set(executor, DF_LABEL_UNFINISHED, "true", err);
}

int df_request_mark_executor(struct df_spawner *s, const char *name, df_verbs verbs,
                             const struct df_forget *forget, const char *actor, cJSON **ret,
                             struct df_err *err)
{
    struct deletion d = {s, verbs, forget, actor};
    return df_store_modify(s->store, DF_KIND_EXECUTOR, name, set_deleting, &d, ret, err);
}

int df_request_delete_executor(struct df_spawner *s, const char *name, df_verbs verbs,
                               const struct df_forget *forget, const char *actor,
                               struct df_err *err)
{
    DF_JSON cJSON *executor = NULL;
    struct df_err later = {0};
    if (df_request_mark_executor(s, name, verbs, forget, actor, &executor, err) < 0)
        return -1;
    /* The mark has woken the control loop, which continues until everything is removed. */
    if (df_purge_executor(s, executor, NULL, &later) < 0)
        df_info("executor %s is removed later: %s", name, later.message);
    return 0;
}
