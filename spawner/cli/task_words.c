/*
 * task_words.c - whose step a TaskAction is, and tables of sentences for the reasons of Terrakube's
 * steps and of workflows; the general ones are in reasons.c.
 */
#include "spawner/cli/task_words.h"

#include "common/base/util.h"

void df_text_owner(const cJSON *spec, struct df_buf *out)
{
    const cJSON *step = df_json_at(spec, "terrakube");
    const char *run = df_json_str(spec, "runRef.name");
    const char *target = df_json_str(spec, "targetResource");
    if (!step) {
        (void)df_buf_adds(out, run ? run : target ? target : "");
        return;
    }
    const char *organization = df_json_str(step, "organizationName");
    const char *workspace = df_json_str(step, "workspaceName");
    const char *job = df_json_str(step, "job");
    if (!workspace) /* its id: an old API, or a payload that could not be read */
        workspace = df_json_str(step, "workspace");
    if (organization && workspace)
        (void)df_buf_addf(out, "%s/", organization);
    if (workspace)
        (void)df_buf_addf(out, "%s, ", workspace);
    (void)df_buf_addf(out, "job %s", job ? job : "?");
}

#define AGAIN "run the job again."
#define LEFT "a new plan shows what remains to be done."
#define STORED "What the tool had stored is in the state: " LEFT
#define DEADLINE                                                                                   \
    "Raise ExecutorEphemeralActiveDeadlineSeconds in the environment of the service, or find in "  \
    "the output what the step waited for."

/* Those whose other sentences name what Terrakube does not have: runs, executors, commands on
 * states. */
static const struct df_reason of_terrakube[] = {
    {"Applied", "The changes were applied.", NULL},
    {"Planned", "The plan was created and stored.", NULL},
    {"Canceled", "The job was cancelled in Terrakube.",
     "If the apply had begun, what it finished is in the state: " LEFT},
    {"Aborted", "The step was deleted before it had ended.",
     "If an apply had begun, what it finished is in the state: " LEFT},
    {"StepDeleted",
     "Somebody deleted the TaskAction of a step that ran, in spite of its finalizer; the step was "
     "ended.",
     "What an apply did last may be in no state: compare the message with a new plan. Cancel jobs "
     "in Terrakube instead."},
    {"PlanStale", "Since the plan was made the state has changed. Nothing was applied.",
     "Start the job again: a new plan uses what is there now."},
    {"PlanExpired", "The plan is older than timeouts.planLife allows.",
     "Start the job again: a new plan shows what would be done now."},
    {"SourceFailed", "The source could not be fetched.",
     "Check the workspace's repository, its branch and its VCS connection; then " AGAIN},
    {"NoConfiguration", "The folder has no configuration; nothing was planned.",
     "Correct the folder of the workspace, or restore the files; then " AGAIN},
    {"ToolMissing", "No OpenTofu or Terraform of the requested version was found or downloaded.",
     "The message says where it was looked for. Correct the workspace's version, or see that the "
     "pod reaches the index of releases."},
    {"InitFailed", "`init` failed; nothing was planned.",
     "The step's output says why. Without a way to the registries, let the service be the mirror "
     "of its pods (docs/airgap.md); if that mirror \"gives up\", the log of the service says why, "
     "then " AGAIN},
    {"CredentialsMissing", "The provider found no credentials, or they are no longer valid.",
     "Set them as environment variables of the workspace, or in the collections that it uses; "
     "then " AGAIN},
    {"StateLocked", "The state is locked.",
     "Wait for the holder, whom the log names. Only if it is certainly dead, release the lock "
     "where the state is."},
    {"StateUnavailable", "The state could not be read or written.",
     "Look at Terrakube's storage and its keys. If the step's output says that the new state is "
     "kept as the raw state of the job, push that before anything else."},
    {"StorageUnavailable", "The storage of the service did not answer, or refused.",
     "Look at that storage and the keys of the service, then " AGAIN},
    {"StateRefused",
     "The state was refused: its lock, serial or lineage does not match the stored one.",
     "Find out who else writes the state, then " AGAIN},
    {"TimedOut", "The step took longer than its timeout and was ended.", DEADLINE},
    {"DeadlineExceeded", "The Job's deadline passed and Kubernetes ended the pod.", DEADLINE},
    {"RunnerLost",
     "The runner's process disappeared during the step (killed, out of memory, power failure).",
     STORED},
    {"RunnerKilled", "The container of the step was killed by a signal.",
     "Check the node's kernel log and the memory limit (EPHEMERAL_MEMORY_LIMIT). " STORED},
    {"OOMKilled", "The container needed more memory than its limit and was killed.",
     "Raise EPHEMERAL_MEMORY_LIMIT of the workspace. " STORED},
    {"Evicted", "The pod was evicted from its node.", STORED},
    {"Preempted", "The pod had to make room for one of higher priority.", STORED},
    {"NodeLost", "The pod's node is gone or no longer answers.", "Check the node. " STORED},
    {"NodeShutdown", "The pod's node was shut down.", STORED},
    {"PodDeleted", "Somebody deleted the pod.", STORED},
    {"JobDeleted", "Somebody deleted the Job.", STORED},
    {"InvalidStep", "The step cannot be run as requested; nothing was run.",
     "The message names the setting or the key. Correct it in the workspace, then " AGAIN},
    {"VariableInvalid", "A variable of the workspace has a value that the tool cannot take.",
     "The message names the variable. Correct it in the workspace, then " AGAIN},
    {"PayloadInvalid", "What Terrakube sent for the step cannot be read or is not supported.",
     "The message names the member."},
    {"SettingMissing", "A setting of Terrakube's executor is missing.",
     "The message names it and says how to give it."},
    {"SettingInvalid", "A setting of Terrakube's executor has a value that makes no sense.",
     "The message names it and says what it may be."},
};

