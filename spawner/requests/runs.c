/*
 * runs.c - requests on runs: create, decide, cancel.
 */
#include "common/base/clock.h"
#include "spawner/model/accepted.h"
#include "spawner/model/approval.h"
#include "spawner/model/errored_states.h"
#include "spawner/model/platform.h"
#include "spawner/model/policy.h"
#include "spawner/model/recipe.h"
#include "spawner/model/redirect.h"
#include "spawner/requests/new_docs.h"
#include "spawner/requests/requests.h"
#include "spawner/requests/storage.h"
#include "spawner/steps/errored.h"
#include "spawner/steps/sealed.h"

/* One that was deleted with kubectl waits until it holds nothing: what leads there, an admin's,
 * still runs. Its spec may be edited meanwhile. */
static int not_being_deleted(const cJSON *executor, enum df_action action, struct df_err *err)
{
    const char *name = df_json_str(executor, "metadata.name");
    if (df_json_at(executor, "status.deleting"))
        return df_fail_reason(err, DF_ERR_CONFLICT, "WrongState", "executor %s is being deleted",
                              name);
    if (!df_doc_is_deleted(executor) || action == DF_ACTION_DESTROY || action == DF_ACTION_STATE)
        return 0;
    return df_fail_reason(err, DF_ERR_CONFLICT, "WrongState",
                          "executor %s is being deleted: only a destroy and commands on its state "
                          "run, until it holds nothing",
                          name);
}

/* ---- create ---- */

#define NAMES_TRIED 16

struct numbering {
    struct df_spawner *s;
    enum df_action action;
    const struct df_rights *rights;
    const cJSON *run;
    const cJSON *secrets; /* of the request; or NULL */
    int64_t number;       /* out */
};

/* Checks the same version that is written, so that the executor cannot be deleted in between. */
static int take_number(cJSON *executor, void *arg, struct df_err *err)
{
    struct numbering *n = arg;
    cJSON *status = df_json_object_at(executor, "status");
    if (df_check_alloc(status, err) < 0 || not_being_deleted(executor, n->action, err) < 0 ||
        df_executor_check_accepted(executor, err) < 0 ||
        df_executor_check_action(executor, n->action, n->rights->verbs, err) < 0 ||
        df_errored_check_run(executor, n->run, err) < 0 ||
        df_approval_check_run(&n->s->config->approval, n->run, executor,
                              df_verbs_role(n->rights->verbs), err) < 0 ||
        df_allowed_run(n->s, n->run, executor, n->rights->role, err) < 0 ||
        df_new_run_check(n->s->config, n->run, executor, err) < 0 ||
        df_platform_check_run(n->run, n->secrets, executor, err) < 0)
        return -1;
    n->number = df_json_int(status, "runCounter", 0) + 1;
    return df_json_set(status, "runCounter", cJSON_CreateNumber((double)n->number), err);
}

/* The executor may have been deleted between taking the number and storing the run, without
 * noticing the run. */
static int check_still_there(struct df_spawner *s, const char *executor, const cJSON *run,
                             struct df_err *err)
{
    DF_SHARED const cJSON *owner = NULL;
    enum df_action action;
    if (df_run_action(run, &action, err) == 0 &&
        df_store_look(s->store, DF_KIND_EXECUTOR, executor, &owner, err) == 0 &&
        not_being_deleted(owner, action, err) == 0)
        return 0;
    (void)df_store_remove(s->store, DF_KIND_RUN, df_json_str(run, "metadata.name"),
                          df_json_str(run, "metadata.uid"), NULL);
    (void)df_sealed_drop(s, run, NULL);
    return -1;
}

/* If an errored state is in the way, it is looked for before the run is refused: its removal may
 * not have been noted. */
