/*
 * approval.c - what an executor and the instance want, what an edit loosens; then who may approve a
 * run, and which runs need nobody.
 */
#include "spawner/model/approval.h"

#include "spawner/model/accepted.h"
#include "spawner/model/automatic.h"
#include "spawner/model/recipe.h"
#include "spawner/model/stamp.h"

/* An executor can add the rule to those of the instance, but not take it away: whoever may make an
 * executor would otherwise need no approver. */
static bool is_separate(const struct df_approval_rules *rules, const cJSON *executor)
{
    return rules->separate || df_json_bool(executor, "spec.separateApprover", false);
}

static const cJSON *approvers_of(const cJSON *executor)
{
    return df_json_at(executor, "spec.approvers");
}

bool df_approval_needs_admin(const cJSON *run)
{
    const char *action = df_json_str(run, "spec.action");
    return df_streq(action, df_action_name(DF_ACTION_DESTROY)) ||
           (df_streq(action, df_action_name(DF_ACTION_PROVISION)) &&
            df_json_bool(run, "status.destroysAll", false));
}

static int64_t required_for(const struct df_approval_rules *rules, const cJSON *executor,
                            bool destroys)
{
    const int64_t wanted[] = {rules->required, df_json_int(executor, "spec.requiredApprovals", 1),
                              destroys ? df_json_int(executor, "spec.destroyApprovals", 1) : 1};
    int64_t most = 1;
    for (size_t i = 0; i < DF_ARRAY_SIZE(wanted); i++)
        most = wanted[i] > most ? wanted[i] : most;
    return most;
}

int64_t df_approval_required(const struct df_approval_rules *rules, const cJSON *run,
                             const cJSON *executor)
{
    return required_for(rules, executor, df_approval_needs_admin(run));
}

int64_t df_approval_count(const cJSON *run)
{
    return cJSON_GetArraySize(df_json_at(run, "status.decisions"));
}

bool df_approval_is_of(const cJSON *run, const char *caller)
{
    const cJSON *decision;
    cJSON_ArrayForEach (decision, df_json_at(run, "status.decisions"))
        if (df_streq(df_json_str(decision, "by"), caller))
            return true;
    return false;
}

static bool needs_no_look(const cJSON *executor)
{
    return df_streq(df_json_str(executor, "spec.approval"), "automatic");
}

const char *df_approval_loosened(const cJSON *old, const cJSON *executor)
{
    const struct df_approval_rules none = {0};
    if (needs_no_look(executor) && !needs_no_look(old))
        return "spec.approval: automatic instead of required";
    if (is_separate(&none, old) && !is_separate(&none, executor))
        return "spec.separateApprover: no longer true";
    if (!needs_no_look(old) && df_automatic_is_wider(old, executor))
        return "spec.automaticFor: more than before";
    if (approvers_of(old) && !df_json_equal(approvers_of(old), approvers_of(executor)))
        return "spec.approvers: others than before";
    if (df_json_at(old, "spec.applyWindow") &&
        !df_json_equal(df_json_at(old, "spec.applyWindow"),
                       df_json_at(executor, "spec.applyWindow")))
        return "spec.applyWindow: another one than before";
    if (required_for(&none, executor, false) < required_for(&none, old, false))
        return "spec.requiredApprovals: fewer than before";
    return required_for(&none, executor, true) < required_for(&none, old, true)
               ? "spec.destroyApprovals: fewer than before"
               : NULL;
}

static int fail_self_approval(struct df_err *err, const char *why, const char *out)
{
    return df_fail_reason(err, DF_ERR_DENIED, "SelfApproval",
                          "%s, and separateApprover (of the configuration or the executor) wants "
                          "the approval of another person: %s",
                          why, out);
}

/* "users: ann, bob; groups: net-lead" */
static void list_approvers(const cJSON *approvers, struct df_buf *text)
{
    const cJSON *list, *name;
    cJSON_ArrayForEach (list, approvers) {
        const char *between = ": ";
        (void)df_buf_addf(text, "%s%s", text->len ? "; " : "", list->string);
        cJSON_ArrayForEach (name, list) {
            (void)df_buf_addf(text, "%s%s", between, name->valuestring);
            between = ", ";
        }
    }
}

static int check_named(const cJSON *run, const cJSON *executor, const struct df_grantee *caller,
                       struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(512); /* a longer list is cut off */
    const cJSON *approvers = approvers_of(executor);
    const char *name = df_json_str(run, "metadata.name");
    if (!approvers || df_grantee_is_of(approvers, caller))
        return 0;
    list_approvers(approvers, &text);
    return df_fail_reason(
        err, DF_ERR_DENIED, "NotApprover",
        "only approvers of executor %s (%s) approve run %s, and %s is none of them%s; you can "
        "discard it (dayfly discard %s)",
        df_json_str(executor, "metadata.name"), df_buf_str(&text), name,
        caller->user ? caller->user : "who asks",
        caller->groups || !df_json_at(approvers, "groups")
            ? ""
            : " (kubectl, tokens and service accounts bring no groups: name them in users)",
        name);
}

