/*
 * approval.h - who may let a plan be applied.
 *
 * An executor whose approval is `required` wants a look at each plan. The flag autoApprove of a run
 * replaces the look only for a role that may skip it. With a separate approver, the look is that of
 * another person than the requester; with several required approvals, each is that of another
 * person; with approvers, each is that of one of them: neither autoApprove nor
 * `approval: automatic` counts then. The approvals that a run has
 * are in status.decisions; the last one that is required makes spec.decision.
 * Thread rule: pure functions, any thread.
 */
#ifndef DF_MODEL_APPROVAL_H
#define DF_MODEL_APPROVAL_H

#include "spawner/model/grant.h"

/* Of the instance. Zero-initialised: no separate approver, and every role may skip the approval. */
struct df_approval_rules {
    bool separate;      /* approval.separateApprover: of all executors */
    int64_t required;   /* approval.requiredApprovals: the least number of all executors; 0 as 1 */
    enum df_role skips; /* approval.autoApprove: the least role whose autoApprove counts */
    int64_t reminder_s; /* approval.reminder: a run that waits for so long says so; 0: none does */
};

/* The rule of approval that the new spec of an executor loosens, in words for a refusal; NULL:
 * none. The rules of the instance do not count: they may change. Borrowed literal. */
const char *df_approval_loosened(const cJSON *old, const cJSON *executor);

/* Does the approval of the plan need the role admin? It does for a destroy, and for a provision
 * that destroys or forgets every resource of the state (status.destroysAll). */
bool df_approval_needs_admin(const cJSON *run);

/* How many people have to approve this run, at least 1: of one that needs an admin,
 * spec.destroyApprovals of the executor counts, too. executor: NULL if deleted. */
int64_t df_approval_required(const struct df_approval_rules *rules, const cJSON *run,
                             const cJSON *executor);

/* How many have approved the run so far, and whether this caller has. */
int64_t df_approval_count(const cJSON *run);
bool df_approval_is_of(const cJSON *run, const char *caller);

/* May a caller of this role create the run, as far as its autoApprove is concerned? DENIED: the
 * role is too low; DENIED SelfApproval: the executor wants a separate approver; DENIED NotApprover:
 * it names approvers. */
int df_approval_check_run(const struct df_approval_rules *rules, const cJSON *run,
                          const cJSON *executor, enum df_role role,
                          struct df_err *err) DF_MUST_CHECK;

/* May this caller approve the run, as far as the requester and other approvers are concerned?
 * DENIED SelfApproval: the caller is the requester, or one of the two is not known by name; DENIED
 * UnknownApprover: several approvals are required, and the caller is not known by name; DENIED
 * NotApprover: the executor names others. Errors of
 * df_executor_check_accepted(): an edit that is refused, or not checked yet, says nothing about who
 * approves. executor: NULL if deleted. */
int df_approval_check_approver(const struct df_approval_rules *rules, const cJSON *run,
                               const cJSON *executor, const struct df_grantee *approver,
                               struct df_err *err) DF_MUST_CHECK;

/* Does a plan of this run need no look of a person? Asks the present executor, which may be another
 * one than at the run's creation; one whose edit was refused does not say so. executor: NULL if
 * deleted. */
bool df_approval_is_automatic(const struct df_approval_rules *rules, const cJSON *run,
                              const cJSON *executor);

/* Where that is false: does this plan, of which spec.automaticFor has something to say, need no
 * look (automatic.h)? Only where the executor wants no people in particular. */
bool df_approval_is_covered(const struct df_approval_rules *rules, const cJSON *run,
                            const cJSON *executor, const cJSON *plan);

#endif