static int number(struct numbering *n, const char *executor, cJSON **ret, struct df_err *err)
{
    struct df_store *store = n->s->store;
    struct df_err why = {0};
    if (df_store_modify(store, DF_KIND_EXECUTOR, executor, take_number, n, ret, &why) == 0)
        return 0;
    if (!df_streq(why.reason, "ErroredStatePending"))
        return df_err_pass(err, &why);
    if (df_errored_note(n->s, executor, NULL, err) < 0)
        return -1;
    return df_store_modify(store, DF_KIND_EXECUTOR, executor, take_number, n, ret, err);
}

int df_request_number_run(struct df_spawner *s, const cJSON *run, const cJSON *secrets,
                          const struct df_rights *rights, cJSON **ret_executor, int64_t *ret_number,
                          struct df_err *err)
{
    struct numbering n = {.s = s, .rights = rights, .run = run, .secrets = secrets};
    if (df_run_action(run, &n.action, err) < 0 || df_storage_check_move(s, run, err) < 0 ||
        number(&n, df_json_str(run, "spec.executorRef.name"), ret_executor, err) < 0)
        return -1;
    *ret_number = n.number;
    return 0;
}

/* Returns 0; 1 if the name is taken by a run of somebody else: the caller tries the next number.
 * The secrets are in the vault before the run is stored. */
static int create_numbered(struct df_spawner *s, cJSON *run, const cJSON *secrets,
                           const struct df_rights *rights, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *owner = NULL;
    const char *role = df_role_name(df_verbs_role(rights->verbs));
    struct df_err why = {0};
    int64_t number = 0;
    if (df_request_number_run(s, run, secrets, rights, &owner, &number, err) < 0 ||
        df_json_set_str(df_json_object_at(run, "spec"), "requestedRole", role, err) < 0 ||
        (!df_json_at(run, "spec.replaces") && df_new_run_name(run, owner, number, err) < 0) ||
        df_new_run_number(s->config, run, owner, number, err) < 0 ||
        df_sealed_put(s, run, secrets, err) < 0)
        return -1;
    if (df_store_create(s->store, DF_KIND_RUN, run, ret, &why) == 0)
        return 0;
    if (df_streq(why.reason, "AlreadyExists"))
        return df_sealed_drop(s, run, err) < 0 ? -1 : 1;
    /* The run may exist in spite of the error, so its secrets are left to the sweep. */
    return df_err_pass(err, &why);
}

/* The step checks this again; here the client still learns it from the answer. */
static int check_redirects(struct df_spawner *s, const char *executor, const cJSON *secrets,
                           struct df_err *err)
{
    const cJSON *variables = df_json_at(secrets, "environment");
    DF_SHARED const cJSON *owner = NULL;
    if (!variables)
        return 0;
    if (df_store_look(s->store, DF_KIND_EXECUTOR, executor, &owner, err) < 0)
        return -1;
    return df_redirect_check(df_json_at(owner, "spec.storage"), variables, "InvalidDocument", err);
}

/* Of a service for others the operator says where providers and modules come from (providers.*). */
static int check_cli_config(const struct df_spawner *s, const cJSON *secrets, struct df_err *err)
{
    if (!df_json_at(secrets, DF_SEALED_CLI_CONFIG) || s->config->embedded)
        return 0;
    return df_fail_reason(err, DF_ERR_USER, "InvalidDocument",
                          "secrets." DF_SEALED_CLI_CONFIG
                          ": is for a command that is its own service; here providers.* of the "
                          "configuration has mirrors and tokens");
}

/* A variable may decide which program a step starts, with the secrets of the executor. */
static int check_environment(const struct df_spawner *s, const cJSON *secrets, df_verbs verbs,
                             struct df_err *err)
{
    const struct df_config *config = s->config;
    char yours[DF_VERBS_TEXT];
    if (df_verbs_have(verbs, DF_VERB_EDIT) || config->embedded)
        return 0;
    const char *name =
        df_model_admins_variable(df_json_at(secrets, "environment"),
                                 config->caller_is_named ? &config->caller_environment : NULL);
    if (!name)
        return 0;
    return df_fail(err, DF_ERR_DENIED,
                   "secrets.environment: %.64s in a run needs the role admin, or the verb edit; "
                   "yours is %s: it may "
                   "change what the step starts, or where its credentials go. An admin can run "
                   "this, store it in spec.environment of the executor, or name it in "
                   "caller.environment of the service's configuration",
                   name, df_verbs_say(verbs, yours));
}

