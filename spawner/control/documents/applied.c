/*
 * Checks what people write with kubectl: first admission and refusal, which all kinds share, then
 * one section for each kind. Read df_applied_executor(), df_applied_run() and df_applied_task(),
 * and from each one downwards.
 */
#include "spawner/control/documents/applied.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "spawner/control/documents/audit.h"
#include "spawner/control/documents/deleted.h"
#include "spawner/journal/transitions.h"
#include "spawner/model/accepted.h"
#include "spawner/model/revision.h"
#include "spawner/model/workflow.h"
#include "spawner/requests/allowed.h"
#include "spawner/requests/integrations.h"
#include "spawner/requests/new_docs.h"
#include "spawner/requests/requests.h"
#include "spawner/requests/revisions.h"
#include "spawner/requests/secrets.h"
#include "spawner/requests/storage.h"
#include "spawner/steps/outcome.h"

#define ACCEPTED "Accepted"
#define DELETING "Deleting"
/* How soon a run whose executor is missing is tried again, if nothing wakes it (memory.h). */
#define AGAIN_US INT64_C(1000000)

static const char *name_of(const cJSON *doc)
{
    return df_json_str(doc, "metadata.name");
}

static int64_t generation_of(const cJSON *doc)
{
    return df_json_int(doc, "metadata.generation", 1);
}

/* Who wrote this part of the document: one of the annotations of stamp.h. */
static struct df_stamp stamp_of(const struct df_spawner *s, const cJSON *doc, const char *part)
{
    return df_stamp_read(doc, part, s->config->kube_webhook != NULL);
}

/* Audits what somebody did with kubectl. why: it is refused for this reason; NULL: it is done. */
static void audit(struct df_control *c, enum df_kind kind, const cJSON *doc, const char *action,
                  const struct df_stamp *by, const struct df_err *why)
{
    const struct df_audit_event event = {*by, action, why ? "refused" : "done",
                                         why ? why->message : NULL};
    df_control_audit(c->s, kind, name_of(doc), &event);
}

/* ---- admission ---- */

/* What the person who wrote this resource may do. The API server has checked the right to write it,
 * which is all there is about actions if nobody is named. The pod of somebody without a name is
 * that of a `write` caller. */
static struct df_rights rights_of(const struct df_stamp *by)
{
    return (struct df_rights){.verbs = df_role_verbs(by->role),
                              .role = by->is_named ? by->role : DF_ROLE_WRITE};
}

/* The document as a REST client would have sent it, because df_model_admit() expects that form. */
static cJSON *as_sent(const cJSON *doc)
{
    cJSON *sent = cJSON_CreateObject(), *spec = cJSON_Duplicate(df_json_at(doc, "spec"), true);
    if (!sent) {
        cJSON_Delete(spec);
        return NULL;
    }
    if (df_json_add(sent, "spec", spec, NULL) == 0 &&
        df_json_add_str(df_json_object_at(sent, "metadata"), "name", name_of(doc), NULL) == 0)
        return sent;
    cJSON_Delete(sent);
    return NULL;
}

/* *ret: the admitted document. -1 with class USER: the document is to be refused. */
static int validate(enum df_kind kind, const cJSON *doc, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *sent = as_sent(doc);
    if (!sent)
        return df_fail_oom(err);
    if (df_model_admit(kind, sent, NULL, err) < 0)
        return -1;
    *ret = DF_TAKE(sent);
    return 0;
}

/* True if the same document will always be refused for this reason. */
static bool is_final(const struct df_err *why)
{
    bool raced = df_streq(why->reason, "Conflict");
    return why->cls == DF_ERR_USER || why->cls == DF_ERR_DENIED ||
           (why->cls == DF_ERR_CONFLICT && !raced);
}

/* ---- refusal ---- */

/* The reason word of a refused document. */
static const char *word_of(const struct df_err *why)
{
    static const char *const own[] = {DF_REASON_PLACEMENT_DENIED, "ErroredStatePending"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(own); i++)
        if (df_streq(why->reason, own[i]))
            return own[i];
    return DF_REASON_REFUSED;
}

