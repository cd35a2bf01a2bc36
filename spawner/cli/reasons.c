/*
 * The table of reason words, each with its meaning and what to do. A test compares it with
 * docs/objects.md.
 */
#include "spawner/cli/reasons.h"

#include "common/base/util.h"

/* The texts have no parameters: the message of the run names the file, host or version, and the
 * text explains the reason. In the order of docs/objects.md. */
const struct df_reason df_reasons[] = {
    {"Applied", "The approved plan was applied.", NULL},
    {"NoChanges", "The plan found nothing to change; nothing was applied.", NULL},
    {"Planned", "The plan was made; a dry-run ends there and applies nothing.", NULL},
    {"Destroyed", "Everything in the state was destroyed.", NULL},
    {"StateChanged", "The command changed the state; the state before it is kept as a version.",
     "`dayfly state list EXECUTOR` lists the versions; a dry-run shows whether configuration and "
     "state agree."},
    {"Completed",
     "The workflow, or a command on the state that had nothing to change, ended with success.",
     NULL},
    {"Accepted", "The applied executor is as it should be, and can be run.", NULL},
    {"Discarded", "Somebody decided against the plan; nothing was applied.", NULL},
    {"Canceled", "The run was cancelled.",
     "If the apply had begun, what it finished is in the state: a dry-run shows what is left to "
     "do."},
    {"Aborted", "The step was deleted before it had ended.",
     "If an apply had begun, what it finished is in the state: a dry-run shows what is left to "
     "do."},
    {"SourceFailed", "The source could not be fetched.",
     "Check the URL, the tag, branch or commit, and the secret in spec.source.secretRef; then run "
     "again. A directory or repository that moved: `dayfly edit executor NAME "
     "--confirm-source-change` tells its executor the new URL."},
    {"SensitiveValue",
     "A document holds the value of a variable that the module declares sensitive; nothing ran.",
     "Take the value out of the document (`dayfly set EXECUTOR var NAME-`) and give it with "
     "`dayfly "
     "run --secret-var NAME`, or store it with `dayfly secret set` and name the secret in "
     "spec.secrets."},
    {"SourceRefused", "The source was fetched but is not safe to use; nothing of it was run.",
     "The message names the entry or setting. Remove it from the archive or repository; there is "
     "no "
     "switch to allow it."},
    {"SourceChanged",
     "The source is no longer what was planned with (another commit or other files).",
     "Run again: a new plan is made from what is there now."},
    {"NoConfiguration", "The folder has no configuration; nothing was planned.",
     "Correct --folder or spec.source.folder, or restore the files. Without configuration only a "
     "destroy works: it removes what the state holds."},
    {"ToolMissing", "No OpenTofu or Terraform of the wanted version was found or downloaded.",
     "Put one in PATH or in tools.directories, set spec.runtime (`dayfly run --tool terraform`), "
     "or "
     "configure tools.index."},
    {"ToolChecksum", "A downloaded tool does not have the checksum that its release states.",
     "Do not use that file. Check tools.index and what stands between this machine and it."},
    {"ToolVersionChanged", "The tool found for the apply is not the one that made the plan.",
     "Pin spec.runtime.version, or run again to plan with the present one."},
    {"LockFileChanged", "The provider lock file is not the one that the plan was made with.",
     "Commit .terraform.lock.hcl with the module, then run again."},
    {"BackendInModule", "The module says itself where its state is, and it is not here.", NULL},
    {"BackendMissing", "The storage type is module, and the module names no backend that lasts.",
     "Add a `backend` or `cloud` block to the module, or go back to dayfly's storage: `dayfly set "
     "EXECUTOR storage=managed`."},
    {"InitFailed", "`init` failed; nothing was planned.",
     "Read the log above. Without network, configure providers.filesystemMirror or "
     "providers.pluginCacheDirectory."},
    {"CredentialsMissing", "The provider found no credentials, or they are not valid any more.",
     "`dayfly run` without a service passes those of your shell (docs/variables.md); towards a "
     "service use --env NAME. Keep them with `dayfly secret set` and spec.integrations."},
    {"PlanFailed", "The plan failed; nothing was changed.",
     "The log names the file and line. Mend the module or its variables, then run again."},
    {"ApplyFailed", "The apply failed. What it had finished before is in the state.",
     "Read the log, mend the cause and run again: the new plan starts from what was reached."},
    {"StateCommandFailed", "A command on the state failed.",
     "The log has the tool's own words: mostly an address that is not in the state or in the "
     "configuration. Mend the command and run it again."},
    {"PlanCorrupt", "The stored plan is not the one that was sealed; it was refused.",
     "Run again to make a new plan. If the message names two keys, somebody replaced the vault's "
     "key. Otherwise, if it happens twice, suspect the disk of the data directory."},
    {"PlanOfOtherRun", "The stored plan belongs to another run; it was refused.",
     "Run again, and look at who has access to the data directory."},
    {"PlanExpired", "The plan is older than timeouts.planLife allows.",
     "Run again: a new plan shows what would be done now."},
    {"PlanUsed", "The plan had been handed out for an apply before; it is good for one only.",
     "Look at the state (`dayfly state list`) and run again."},
    {"PlanMissing", "The plan that was approved is no longer stored.", "Run again."},
    {"StateLocked", "Somebody else holds the state's lock.",
     "`dayfly state list EXECUTOR` names the holder. Wait for it; `dayfly state unlock EXECUTOR` "
     "only "
     "if it is certainly dead."},
    {"StateUnavailable", "The state could not be read or written.",
     "If there is an errored state, it is kept: `dayfly state errored EXECUTOR`, then `dayfly "
     "state push-errored EXECUTOR`."},
    {"StateRefused",
     "The state that was to be written was refused: the lock, the serial or the lineage is "
     "another's.",
     "What could not be stored is kept: `dayfly state errored EXECUTOR`. Find out who else writes "
     "(`dayfly state list EXECUTOR`), then `dayfly state push-errored EXECUTOR`."},
    {"TimedOut", "The step took longer than its timeout and was ended.",
     "Raise spec.timeouts of the executor, or find in the log what it waited for."},
    {"RunnerLost", "The runner's process vanished in mid-step (killed, out of memory, power).",
     "What tofu had stored is in the state. `dayfly state errored EXECUTOR` shows a state it could "
     "not store; then run again."},
    {"RunnerFailed", "The runner stopped with a fault of its own.",
     "The message and the log say where. The state is as the last stored version."},
    {"NeverClaimed", "The runner did not start within timeouts.pending; nothing was run.",
     "Check the load of the machine and runner.path, then run again."},
    {"MaxSystemFailuresExceeded",
     "Several runners in a row were lost before they took the step; nothing was run.",
     "The message tells the last cause: look at the nodes, then run again."},
    {"EngineFailed", "The runner's process or its Job could not be made; nothing was run.",
     "The message says why: runner.path, memory or the limit of processes; or the API server."},
    {"InvalidStep", "The step cannot be run as requested; nothing was run.",
     "The message names the field. Correct the executor or the run's options."},
    {"SecretUnreadable", "A stored secret does not open; nothing was run.",
     "Set it again with `dayfly secret set`. If many do not open, the vault's key was replaced or "
     "the database is damaged: restore both from the same copy."},
    {"InvalidDocument",
     "What was applied is no valid document, or cannot be done now; it was refused.",
     "The message names the field. Mend an executor and apply it again; of a run, apply another "
     "one."},
    {"DiskFull", "A disk was full. What was acknowledged before is stored.",
     "Free space in the data directory and the work directory, then run again."},
    {"ExecutorGone", "The executor was deleted before the run had ended.",
     "Create the executor again and run it; a dry-run shows what it would find."},
    {"InternalError", "Something failed that should not.",
     "Please report it with the output of `dayfly why` and the service's log."},
    {"Deleting", "The executor was deleted, and stays until that does no harm.",
     "The message says what it waits for: mostly a run with the action destroy."},
    {"Unschedulable", "No node took the pod within timeouts.pending; nothing was run.",
     "Look at nodeSelector, tolerations, affinity and resources of the placement, or add a node."},
    {"ImagePullFailed", "The runner's image could not be pulled; nothing was run.",
     "Check its name and tag, the registry, and placement.imagePullSecrets."},
    {"ImageNameInvalid",
     "The runner's image has a name that no registry can have; nothing was run.",
     "Correct placement.image."},
    {"SecretMissing", "A Secret that the pod mounts or reads is not there; nothing was run.",
     "Create it in the pod's namespace, or correct its name in the placement."},
    {"ConfigMapMissing", "A ConfigMap that the pod mounts or reads is not there; nothing was run.",
     "Create it in the pod's namespace, or correct its name in the placement."},
    {"KeyMissing", "A Secret or ConfigMap lacks a key that the pod needs; nothing was run.",
     "Add the key, or correct its name in the placement."},
    {"ClaimMissing", "A volume claim that the pod mounts is not there; nothing was run.",
     "Create it in the pod's namespace, or correct its name in the placement."},
    {"ServiceAccountMissing", "The pod's service account is not there; nothing was run.",
     "Create it in the pod's namespace, or correct placement.serviceAccountName."},
    {"NamespaceMissing", "The namespace for the pods is not there; nothing was run.",
     "Create it, or correct the service's configuration."},
    {"QuotaExceeded", "The namespace's quota left no room for the pod; nothing was run.",
     "Wait for others to end, ask for less in placement.resources, or raise the quota."},
    {"AdmissionRefused", "A policy of the cluster refused the pod; nothing was run.",
     "Bring the placement into what the policy allows; the message names the policy."},
    {"VolumeFailed", "A volume of the pod could not be mounted; nothing was run.",
     "Look at the volume, its claim and its driver."},
    {"RunsAsRoot", "The image wants to run as root, which the pod forbids; nothing was run.",
     "Take an image with a numeric user, or set placement.podSecurityContext.runAsUser."},
    {"CommandMissing", "The image lacks the program that the pod starts; nothing was run.",
     "Correct placement.image: it must be a runner's image."},
    {"ContainerFailed", "The container could not be made on its node; nothing was run.",
     "The message says why; look at the node if it does not help."},
    {"NodeFailed", "The node could not set the pod up; nothing was run.",
     "Look at the node, then run again."},
    {"ObjectRefused", "The API server refused the Job or its pod; nothing was run.",
     "Correct the field that the message names in the placement."},
    {"NotAllowed", "The service lacks a right in the namespace of the pods; nothing was run.",
     "Apply the manifests of rbac/ to that namespace."},
    {"InvalidPlacement", "The placements of the levels make no pod together; nothing was run.",
     "The message names the field and the value: see docs/placement.md."},
    {"OOMKilled", "The pod needed more memory than its limit and was killed.",
     "Raise placement.resources.limits.memory; what tofu had stored is in the state."},
    {"Evicted", "The pod was evicted from its node.",
     "What tofu had stored is in the state. Run again; the message names the resource or who "
     "asked."},
    {"Preempted", "The pod had to make room for one of higher priority.",
     "Set placement.priorityClassName, then run again."},
    {"DeadlineExceeded", "The Job's own deadline passed: the runner did not end by itself in time.",
     "Raise spec.timeouts, and look in the log for what it waited for."},
    {"NodeLost", "The pod's node is gone or no longer answers.",
     "What tofu had stored is in the state. Look at the node, then run again."},
    {"NodeShutdown", "The pod's node was shut down in mid-step.",
     "What tofu had stored is in the state. Run again."},
    {"PodDeleted", "Somebody deleted the pod in mid-step.",
     "What tofu had stored is in the state. Run again."},
    {"JobDeleted", "Somebody deleted the Job in mid-step.",
     "What tofu had stored is in the state. Run again."},
    {"WorkflowFailed", "The workflow's image ran and failed.",
     "The message tells its exit code; `kubectl logs job/NAME` shows what it wrote, for as long as "
     "the Job is kept."},
    {"TargetLocked", "Somebody else held the workflow's target for too long; nothing was run.",
     "The message names the holder. Wait for it, or raise spec.timeoutSeconds."},
    {"PodsExhausted", "The workflow's pod was evicted or killed again and again, and given up.",
     "Look at the memory limit in spec.workflow.resources and at the nodes, then ask again."},
    {"RunnerKilled", "The runner's container was killed by a signal.",
     "Look at the memory limit and at the node's kernel log; then run again."},
    {0}};

const struct df_reason *df_reason_find(const char *word)
{
    for (const struct df_reason *r = df_reasons; r->word; r++)
        if (df_streq(r->word, word))
            return r;
    return NULL;
}