int df_request_create_run(struct df_spawner *s, const char *executor,
                          const struct df_run_request *request, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *run = NULL, *stored = NULL;
    cJSON *secrets = cJSON_GetObjectItemCaseSensitive(request->body, DF_RUN_SECRETS);
    int result = 1;
    if (df_new_run(executor, request->body, request->marks, request->actor, &run, err) < 0 ||
        (secrets && df_model_check_secrets(secrets, err) < 0) ||
        check_environment(s, secrets, request->rights.verbs, err) < 0 ||
        check_cli_config(s, secrets, err) < 0 || check_redirects(s, executor, secrets, err) < 0)
        return -1;
    for (int i = 0; i < NAMES_TRIED && result > 0; i++)
        result = create_numbered(s, run, secrets, &request->rights, &stored, err);
    if (result > 0)
        return df_fail_reason(err, DF_ERR_CONFLICT, "AlreadyExists",
                              "the next %d names of runs of %s are taken", NAMES_TRIED, executor);
    if (result < 0 || check_still_there(s, executor, stored, err) < 0)
        return -1;
    if (ret)
        *ret = DF_TAKE(stored);
    return 0;
}

/* ---- once more ---- */

static int copy_asked(cJSON *body, const cJSON *run, struct df_err *err)
{
    const cJSON *m;
    cJSON_ArrayForEach (m, df_json_at(run, "spec")) {
        const struct df_field *field = df_spec_field(DF_KIND_RUN, m->string);
        if (field && field->by == DF_BY_CLIENT &&
            df_json_set(body, m->string, cJSON_Duplicate(m, true), err) < 0)
            return -1;
    }
    return 0;
}

/* With all that its client asked for, under the name RUN-again. */
static int new_run_again(const cJSON *old, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *body = cJSON_CreateObject(), *run = NULL;
    const char *name = df_json_str(old, "metadata.name");
    char again[64];
    if (df_check_alloc(body, err) < 0 || copy_asked(body, old, err) < 0 ||
        df_new_run(df_json_str(old, "spec.executorRef.name"), body, NULL,
                   df_json_str(old, "spec.requestedBy"), &run, err) < 0 ||
        df_model_name(name, "again", again, err) < 0 ||
        df_json_set_str(df_json_object_at(run, "metadata"), "name", again, err) < 0 ||
        df_json_set_str(df_json_object_at(run, "spec"), "replaces", name, err) < 0)
        return -1;
    *ret = DF_TAKE(run);
    return 0;
}

/* The verb of the action was there when the first run was asked for; all else as with its role. */
static int rights_of(const cJSON *run, struct df_rights *ret, struct df_err *err)
{
    enum df_action action;
    if (df_run_action(run, &action, err) < 0 ||
        df_role_parse(df_json_str(run, "spec.requestedRole"), &ret->role, err) < 0)
        return -1;
    ret->verbs = df_role_verbs(ret->role) | df_action_verb(action);
    return 0;
}

static int find_again(struct df_spawner *s, const cJSON *again, bool *ret, struct df_err *err)
{
    const char *name = df_json_str(again, "metadata.name");
    DF_SHARED const cJSON *there = NULL;
    if (df_store_look_for(s->store, DF_KIND_RUN, name, &there, err) < 0)
        return -1;
    *ret = there != NULL;
    if (!there ||
        df_streq(df_json_str(there, "spec.replaces"), df_json_str(again, "spec.replaces")))
        return 0;
    return df_fail_reason(err, DF_ERR_CONFLICT, "AlreadyExists", "there is another run %s", name);
}