int df_approval_check_run(const struct df_approval_rules *rules, const cJSON *run,
                          const cJSON *executor, enum df_role role, struct df_err *err)
{
    if (!df_json_bool(run, "spec.autoApprove", false) || !df_recipe_asks(df_recipe_of(run)))
        return 0;
    if (is_separate(rules, executor))
        return fail_self_approval(err,
                                  "autoApprove (--auto-approve) is an approval by the requester",
                                  "leave it out, and let somebody else approve the plan");
    if (df_approval_required(rules, run, executor) > 1)
        return df_fail(err, DF_ERR_DENIED,
                       "autoApprove (--auto-approve) is the approval of one person, and %lld are "
                       "required (requiredApprovals or destroyApprovals of executor %s, or "
                       "approval.requiredApprovals of the configuration): leave it out",
                       (long long)df_approval_required(rules, run, executor),
                       df_json_str(executor, "metadata.name"));
    if (approvers_of(executor))
        return df_fail_reason(err, DF_ERR_DENIED, "NotApprover",
                              "autoApprove (--auto-approve) is no approval where executor %s names "
                              "approvers: leave it out, and let one of them approve the plan",
                              df_json_str(executor, "metadata.name"));
    if (role >= rules->skips || needs_no_look(executor))
        return 0;
    return df_fail(
        err, DF_ERR_DENIED,
        "autoApprove (--auto-approve) of a run of executor %s needs the role %s, because "
        "its approval is required; yours is %s. Leave it out and approve the plan, or "
        "see approval.autoApprove of the configuration",
        df_json_str(executor, "metadata.name"), df_role_name(rules->skips), df_role_name(role));
}

int df_approval_check_approver(const struct df_approval_rules *rules, const cJSON *run,
                               const cJSON *executor, const struct df_grantee *approver,
                               struct df_err *err)
{
    const char *requester = df_json_str(run, "spec.requestedBy"), *caller = approver->user;
    char why[256];
    if (executor && df_executor_check_accepted(executor, err) < 0)
        return -1;
    if (df_approval_required(rules, run, executor) > 1 && !df_stamp_is_name(caller))
        return df_fail_reason(err, DF_ERR_DENIED, "UnknownApprover",
                              "%lld people have to approve run %s, and this approver is not known "
                              "by name: approve it under a name",
                              (long long)df_approval_required(rules, run, executor),
                              df_json_str(run, "metadata.name"));
    if (check_named(run, executor, approver, err) < 0)
        return -1;
    if (!is_separate(rules, executor))
        return 0;
    if (!df_stamp_is_name(requester))
        return fail_self_approval(err, "the requester of the run is not known by name",
                                  "discard it, and ask for another run under a name");
    if (!df_stamp_is_name(caller))
        return fail_self_approval(err, "the approver is not known by name",
                                  "approve it under a name");
    if (!df_streq(requester, caller))
        return 0;
    (void)snprintf(why, sizeof(why), "run %s was requested by %s",
                   df_json_str(run, "metadata.name"), requester);
    return fail_self_approval(err, why,
                              "somebody else approves it; its requester can only discard it");
}

/* Is it not enough that the executor or the requester says so? */
static bool wants_people(const struct df_approval_rules *rules, const cJSON *run,
                         const cJSON *executor)
{
    return is_separate(rules, executor) || df_approval_required(rules, run, executor) > 1 ||
           approvers_of(executor);
}

bool df_approval_is_automatic(const struct df_approval_rules *rules, const cJSON *run,
                              const cJSON *executor)
{
    enum df_role role = DF_ROLE_NONE;
    if (wants_people(rules, run, executor) || df_doc_is_refused(executor))
        return false;
    if (needs_no_look(executor))
        return true;
    if (!df_json_bool(run, "spec.autoApprove", false))
        return false;
    return df_role_parse(df_json_str(run, "spec.requestedRole"), &role, NULL) < 0
               ? rules->skips == DF_ROLE_NONE
               : role >= rules->skips;
}

bool df_approval_is_covered(const struct df_approval_rules *rules, const cJSON *run,
                            const cJSON *executor, const cJSON *plan)
{
    return !wants_people(rules, run, executor) && !df_doc_is_refused(executor) &&
           !df_approval_is_automatic(rules, run, executor) && df_automatic_covers(executor, plan);
}
