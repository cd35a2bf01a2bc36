/*
 * The reason words of docs/objects.md and the fault that each implies by default: USER (caused by
 * what the user wrote, chose or did) or SYSTEM (may not occur again for the same step).
 */
#include "spawner/model/model.h"

#define NONE DF_FAULT_NONE
#define USER DF_FAULT_USER
#define SYSTEM DF_FAULT_SYSTEM

static const struct {
    const char *reason;
    enum df_fault fault;
} rows[] = {
    {"Applied", NONE},
    {"NoChanges", NONE},
    {"Planned", NONE},
    {"Destroyed", NONE},
    {"Validated", NONE},
    {"StateChanged", NONE},
    {"StateMoved", NONE},
    {"Completed", NONE},
    {"Accepted", NONE},
    {"Deleting", NONE},
    {"Discarded", USER},
    {"Canceled", USER},
    {"Aborted", USER},
    {"SourceFailed", USER},
    {"SourceRefused", USER},
    {"CommitNotInBranch", USER},
    {"SensitiveValue", USER},
    {"SourceChanged", USER},
    {"NoConfiguration", USER},
    {"ToolMissing", USER},
    {"ToolChecksum", USER},
    {"ToolVersionChanged", USER},
    {"LockFileChanged", USER},
    {"PlanStale", USER},
    {"InitFailed", USER},
    {"BackendInModule", USER},
    {"BackendMissing", USER},
    {"CredentialsMissing", USER},
    {"PlanFailed", USER},
    {"ApplyFailed", USER},
    {"StateCommandFailed", USER},
    {"StateExists", USER},
    {"StateMoveFailed", USER},
    {"VersionsUnavailable", USER},
    {"NoSuchVersion", USER},
    {"StorageChanged", USER},
    {"ErroredStatePending", USER},
    {"ScriptFailed", USER},
    {"PolicyFailed", USER},
    {"ValidationFailed", USER},
    {"StateLockLost", SYSTEM},
    {"PlanCorrupt", SYSTEM},
    {"PlanOfOtherRun", SYSTEM},
    {"PlanExpired", USER},
    {"PlanUsed", SYSTEM},
    {"PlanMissing", SYSTEM},
    {"StateLocked", USER},
    {"StateUnavailable", SYSTEM},
    {"StorageTakenOver", SYSTEM},
    {"StateRefused", USER},
    {"StateBelongsToAnother", USER},
    {"StateUnreadable", SYSTEM},
    {"StorageUnavailable", SYSTEM},
    {"TimedOut", USER},
    {"RunnerLost", SYSTEM},
    {"RunnerFailed", SYSTEM},
    {"NeverClaimed", SYSTEM},
    {"MaxSystemFailuresExceeded", SYSTEM},
    {"EngineFailed", SYSTEM},
    {"InvalidStep", USER},
    {"SecretUnreadable", SYSTEM},
    {"SecretSourceUnavailable", SYSTEM},
    {"SecretSourceDenied", SYSTEM},
    {"SecretNotAllowed", USER},
    {"IntegrationNotAllowed", USER},
    {"IntegrationFailed", USER},
    {"InvalidDocument", USER},
    {"DiskFull", SYSTEM},
    {"ExecutorGone", USER},
    {"StepDeleted", USER},
    {"NameTaken", USER},
    {"InternalError", SYSTEM},
    {"Unschedulable", SYSTEM},
    {"ImagePullFailed", USER},
    {"ImageNameInvalid", USER},
    {"SecretMissing", USER},
    {"ConfigMapMissing", USER},
    {"KeyMissing", USER},
    {"ClaimMissing", USER},
    {"ServiceAccountMissing", USER},
    {"NamespaceMissing", USER},
    {"QuotaExceeded", USER},
    {"AdmissionRefused", USER},
    {"VolumeFailed", SYSTEM},
    {"RunsAsRoot", USER},
    {"CommandMissing", USER},
    {"ContainerFailed", USER},
    {"NodeFailed", SYSTEM},
    {"ObjectRefused", USER},
    {"NotAllowed", USER},
    {"InvalidPlacement", USER},
    {"PlacementDenied", USER},
    {"OOMKilled", USER},
    {"Evicted", SYSTEM},
    {"Preempted", SYSTEM},
    {"DeadlineExceeded", USER},
    {"NodeLost", SYSTEM},
    {"NodeShutdown", SYSTEM},
    {"PodDeleted", SYSTEM},
    {"JobDeleted", SYSTEM},
    {"RunnerKilled", SYSTEM},
    {"WorkflowFailed", USER},
    {"TargetLocked", USER},
    {"PodsExhausted", SYSTEM},
};

const char *df_fault_name(enum df_fault fault)
{
    return fault == USER ? "USER" : fault == SYSTEM ? "SYSTEM" : "";
}

static size_t find_reason(const char *reason)
{
    size_t i = 0;
    while (i < DF_ARRAY_SIZE(rows) && !df_streq(rows[i].reason, reason))
        i++;
    return i;
}

bool df_reason_is_known(const char *reason)
{
    return find_reason(reason) < DF_ARRAY_SIZE(rows);
}

enum df_fault df_reason_fault(const char *reason)
{
    size_t i = find_reason(reason);
    return i < DF_ARRAY_SIZE(rows) ? rows[i].fault : NONE;
}