int df_request_run_again(struct df_spawner *s, const cJSON *run, char ret_name[64],
                         struct df_err *err)
{
    DF_JSON cJSON *again = NULL, *stored = NULL;
    DF_SECRET_JSON cJSON *secrets = NULL;
    struct df_rights rights = {0};
    bool is_there = false;
    if (new_run_again(run, &again, err) < 0 || rights_of(run, &rights, err) < 0 ||
        find_again(s, again, &is_there, err) < 0)
        return -1;
    (void)snprintf(ret_name, 64, "%s", df_json_str(again, "metadata.name"));
    if (is_there)
        return 0;
    if (df_sealed_get(s, run, &secrets, err) < 0)
        return -1;
    int result = create_numbered(s, again, secrets, &rights, &stored, err);
    if (result > 0)
        return df_fail_reason(err, DF_ERR_RETRY, "Conflict", "run %s appears right now", ret_name);
    return result < 0
               ? -1
               : check_still_there(s, df_json_str(run, "spec.executorRef.name"), stored, err);
}

/* ---- decide ---- */

static int wrong_state(const cJSON *run, const char *why, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_CONFLICT, "WrongState", "run %s is %s: %s",
                          df_json_str(run, "metadata.name"), df_run_phase(run), why);
}

/* Approving a plan that destroys needs the verb to destroy. Checks the same version that is
 * written, because the plan may have just arrived. */
static int check_verbs_of_decider(const cJSON *run, const struct df_decision *d, struct df_err *err)
{
    const char *name = df_json_str(run, "metadata.name");
    const char *executor = df_json_str(run, "spec.executorRef.name");
    bool is_destroy = df_streq(df_json_str(run, "spec.action"), df_action_name(DF_ACTION_DESTROY));
    char yours[DF_VERBS_TEXT];
    if (!d->approves || !df_approval_needs_admin(run))
        return df_verbs_require(d->verbs, DF_VERB_APPROVE,
                                d->approves ? "approving a run" : "discarding a run", executor,
                                err);
    if (is_destroy || df_verbs_have(d->verbs, DF_VERB_APPROVE | DF_VERB_DESTROY))
        return df_verbs_require(d->verbs, DF_VERB_APPROVE | DF_VERB_DESTROY, "approving this run",
                                executor, err);
    return df_fail_reason(
        err, DF_ERR_DENIED, "Forbidden",
        "the plan of %s destroys or forgets everything that executor %s holds: approving it needs "
        "the role admin, as a destroy does; yours is %s. Who has the verbs approve and destroy "
        "there can approve it, you can discard it (dayfly discard %s)",
        name, executor, df_verbs_say(d->verbs, yours), name);
}

int df_request_check_decision(struct df_spawner *s, const cJSON *run, const struct df_decision *d,
                              int64_t *ret_required, struct df_err *err)
{
    const struct df_approval_rules *rules = &s->config->approval;
    DF_SHARED const cJSON *executor = NULL;
    *ret_required = 1;
    if (check_verbs_of_decider(run, d, err) < 0)
        return -1;
    if (!d->approves)
        return 0;
    if (df_policies_check_override(s->config->policies, run, d->role, d->actor, d->reason, err) <
            0 ||
        df_store_look_for(s->store, DF_KIND_EXECUTOR, df_json_str(run, "spec.executorRef.name"),
                          &executor, err) < 0)
        return -1;
    *ret_required = df_approval_required(rules, run, executor);
    const struct df_grantee approver = {.user = d->actor, .groups = d->groups};
    return df_approval_check_approver(rules, run, executor, &approver, err);
}

struct deciding {
    struct df_spawner *s;
    const struct df_decision *decision;
};

static cJSON *new_decision(const struct df_decision *d, const char *plan)
{
    return df_json_object(DF_STR("verdict", d->approves ? "approved" : "discarded"),
                          DF_STR("by", d->actor), DF_TIME("at", df_real_us()),
                          DF_STR("reason", d->reason), DF_STR("plan", plan));
}