/* With kubectl even an admin of the cluster may be refused. */
static void explain_role(const struct df_stamp *by, struct df_err *why)
{
    if (!by->is_named && df_streq(why->reason, DF_REASON_PLACEMENT_DENIED))
        (void)df_err_wrap(why, "no admission webhook says who applied it (kubernetes.webhook), so "
                               "the rules of the role write apply");
}

struct verdict {
    enum df_kind kind;
    int64_t generation;       /* of the spec that was checked */
    const struct df_err *why; /* NULL: it is accepted */
    struct df_stamp by;       /* who wrote it */
};

static int refuse_run(cJSON *run, const struct df_err *why, int64_t now_us, struct df_err *err)
{
    cJSON *status = df_json_object_at(run, "status");
    char at[DF_TIME_LEN];
    if (!status)
        return df_fail_oom(err);
    if (df_json_set_str(status, "phase", "Failed", err) < 0 ||
        df_json_set_str(status, "reason", word_of(why), err) < 0 ||
        df_json_set_str(status, "message", why->message, err) < 0 ||
        df_json_set_str(status, "finishedAt", df_time_format(now_us, at), err) < 0 ||
        df_set_conditions(run, DF_OUTCOME_FAILED, word_of(why), why->message, now_us, err) < 0)
        return -1;
    /* With the label a deletion of the executor finds this run and deletes it, too. */
    return df_label_set(run, DF_LABEL_EXECUTOR, df_json_str(run, "spec.executorRef.name"), err);
}

static int refuse_task(cJSON *task, const struct df_err *why, int64_t now_us, struct df_err *err)
{
    const struct df_outcome_failure f = {
        .exit_code = -1, .reason = word_of(why), .message = why->message};
    return df_outcome_fail(task, &f, now_us, err);
}

static int set_refused(cJSON *doc, void *arg, struct df_err *err)
{
    const struct verdict *v = arg;
    int64_t now_us = df_real_us();
    if (df_json_at(doc, "status"))
        return 1;
    return v->kind == DF_KIND_RUN ? refuse_run(doc, v->why, now_us, err)
                                  : refuse_task(doc, v->why, now_us, err);
}

static int refuse(struct df_control *c, enum df_kind kind, const cJSON *doc, struct df_err *why,
                  struct df_err *err)
{
    struct verdict v = {.kind = kind, .why = why};
    const struct df_stamp by = stamp_of(c->s, doc, DF_STAMP_REQUESTED);
    explain_role(&by, why);
    df_warn("%s %s was applied and is refused: %s", df_kind_name(kind), name_of(doc), why->message);
    audit(c, kind, doc, "create", &by, why);
    return kind == DF_KIND_TASK_ACTION
               ? df_task_modify(c->s, name_of(doc), set_refused, &v, NULL, err)
               : df_store_modify(c->s->store, kind, name_of(doc), set_refused, &v, NULL, err);
}

/* ---- executors ---- */

/* Writes the verdict on this generation of the spec. If the spec was edited meanwhile it writes
 * nothing: that edit causes a pass of its own. */
static int set_executor(cJSON *executor, void *arg, struct df_err *err)
{
    const struct verdict *v = arg;
    bool good = !v->why;
    if (generation_of(executor) != v->generation || df_executor_is_accepted(executor))
        return 1;
    if (!df_json_at(executor, "status") && df_new_executor_status(executor, v->by.name, err) < 0)
        return -1;
    cJSON *status = df_json_object_at(executor, "status");
    char at[DF_TIME_LEN];
    if (df_revision_set(status, v->generation, v->by.name, df_time_format(df_real_us(), at), err) <
            0 ||
        df_json_set(status, "observedGeneration", cJSON_CreateNumber((double)v->generation), err) <
            0 ||
        df_executor_set_refused(executor, !good, err) < 0)
        return -1;
    if (good && df_doc_is_deleted(executor))
        return df_set_conditions(executor, DF_OUTCOME_NONE, DELETING, "it is being deleted",
                                 df_real_us(), err);
    return df_set_conditions(executor, good ? DF_OUTCOME_SUCCEEDED : DF_OUTCOME_FAILED,
                             good ? ACCEPTED : word_of(v->why), good ? NULL : v->why->message,
                             df_real_us(), err);
}

