#include <strings.h>

#include "spawner/engine/workflow/workflow.h"

/* The first match counts. Letters of either case are equal. */
static const struct row {
    const char *in_reason;     /* the reason has it; or NULL */
    const char *in_message[2]; /* the message has both; an empty row ends the table */
    struct df_workflow_class class;
} rows[] = {
    /* The contract's order, for engines that tell no more than a text. */
    {NULL, {"oomkilled"}, {"OOMKilled", "OOMKilled", false, true}},
    /* A part of many words ("chatroom"): enough for the contract, too little for ours. */
    {NULL, {"oom"}, {"OOMKilled", "WorkflowFailed", false, true}},
    {"timeout", {NULL}, {"DeadlineExceeded", "DeadlineExceeded", false, true}},
    {NULL, {"timeout"}, {"DeadlineExceeded", "DeadlineExceeded", false, true}},
    {NULL, {"deadline"}, {"DeadlineExceeded", "DeadlineExceeded", false, true}},
    {NULL, {"forbidden"}, {"Forbidden", "WorkflowFailed", false, true}},
    {NULL, {"rbac"}, {"Forbidden", "WorkflowFailed", false, true}},
    {NULL, {"permission denied"}, {"Forbidden", "WorkflowFailed", false, true}},
    {NULL, {"exceeded quota"}, {"ResourceExhausted", "QuotaExceeded", true, false}},
    {NULL, {"quota"}, {"ResourceExhausted", "WorkflowFailed", true, false}},
    {NULL, {"resource exhausted"}, {"ResourceExhausted", "WorkflowFailed", true, false}},
    {NULL, {"imagepullbackoff"}, {"ImagePullBackOff", "ImagePullFailed", true, false}},
    {NULL, {"image pull"}, {"ImagePullBackOff", "ImagePullFailed", true, false}},
    {NULL, {"invalid"}, {"ConfigurationError", "WorkflowFailed", true, false}},
    {NULL, {"configuration"}, {"ConfigurationError", "WorkflowFailed", true, false}},
    {"taskfailed", {NULL}, {"TaskFailed", "WorkflowFailed", false, true}},
    {NULL, {"task", "failed"}, {"TaskFailed", "WorkflowFailed", false, true}},
    /* Our own reasons, for engines that have looked at the pod. */
    {"OOMKilled", {NULL}, {"OOMKilled", "OOMKilled", false, true}},
    {"DeadlineExceeded", {NULL}, {"DeadlineExceeded", "DeadlineExceeded", false, true}},
    {"AdmissionRefused", {NULL}, {"Forbidden", "AdmissionRefused", true, false}},
    {"NotAllowed", {NULL}, {"Forbidden", "NotAllowed", true, false}},
    {"QuotaExceeded", {NULL}, {"ResourceExhausted", "QuotaExceeded", true, false}},
    {"Unschedulable", {NULL}, {"ResourceExhausted", "Unschedulable", true, false}},
    {"ImagePullFailed", {NULL}, {"ImagePullBackOff", "ImagePullFailed", true, false}},
    {"ImageNameInvalid", {NULL}, {"ConfigurationError", "ImageNameInvalid", true, false}},
    {"SecretMissing", {NULL}, {"ConfigurationError", "SecretMissing", true, false}},
    {"ConfigMapMissing", {NULL}, {"ConfigurationError", "ConfigMapMissing", true, false}},
    {"KeyMissing", {NULL}, {"ConfigurationError", "KeyMissing", true, false}},
    {"ClaimMissing", {NULL}, {"ConfigurationError", "ClaimMissing", true, false}},
    {"ServiceAccountMissing", {NULL}, {"ConfigurationError", "ServiceAccountMissing", true, false}},
    {"NamespaceMissing", {NULL}, {"ConfigurationError", "NamespaceMissing", true, false}},
    {"CommandMissing", {NULL}, {"ConfigurationError", "CommandMissing", true, false}},
    {"RunsAsRoot", {NULL}, {"ConfigurationError", "RunsAsRoot", true, false}},
    {"VolumeFailed", {NULL}, {"ConfigurationError", "VolumeFailed", true, false}},
    {"ObjectRefused", {NULL}, {"ConfigurationError", "ObjectRefused", true, false}},
    {"ContainerFailed", {NULL}, {"Unknown", "ContainerFailed", true, false}},
    {"NodeFailed", {NULL}, {"Unknown", "NodeFailed", true, false}},
    {NULL, {NULL}, {"Unknown", "WorkflowFailed", false, false}},
};

static bool is_in(const char *text, const char *part)
{
    return !part || strcasestr(text, part);
}

const struct df_workflow_class *df_workflow_class_of(const char *reason, const char *message)
{
    const struct row *r = rows;
    while (!is_in(reason, r->in_reason) || !is_in(message, r->in_message[0]) ||
           !is_in(message, r->in_message[1]))
        r++;
    return &r->class;
}