#define CHANGED                                                                                    \
    "What it had changed on its target stays: look at that before you create the workflow again."
#define LONGER                                                                                     \
    "Raise spec.timeoutSeconds or spec.workflow.timesOutAt, or find in its log what it waited "    \
    "for."
#define DEPENDENCY                                                                                 \
    "Create it in the pod's namespace, or correct its name in spec.workflow.dependencies or "      \
    "spec.placement."

/* Those whose other sentences name what a workflow does not have: plans, states, a runner, and keys
 * of a placement that are keys of its spec. */
static const struct df_reason of_workflow[] = {
    {"Completed", "The workflow ended with success.", NULL},
    {"Canceled", "The workflow was canceled.",
     "If it had begun, `dayfly logs taskaction/NAME` shows what it printed. " CHANGED},
    {"Aborted", "The workflow was deleted before it had ended.", CHANGED},
    {"TimedOut", "The workflow took longer than its time and was ended.", LONGER},
    {"DeadlineExceeded", "The Job's deadline passed and Kubernetes ended the pod.", LONGER},
    {"InvalidStep", "The workflow cannot be run as requested; nothing was run.",
     "The message names the field. Correct the document, then create the workflow again."},
    {"EngineFailed", "The engine could not start the workflow; nothing was run.",
     "The message says why; `dayfly get engines` shows which engines can start one now."},
    {"Unschedulable", "No node can run the pod; nothing was run.",
     "Check nodeSelector, tolerations and affinity of spec.placement, and spec.workflow.resources, "
     "or add a node."},
    {"ImagePullFailed", "The image cannot be pulled; nothing was run.",
     "Check spec.workflow.executionBundle, the registry, and spec.placement.imagePullSecrets."},
    {"ImageNameInvalid", "The image's name is invalid; nothing was run.",
     "Correct spec.workflow.executionBundle."},
    {"SecretMissing", "A Secret that the pod needs does not exist; nothing was run.", DEPENDENCY},
    {"ConfigMapMissing", "A ConfigMap that the pod needs does not exist; nothing was run.",
     DEPENDENCY},
    {"ServiceAccountMissing", "The pod's service account does not exist; nothing was run.",
     "Create it in the pod's namespace, or name another one in spec.workflow.serviceAccountName; "
     "the default is workflows.serviceAccount of the service's configuration."},
    {"QuotaExceeded", "The namespace's quota leaves no room for the pod; nothing was run.",
     "Wait for others to end, request less in spec.workflow.resources, or raise the quota."},
    {"CommandMissing", "The image does not have the program that the pod starts; nothing was run.",
     "Correct spec.workflow.executionBundle, or the command in spec.placement.podTemplate."},
    {"OOMKilled", "The container needed more memory than its limit and was killed.",
     "Raise spec.workflow.resources.limits.memory. " CHANGED},
    {"Evicted", "The pod was evicted from its node.", CHANGED},
    {"Preempted", "The pod had to make room for one of higher priority.",
     "Set spec.placement.priorityClassName. " CHANGED},
    {"NodeLost", "The pod's node is gone or no longer answers.", "Check the node. " CHANGED},
    {"NodeShutdown", "The pod's node was shut down.", CHANGED},
    {"PodDeleted", "Somebody deleted the pod.", CHANGED},
    {"JobDeleted", "Somebody deleted the Job, the PipelineRun or the job of AWX.", CHANGED},
    {"RunnerKilled", "The container was killed by a signal.",
     "Check the node's kernel log and the memory limit. " CHANGED},
};

static const struct {
    const struct df_reason *rows;
    size_t count;
} own[DF_TASK_KINDS] = {[DF_TASK_WORKFLOW] = {of_workflow, DF_ARRAY_SIZE(of_workflow)},
                        [DF_TASK_TERRAKUBE] = {of_terrakube, DF_ARRAY_SIZE(of_terrakube)}};

const struct df_reason *df_reason_of_kind(enum df_task_kind_id kind, const char *word)
{
    for (size_t i = 0; i < own[kind].count; i++) {
        if (df_streq(own[kind].rows[i].word, word))
            return &own[kind].rows[i];
    }
    return df_reason_find(word);
}