/* True if the deletion, which increments the generation once, is all that happened to an accepted
 * executor. It asks for nothing, and the executor must remain able to run its destroy. Whatever
 * comes after the first verdict on a deleted executor is an edit; that verdict leaves the word
 * Deleting. */
static bool is_deletion_alone(const cJSON *executor)
{
    return df_doc_is_deleted(executor) && !df_doc_is_refused(executor) &&
           !df_streq(df_task_reason(executor), DELETING) &&
           generation_of(executor) == df_json_int(executor, "status.revision", 0) + 1;
}

static int admit_executor(struct df_control *c, const cJSON *executor, struct df_err *err)
{
    DF_JSON cJSON *admitted = NULL, *judged = NULL;
    struct df_err why = {0};
    bool asks = !is_deletion_alone(executor);
    struct verdict v = {.kind = DF_KIND_EXECUTOR,
                        .generation = generation_of(executor),
                        /* A deletion leaves no stamp: the one that is there is of the last edit. */
                        .by = asks ? stamp_of(c->s, executor, DF_STAMP_REQUESTED)
                                   : df_stamp_nobody()};
    bool is_new = !df_json_at(executor, "status");
    if (validate(DF_KIND_EXECUTOR, executor, &admitted, &why) < 0 ||
        (asks && df_allowed_executor(c->s, admitted, NULL, rights_of(&v.by).role, &why) < 0) ||
        df_request_check_secrets(c->s, admitted, v.by.role, NULL, &why) < 0 ||
        df_request_check_integrations(c->s, admitted, v.by.role, NULL, &why) < 0 ||
        df_storage_check(c->s, admitted, &why) < 0 ||
        df_executor_check_provisioned_from(executor, &why) < 0 ||
        df_executor_check_provisioned_storage(executor, admitted, &why) < 0) {
        if (!is_final(&why))
            return df_err_pass(err, &why);
        v.why = &why;
        explain_role(&v.by, &why);
        df_warn("executor %s was applied and is refused: %s", name_of(executor), why.message);
    }
    audit(c, DF_KIND_EXECUTOR, executor, is_new ? "create" : "update", &v.by, v.why);
    return df_store_modify(c->s->store, DF_KIND_EXECUTOR, name_of(executor), set_executor, &v,
                           &judged, err) < 0
               ? -1
               : df_revision_keep(c->s, judged, err);
}

int df_applied_executor(struct df_control *c, const cJSON *executor, bool *ret_done,
                        int64_t *ret_wake_us, struct df_err *err)
{
    bool is_deleted = df_doc_is_deleted(executor);
    bool is_new = !df_json_at(executor, "status");
    /* A deletion also increments the generation, so this pass first judges the spec again, and a
     * later pass deletes the executor. */
    if (is_deleted && (is_new || df_executor_is_accepted(executor)))
        return df_deleted_executor(c, executor, ret_done, ret_wake_us, err);
    if (df_executor_is_accepted(executor))
        return 0;
    df_storage_lock();
    int result = admit_executor(c, executor, err);
    df_storage_unlock();
    *ret_done = result == 0;
    return result;
}

/* ---- runs ---- */

static int accept_run(struct df_control *c, cJSON *run, const cJSON *owner, int64_t number,
                      struct df_err *err)
{
    cJSON *spec = df_json_object_at(run, "spec");
    const struct df_stamp by = stamp_of(c->s, run, DF_STAMP_REQUESTED);
    if (df_new_run_number(c->s->config, run, owner, number, err) < 0 ||
        df_json_set_str(spec, "requestedBy", by.name, err) < 0 ||
        df_json_set_str(spec, "requestedRole", df_role_name(by.role), err) < 0 ||
        df_store_update(c->s->store, DF_KIND_RUN, run, NULL, err) < 0)
        return -1;
    audit(c, DF_KIND_RUN, run, df_json_str(spec, "action"), &by, NULL);
    return 0;
}

