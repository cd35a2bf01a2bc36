/*
 * The table of reason words, each with its meaning and what to do. Tests compare it with
 * docs/objects.md, and the causes of pods with the words of engine/diagnosis.
 */
#include "spawner/cli/reasons.h"

#include "common/base/util.h"

/* The texts have no parameters: the message of the run names the file, host or version, and the
 * text explains the reason. In the order of docs/objects.md. */
const struct df_reason df_reasons[] = {
    {"Applied", "The approved plan was applied.", NULL},
    {"NoChanges", "The plan found nothing to change; nothing was applied.", NULL},
    {"Planned", "The plan was created; a dry-run ends there and applies nothing.", NULL},
    {"Destroyed", "Everything in the state was destroyed.", NULL},
    {"Validated", "The platform is healthy.", NULL},
    {"StateChanged", "The command changed the state; the state before it is kept as a version.",
     "`dayfly state list EXECUTOR` lists the versions; a dry-run shows whether configuration and "
     "state agree."},
    {"StateMoved",
     "The state was copied to the new storage, read back and compared; the executor names it now.",
     "Run a plan; then `dayfly state migrate EXECUTOR --confirm` forgets the old place, or "
     "`--back` "
     "returns to it."},
    {"Completed",
     "The workflow, or a command on the state that had nothing to change, ended with success.",
     NULL},
    {"Accepted", "The applied executor is valid and can be run.", NULL},
    {"Discarded", "Somebody decided against the plan; nothing was applied.", NULL},
    {"Canceled", "The run was canceled.",
     "If the apply had begun, what it finished is in the state unless the message says otherwise: "
     "a dry-run shows what remains to be done."},
    {"Aborted", "The step was deleted before it had ended.",
     "If an apply had begun, what it finished is in the state unless the message says otherwise: "
     "a dry-run shows what remains to be done."},
    {"SourceFailed", "The source could not be fetched.",
     "Check the URL, the tag, branch or commit, and the secret in spec.source.secretRef; then run "
     "again. A directory or repository that moved: `dayfly edit executor NAME "
     "--confirm-source-change` gives the executor the new URL."},
    {"SensitiveValue",
     "A document holds the value of a variable that the module declares sensitive; nothing ran.",
     "Remove the value from the document (`dayfly set EXECUTOR var NAME-`) and pass it with "
     "`dayfly run --secret-var NAME`, or store it with `dayfly secret set` and name the secret in "
     "spec.secrets."},
    {"SourceRefused", "The source is not safe to use; nothing of it was run.",
     "The message names the entry, setting or key. Remove it from the archive or repository, or "
     "correct it; there is no option to allow it. An entry of a directory may be named in "
     ".terraformignore instead."},
    {"CommitNotInBranch",
     "The run names a commit that no branch or tag of the repository contains: whoever may open a "
     "pull request or has a fork can make one. Nothing of it was fetched.",
     "Push the commit to a branch, and run again. If every commit that the server gives may run "
     "with this executor's secrets, set spec.source.anyCommit of it (`dayfly edit executor "
     "NAME`)."},
    {"SourceChanged",
     "The source differs from the one that was planned (another commit or other files).",
     "Run again: a new plan uses the present source. A file that is no part of the module, such as "
     "a log that is written beside it, can be named in .terraformignore."},
    {"NoConfiguration", "The folder has no configuration; nothing was planned.",
     "Correct --folder or spec.source.folder, or restore the files. Without configuration only a "
     "destroy works: it removes what the state holds."},
    {"ToolMissing",
     "No OpenTofu, Terraform or dayfly-platform of the requested version was found or downloaded.",
     "Put one in PATH or in tools.directories, set spec.runtime (`dayfly run --tool terraform`), "
     "or configure tools.index. A platform in pods needs a runner's image with dayfly-platform "
     "(docs/platform.md)."},
    {"ToolChecksum",
     "A tool does not have the checksum that its release states, or was changed in the cache.",
     "Do not use that file. After a download check tools.index, and proxies between this machine "
     "and its server. In the cache find out who changed it, then remove its directory."},
    {"ToolVersionChanged", "The tool found for the apply is not the one that created the plan.",
     "Pin spec.runtime.version, or run again to plan with the present tool."},
    {"LockFileChanged", "The provider lock file is not the one that the plan was created with.",
     "Commit .terraform.lock.hcl with the module, then run again."},
    {"PlanStale",
     "Since the plan was made the state has changed, by somebody outside of dayfly or by a command "
     "on the state; or the branch of a platform has moved. Nothing was applied.",
     "Run again: a new plan uses what is there now. With `replan: true` in the executor's "
     "spec dayfly does so by itself."},
    {"BackendInModule", "The module itself configures where its state is, and that is not dayfly.",
     NULL},
    {"BackendMissing", "The storage type is module, but the module has no persistent backend.",
     "Add a `backend` or `cloud` block to the module, or go back to dayfly's storage: `dayfly set "
     "EXECUTOR storage=managed`."},
    {"InitFailed", "`init` failed; nothing was planned.",
     "Read the log above. Without a way to the registries, let providers.mirror.directory name a "
     "mirror (docs/airgap.md says how one is made); for steps on this machine "
     "providers.filesystemMirror may do so, too. A file of --config counts for one command: repeat "
     "it, or set DAYFLY_CONFIG. Without a service also ~/.tofurc, ~/.terraformrc and the file of "
     "TF_CLI_CONFIG_FILE are used, a service has its own configuration alone. If a mirror of the "
     "service \"gives up\", the log of the service says why: it may be full (`dayfly storage "
     "usage`)."},
    {"CredentialsMissing", "The provider found no credentials, or they are no longer valid.",
     "Without a service `dayfly run`, and a command on the state that is a run, pass those of your "
     "shell (docs/variables.md); with a service use --env NAME. Keep them with `dayfly secret set` "
     "and spec.integrations."},
    {"PlanFailed", "The plan failed; nothing was changed.",
     "The log names what is wrong, and where. Correct it, or the variables, then run again."},
    {"ApplyFailed",
     "The apply failed. What it had finished before stays, and is in the state of a module unless "
     "the message says otherwise.",
     "Read the log, correct the cause and run again: the new plan starts from what is there now."},
    {"ValidationFailed", "The platform is not healthy, or breaks its rules.",
     "The log and `dayfly outputs EXECUTOR report` name the components, why, and what helps."},
    {"StateCommandFailed", "A command on the state failed.",
     "The log has the tool's message: usually an address that is not in the state or in the "
     "configuration. Correct the command and run it again."},
    {"StateExists", "The new place of the state holds another state; nothing was changed.",
     "The message names its lineage and serial. Choose another --path, or remove that state there "
     "if nobody needs it."},
    {"StateMoveFailed",
     "The state could not be copied as it is; the executor keeps its old storage.",
     "If somebody wrote it meanwhile, move it again; otherwise look at what writes to the new "
     "place."},
    {"ScriptFailed", "A command of the job's template ended with an error.",
     "The log has its output and its exit code. Correct the command in the template, or the image "
     "if it lacks bash or a tool."},
    {"PolicyFailed", "A policy of the organization denies the plan, or could not be evaluated.",
     "The log names the rules and resources. Change the configuration, ask for an exemption, or "
     "mend the policy."},
    {"StateLockLost", "The service that keeps the state gave its lock away while the tool ran.",
     "Run again once nobody else works on the state: what was applied before is in it."},
    {"VersionsUnavailable", "The versions of the state in its bucket could not be read.",
     "The message says why. A bucket keeps versions from the moment on that its versioning is "
     "turned "
     "on."},
    {"NoSuchVersion", "The bucket has no such version of the state.",
     "`dayfly state list EXECUTOR` lists the newest; the lifecycle rules of the bucket may have "
     "removed older ones."},
    {"StorageChanged",
     "The state of the executor was moved after this run was requested, so it would have used the "
     "old one.",
     "Request the run again."},
    {"ErroredStatePending",
     "An earlier run could not store its state, so nothing was run: on the old state a run could "
     "make its resources twice.",
     "The message names that run. Once what it stumbled over is mended, store its state with "
     "`dayfly state push-errored EXECUTOR`, or remove it with `dayfly state discard-errored "
     "EXECUTOR`, then run again (an applied Run under a new name)."},
    {"PlanCorrupt", "The stored plan is not the one that was sealed; it was refused.",
     "Run again to create a new plan. If the message names two keys, somebody replaced the vault's "
     "key. Otherwise, if it happens twice, suspect the disk of the data directory."},
    {"PlanOfOtherRun", "The stored plan belongs to another run; it was refused.",
     "Run again, and check who has access to the data directory."},
    {"PlanExpired", "The plan is older than timeouts.planLife allows.",
     "Run again: a new plan shows what would be done now. With `replan: true` in the executor's "
     "spec dayfly does so by itself."},
    {"PlanUsed", "The plan was already used for an apply; it is valid for one apply only.",
     "Check the state (`dayfly state list`) and run again."},
    {"PlanMissing", "The plan that was approved is no longer stored.", "Run again."},
    {"StateLocked", "The state is locked.",
     "`dayfly state list EXECUTOR` names the holder. Wait for it; use `dayfly state unlock "
     "EXECUTOR` only if it is certainly dead."},
    {"StateUnavailable", "The state could not be read or written.",
     "If there is an errored state, it is kept: `dayfly state errored EXECUTOR`, then `dayfly "
     "state push-errored EXECUTOR`."},
    {"StorageTakenOver",
     "Another installation took the bucket of states, plans and logs over; this service writes "
     "nothing there any more.",
     "Stop this service and use the other one; or take the bucket back by a start with "
     "`blobs.takeOver`, which the message shows."},
    {"StorageUnavailable", "The storage of states, plans and logs did not answer, or refused.",
     "Look at the storage and the keys of the service (`dayfly doctor`), then run again. If there "
     "is an errored state, it is kept: `dayfly state errored EXECUTOR`, then `dayfly state "
     "push-errored EXECUTOR`."},
    {"StateRefused",
     "The state was refused: its lock, serial or lineage does not match the stored one.",
     "The state that could not be stored is kept: `dayfly state errored EXECUTOR`. Find out who "
     "else writes "
     "(`dayfly state list EXECUTOR`), then `dayfly state push-errored EXECUTOR`."},
    {"StateBelongsToAnother",
     "The storage of the executor holds the state of another executor; nothing was changed.",
     "The message names both. Give this executor a storage of its own; or, if the other one is not "
     "needed any more, `dayfly delete OTHER --forget`, then run again."},
    {"StateUnreadable",
     "The stored state does not open, or is not the one that was stored; nothing was run.",
     "The message names executor and version. If the vault's key was replaced, bring the old one "
     "back; else restore the file from a copy, return to an older version with `dayfly state "
     "rollback`, or store a copy with `dayfly state push EXECUTOR FILE --replace`."},
    {"TimedOut", "The step took longer than its timeout and was ended.",
     "Raise spec.timeouts of the executor, or find in the log what the step waited for."},
    {"RunnerLost",
     "The runner's process disappeared during the step (killed, out of memory, power failure).",
     "What the tool had stored is in the state. `dayfly state errored EXECUTOR` shows a state that "
     "it could not store; a dry-run shows what remains to be done."},
    {"RunnerFailed", "The runner failed because of an internal error.",
     "The message and the log say where. The state is the last stored version."},
    {"NeverClaimed", "The runner did not start within timeouts.pending; nothing was run.",
     "Check the load of the machine and runner.path, then run again."},
    {"MaxSystemFailuresExceeded",
     "Several runners in a row were lost before they claimed the step; nothing was run.",
     "The message names the last cause: check the nodes, then run again."},
    {"EngineFailed", "The runner's process or its Job could not be created; nothing was run.",
     "The message says why: runner.path, memory or the limit of processes; or the API server."},
    {"InvalidStep", "The step cannot be run as requested; nothing was run.",
     "The message names the field. Correct the executor or the run's options."},
    {"SecretUnreadable", "A stored secret cannot be decrypted; nothing was run.",
     "Set it again with `dayfly secret set`. If this affects many, the vault's key was replaced or "
     "the database is damaged: restore both from the same copy."},
    {"SecretNotAllowed", "The executor names a secret that it may not use; nothing was run.",
     "The message says for which executors it is. Its owner or an admin allows it: `dayfly secret "
     "allow SECRET --executor NAME`."},
    {"IntegrationNotAllowed",
     "The executor names an integration that it may not use; nothing was run.",
     "The message says for which executors it is. Its owner or an admin adds the executor to "
     "spec.executors: `dayfly edit integration NAME`."},
    {"IntegrationFailed",
     "A provider gave no credentials for an integration of the executor; nothing was run.",
     "The message has the provider's words. Correct the keys, the role or its trust policy, and "
     "try "
     "with `dayfly integration test NAME`."},
    {"SecretSourceUnavailable",
     "A source of secrets did not answer for half of timeouts.pending; nothing was run.",
     "The message names the source and its last answer: unseal or restart it, then run again. "
     "`dayfly doctor` checks each source."},
    {"SecretSourceDenied", "A source of secrets refused to hand out a secret; nothing was run.",
     "The message names the source and why: its policy or role, the token, or the certificate. "
     "`dayfly doctor` checks each source."},
    {"InvalidDocument", "The document is not valid, or cannot be accepted now; it was refused.",
     "The message names the field. Correct an executor and apply it again; apply a run under a "
     "new name."},
    {"DiskFull", "A disk was full. What was acknowledged before is stored.",
     "Free space in the data directory and the work directory, then run again."},
    {"ExecutorGone", "The executor was deleted before the run had ended.",
     "Create the executor again and run it; a dry-run shows what it would find."},
    {"StepDeleted",
     "Somebody deleted the TaskAction of a step that ran, in spite of its finalizer; the step was "
     "ended.",
     "What an apply did last may be in no state: the message and a dry-run show what to compare. "
     "Delete or cancel the Run instead."},
    {"NameTaken", "Another TaskAction had the name of a step of the run; the step did not begin.",
     "The message names it. Delete it if nobody needs it, or run again under another name."},
    {"InternalError", "An unexpected error occurred in dayfly.",
     "Please report it with the output of `dayfly why` and the service's log."},
    {"Deleting", "The executor was deleted, and is removed as soon as that is safe.",
     "The message says what it waits for: usually a run with the action destroy."},
    {"Unschedulable", "No node can run the pod; nothing was run.",
     "Check nodeSelector, tolerations, affinity and resources of the placement, or add a node."},
    {"ImagePullFailed", "The image cannot be pulled; nothing was run.",
     "Check the image's name and tag, the registry, and placement.imagePullSecrets."},
    {"ImageNameInvalid", "The image's name is invalid; nothing was run.",
     "Correct placement.image."},
    {"SecretMissing", "A Secret that the pod needs does not exist; nothing was run.",
     "Create it in the pod's namespace, or correct its name in the placement."},
    {"ConfigMapMissing", "A ConfigMap that the pod needs does not exist; nothing was run.",
     "Create it in the pod's namespace, or correct its name in the placement."},
    {"KeyMissing", "A Secret or ConfigMap lacks a key that the pod needs; nothing was run.",
     "Add the key, or correct its name in the placement."},
    {"ClaimMissing", "A volume claim that the pod needs does not exist; nothing was run.",
     "Create it in the pod's namespace, or correct its name in the placement."},
    {"ServiceAccountMissing", "The pod's service account does not exist; nothing was run.",
     "Create it in the pod's namespace, or correct placement.serviceAccountName."},
    {"NamespaceMissing", "The namespace does not exist; nothing was run.",
     "Create the namespace, or correct the configuration."},
    {"QuotaExceeded", "The namespace's quota leaves no room for the pod; nothing was run.",
     "Wait for others to end, request less in placement.resources, or raise the quota."},
    {"AdmissionRefused", "The cluster's admission refused the pod; nothing was run.",
     "Change the placement to what the policy allows, or ask the owner of the policy."},
    {"VolumeFailed", "A volume could not be mounted; nothing was run.",
     "Check the volume, its claim and its driver."},
    {"RunsAsRoot", "The image wants to run as root, which the pod forbids; nothing was run.",
     "Use an image with a numeric user, or set placement.podSecurityContext.runAsUser."},
    {"CommandMissing", "The image does not have the program that the pod starts; nothing was run.",
     "Correct placement.image: it must be a runner image."},
    {"ContainerFailed", "The container could not be created; nothing was run.",
     "Check the node's kubelet and runtime."},
    {"NodeFailed", "The node could not set the pod up; nothing was run.",
     "Check the node, then run again."},
    {"ObjectRefused", "The API server refused the object; nothing was run.",
     "Correct the field of the placement that the API server names."},
    {"NotAllowed", "The service has no permission to do this; nothing was run.",
     "Grant the service the Role of rbac/ in that namespace."},
    {"InvalidPlacement", "The merged placement is not a valid pod; nothing was run.",
     "The message names the field and the value: see docs/placement.md."},
    {"PlacementDenied", "The pod asks for what the caller, or any step, may not have; nothing ran.",
     "The message names the field and the key of the service's configuration that the operator can "
     "extend. What kubectl applies counts as of the role write unless the admission webhook names "
     "an admin (docs/placement.md)."},
    {"OOMKilled", "The container needed more memory than its limit and was killed.",
     "Raise placement.resources.limits.memory."},
    {"Evicted", "The pod was evicted from its node.",
     "What the tool had stored is in the state: a new plan shows what remains to be done."},
    {"Preempted", "The pod had to make room for one of higher priority.",
     "Set placement.priorityClassName; what the tool had stored is in the state: a new plan shows "
     "what remains to be done."},
    {"DeadlineExceeded", "The Job's deadline passed and Kubernetes ended the pod.",
     "Raise spec.timeouts, or find in the log what the step waited for."},
    {"NodeLost", "The pod's node is gone or no longer answers.",
     "Check the node; what the tool had stored is in the state: a new plan shows what remains to "
     "be done."},
    {"NodeShutdown", "The pod's node was shut down.",
     "What the tool had stored is in the state: a new plan shows what remains to be done."},
    {"PodDeleted", "Somebody deleted the pod.",
     "What the tool had stored is in the state: a new plan shows what remains to be done."},
    {"JobDeleted", "Somebody deleted the Job or PipelineRun.",
     "What the tool had stored is in the state: a new plan shows what remains to be done."},
    {"WorkflowFailed", "The workflow's image ran and failed.",
     "The message has its exit code; `dayfly logs taskaction/NAME` shows what it printed."},
    {"TargetLocked", "Somebody else held the workflow's target for too long; nothing was run.",
     "The message names the holder. Wait for it, or raise spec.timeoutSeconds."},
    {"PodsExhausted",
     "The workflow's pod was evicted or killed too often; no further pod is started.",
     "Check the memory limit in spec.workflow.resources and the nodes, then create the workflow "
     "again."},
    {"RunnerKilled", "The container was killed by a signal.",
     "Check the node's kernel log and the memory limit; what the tool had stored is in the state: "
     "a new plan shows what remains to be done."},
    {0}};

const struct df_reason *df_reason_find(const char *word)
{
    for (const struct df_reason *r = df_reasons; r->word; r++)
        if (df_streq(r->word, word))
            return r;
    return NULL;
}