int df_request_add_approval(cJSON *run, const struct df_decision *d, int64_t required,
                            bool *ret_decides, struct df_err *err)
{
    cJSON *status = df_json_object_at(run, "status");
    cJSON *list = df_json_array_at(status, "decisions");
    cJSON_DeleteItemFromObjectCaseSensitive(status, "refusedDecision");
    if (!df_approval_is_of(run, d->actor) &&
        df_json_append(list, new_decision(d, df_json_str(run, "status.planDigest")), err) < 0)
        return -1;
    *ret_decides = df_approval_count(run) >= required;
    return 0;
}

static int check_plan(const cJSON *run, const struct df_decision *d, struct df_err *err)
{
    const char *now = df_json_str(run, "status.planDigest");
    if (!d->plan || df_streq(d->plan, now))
        return 0;
    return df_fail_reason(err, DF_ERR_CONFLICT, "PlanChanged",
                          "plan: the plan of run %s is %s, not %.80s: look at it again",
                          df_json_str(run, "metadata.name"), now ? now : "not known", d->plan);
}

static int check_open(const cJSON *run, const struct df_decision *d, struct df_err *err)
{
    const char *taken = df_json_str(run, "spec.decision.verdict");
    if (taken && !df_json_at(run, "spec.decision.at"))
        return df_fail_reason(err, DF_ERR_RETRY, "NotAccepted",
                              "somebody has just written a decision about run %s, which is not "
                              "checked yet: try again",
                              df_json_str(run, "metadata.name"));
    if (taken)
        return wrong_state(
            run, df_streq(taken, "approved") ? "it was approved" : "it was discarded", err);
    if (!df_streq(df_run_phase(run), "WaitingApproval"))
        return wrong_state(run, "it does not wait for a decision", err);
    return check_plan(run, d, err);
}

static int set_decision(cJSON *run, void *arg, struct df_err *err)
{
    const struct deciding *r = arg;
    const struct df_decision *d = r->decision;
    int64_t required = 1;
    bool decides = true;
    if (df_request_check_decision(r->s, run, d, &required, err) < 0)
        return -1;
    if (df_json_at(run, "spec.decision.at") &&
        df_streq(df_json_str(run, "spec.decision.verdict"), d->approves ? "approved" : "discarded"))
        return df_run_is_final(run) ? wrong_state(run, "it has ended", err) : 1;
    if (check_open(run, d, err) < 0 ||
        (d->approves && df_request_add_approval(run, d, required, &decides, err) < 0))
        return -1;
    return decides
               ? df_json_set(df_json_object_at(run, "spec"), "decision", new_decision(d, NULL), err)
               : 0;
}

int df_request_decide(struct df_spawner *s, const char *run, const struct df_decision *d,
                      cJSON **ret, struct df_err *err)
{
    struct deciding r = {s, d};
    return df_store_modify(s->store, DF_KIND_RUN, run, set_decision, &r, ret, err);
}

/* ---- cancel ---- */

struct cancel {
    const char *why; /* or NULL */
    const char *actor;
};

static int set_cancel(cJSON *run, void *arg, struct df_err *err)
{
    const struct cancel *r = arg;
    if (df_json_at(run, "spec.cancel"))
        return 1;
    if (df_run_is_final(run))
        return wrong_state(run, "it has ended", err);
    cJSON *note = df_new_cancel(r->actor, r->why);
    return df_json_set(df_json_object_at(run, "spec"), "cancel", note, err);
}

int df_request_cancel_run(struct df_spawner *s, const char *run, df_verbs verbs, const char *actor,
                          const char *why, cJSON **ret, struct df_err *err)
{
    struct cancel r = {why, actor};
    if (df_verbs_require(verbs, DF_VERB_CANCEL, "canceling a run", NULL, err) < 0)
        return -1;
    return df_store_modify(s->store, DF_KIND_RUN, run, set_cancel, &r, ret, err);
}