/* True while the run may still wait for its executor, which a person may apply after the run. */
static bool may_wait(const struct df_control *c, const cJSON *run, const struct df_err *why)
{
    int64_t created_us = 0;
    bool is_missing = why->cls == DF_ERR_NOT_FOUND || df_streq(why->reason, "NotAccepted");
    if (!is_missing ||
        df_time_parse(df_json_str(run, "metadata.creationTimestamp"), &created_us, NULL) < 0)
        return false;
    return df_real_us() < created_us + c->s->config->timeout_pending_s * 1000000;
}

/* The definition lets a new run have a decision, because one that is restored from a backup is
 * created before its status is written. */
static int check_undecided(const cJSON *run, struct df_err *err)
{
    return !df_json_at(run, "spec.decision")
               ? 0
               : df_fail_reason(err, DF_ERR_USER, DF_REASON_REFUSED,
                                "spec.decision: the run does not wait for a decision");
}

static int admit_run(struct df_control *c, const cJSON *run, int64_t *ret_wake_us,
                     struct df_err *err)
{
    DF_JSON cJSON *admitted = NULL, *owner = NULL, *next = cJSON_Duplicate(run, true);
    const struct df_stamp by = stamp_of(c->s, run, DF_STAMP_REQUESTED);
    const struct df_rights rights = rights_of(&by);
    struct df_err why = {0};
    int64_t number = 0;
    if (!next)
        return df_fail_oom(err);
    if (check_undecided(run, &why) == 0 && validate(DF_KIND_RUN, run, &admitted, &why) == 0) {
        df_memory_await_executor(&c->s->memory, run,
                                 df_json_str(admitted, "spec.executorRef.name"));
        if (df_request_number_run(c->s, run, NULL, &rights, &owner, &number, &why) == 0)
            return accept_run(c, next, owner, number, err);
    }
    if (may_wait(c, run, &why)) {
        *ret_wake_us = df_real_us() + AGAIN_US;
        return 0;
    }
    if (is_final(&why) || why.cls == DF_ERR_NOT_FOUND)
        return refuse(c, DF_KIND_RUN, run, &why, err);
    return df_err_pass(err, &why);
}

/* ---- decisions and cancels ---- */

/* A part of the spec that kubectl added to an accepted document. */
struct note {
    const char *key, *stamp;
};
static const struct note decision_note = {"decision", DF_STAMP_DECIDED};
static const struct note cancel_note = {"cancel", DF_STAMP_CANCELED};

struct signature {
    const struct df_spawner *s;
    const struct note *note;
    const cJSON *seen; /* the part that was judged; borrowed */
    struct df_stamp by;
    int64_t now_us;
    const char *refusal; /* NULL: signed */
    int64_t required;    /* approvals, if it is one */
    bool is_one_of;      /* it is an approval, and others have to follow */
};

static bool is_unsigned(const cJSON *note)
{
    return note && !df_json_at(note, "at");
}

/* *ret: the unsigned part, or NULL. CONFLICT Conflict if it is not the one that was judged:
 * somebody has written another one since, which the next pass judges. */
static int find_note(cJSON *doc, const struct signature *s, cJSON **ret, struct df_err *err)
{
    cJSON *note = cJSON_GetObjectItemCaseSensitive(df_json_object_at(doc, "spec"), s->note->key);
    const struct df_stamp by = stamp_of(s->s, doc, s->note->stamp);
    *ret = is_unsigned(note) ? note : NULL;
    if (!*ret || (df_json_equal(note, s->seen) && by.role == s->by.role &&
                  by.is_named == s->by.is_named && df_streq(by.name, s->by.name)))
        return 0;
    return df_fail_reason(err, DF_ERR_CONFLICT, "Conflict", "spec.%s of %s was changed meanwhile",
                          s->note->key, name_of(doc));
}

/* What the writer of spec.decision says. */
static struct df_decision decision_of(const cJSON *run, const struct df_stamp *by)
{
    return (struct df_decision){.approves =
                                    df_streq(df_json_str(run, "spec.decision.verdict"), "approved"),
                                .verbs = df_role_verbs(by->role),
                                .actor = by->name,
                                .reason = df_json_str(run, "spec.decision.reason"),
                                .role = by->role};
}

static void take_away(cJSON *run)
{
    cJSON_DeleteItemFromObjectCaseSensitive(df_json_object_at(run, "spec"), "decision");
    df_stamp_drop(run, DF_STAMP_DECIDED);
}

/* Notes an approval in the status, before it is signed or makes room in the spec for the next one:
 * a crash in between loses none. */
static int note_approval(cJSON *run, void *arg, struct df_err *err)
{
    struct signature *s = arg;
    const struct df_decision d = decision_of(run, &s->by);
    bool decides = true;
    cJSON *note = NULL;
    if (find_note(run, s, &note, err) < 0)
        return -1;
    if (!note || !d.approves)
        return 1;
    if (df_request_add_approval(run, &d, s->required, &decides, err) < 0)
        return -1;
    s->is_one_of = !decides;
    return 0;
}

static int set_signature(cJSON *doc, void *arg, struct df_err *err)
{
    const struct signature *s = arg;
    cJSON *note = NULL;
    if (find_note(doc, s, &note, err) < 0)
        return -1;
    if (!note)
        return 1;
    if (s->is_one_of) {
        take_away(doc);
        return 0;
    }
    char at[DF_TIME_LEN];
    if (df_json_set_str(note, "by", s->by.name, err) < 0)
        return -1;
    return df_json_set_str(note, "at", df_time_format(s->now_us, at), err);
}

/* Takes the decision away, so that somebody else can decide. */
static int set_refusal(cJSON *run, void *arg, struct df_err *err)
{
    const struct signature *s = arg;
    cJSON *note = NULL, *status = df_json_object_at(run, "status");
    if (!status)
        return df_fail_oom(err);
    if (find_note(run, s, &note, err) < 0)
        return -1;
    if (!note)
        return 1;
    take_away(run);
    return df_json_set_str(status, "refusedDecision", s->refusal, err);
}

static const char *audit_action(const cJSON *doc, const char *key)
{
    const char *verdict = df_json_str(doc, "spec.decision.verdict");
    if (strcmp(key, "cancel") == 0)
        return "cancel";
    return df_streq(verdict, "approved") ? "approve" : "discard";
}

/* May the writer of the decision decide so? */
static int check_decision(const struct df_control *c, const cJSON *run, struct signature *s,
                          struct df_err *err)
{
    const struct df_decision d = decision_of(run, &s->by);
    return df_request_check_decision(c->s, run, &d, &s->required, err);
}

static int refuse_decision(struct df_control *c, const cJSON *run, struct signature *s,
                           const struct df_err *why, struct df_err *err)
{
    DF_FREE char *text = df_strf("the decision of %s is refused%s%s: %s", s->by.name,
                                 why->reason[0] ? ", " : "", why->reason, why->message);
    if (!text)
        return df_fail_oom(err);
    s->refusal = text;
    if (df_store_modify(c->s->store, DF_KIND_RUN, name_of(run), set_refusal, s, NULL, err) < 0)
        return -1;
    audit(c, DF_KIND_RUN, run, audit_action(run, s->note->key), &s->by, why);
    return 0;
}

/* Adds `by` and `at` to a decision or a cancel. One that was written with kubectl lacks `at`.
 * *ret_done: this pass has added them, or has taken the decision away. */
static int sign(struct df_control *c, enum df_kind kind, const cJSON *doc, const struct note *n,
                bool *ret_done, struct df_err *err)
{
    struct signature s = {.s = c->s,
                          .note = n,
                          .seen = cJSON_GetObjectItemCaseSensitive(df_json_at(doc, "spec"), n->key),
                          .by = stamp_of(c->s, doc, n->stamp),
                          .now_us = df_real_us()};
    struct df_err why = {0};
    if (!is_unsigned(s.seen))
        return 0;
    *ret_done = true;
    if (n == &decision_note && check_decision(c, doc, &s, &why) < 0)
        return is_final(&why) ? refuse_decision(c, doc, &s, &why, err) : df_err_pass(err, &why);
    if (n == &decision_note &&
        df_store_modify(c->s->store, kind, name_of(doc), note_approval, &s, NULL, err) < 0)
        return -1;
    if (df_store_modify(c->s->store, kind, name_of(doc), set_signature, &s, NULL, err) < 0)
        return -1;
    audit(c, kind, doc, audit_action(doc, n->key), &s.by, NULL);
    return 0;
}

int df_applied_run(struct df_control *c, const cJSON *run, bool *ret_done, int64_t *ret_wake_us,
                   struct df_err *err)
{
    if (df_doc_is_deleted(run))
        return df_deleted_run(c, run, ret_done, ret_wake_us, err);
    if (!df_json_at(run, "status")) {
        *ret_done = true;
        return admit_run(c, run, ret_wake_us, err);
    }
    if (df_doc_is_refused(run)) /* a decision that it brought decides nothing */
        return 0;
    if (sign(c, DF_KIND_RUN, run, &decision_note, ret_done, err) < 0)
        return -1;
    return sign(c, DF_KIND_RUN, run, &cancel_note, ret_done, err);
}

/* ---- TaskActions ---- */

static int set_accepted(cJSON *task, void *arg, struct df_err *err)
{
    DF_JSON cJSON *admitted = NULL;
    if (df_json_at(task, "status"))
        return 1;
    const struct df_stamp by = stamp_of(arg, task, DF_STAMP_REQUESTED);
    if (validate(DF_KIND_TASK_ACTION, task, &admitted, err) < 0 ||
        df_allowed_workflow(arg, admitted, rights_of(&by).role, err) < 0 ||
        df_json_set(task, "spec", cJSON_Duplicate(df_json_at(admitted, "spec"), true), err) < 0)
        return -1;
    return df_new_workflow(arg, task, by.name, err);
}

static int admit_workflow(struct df_control *c, const cJSON *task, struct df_err *err)
{
    struct df_err why = {0};
    if (df_task_modify(c->s, name_of(task), set_accepted, c->s, NULL, &why) == 0) {
        const struct df_stamp by = stamp_of(c->s, task, DF_STAMP_REQUESTED);
        audit(c, DF_KIND_TASK_ACTION, task, "create", &by, NULL);
        return 0;
    }
    if (is_final(&why))
        return refuse(c, DF_KIND_TASK_ACTION, task, &why, err);
    return df_err_pass(err, &why);
}

/* A step without status was never started. If its run has not ended, a crash between the two writes
 * of its creation left the step: it is removed, and its run creates it again. Otherwise the step is
 * refused, because only the service creates steps. */
static int admit_step(struct df_control *c, const cJSON *task, struct df_err *err)
{
    const char *run = df_json_str(task, "spec.runRef.name");
    DF_SHARED const cJSON *owner = NULL;
    struct df_err why = {0};
    if (run && df_store_look(c->s->store, DF_KIND_RUN, run, &owner, NULL) == 0 &&
        !df_run_is_final(owner)) {
        if (df_store_remove(c->s->store, DF_KIND_TASK_ACTION, name_of(task),
                            df_json_str(task, "metadata.uid"), err) < 0)
            return -1;
        df_queue_wake(c->queue, DF_KIND_RUN, run);
        return 0;
    }
    (void)df_task_refuse_step(task, &why);
    return refuse(c, DF_KIND_TASK_ACTION, task, &why, err);
}

int df_applied_task(struct df_control *c, const cJSON *task, bool *ret_done, struct df_err *err)
{
    if (df_doc_is_deleted(task))
        return df_deleted_task(c, task, ret_done, err);
    if (df_json_at(task, "status"))
        return sign(c, DF_KIND_TASK_ACTION, task, &cancel_note, ret_done, err);
    *ret_done = true;
    return df_task_is_workflow(task) ? admit_workflow(c, task, err) : admit_step(c, task, err);
}
